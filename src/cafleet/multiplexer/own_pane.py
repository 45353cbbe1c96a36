"""The calling pane as the environment alone names it: no process is started, nothing is proven."""

import os
from collections.abc import Mapping

from cafleet.light_typing import NamedTuple


class OwnPane(NamedTuple):
    """A server and a pane id as placements record them."""

    server: str
    pane: str


def own_pane(environ: Mapping[str, str]) -> OwnPane | None:
    """The tmux pane that `TMUX` and `TMUX_PANE` name, or None."""
    value, pane = environ.get("TMUX", ""), environ.get("TMUX_PANE", "")
    socket, _, pid = value.rpartition(",")[0].rpartition(",")
    if not (os.path.isabs(socket) and _is_number(pid) and pane[:1] == "%" and _is_number(pane[1:])):
        return None
    return OwnPane(tmux_server_name(socket, int(pid)), pane)


def tmux_server_name(socket: str, pid: int) -> str:
    """`<host>|<socket>|<pid>`: how a tmux server is recorded (SPEC 5.2)."""
    return f"{os.uname().nodename}|{socket}|{pid}"


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
