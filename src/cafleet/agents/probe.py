"""Ask an installed program about itself (`--help`, `--version`), bounded in time."""

import os
import select
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

_MOST_BYTES = 256 * 1024


def output_of(argv: Sequence[str], environ: Mapping[str, str], timeout_seconds: float) -> str | None:
    """What the program prints on stdout; None where it cannot start or takes too long.

    `argv[0]` is an absolute path. Its process group is ended after the timeout.
    """
    reader, writer = os.pipe()
    try:
        null = os.open(os.devnull, os.O_RDWR)
        try:
            child = os.posix_spawn(
                argv[0],
                list(argv),
                dict(environ),
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, null, 0),
                    (os.POSIX_SPAWN_DUP2, writer, 1),
                    (os.POSIX_SPAWN_DUP2, null, 2),
                ],
                setpgroup=0,
            )
        finally:
            os.close(null)
            os.close(writer)
    except (OSError, ValueError):
        os.close(reader)
        return None
    try:
        output = _read_until(reader, time.monotonic() + timeout_seconds)
    finally:
        os.close(reader)
        _end_group(child)
        os.waitpid(child, 0)
    return None if output is None else output.decode("utf-8", "replace")


def _read_until(reader: int, deadline: float) -> bytes | None:
    """All output up to its end, or None at the deadline."""
    output = bytearray()
    while len(output) < _MOST_BYTES:
        remaining = deadline - time.monotonic()
        if remaining <= 0 or not select.select([reader], [], [], remaining)[0]:
            return None
        piece = os.read(reader, 65536)
        if not piece:
            break
        output += piece
    return bytes(output)


def _end_group(child: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
