"""Run one short-lived program, bounded in time: the gate that both backends go through.

`subprocess` would do, but importing it costs more than a whole tmux call (SPEC 13).
"""

import os
import select
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cafleet.errors import MultiplexerError, MultiplexerTimeout

_SIGKILL = 9
_SIGPIPE = 13  # Python ignores it, and a child would inherit that.
_CHUNK_BYTES = 65536
_REAP_PAUSE_SECONDS = 0.0005


class Finished(NamedTuple):
    """How a program ended."""

    status: int
    """Exit code; negative: the signal that ended it."""
    output: str
    errors: str


def find_program(name: str, environ: Mapping[str, str]) -> str:
    """Absolute path of `name` on the `PATH` of `environ`. Raises MultiplexerError."""
    for folder in environ.get("PATH", os.defpath).split(os.pathsep):
        candidate = os.path.join(folder or os.curdir, name)
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
    raise MultiplexerError(f"{name} not found on PATH")


def run(
    program: str,
    arguments: Sequence[str],
    environ: Mapping[str, str],
    *,
    timeout_seconds: float,
    text: str = "",
) -> Finished:
    """Run `program`, hand it `text` on standard input, and wait for its end.

    Raises:
        MultiplexerTimeout: it did not end in time; it was killed and reaped.
        MultiplexerError: it could not be started.
    """
    deadline = time.monotonic() + timeout_seconds
    name = os.path.basename(program)
    ours, theirs = _pipes()
    try:
        actions = [(os.POSIX_SPAWN_DUP2, theirs[number], number) for number in range(3)]
        process = os.posix_spawn(
            program, [name, *arguments], dict(environ), file_actions=actions, setsigdef=[_SIGPIPE]
        )
    except OSError as error:
        _close(ours)
        raise MultiplexerError(f"cannot start {program}: {error.strerror}") from error
    finally:
        _close(theirs)
    status: int | None = None
    try:
        output, errors = _exchange(ours, text.encode("utf-8", "replace"), deadline)
        status = _wait(process, deadline)
    except TimeoutError as error:
        raise MultiplexerTimeout(name, timeout_seconds) from error
    finally:
        _close(ours)
        if status is None:
            _kill(process)
    return Finished(status, output.decode("utf-8", "replace"), errors.decode("utf-8", "replace"))


def run_later(
    delay_seconds: float, program: str, arguments: Sequence[str], environ: Mapping[str, str]
) -> None:
    """Start `program` after a delay, in a session of its own that outlives this process.

    Its output goes nowhere and nobody learns how it ended. Raises MultiplexerError.
    """
    command = ["sh", "-c", 'sleep "$1"; shift; exec "$@"', "sh", f"{delay_seconds:g}", program, *arguments]
    null = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    try:
        os.posix_spawn(
            "/bin/sh", command, dict(environ), file_actions=null, setsid=True, setsigdef=[_SIGPIPE]
        )
    except OSError as error:
        raise MultiplexerError(f"cannot start {program}: {error.strerror}") from error


def _pipes() -> tuple[list[int], list[int]]:
    """Our ends and the child's ends of its standard input, output and error.

    All are close-on-exec. Numbers below 3 (a caller without standard streams) are moved up, since
    giving the child its descriptors one by one would overwrite them.
    """
    ours: list[int] = []
    theirs: list[int] = []
    try:
        for number in range(3):
            reader, writer = os.pipe()
            ours.append(writer if number == 0 else reader)
            theirs.append(reader if number == 0 else writer)
        for ends in (ours, theirs):
            for index, end in enumerate(ends):
                if end < 3:
                    ends[index] = _moved_up(end)
    except OSError as error:
        _close(ours + theirs)
        raise MultiplexerError(f"cannot make a pipe: {error.strerror}") from error
    return ours, theirs


def _moved_up(descriptor: int) -> int:
    low = [descriptor]
    try:
        while low[-1] < 3:
            low.append(os.dup(low[-1]))
        return low.pop()
    finally:
        _close(low)


def _exchange(ours: list[int], data: bytes, deadline: float) -> tuple[bytes, bytes]:
    """Feed `data` and read both streams to their ends. Raises TimeoutError."""
    writer, *readers = ours
    chunks: dict[int, list[bytes]] = {reader: [] for reader in readers}
    poll = select.poll()
    for reader in readers:
        poll.register(reader, select.POLLIN)
    open_ends = set(readers)
    if data:
        os.set_blocking(writer, False)
        poll.register(writer, select.POLLOUT)
        open_ends.add(writer)
    else:
        _close_one(ours, writer)
    while open_ends:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        for end, _ in poll.poll(left * 1000):
            if end == writer:
                data = _feed(writer, data)
                ended = not data
            else:
                chunk = os.read(end, _CHUNK_BYTES)
                chunks[end].append(chunk)
                ended = not chunk
            if ended:
                poll.unregister(end)
                open_ends.discard(end)
                _close_one(ours, end)
    return b"".join(chunks[readers[0]]), b"".join(chunks[readers[1]])


def _feed(writer: int, data: bytes) -> bytes:
    try:
        return data[os.write(writer, data) :]
    except BlockingIOError:
        return data
    except BrokenPipeError:
        return b""


def _wait(process: int, deadline: float) -> int:
    while True:
        try:
            done, status = os.waitpid(process, os.WNOHANG)
        except ChildProcessError:  # Our caller has its children reaped by the kernel.
            return 0
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= deadline:
            raise TimeoutError
        time.sleep(_REAP_PAUSE_SECONDS)


def _kill(process: int) -> None:
    try:
        os.kill(process, _SIGKILL)
        os.waitpid(process, 0)
    except (ProcessLookupError, ChildProcessError):
        pass


def _close_one(descriptors: list[int], descriptor: int) -> None:
    descriptors.remove(descriptor)
    os.close(descriptor)


def _close(descriptors: list[int]) -> None:
    while descriptors:
        os.close(descriptors.pop())
