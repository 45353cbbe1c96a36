"""A consistent copy of a live database, with SQLite's backup API (SPEC 2.2, 2.6)."""

import os
import sqlite3
from collections.abc import Callable
from typing import NamedTuple

from cafleet.db import connections
from cafleet.db.database import Database
from cafleet.db.failures import database_error
from cafleet.db.workshop import Workshop, sweep
from cafleet.errors import BackupFailed, TargetExists

Progress = Callable[[int, int], None]
"""Told now and then how many bytes are copied, and of how many; all of them while the copy is checked."""

PAGES_PER_STEP = 1024
CHECK_STEPS = 100_000
"""Instructions of SQLite's machine between two reports of the check."""


_OWN_SUFFIXES = ("-wal", "-shm", "-journal")


class BackupResult(NamedTuple):
    """A finished backup."""

    path: str
    size: int
    """Bytes."""


def backup(database: Database, target: str, progress: Progress | None = None) -> BackupResult:
    """Write the state of `database` at this moment to the new file `target` (mode 0600).

    Writers go on meanwhile. `target` appears only when it is complete and has passed `integrity_check`.

    Raises:
        TargetExists: there is something at `target`; it is left alone.
        BackupFailed: the copy cannot be written, or does not pass.
        DatabaseError: the database cannot be used.
    """
    sweep(os.path.dirname(target))
    if os.path.lexists(target):
        raise TargetExists(target)
    if target in [file + suffix for file in _names(database.path) for suffix in _OWN_SUFFIXES]:
        raise BackupFailed(target, "SQLite would take a file of that name for its own, and overwrite it")
    with database.read() as connection:
        return write_copy(connection, target, progress)


def _names(path: str) -> tuple[str, str]:
    return path, connections.real_path(path)


def write_copy(source: sqlite3.Connection, target: str, progress: Progress | None = None) -> BackupResult:
    """The same for an open connection; its open transaction, if any, must be one of reading.

    With `progress` there must be one: the copy is then made in steps, and each would else see another state.
    """
    if os.path.lexists(target):
        raise TargetExists(target)
    try:
        with Workshop(target) as workshop:
            _copy_and_check(source, workshop.file, target, progress)
            size = os.path.getsize(workshop.file)
            publish(workshop.file, target)
    except OSError as error:
        folder = os.path.dirname(target)
        missing = f"there is no folder {folder}"
        reason = (error.strerror or str(error)).lower() if os.path.exists(folder) else missing
        raise BackupFailed(target, reason) from error
    return BackupResult(target, size)


def _copy_and_check(source: sqlite3.Connection, partial: str, target: str, progress: Progress | None) -> None:
    descriptor = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.fchmod(descriptor, 0o600)
    os.close(descriptor)
    copy = sqlite3.connect(partial, isolation_level=None)
    try:
        size = _copy(source, copy, progress)
        findings = _findings(copy, None if progress is None else lambda: progress(size, size))
    except sqlite3.DatabaseError as error:
        raise BackupFailed(target, str(database_error(error, partial))) from error
    finally:
        copy.close()
    if findings != ["ok"]:
        raise BackupFailed(target, f"the copy is damaged: {findings[0]}")


def _copy(source: sqlite3.Connection, copy: sqlite3.Connection, progress: Progress | None) -> int:
    """Bytes of the copy, where they are counted."""
    if progress is None:
        source.backup(copy)
        return 0
    page_bytes: int = source.execute("PRAGMA page_size").fetchone()[0]
    size = 0

    def copied(_status: int, remaining: int, total: int) -> None:
        nonlocal size
        size = total * page_bytes
        progress(size - remaining * page_bytes, size)

    source.backup(copy, pages=PAGES_PER_STEP, progress=copied)
    return size


def _findings(copy: sqlite3.Connection, progress: Callable[[], None] | None) -> list[str]:
    """What SQLite's check says of the copy; `progress` is called now and then."""
    copy.set_progress_handler(progress, CHECK_STEPS)
    try:
        return [str(row[0]) for row in copy.execute("PRAGMA integrity_check")]
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:  # What it makes of Ctrl-C in `progress`.
            raise KeyboardInterrupt from None
        raise


def publish(partial: str, target: str) -> None:
    """Give the finished copy its name, never over something that appeared there meanwhile."""
    try:
        os.link(partial, target)
    except FileExistsError:
        raise TargetExists(target) from None
    except OSError:  # A file system without hard links.
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        os.replace(partial, target)
