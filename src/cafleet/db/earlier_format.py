"""`cafleet import`: an earlier-format file, only read, becomes a new current one (SPEC 2.6)."""

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from typing import NamedTuple

from cafleet.clock import format_timestamp
from cafleet.db import connections, earlier_rows
from cafleet.db.backup import publish
from cafleet.db.diagnosis import EARLIER_TABLES, DatabaseState, diagnose, index_fits, private_copy, refusal
from cafleet.db.earlier_names import TABLES as RENAMED_TABLES
from cafleet.db.earlier_names import attach_renamed
from cafleet.db.earlier_rows import Mending, Progress
from cafleet.db.earlier_values import check_values
from cafleet.db.failures import CORRUPT_CODES, database_error, primary_code
from cafleet.db.migrate import is_unused, make_directories, setup_database
from cafleet.db.workshop import Workshop, sweep
from cafleet.errors import (
    DatabaseUnreadable,
    ImportFailed,
    ImportTargetInUse,
    NothingToImport,
    TargetExists,
    TooEarly,
)

__all__ = ["ImportReport", "Mending", "TableCount", "import_earlier"]

NOT_KEPT = ("asset_installs", "monitor_config", "member_execs")
"""Tables that have no place in the current format, or that `setup` fills anew: counted, not copied."""

BINARY_LINE_VERSIONS = range(1, 10)


class TableCount(NamedTuple):
    """One table on both sides."""

    table: str
    source: int
    target: int
    added: int
    """Stand-ins among the target's rows."""
    left_out: int
    """Rows of the source that were not wanted."""


class ImportReport(NamedTuple):
    """What an import did."""

    source: str
    target: str
    line: str
    """Which line wrote the file, and its version."""
    tables: tuple[TableCount, ...]
    not_kept: dict[str, int]
    """Rows of tables that the current format does not have."""
    stand_in_members: tuple[int, ...]
    """Members `unknown-<id>` that messages name and the source no longer had."""
    stand_in_fleets: tuple[int, ...]
    canceled_messages: int
    """Canceled messages that are completed ones now."""
    deregistered_monitors: tuple[int, ...]
    mended_fleets: tuple[int, ...]
    """Fleets whose name was changed to what the rules allow."""
    mended_members: tuple[int, ...]
    """The same for members' names and descriptions."""


def import_earlier(
    source: str,
    target: str,
    *,
    keep_placements: bool,
    monitors: Mapping[int, int],
    mending: Mending,
    now: datetime,
    progress: Progress,
) -> ImportReport:
    """Fill `target`, missing or without a fleet, from the earlier-format file `source`.

    All ids and timestamps stay. All or nothing: where it raises, a missing `target` stays missing, another
    one stays without a fleet. `source` keeps every byte. `monitors`: fleet id to the member that stays its
    monitor where there are several.

    Raises:
        DatabaseError: `source` is no earlier-format file, or one of the two cannot be used.
        ImportTargetInUse: `target` holds something.
        MonitorDuplicates, NotAnActiveMonitor: who is the monitor has to be chosen (again).
        IntegrityError: `source` holds a value that is not known, or of another kind than its column is for.
        ImportFailed: the result would not be complete.
    """
    sweep(os.path.dirname(connections.real_path(target)))
    try:
        _check_source(source)
        _check_target(target)
        with _readable(connections.real_path(source)) as reading:
            filler = _Filler(source, target, reading, keep_placements, monitors, mending, now, progress)
            if _is_free(target):
                return _fill_new(filler)
            setup_database(target, now)
            return filler.fill(target, fresh=False)
    except OSError as error:
        raise ImportFailed(source, str(error)) from error
    except sqlite3.DatabaseError as error:
        raise ImportFailed(source, _reason(error, source, target)) from error


def _reason(error: sqlite3.DatabaseError, source: str, target: str) -> str:
    """What is wrong, and with which of the two: what cannot be read is old, what cannot be written is new."""
    code = primary_code(error)
    if code in CORRUPT_CODES:
        return (
            f"it is damaged ({error}); take a backup of it, or what \"sqlite3 '{source}' .recover\" can save"
        )
    if code in (0, sqlite3.SQLITE_ERROR):  # 0: a text that is not UTF-8.
        return str(error)
    return str(database_error(error, target))


def _check_source(source: str) -> None:
    found = diagnose(source)
    if found.state is DatabaseState.LEGACY and found.detail is None:
        return
    if found.state in (DatabaseState.CURRENT, DatabaseState.OUTDATED, DatabaseState.NEWER):
        raise NothingToImport(source)
    if found.state in (DatabaseState.MISSING, DatabaseState.EMPTY):
        reason = "no such file" if found.state is DatabaseState.MISSING else "it is empty"
        raise DatabaseUnreadable(source, reason)
    raise refusal(source, found) or AssertionError(found)


def _check_target(target: str) -> None:
    found = diagnose(target)
    if found.state in (DatabaseState.MISSING, DatabaseState.EMPTY):
        return
    if found.state is DatabaseState.UNREADABLE:
        raise refusal(target, found) or AssertionError(found)
    if found.state is not DatabaseState.CURRENT or not is_unused(target):
        raise ImportTargetInUse(target)


def _is_free(target: str) -> bool:
    """Whether nothing at all is at the place of `target`, not even a log that SQLite would find there."""
    file = connections.real_path(target)
    return not any(os.path.lexists(file + suffix) for suffix in ("", "-wal", "-shm", "-journal"))


class _Reading(NamedTuple):
    """How the source can be read without changing a byte of it or beside it."""

    uri: str
    """SQLite's name for it, or for a copy of it."""
    is_of_one_moment: Callable[[], bool] = lambda: True
    """Asked at the end: False where what was read may be half old, half new."""


@contextmanager
def _readable(file: str) -> Iterator[_Reading]:
    before = connections.signature(file)
    if not connections.size_of(file + "-wal") and not connections.size_of(file + "-journal"):
        uri = connections.file_uri(file, "mode=ro&immutable=1")
        yield _Reading(uri, lambda: connections.signature(file) == before)
        return
    in_place = connections.file_uri(file, "mode=ro&readonly_shm=1")
    if index_fits(file) and _opens(in_place):
        yield _Reading(in_place)
        return
    copy = private_copy(file)
    try:
        # To be written, too: the journal of an interrupted writer is first played back.
        yield _Reading(connections.file_uri(copy.path, "mode=rw"))
    finally:
        copy.close()


def _opens(uri: str) -> bool:
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError:
        return False
    return True


def _fill_new(filler: "_Filler") -> ImportReport:
    """Build the new file somewhere else: a killed import leaves nothing at the target's place."""
    target = connections.real_path(filler.target)
    with _folder_of(target), Workshop(target) as workshop:
        setup_database(workshop.file, filler.now)
        report = filler.fill(workshop.file, fresh=True)
        try:
            publish(workshop.file, target)
        except TargetExists:
            raise ImportFailed(
                filler.source, f"{target} was made by somebody else meanwhile; try again"
            ) from None
    return report


@contextmanager
def _folder_of(target: str) -> Iterator[None]:
    """Make the folder, and those above it; where the import fails, those that are new go again."""
    folder, new = os.path.dirname(target), list[str]()
    while not os.path.isdir(folder):
        new.append(folder)
        folder = os.path.dirname(folder)
    make_directories(os.path.dirname(target))
    try:
        yield
    except BaseException:
        with suppress(OSError):  # Somebody else uses it already.
            for folder in new:
                os.rmdir(folder)
        raise


class _Filler(NamedTuple):
    """One import, told everything."""

    source: str
    target: str
    reading: _Reading
    keep_placements: bool
    monitors: Mapping[int, int]
    mending: Mending
    now: datetime
    progress: Progress

    def fill(self, file: str, *, fresh: bool) -> ImportReport:
        """Copy all rows into the current-format `file` in one transaction.

        `fresh`: nobody else knows the file, and a failure removes it: it need not be safe meanwhile.
        """
        connection = connections.open_live(file, "rw", timeout_seconds=5.0)
        try:
            connection.execute("PRAGMA foreign_keys=OFF")
            if fresh:
                connection.execute("PRAGMA journal_mode=OFF")
                connection.execute("PRAGMA synchronous=OFF")
            attached = self._attach(connection)
            connection.execute("BEGIN IMMEDIATE")
            try:
                report = self._copy(connection)
            finally:
                self._check_moment()  # First: a file that changes looks damaged, too.
            connection.execute("COMMIT")
            if fresh:
                for name in attached:
                    connection.execute(f"DETACH {name}")
                connection.execute("PRAGMA synchronous=FULL")
                connection.execute("PRAGMA journal_mode=WAL")
        finally:
            connections.close_live(connection)
        if fresh:
            _to_disk(file)
        return report

    def _check_moment(self) -> None:
        if not self.reading.is_of_one_moment():
            raise ImportFailed(self.source, "somebody writes to it; end what uses it, then try again")

    def _attach(self, connection: sqlite3.Connection) -> tuple[str, ...]:
        """Make the source's tables available as `earlier.…`; the names of what was attached."""
        connection.execute("ATTACH ? AS earlier", (self.reading.uri,))
        if not earlier_rows.earlier_tables(connection) >= RENAMED_TABLES:
            return ("earlier",)
        connection.execute("DETACH earlier")
        attach_renamed(connection, self.reading.uri)
        return ("earlier", "oldest")

    def _copy(self, connection: sqlite3.Connection) -> ImportReport:
        tables = earlier_rows.earlier_tables(connection)
        line = _line(connection, tables, self.source)
        now = format_timestamp(self.now)
        self._check_values(connection, tables)
        mended_fleets = earlier_rows.copy_fleets(connection, self.mending)
        members = earlier_rows.copy_members(connection, self.monitors, self.mending, now)
        if "monitor_runtime" in tables:
            earlier_rows.copy_monitor_runtime(connection)
        if self.keep_placements:
            earlier_rows.copy_placements(connection)
        canceled = earlier_rows.copy_messages(connection, self.progress)
        stand_ins = earlier_rows.add_stand_ins(connection, now)
        fleets = earlier_rows.add_stand_in_fleets(connection, now)
        earlier_rows.carry_counters_on(connection)
        added = {"fleets": len(fleets), "members": len(stand_ins)}
        report = ImportReport(
            source=self.source,
            target=self.target,
            line=line,
            tables=tuple(
                _count(connection, table, table in tables, added.get(table, 0))
                for table in ("fleets", "members", "member_placements", "messages", "monitor_runtime")
            ),
            not_kept={t: earlier_rows.count(connection, f"earlier.{t}") for t in NOT_KEPT if t in tables},
            stand_in_members=stand_ins,
            stand_in_fleets=fleets,
            canceled_messages=canceled,
            deregistered_monitors=members.surplus_monitors,
            mended_fleets=mended_fleets,
            mended_members=members.mended,
        )
        self._check(connection, report)
        return report

    def _check_values(self, connection: sqlite3.Connection, tables: set[str]) -> None:
        wanted = tables if self.keep_placements else tables - {"member_placements"}
        total = earlier_rows.count(connection, "earlier.messages")
        check_values(connection, wanted, lambda: self.progress(0, total))

    def _check(self, connection: sqlite3.Connection, report: ImportReport) -> None:
        for table, source, target, added, left_out in report.tables:
            if left_out and table != "member_placements":
                raise ImportFailed(self.source, f"{table}: {source} rows became {target - added}")
        broken = connection.execute("PRAGMA main.foreign_key_check").fetchone()
        if broken is not None:
            raise ImportFailed(self.source, f"row {broken[1]} of {broken[0]} names a row that does not exist")


def _line(connection: sqlite3.Connection, tables: set[str], source: str) -> str:
    if not tables >= EARLIER_TABLES:
        raise TooEarly(source)
    if "alembic_version" in tables:
        row = connection.execute("SELECT version_num FROM earlier.alembic_version").fetchone()
        return f"Python line, revision {row[0] if row else 'unknown'}"
    if "refinery_schema_history" in tables:
        version = connection.execute("SELECT max(version) FROM earlier.refinery_schema_history").fetchone()[0]
        if version not in BINARY_LINE_VERSIONS:
            raise ImportFailed(source, f"version {version} of the binary line is not known")
        return f"binary line, version {version}"
    raise ImportFailed(source, "it has no record of which cafleet wrote it")


def _count(connection: sqlite3.Connection, table: str, in_source: bool, added: int) -> TableCount:
    source = earlier_rows.count(connection, f"earlier.{table}") if in_source else 0
    target = earlier_rows.count(connection, f"main.{table}")
    return TableCount(table, source, target, added, source + added - target)


def _to_disk(file: str) -> None:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
