"""How a multiplexer's server is recorded: `<host>|<socket>|<process id>` (SPEC 5.2)."""

import os

from cafleet.errors import PaneGone
from cafleet.light_typing import NamedTuple


class Server(NamedTuple):
    """A server that can be reached from here, if it still is the one that was recorded."""

    socket: str
    """Absolute path."""
    pid: int


def server_name(socket: str, pid: int) -> str:
    """What a placement keeps of a server on this host."""
    return f"{os.uname().nodename}|{socket}|{pid}"


def recorded_server(name: str | None, program: str) -> Server:
    """The server that a placement names; `program` is the multiplexer's name, for errors.

    Raises:
        PaneGone: none was recorded, or not one that can be reached from here.
    """
    if name is None:
        raise PaneGone(f"its {program} server was not recorded")
    host, _, rest = name.partition("|")
    socket, _, pid = rest.rpartition("|")
    if not (os.path.isabs(socket) and is_number(pid)):
        raise PaneGone(f"'{name}' names no {program} server")
    if host != os.uname().nodename:
        raise PaneGone(f"its {program} server is on another host ({host})")
    return Server(socket, int(pid))


def expect_same(server: Server, pid: str, program: str) -> None:
    """Raises PaneGone: the process that listens at the server's socket is another one, `pid`."""
    if pid != str(server.pid):
        raise PaneGone(f"its {program} server is gone: another one (pid {pid}) listens at {server.socket}")


def is_number(text: str) -> bool:
    """ASCII digits and nothing else."""
    return text.isascii() and text.isdigit()
