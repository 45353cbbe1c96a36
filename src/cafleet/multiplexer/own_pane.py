"""The calling pane as its environment names it (SPEC 5.1): no process is started, nothing is proven.

Every `message send` comes here.
"""

import os
from collections.abc import Mapping
from importlib import import_module

from cafleet.errors import MultiplexerError
from cafleet.light_typing import NamedTuple
from cafleet.multiplexer.server_name import is_number, server_name

SETTING = "CAFLEET_MULTIPLEXER"
"""Names the calling pane's backend where more than one could be meant."""
MARKS = {"tmux": "TMUX", "herdr": "HERDR_ENV"}
"""Built-in backend to the variable that its panes have."""
HERDR_ANSWER_SECONDS = 0.5


class OwnPane(NamedTuple):
    """A server and a pane id as placements record them."""

    server: str
    pane: str


class HerdrPane(NamedTuple):
    """What a herdr pane's environment tells: not which process its server is."""

    socket: str
    """Absolute path."""
    pane: str


def marked_backends(environ: Mapping[str, str]) -> list[str]:
    """The built-in backends whose variables are set: more than one where they are nested."""
    return [name for name, variable in MARKS.items() if environ.get(variable)]


def own_pane(environ: Mapping[str, str]) -> OwnPane | None:
    """The pane that the environment names; None where that is none, or not certain."""
    chosen = environ.get(SETTING)
    names = [chosen] if chosen else marked_backends(environ)
    if names == ["tmux"]:
        return tmux_pane(environ)
    if names == ["herdr"]:
        return _herdr_own_pane(environ)
    return None


def tmux_pane(environ: Mapping[str, str]) -> OwnPane | None:
    """The tmux pane that `TMUX` and `TMUX_PANE` name, or None."""
    value, pane = environ.get("TMUX", ""), environ.get("TMUX_PANE", "")
    socket, _, pid = value.rpartition(",")[0].rpartition(",")
    if not (os.path.isabs(socket) and is_number(pid) and is_tmux_pane(pane)):
        return None
    return OwnPane(server_name(socket, int(pid)), pane)


def herdr_pane(environ: Mapping[str, str]) -> HerdrPane | None:
    """The herdr pane that `HERDR_ENV`, `HERDR_SOCKET_PATH` and `HERDR_PANE_ID` name, or None."""
    socket, pane = environ.get("HERDR_SOCKET_PATH", ""), environ.get("HERDR_PANE_ID", "")
    if not (environ.get("HERDR_ENV") and os.path.isabs(socket) and is_herdr_pane(pane)):
        return None
    return HerdrPane(socket, pane)


def _herdr_own_pane(environ: Mapping[str, str]) -> OwnPane | None:
    found = herdr_pane(environ)
    if found is None:
        return None
    # Only a sender in a herdr pane pays for this: the kernel is asked which process the server is.
    listener = import_module("cafleet.multiplexer.socket_listener")
    try:
        pid: int = listener.listening_pid(found.socket, "herdr", HERDR_ANSWER_SECONDS)
    except MultiplexerError:
        return None
    return OwnPane(server_name(found.socket, pid), found.pane)


def is_tmux_pane(text: str) -> bool:
    """Whether this is a tmux pane id, such as `%7`."""
    return text[:1] == "%" and is_number(text[1:])


def is_herdr_pane(text: str) -> bool:
    """Whether this can be a herdr pane id. They are opaque (`w1:p2`); one that could be read as an
    option or is no word is none."""
    return bool(text) and text.isascii() and text.isprintable() and " " not in text and text[0] != "-"
