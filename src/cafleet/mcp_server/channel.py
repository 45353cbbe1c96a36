"""Standard input and output, taken out of everybody else's reach before anything can write there.

The protocol owns what the client reads. A stray print, a warning of a library or the output of a child
process would break it, so all of those get standard error instead, and nothing but the protocol reads
the client's words.
"""

import fcntl
import os
import sys
from typing import NamedTuple

from cafleet.errors import CafleetError

_ABOVE_STANDARD = 3


class Channel(NamedTuple):
    """The two descriptors that lead to the client."""

    reader: int
    writer: int
    parent: int
    """Process id of who started this process, which is the client or ends with it."""


def claim() -> Channel:
    """Move the protocol to descriptors of its own. Once per process.

    Raises:
        CafleetError: standard input or output is closed.
    """
    # Whether they were open at the start is what counts: other files may have their numbers by now.
    if sys.stdin is None or sys.stdout is None:
        raise CafleetError(
            "'cafleet mcp' speaks to an MCP client on standard input and output, and one of them is closed"
        )
    parent = os.getppid()  # As early as can be: one that ended before is missed.
    reader = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, _ABOVE_STANDARD)
    writer = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, _ABOVE_STANDARD)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # Started without standard error.
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
    if nothing >= _ABOVE_STANDARD:
        os.close(nothing)
    return Channel(reader, writer, parent)
