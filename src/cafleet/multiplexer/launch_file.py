"""Handing a new pane what it shall run, by a private file instead of a multiplexer's command line.

The parent makes the file and keeps it open. `launcher.py`, the pane's first process, locks it, takes
it off the disk, and becomes the agent, which drops the lock; if it cannot, it writes the reason into
the file that only the parent can still read. So nothing stays on disk and no failure is silent.
"""

import contextlib
import fcntl
import os
import stat
import sys
import time
from collections.abc import Callable
from types import TracebackType

from cafleet.errors import MultiplexerError, MultiplexerTimeout
from cafleet.multiplexer import screen_text
from cafleet.multiplexer.base import LaunchSpec

START_TIMEOUT_SECONDS = 10.0
_POLL_SECONDS = 0.005
_LIFE_CHECK_SECONDS = 0.5
_LONGEST_REASON_BYTES = 4096
_PREFIX = "launch-"
_STALE_SECONDS = 3600.0
"""A file of this age was left by a process that was killed before its pane took it."""
PANE_OWN_VARIABLES = frozenset(
    (
        *("TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "TMUX", "TMUX_PANE", "HERDR_ENV", "HERDR_BIN_PATH"),
        *("HERDR_SOCKET_PATH", "HERDR_WORKSPACE_ID", "HERDR_TAB_ID", "HERDR_PANE_ID"),
    )
)
"""What the multiplexer says about the new pane: never overwritten by the caller's own values."""


class LaunchFile:
    """A launch on its way to a new pane. On leaving, nothing of it is left on disk."""

    def __init__(self, launch: LaunchSpec) -> None:
        self._launch = launch
        self._path = ""
        self._descriptor = -1

    @property
    def argv(self) -> list[str]:
        """What the multiplexer shall run: no part needs quoting or is of the user's making."""
        launcher = os.path.join(os.path.dirname(os.path.abspath(__file__)), "launcher.py")
        return [sys.executable, "-I", "-S", launcher, self._path]

    def __enter__(self) -> "LaunchFile":
        """Write the file. Raises MultiplexerError."""
        try:
            directory = self._launch.private_directory
            _secure(directory)
            _sweep(directory, time.time())
            self._path = os.path.join(directory, f"{_PREFIX}{os.getpid()}-{os.urandom(8).hex()}")
            flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
            self._descriptor = os.open(self._path, flags, 0o600)
            with open(self._descriptor, "wb", closefd=False) as file:
                file.write(_content(self._launch))
        except OSError as error:
            self._remove()
            raise MultiplexerError(f"cannot write a launch file: {error}") from error
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._remove()

    def wait_until_started(
        self, lives: Callable[[], bool], timeout_seconds: float = START_TIMEOUT_SECONDS
    ) -> None:
        """Return once the pane's process has become the agent.

        `lives` tells whether the pane still has its process; it is asked now and then.

        Raises:
            MultiplexerError: it could not be started, with the reason.
            MultiplexerTimeout: nothing happened in time.
        """
        deadline = time.monotonic() + timeout_seconds
        check = time.monotonic() + _LIFE_CHECK_SECONDS
        while not self._taken_and_dropped():
            now = time.monotonic()
            if now >= deadline:
                raise MultiplexerTimeout("the new pane", timeout_seconds)
            if now >= check:
                if not lives() and not self._taken_and_dropped():
                    raise MultiplexerError("the new pane ended before its program was started")
                check = now + _LIFE_CHECK_SECONDS
            time.sleep(_POLL_SECONDS)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        reason = os.read(self._descriptor, _LONGEST_REASON_BYTES).decode("utf-8", "replace")
        if reason:
            raise MultiplexerError(reason)

    def _taken_and_dropped(self) -> bool:
        if os.path.lexists(self._path):
            return False
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _remove(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            with contextlib.suppress(OSError):  # Taken by the pane; else it stays, private as it is.
                os.unlink(self._path)


def _content(launch: LaunchSpec) -> bytes:
    """Five counted lists, every item ended by a NUL, which no item can hold; see `launcher.read`."""
    environ = {name: value for name, value in launch.environ.items() if name not in PANE_OWN_VARIABLES}
    title = screen_text.printable(launch.title)
    lists = [[launch.directory], [title], launch.argv, launch.scrub, [f"{k}={v}" for k, v in environ.items()]]
    items = [part for parts in lists for part in (str(len(parts)), *parts)]
    if any("\0" in item for item in items):
        raise MultiplexerError("a program's arguments and environment cannot hold a NUL")
    try:
        return "".join(item + "\0" for item in items).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise MultiplexerError("a program's arguments and environment must be valid text") from error


def _secure(directory: str) -> None:
    """Make the folder, or see that it is ours alone. Raises MultiplexerError or OSError."""
    os.makedirs(os.path.dirname(directory), mode=0o700, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.mkdir(directory, 0o700)
    status = os.lstat(directory)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise MultiplexerError(f"{directory} is not a folder of this user; remove it")
    if stat.S_IMODE(status.st_mode) & 0o077:
        os.chmod(directory, 0o700)


def _sweep(directory: str, now_seconds: float) -> None:
    """Remove what killed processes left: a prompt can hold secrets."""
    for name in os.listdir(directory):
        path = os.path.join(directory, name)
        with contextlib.suppress(OSError):
            if name.startswith(_PREFIX) and now_seconds - os.lstat(path).st_mtime > _STALE_SECONDS:
                os.unlink(path)
