"""The calling pane as the environment alone names it: no process is started, nothing is proven."""

import os
from collections.abc import Mapping

from cafleet.light_typing import NamedTuple
from cafleet.multiplexer.server_name import is_number, server_name


class OwnPane(NamedTuple):
    """A server and a pane id as placements record them."""

    server: str
    pane: str


def own_pane(environ: Mapping[str, str]) -> OwnPane | None:
    """The tmux pane that `TMUX` and `TMUX_PANE` name, or None."""
    value, pane = environ.get("TMUX", ""), environ.get("TMUX_PANE", "")
    socket, _, pid = value.rpartition(",")[0].rpartition(",")
    if not (os.path.isabs(socket) and is_number(pid) and is_tmux_pane(pane)):
        return None
    return OwnPane(server_name(socket, int(pid)), pane)


def is_tmux_pane(text: str) -> bool:
    """Whether this is a tmux pane id, such as `%7`."""
    return text[:1] == "%" and is_number(text[1:])
