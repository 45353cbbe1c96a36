"""What a file is, decided before anything touches it, and without changing a byte (SPEC 2.4)."""

import os
import sqlite3
import stat
from enum import StrEnum
from importlib import import_module

from cafleet.db import connections
from cafleet.db.failures import BUSY_CODES, CORRUPT_CODES, primary_code
from cafleet.db.head_schema import APPLICATION_ID, HEAD_SCHEMA, HEAD_VERSION
from cafleet.errors import (
    DatabaseBusy,
    DatabaseError,
    DatabaseForeign,
    DatabaseLegacy,
    DatabaseMismatch,
    DatabaseMissing,
    DatabaseNewer,
    DatabaseOutdated,
    DatabaseUnreadable,
    TooEarly,
)
from cafleet.light_typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from cafleet.db.private_copy import PrivateCopy

EARLIER_TABLES = frozenset({"fleets", "members", "member_placements", "messages"})
"""What every file of the two earlier lines has."""

EARLIEST_TABLES = frozenset({"alembic_version", "agents", "tasks"})
"""What the files before those had."""

TOO_EARLY = "a release before 0.11 wrote it, and nothing later can read it"
"""The detail of a legacy file that cannot be imported: its fleets are called sessions, and named by texts."""

SETTLE_ATTEMPTS = 20
"""How often a file that changes under the diagnosis is looked at again."""


class DatabaseState(StrEnum):
    """The nine states of SPEC 2.4."""

    MISSING = "missing"
    EMPTY = "empty"
    CURRENT = "current"
    OUTDATED = "outdated"
    NEWER = "newer"
    DAMAGED = "damaged"
    LEGACY = "legacy"
    FOREIGN = "foreign"
    UNREADABLE = "unreadable"


class Diagnosis(NamedTuple):
    """What a file is."""

    state: DatabaseState
    version: int | None = None
    """The file's format; None where it has none of ours."""
    detail: str | None = None
    """Of a damaged file the first difference, of an unreadable one the reason; of a legacy one that cannot be
    imported either, why."""
    schema_cookie: int | None = None
    """SQLite's counter of schema changes, for a current file: unchanged means still current."""


def diagnose(path: str, *, busy_timeout_seconds: float = 5.0) -> Diagnosis:
    """The state of the file at `path`. Neither it nor anything beside it is changed or created.

    Raises:
        DatabaseBusy: another process holds the file locked for longer than the busy timeout.
    """
    real = connections.real_path(path)
    for _ in range(SETTLE_ATTEMPTS):
        before = connections.signature(real)
        with connections.opening:
            diagnosis = _look(real, busy_timeout_seconds)
        # A file that was written meanwhile may have been seen half old, half new. The good news needs no
        # second look: every transaction compares the schema cookie under SQLite's own locks.
        if diagnosis.state is DatabaseState.CURRENT or connections.signature(real) == before:
            break
    return diagnosis


def refusal(path: str, diagnosis: Diagnosis) -> DatabaseError | None:
    """The error with which a guarded command ends, None for a current file."""
    version = diagnosis.version or 0
    match diagnosis.state:
        case DatabaseState.CURRENT:
            return None
        case DatabaseState.MISSING | DatabaseState.EMPTY:
            return DatabaseMissing(path)
        case DatabaseState.OUTDATED:
            return DatabaseOutdated(version, HEAD_VERSION)
        case DatabaseState.NEWER:
            return DatabaseNewer(version, HEAD_VERSION)
        case DatabaseState.DAMAGED:
            # Where the damage hides the version, it is the head version that the file does not match.
            return DatabaseMismatch(path, version or HEAD_VERSION, diagnosis.detail or "unknown difference")
        case DatabaseState.LEGACY:
            return TooEarly(path) if diagnosis.detail else DatabaseLegacy(path)
        case DatabaseState.FOREIGN:
            return DatabaseForeign(path)
        case DatabaseState.UNREADABLE:
            return DatabaseUnreadable(path, diagnosis.detail or "unknown reason")


def examine(connection: sqlite3.Connection) -> Diagnosis:
    """The state of the database behind `connection`, which is only read. Raises sqlite3.Error."""
    identity = connection.execute("PRAGMA application_id").fetchone()[0]
    if identity == APPLICATION_ID:
        try:
            return _examine_ours(connection)
        except sqlite3.DatabaseError as error:
            if primary_code(error) not in CORRUPT_CODES:
                raise
            return Diagnosis(DatabaseState.DAMAGED, detail=str(error))
    if identity != 0:
        return Diagnosis(DatabaseState.FOREIGN)
    master = connection.execute("SELECT name, type FROM sqlite_master").fetchall()
    names = {name for name, kind in master if kind == "table"}  # A view of that name holds no rows to import.
    if not master:
        return Diagnosis(DatabaseState.FOREIGN if _is_no_page(connection) else DatabaseState.EMPTY)
    if names >= EARLIER_TABLES or names >= EARLIEST_TABLES:
        return Diagnosis(DatabaseState.LEGACY, detail=None if "fleets" in names else TOO_EARLY)
    return Diagnosis(DatabaseState.FOREIGN)


def private_copy(path: str) -> "PrivateCopy":
    """A copy to read where the original cannot be read in place. Raises OSError.

    Loaded on demand: temporary directories cost more start-up than everything else here.
    """
    copy: PrivateCopy = import_module("cafleet.db.private_copy").PrivateCopy(path)
    return copy


_INDEX_SALT, _LOG_SALT = slice(32, 40), slice(16, 24)
"""Where the index of a write-ahead log, and the log itself, say which log it is (SQLite's file format)."""


def _look(path: str, timeout_seconds: float) -> Diagnosis:
    try:
        facts = os.stat(path)
    except FileNotFoundError:
        return Diagnosis(DatabaseState.MISSING)
    except OSError as error:
        return _unreadable(error)
    if not stat.S_ISREG(facts.st_mode):
        kind = "it is a directory" if stat.S_ISDIR(facts.st_mode) else "it is not a regular file"
        return Diagnosis(DatabaseState.UNREADABLE, detail=kind)
    if connections.is_live(path):
        return _look_through(path, "mode=ro", timeout_seconds)
    log, journal = connections.size_of(path + "-wal"), connections.size_of(path + "-journal")
    if not log and not journal:
        if facts.st_size == 0:
            return Diagnosis(DatabaseState.EMPTY)
        # Nobody has unsaved changes: reading without locks creates no files beside it.
        return _look_through(path, "mode=ro&immutable=1", timeout_seconds)
    if log and not journal and index_fits(path):
        try:
            parameters = "mode=ro&readonly_shm=1"
            return _examine_closing(connections.connect(path, parameters, timeout_seconds=timeout_seconds))
        except sqlite3.DatabaseError as error:
            if primary_code(error) in BUSY_CODES:
                raise DatabaseBusy from error
    return _look_at_copy(path)


def index_fits(path: str) -> bool:
    """Whether the log's index in shared memory is of this very log.

    After some crashes it is not, until a writer comes; SQLite would try to read it for 10 s, in vain.
    """
    try:
        with open(path + "-shm", "rb") as index, open(path + "-wal", "rb") as log:
            return index.read(_INDEX_SALT.stop)[_INDEX_SALT] == log.read(_LOG_SALT.stop)[_LOG_SALT]
    except OSError:
        return False


def _look_at_copy(path: str) -> Diagnosis:
    try:
        copy = private_copy(path)
    except OSError as error:
        return _unreadable(error)
    try:
        return examine(copy.connection)
    except sqlite3.DatabaseError as error:
        return _state_of_error(path, error)
    finally:
        copy.close()


def _look_through(path: str, parameters: str, timeout_seconds: float) -> Diagnosis:
    try:
        return _examine_closing(connections.connect(path, parameters, timeout_seconds=timeout_seconds))
    except sqlite3.DatabaseError as error:
        return _state_of_error(path, error)


def _examine_closing(connection: sqlite3.Connection) -> Diagnosis:
    try:
        connection.execute("BEGIN")
        return examine(connection)
    finally:
        connection.close()


def _examine_ours(connection: sqlite3.Connection) -> Diagnosis:
    master = dict(connection.execute("SELECT name, sql FROM sqlite_master").fetchall())
    if "refinery_schema_history" not in master:
        return Diagnosis(DatabaseState.DAMAGED, detail="table refinery_schema_history is missing")
    try:
        version = connection.execute("SELECT max(version) FROM refinery_schema_history").fetchone()[0]
    except sqlite3.OperationalError as error:
        if primary_code(error) != sqlite3.SQLITE_ERROR:
            raise  # A disk that refuses to read says nothing about the file.
        return Diagnosis(DatabaseState.DAMAGED, detail="column refinery_schema_history.version is missing")
    if not isinstance(version, int) or version < 1:
        return Diagnosis(DatabaseState.DAMAGED, detail="refinery_schema_history holds no version")
    if version > HEAD_VERSION:
        return Diagnosis(DatabaseState.NEWER, version)
    difference = None
    if version < HEAD_VERSION or any(master.get(name) != sql for name, sql in HEAD_SCHEMA.items()):
        difference = import_module("cafleet.db.steps").first_difference_from(connection, version)
    if difference is not None:
        return Diagnosis(DatabaseState.DAMAGED, version, difference)
    if version < HEAD_VERSION:
        return Diagnosis(DatabaseState.OUTDATED, version)
    cookie = connection.execute("PRAGMA schema_version").fetchone()[0]
    return Diagnosis(DatabaseState.CURRENT, version, schema_cookie=cookie)


def _state_of_error(path: str, error: sqlite3.DatabaseError) -> Diagnosis:
    code = primary_code(error)
    if code in BUSY_CODES:
        raise DatabaseBusy from error
    if code == sqlite3.SQLITE_CORRUPT and _claims_to_be_ours(path):
        return Diagnosis(DatabaseState.DAMAGED, detail=str(error))
    if code in CORRUPT_CODES:
        return Diagnosis(DatabaseState.FOREIGN)
    reason = str(error) if os.access(path, os.R_OK) else "permission denied"
    return Diagnosis(DatabaseState.UNREADABLE, detail=reason)


def _is_no_page(connection: sqlite3.Connection) -> bool:
    """Whether the file holds something, but too little to be a database: not ours to overwrite."""
    if connection.execute("PRAGMA page_count").fetchone()[0]:
        return False
    return connections.size_of(connection.execute("PRAGMA database_list").fetchone()[2]) > 0


def _claims_to_be_ours(path: str) -> bool:
    """Whether the header carries our identity, for a file that is too broken for SQLite to say so."""
    if connections.is_live(path):
        return True  # It was current when it was opened, and must not be opened past SQLite now.
    try:
        with open(path, "rb") as file:
            return file.read(72)[68:] == APPLICATION_ID.to_bytes(4, "big")
    except OSError:
        return False


def _unreadable(error: OSError) -> Diagnosis:
    return Diagnosis(DatabaseState.UNREADABLE, detail=(error.strerror or str(error)).lower())
