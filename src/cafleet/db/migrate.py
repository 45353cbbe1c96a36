"""Create a database file or bring it to the head version (SPEC 2.1 to 2.4). Only `setup` comes here."""

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from cafleet.config import DATABASE_FILE_NAME
from cafleet.db import connections
from cafleet.db.backup import write_copy
from cafleet.db.database import Database
from cafleet.db.diagnosis import DatabaseState, Diagnosis, diagnose, examine, refusal
from cafleet.db.failures import database_error, shares_no_memory
from cafleet.db.head_schema import HEAD_VERSION
from cafleet.db.steps import apply_steps, first_difference_from
from cafleet.db.workshop import sweep
from cafleet.errors import DatabaseError, DatabaseUnreadable, MonitorDuplicates, UpgradeFailed

EARLIER_FILE_NAMES = ("cafleet_v6.db", "cafleet_v5.db", "cafleet_v2.db", "cafleet.db")
"""Default names of the earlier releases, newest first (SPEC 2.6)."""

MONITOR_CARD_VERSION = 3
"""From this version on members have cards, and so can be monitors."""


class SetupAction(StrEnum):
    """What `setup_database` did with the file."""

    CREATED = "created"
    UPGRADED = "upgraded"
    UNCHANGED = "unchanged"


class SetupResult(NamedTuple):
    """What `setup_database` did."""

    action: SetupAction
    version: int
    """The file's format now: the head version."""
    from_version: int | None
    """The format before; None where the file was created."""
    journal_mode: str | None
    """SQLite's answer: `wal`, or what the file system allows; None where it could not be asked."""
    backup_path: str | None
    """The copy of the file as it was before an upgrade."""
    notes: tuple[str, ...]
    """For the user: one line each."""


def setup_database(path: str, now: datetime, *, busy_timeout_seconds: float = 5.0) -> SetupResult:
    """Create the file at `path` with its folders, or upgrade it, or find that nothing is to do.

    Any number of processes may do this at once. Whatever fails or is killed, the file is as before, or
    finished. `busy_timeout_seconds`: how long other programs' writers are waited for before an upgrade.

    Raises:
        DatabaseError: the file is not one to create or upgrade, or cannot be written.
        MonitorDuplicates: two active monitors in one fleet.
    """
    file = connections.real_path(path)
    try:
        make_directories(os.path.dirname(file))
        sweep(os.path.dirname(file))
        with _turn(os.path.dirname(file)):
            found = diagnose(file)
            if found.state in (DatabaseState.MISSING, DatabaseState.EMPTY):
                result = _create(file, now)
            elif found.state is DatabaseState.OUTDATED:
                _leave_log_where_it_cannot_be_used(file)
                result = _upgrade(file, found, now, busy_timeout_seconds)
            elif found.state is DatabaseState.CURRENT:
                result = SetupResult(
                    SetupAction.UNCHANGED, HEAD_VERSION, HEAD_VERSION, _use_log(file), None, ()
                )
            else:
                raise refusal(path, found) or AssertionError(found)
    except OSError as error:
        raise DatabaseUnreadable(path, error.strerror or str(error)) from error
    except sqlite3.DatabaseError as error:
        raise database_error(error, path) from error
    return result._replace(notes=_notes(path, result))


def make_directories(directory: str) -> None:
    """`directory` and what is missing above it, each of mode 0700 whatever the umask. Raises OSError."""
    if not directory or os.path.isdir(directory):
        return
    make_directories(os.path.dirname(directory))
    try:
        os.mkdir(directory, 0o700)
    except FileExistsError:
        return  # Another process made it at this moment.
    os.chmod(directory, 0o700)


@contextmanager
def _turn(directory: str) -> Iterator[None]:
    """One setup at a time per folder. The kernel ends the turn of a process that dies."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # A file system without locks: SQLite's own lock decides.
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _create(file: str, now: datetime) -> SetupResult:
    made = _make_file(file)
    try:
        connection = connections.open_live(file, "rw", timeout_seconds=5.0)
        try:
            connection.execute("BEGIN EXCLUSIVE")
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
                apply_steps(connection, now)
            connection.execute("COMMIT")
        finally:
            connections.close_live(connection)
    except BaseException:
        with suppress(OSError):
            if made and os.path.getsize(file) == 0:
                os.unlink(file)
        raise
    return SetupResult(SetupAction.CREATED, HEAD_VERSION, None, _use_log(file), None, ())


def _make_file(file: str) -> bool:
    """An empty file of mode 0600 whatever the umask; False where one exists, which keeps its mode."""
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    os.fchmod(descriptor, 0o600)
    os.close(descriptor)
    return True


def _upgrade(file: str, found: Diagnosis, now: datetime, timeout_seconds: float) -> SetupResult:
    version = found.version or 0
    connection = connections.open_live(file, "rw", timeout_seconds=timeout_seconds)
    backup_path = None
    try:
        # Writers wait from here on; the copy is of exactly the rows that are then migrated.
        connection.execute("BEGIN IMMEDIATE")
        if examine(connection) != found:
            raise UpgradeFailed(file, version, "it was changed by another program at this moment; try again")
        _refuse_duplicate_monitors(connection, version)
        backup_path = _back_up(file, version)
        _migrate(connection, file, version, now)
    except BaseException:
        if backup_path is not None:
            os.unlink(backup_path)  # The file itself still is what the copy holds.
        raise
    finally:
        connections.close_live(connection)
    mode = _use_log(file)
    return SetupResult(SetupAction.UPGRADED, HEAD_VERSION, version, mode, backup_path, ())


def _migrate(connection: sqlite3.Connection, file: str, version: int, now: datetime) -> None:
    try:
        apply_steps(connection, now, above=version)
        difference = first_difference_from(connection, HEAD_VERSION)
        if difference is not None:
            raise UpgradeFailed(file, version, difference)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_ERROR:
            # Something of another program's is in the way, such as a column of the same name.
            raise UpgradeFailed(file, version, str(error)) from error
        raise
    connection.execute("COMMIT")


def _refuse_duplicate_monitors(connection: sqlite3.Connection, version: int) -> None:
    if version < MONITOR_CARD_VERSION:
        return
    duplicates: dict[int, list[int]] = {}
    rows = connection.execute(
        "SELECT fleet_id, member_id FROM members WHERE status = 'active' AND json_valid(member_card_json)"
        " AND json_extract(member_card_json, '$.cafleet.kind') = 'monitor' ORDER BY fleet_id, member_id"
    )
    for fleet_id, member_id in rows:
        duplicates.setdefault(fleet_id, []).append(member_id)
    duplicates = {fleet_id: members for fleet_id, members in duplicates.items() if len(members) > 1}
    if duplicates:
        raise MonitorDuplicates(duplicates)


def _back_up(file: str, version: int) -> str:
    """The path of a new copy. Earlier ones, of an upgrade that was killed, are never overwritten."""
    target = f"{file}.format{version}.bak"
    number = 2
    while os.path.lexists(target):
        target = f"{file}.format{version}.{number}.bak"
        number += 1
    reader = connections.open_live(file, "ro", timeout_seconds=5.0)
    try:
        write_copy(reader, target)
    finally:
        connections.close_live(reader)
    return target


def _use_log(file: str) -> str | None:
    """Switch to write-ahead logging where the file system has it; the journal mode that then holds."""
    try:
        connection = connections.open_live(file, "rw", timeout_seconds=5.0)
        try:
            mode = str(connection.execute("PRAGMA journal_mode=WAL").fetchone()[0])
            # SQLite has only noted its wish: whether a log can be used shows with the first read.
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
            return mode
        finally:
            connections.close_live(connection)
    except sqlite3.DatabaseError as error:
        if shares_no_memory(error):
            return _leave_log(file)
        return None  # Read-only or busy: the file is complete all the same.


def _leave_log_where_it_cannot_be_used(file: str) -> None:
    """Such a file was brought here from a file system on which it could."""
    try:
        connections.close_live(connections.open_live(file, "ro", timeout_seconds=5.0))
    except sqlite3.DatabaseError as error:
        if shares_no_memory(error):
            _leave_log(file)


def _leave_log(file: str) -> str | None:
    """Without shared memory a log can be read only by whoever locks the file for itself."""
    with connections.opening:
        connection = connections.connect(file, "mode=rw")
        try:
            connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            return str(connection.execute("PRAGMA journal_mode=DELETE").fetchone()[0])
        except sqlite3.DatabaseError:
            return None
        finally:
            connection.close()


def _notes(path: str, result: SetupResult) -> tuple[str, ...]:
    notes = []
    if result.journal_mode not in ("wal", None):
        notes.append(
            f"this file system has no write-ahead logging (journal mode {result.journal_mode}):"
            " readers and writers wait for each other"
        )
    if os.path.basename(path) == DATABASE_FILE_NAME and is_unused(path):
        for name in EARLIER_FILE_NAMES:
            earlier = os.path.join(os.path.dirname(path), name)
            with suppress(DatabaseError):
                found = diagnose(earlier)
                if found.state is DatabaseState.LEGACY and found.detail is None:
                    notes.append(
                        f"{earlier} is in an earlier format; 'cafleet import {earlier}' brings it over"
                    )
    return tuple(notes)


def is_unused(path: str) -> bool:
    """Whether the file could still take an import: no fleet was ever created in it."""
    database = Database(path)
    try:
        with database.read() as connection:
            return connection.execute("SELECT 1 FROM fleets LIMIT 1").fetchone() is None
    finally:
        database.close()
