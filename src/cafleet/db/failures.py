"""SQLite's result codes as cafleet's errors: a user never reads SQLite's own text alone (SPEC 2.4)."""

import os
import sqlite3

from cafleet.errors import (
    ConstraintViolated,
    DatabaseBusy,
    DatabaseCorrupt,
    DatabaseDiskError,
    DatabaseError,
    DatabaseFull,
    DatabaseNeedsOtherLog,
    DatabaseReadOnly,
    DatabaseUnreadable,
)

BUSY_CODES = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
CORRUPT_CODES = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
NOT_IN_PLACE_CODES = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY})
"""Reading would need files beside the database that cannot be made, or a repair that cannot be written."""


_SHARED_MEMORY_CODES = frozenset(
    {sqlite3.SQLITE_IOERR_SHMMAP, sqlite3.SQLITE_IOERR_SHMOPEN, sqlite3.SQLITE_IOERR_SHMLOCK}
)


def shares_no_memory(error: sqlite3.Error) -> bool:
    """Whether processes cannot share a write-ahead log here, as on some network and guest file systems."""
    return getattr(error, "sqlite_errorcode", 0) in _SHARED_MEMORY_CODES


def primary_code(error: sqlite3.Error) -> int:
    """SQLite's result code without its extension; 0 where Python itself raised the error."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def database_error(error: sqlite3.DatabaseError, path: str) -> DatabaseError:
    """What to tell a user of `error`, which happened while the file at `path` was used."""
    code = primary_code(error)
    if code in BUSY_CODES:
        return DatabaseBusy()
    if code in CORRUPT_CODES:
        return DatabaseCorrupt(path, str(error))
    if code == sqlite3.SQLITE_READONLY or (code == sqlite3.SQLITE_CANTOPEN and not _writable(path)):
        return DatabaseReadOnly(path, os.path.dirname(path))
    if code == sqlite3.SQLITE_FULL:
        return DatabaseFull(path)
    if shares_no_memory(error):
        return DatabaseNeedsOtherLog(path)
    if code == sqlite3.SQLITE_IOERR:
        return DatabaseDiskError(path, getattr(error, "sqlite_errorname", str(error)))
    if code == sqlite3.SQLITE_CANTOPEN:
        return DatabaseUnreadable(path, str(error))
    if code == sqlite3.SQLITE_CONSTRAINT:
        return ConstraintViolated(str(error))
    return DatabaseError(f"cannot use database {path}: {error}")


def _writable(path: str) -> bool:
    return os.access(os.path.dirname(path), os.W_OK) and (
        os.access(path, os.W_OK) or not os.path.exists(path)
    )
