"""Put a folder or a file in the place of whatever is there, at one moment (SPEC 8).

The new one is built beside the target and takes its name in one step; a process that is killed leaves
the old one or the new one. A symlink is replaced, never followed.
"""

import ctypes
import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_PREFIX = ".cafleet-new-"
_CURRENT_DIRECTORY_FD = -100
_RENAME_EXCHANGE = 2
_NO_EXCHANGE = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}


def replace_folder(source: str, target: str) -> None:
    """A copy of the folder `source` at `target`. Raises OSError; then the old target is untouched."""
    with _workshop(target) as workshop:
        new = os.path.join(workshop, "new")
        _copy_folder(source, new)
        _swap_in(new, target, os.path.join(workshop, "old"))


def replace_file(source: str, target: str) -> None:
    """A copy of the file `source` at `target`. Raises OSError; then the old target is untouched."""
    with _workshop(target) as workshop:
        new = os.path.join(workshop, "new")
        shutil.copyfile(source, new)
        if os.path.isdir(target) and not os.path.islink(target):
            raise IsADirectoryError(errno.EISDIR, "a folder is in the way", target)
        os.replace(new, target)


def _copy_folder(source: str, target: str) -> None:
    """Contents only: the modes of an installed package can be read-only."""
    os.mkdir(target)
    for entry in os.scandir(source):
        copy = _copy_folder if entry.is_dir() else shutil.copyfile
        copy(entry.path, os.path.join(target, entry.name))


@contextmanager
def _workshop(target: str) -> Iterator[str]:
    """A folder beside the target, one at a time; what a killed process left there goes first."""
    parent = os.path.dirname(target)
    os.makedirs(parent, exist_ok=True)
    descriptor = os.open(parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # A file system without locks.
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        for name in os.listdir(parent):
            if name.startswith(_PREFIX):
                shutil.rmtree(os.path.join(parent, name), ignore_errors=True)
        workshop = tempfile.mkdtemp(prefix=_PREFIX, dir=parent)
        try:
            yield workshop
        finally:
            shutil.rmtree(workshop, ignore_errors=True)
    finally:
        os.close(descriptor)


def _swap_in(new: str, target: str, old: str) -> None:
    if not os.path.lexists(target):
        os.rename(new, target)
    elif not _exchange(new, target):
        os.rename(target, old)
        try:
            os.rename(new, target)
        except OSError:
            os.rename(old, target)
            raise


def _exchange(first: str, second: str) -> bool:
    """Swap two names in one step; False where the system cannot (then there is a moment without either)."""
    library = ctypes.CDLL(None, use_errno=True)
    rename = getattr(library, "renameat2", None)
    if rename is None:
        return False
    here, paths = _CURRENT_DIRECTORY_FD, (os.fsencode(first), os.fsencode(second))
    if rename(here, paths[0], here, paths[1], _RENAME_EXCHANGE) == 0:
        return True
    error = ctypes.get_errno()
    if error in _NO_EXCHANGE:
        return False
    raise OSError(error, os.strerror(error), second)
