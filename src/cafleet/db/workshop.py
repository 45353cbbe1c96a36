"""Where a file is built before it gets its name: a private folder that no crash leaves behind for long.

The builder holds a lock in its folder, which the kernel drops when it dies. Whoever comes to the same
place next calls `sweep`, which removes every folder whose lock is free.
"""

import fcntl
import os
import re
from contextlib import suppress
from types import TracebackType
from typing import Self

_NAME = re.compile(r".+\.[0-9a-f]{8}\.partial")
_LOCK, _FILE = "lock", "copy.db"
_CONTENT = tuple(_FILE + suffix for suffix in ("", "-wal", "-shm", "-journal"))


class Workshop:
    """A folder `<target>.<8 hex digits>.partial`, mode 0700. A context manager, at whose end it is gone."""

    def __init__(self, target: str) -> None:
        """`target`: absolute path of what is to be built. Raises OSError."""
        self._folder, self._lock = _make(target)
        self.file = os.path.join(self._folder, _FILE)
        """Where to build it; not there yet. SQLite's own files may stand beside it."""

    def remove(self) -> None:
        """Remove the folder with all that was built and did not leave it."""
        with suppress(OSError):  # What cannot be removed now, a later sweep removes.
            _remove(self._folder)
        os.close(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()


def sweep(directory: str) -> None:
    """Remove from `directory` the folders of builders that have died. Never raises: they are in nobody's
    way."""
    try:
        names = os.listdir(directory)
    except OSError:
        return
    for name in names:
        if _NAME.fullmatch(name):
            with suppress(OSError):  # Somebody builds there, or it is another user's.
                _remove_if_left(os.path.join(directory, name))


def _make(target: str) -> tuple[str, int]:
    """A new folder, and the descriptor of its lock."""
    while True:
        folder = f"{target}.{os.urandom(4).hex()}.partial"
        os.mkdir(folder, 0o700)
        lock = os.path.join(folder, _LOCK)
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except FileNotFoundError:
            continue  # A sweep came before there was a lock.
        except OSError:
            os.rmdir(folder)
            raise
        with suppress(OSError):  # A file system without locks: no sweep can get it either.
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.path.exists(lock):
            return folder, descriptor
        os.close(descriptor)  # A sweep took it first.


def _remove_if_left(folder: str) -> None:
    # A folder of ours alone: nobody else can have put a link there that leads elsewhere.
    if os.lstat(folder).st_uid != os.geteuid() or os.path.islink(folder):
        return
    try:
        descriptor = os.open(os.path.join(folder, _LOCK), os.O_RDWR)
    except FileNotFoundError:
        os.rmdir(folder)  # Its maker died, or will see that it has gone.
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(folder)
    finally:
        os.close(descriptor)


def _remove(folder: str) -> None:
    """The lock last: as long as there is something to remove, a sweep can find it."""
    for name in (*_CONTENT, _LOCK):
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, name))
    os.rmdir(folder)
