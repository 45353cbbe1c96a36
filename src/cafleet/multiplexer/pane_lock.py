"""The pane lock: one writer into a pane at a time, across processes (SPEC 4.2).

A lock is `flock` on a file, so the kernel releases it when its holder dies, however it dies. The
file's name comes from backend, multiplexer server and pane id: placements that name the same pane
share it. Its content is for the next holder: a note of what the last one, if it was killed, had under
way in the pane, and a mark by which its line is known again. Where the file cannot be written there is
neither.
"""

import contextlib
import errno
import fcntl
import os
import time
from binascii import crc32
from collections.abc import Iterable
from types import TracebackType

from cafleet.errors import CafleetError, PaneBusy
from cafleet.multiplexer.base import PaneAddress

DEFAULT_TIMEOUT_SECONDS = 5.0
_FIRST_PAUSE_SECONDS = 0.002
_LONGEST_PAUSE_SECONDS = 0.05
_LONGEST_NAME = 180
_STALE_SECONDS = 7 * 24 * 3600
_FORBIDDEN = (errno.EACCES, errno.EROFS, errno.EPERM)
_NOTE_BYTES = 32
_LONGEST_NOTE_SECONDS = 60.0
"""A note that is to hold longer is one from before the machine was started anew."""
_MARK_SECONDS = 600.0


class PaneLockUnavailable(CafleetError):
    """The lock file itself cannot be used: a folder that may not be written, a full disk."""

    def __init__(self, path: str, error: OSError) -> None:
        self.path, self.reason = path, error.strerror or str(error)
        hint = ""
        if error.errno in _FORBIDDEN:
            folder = os.path.dirname(os.path.dirname(path))
            hint = (
                f"; allow writing to the folder {folder} and the files in it (in a sandbox, 'cafleet doctor'"
                " names the setting that grants it) and try again"
            )
        super().__init__(f"cannot take the pane lock {path}: {self.reason}{hint}")


class PaneLock:
    """Holds the locks of one or more panes for the length of a `with` block.

    Several panes are locked in one fixed order, each once, so that two holders of overlapping sets
    cannot wait for each other in a circle. Not reentrant: a holder must not lock its pane again.
    """

    def __init__(self, paths: Iterable[str], timeout_seconds: float) -> None:
        self._paths = sorted(set(paths))
        self._timeout_seconds = timeout_seconds
        self._held: list[int] = []

    def __enter__(self) -> "PaneLock":
        """Take the locks.

        Raises:
            PaneBusy: another process held one of them for all of the timeout.
            PaneLockUnavailable: a lock file cannot be made or opened.
        """
        deadline = time.monotonic() + self._timeout_seconds
        try:
            for path in self._paths:
                self._held.append(_lock(path, deadline))
        except BaseException:
            self._release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._release()

    def require_held(self) -> None:
        """Prove, before each touch of a pane, that the locks still keep others out.

        Raises:
            PaneBusy: somebody removed a lock file, so another process may hold the lock of a new one.
        """
        for descriptor, path in zip(self._held, self._paths, strict=True):
            if not _is_at(descriptor, path):
                raise PaneBusy("its lock file was removed meanwhile; try again")

    @property
    def note(self) -> str:
        """The first pane's note, while it holds; else empty."""
        return _read(self._held[0], 0, _LONGEST_NOTE_SECONDS)

    def leave_note(self, text: str, seconds: float) -> None:
        """Tell whoever holds the first pane's lock within `seconds` (at most 60), `text` being a word."""
        self._write(0, text, seconds)

    @property
    def mark(self) -> str:
        """The first pane's mark, for ten minutes; else empty."""
        return _read(self._held[0], _NOTE_BYTES, _MARK_SECONDS)

    def leave_mark(self, text: str) -> None:
        """Which line is under way, `text` being a word. It stays where a further note is left."""
        self._write(_NOTE_BYTES, text, _MARK_SECONDS)

    def _write(self, offset: int, text: str, seconds: float) -> None:
        """One write of a fixed size, which a kill cannot cut; not synced, as no pane outlives the machine."""
        content = f"{text} {time.monotonic() + seconds:.3f}".ljust(_NOTE_BYTES)
        with contextlib.suppress(OSError):
            os.pwrite(self._held[0], content.encode("ascii"), offset)

    def end_note(self) -> None:
        """Nothing is under way any more, but the marked line may still be there."""
        self._write(0, "", 0.0)

    def drop_note(self) -> None:
        """Nothing is under way any more: neither note nor mark is left."""
        with contextlib.suppress(OSError):
            os.ftruncate(self._held[0], 0)

    def _release(self) -> None:
        while self._held:
            os.close(self._held.pop())


def pane_lock(
    data_directory: str,
    backend: str,
    address: PaneAddress,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
) -> PaneLock:
    """The lock of one pane, to be held by whoever types into it or changes its placement."""
    return PaneLock([lock_path(data_directory, backend, address)], timeout_seconds)


def pane_locks(
    data_directory: str,
    panes: Iterable[tuple[str, PaneAddress]],
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
) -> PaneLock:
    """The locks of several `(backend, address)` at once; `timeout_seconds` is for all of them."""
    return PaneLock([lock_path(data_directory, name, address) for name, address in panes], timeout_seconds)


def lock_path(data_directory: str, backend: str, address: PaneAddress) -> str:
    """Where the lock of a pane lives. Different panes may share a path only in theory (harmless)."""
    name = "+".join(_escape(part) for part in (backend, address.server or "", address.pane))
    if len(name) > _LONGEST_NAME:
        name = f"{name[: _LONGEST_NAME - 9]}-{crc32(name.encode()):08x}"
    return os.path.join(data_directory, "locks", name + ".lock")


def mark_left(data_directory: str, backend: str, address: PaneAddress) -> str:
    """The pane's mark as it is now, for who only looks and takes no lock; else empty."""
    try:
        descriptor = os.open(lock_path(data_directory, backend, address), os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return ""
    try:
        return _read(descriptor, _NOTE_BYTES, _MARK_SECONDS)
    finally:
        os.close(descriptor)


def sweep_locks(data_directory: str, now_seconds: float, stale_seconds: float = _STALE_SECONDS) -> int:
    """Remove lock files that nobody took for `stale_seconds`; returns how many.

    Safe at any time: a file is unlinked only while its lock is held here, and whoever waits for it
    meanwhile notices that the path has another inode and starts again.
    """
    folder = os.path.join(data_directory, "locks")
    removed = 0
    try:
        names = [name for name in os.listdir(folder) if name.endswith(".lock")]
    except OSError:
        return 0
    for name in names:
        path = os.path.join(folder, name)
        try:
            if now_seconds - os.lstat(path).st_mtime < stale_seconds:
                continue
            descriptor = _lock(path, deadline=0.0)
        except (OSError, CafleetError):
            continue
        try:
            os.unlink(path)
            removed += 1
        except OSError:
            pass
        finally:
            os.close(descriptor)
    return removed


def _escape(text: str) -> str:
    """A part of a file name: ASCII letters, digits, `.` and `_` as they are, the rest as `=hh=`."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "._") else f"={ord(c):x}=" for c in text)


def _read(descriptor: int, offset: int, longest_seconds: float) -> str:
    content = os.pread(descriptor, _NOTE_BYTES, offset).decode("ascii", "replace")
    text, _, until = content.rstrip().rpartition(" ")
    try:
        left_seconds = float(until) - time.monotonic()
    except ValueError:
        return ""
    return text if 0 < left_seconds < longest_seconds + 1 else ""  # What is written is rounded.


def _lock(path: str, deadline: float) -> int:
    """A descriptor that holds the exclusive lock of the file that `path` names now."""
    pause = _FIRST_PAUSE_SECONDS
    while True:
        descriptor = _open(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(descriptor, path):
                _touch(descriptor)
                return descriptor
        except BlockingIOError:
            pass
        except OSError as error:
            os.close(descriptor)
            raise PaneLockUnavailable(path, error) from error
        except BaseException:
            os.close(descriptor)
            raise
        else:
            # Deleted while we took it: the lock of an unlinked file protects nothing.
            os.close(descriptor)
            continue
        os.close(descriptor)
        left = deadline - time.monotonic()
        if left <= 0:
            raise PaneBusy
        time.sleep(min(pause, left))
        pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)


def _open(path: str) -> int:
    flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    for make_folder in (True, False):
        try:
            return os.open(path, flags, 0o600)
        except FileNotFoundError as error:
            if not make_folder:
                raise PaneLockUnavailable(path, error) from error
            _make_folder(path)
        except OSError as error:
            if error.errno not in _FORBIDDEN:
                raise PaneLockUnavailable(path, error) from error
            return _open_existing(path, error)
    raise AssertionError("unreachable")


def _open_existing(path: str, refused: OSError) -> int:
    """A file that exists can be locked without the right to write it; `refused` is what is said else."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        raise PaneLockUnavailable(path, refused) from refused


def _make_folder(path: str) -> None:
    """The folder of the lock file `path`."""
    try:
        os.mkdir(os.path.dirname(path), 0o700)
    except FileExistsError:
        pass
    except OSError as error:
        raise PaneLockUnavailable(path, error) from error


def _is_at(descriptor: int, path: str) -> bool:
    try:
        named = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    ours = os.fstat(descriptor)
    return (named.st_dev, named.st_ino) == (ours.st_dev, ours.st_ino)


def _touch(descriptor: int) -> None:
    """Show `sweep_locks` that the lock is in use."""
    with contextlib.suppress(OSError):
        os.utime(descriptor)
