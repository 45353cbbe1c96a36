"""A consistent copy of a live database, with SQLite's backup API (SPEC 2.2, 2.6)."""

import os
import sqlite3
from typing import NamedTuple

from cafleet.db.database import Database
from cafleet.db.failures import database_error
from cafleet.db.workshop import Workshop, sweep
from cafleet.errors import BackupFailed, TargetExists


class BackupResult(NamedTuple):
    """A finished backup."""

    path: str
    size: int
    """Bytes."""


def backup(database: Database, target: str) -> BackupResult:
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
    with database.read() as connection:
        return write_copy(connection, target)


def write_copy(source: sqlite3.Connection, target: str) -> BackupResult:
    """The same for an open connection; its open transaction, if any, must be one of reading."""
    if os.path.lexists(target):
        raise TargetExists(target)
    try:
        with Workshop(target) as workshop:
            _copy_and_check(source, workshop.file, target)
            size = os.path.getsize(workshop.file)
            publish(workshop.file, target)
    except OSError as error:
        raise BackupFailed(target, error.strerror or str(error)) from error
    return BackupResult(target, size)


def _copy_and_check(source: sqlite3.Connection, partial: str, target: str) -> None:
    descriptor = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.fchmod(descriptor, 0o600)
    os.close(descriptor)
    copy = sqlite3.connect(partial, isolation_level=None)
    try:
        source.backup(copy)
        findings = [str(row[0]) for row in copy.execute("PRAGMA integrity_check")]
    except sqlite3.DatabaseError as error:
        raise BackupFailed(target, str(database_error(error, partial))) from error
    finally:
        copy.close()
    if findings != ["ok"]:
        raise BackupFailed(target, f"the copy is damaged: {findings[0]}")


def publish(partial: str, target: str) -> None:
    """Give the finished copy its name, never over something that appeared there meanwhile."""
    try:
        os.link(partial, target)
    except FileExistsError:
        raise TargetExists(target) from None
    except OSError:  # A file system without hard links.
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        os.replace(partial, target)
