"""The one door to the SQLite file: `read()`, `write()` and `wait_for_change()` (SPEC 2.5).

Everything that is special about SQLite stays on this side of it: opening, locks, the write-ahead log,
error codes, hints to waiters.
"""

import os
import sqlite3
from importlib import import_module
from types import TracebackType

from cafleet.db import connections, diagnosis
from cafleet.db.failures import NOT_IN_PLACE_CODES, database_error, primary_code
from cafleet.db.turns import execute_in_turn
from cafleet.errors import DatabaseBusy, DatabaseError, DatabaseMissing, DatabaseUnreadable
from cafleet.light_typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cafleet.db.change_watch import ChangeWatch
    from cafleet.db.stand_in import StandIn

WAKEUPS_DIRECTORY = "wakeups"
"""The folder of the waiters' sockets, beside the file."""


class Database:
    """One SQLite file, opened on first use and kept open until `close()`.

    One object per thread: SQLite connections are never shared. Several objects, also in one process, may
    be open on one file.
    """

    def __init__(self, path: str, *, busy_timeout_seconds: float = 5.0) -> None:
        """`path`: absolute. `busy_timeout_seconds`: how long a locked file is waited for."""
        self.path = path
        self._busy_timeout_seconds = busy_timeout_seconds
        self._file = path
        """`path` without a symbolic link at its end."""
        self._wakeups = _wakeups_beside(path)
        self._identity: tuple[int, int] | None = None
        self.files_met = 0
        """How many files have been at the path so far: one more after a restore, whose ids begin anew."""
        self._schema_cookie: int | None = None
        """SQLite's counter of schema changes when the file was last found current; None: not guarded."""
        self._reader: sqlite3.Connection | None = None
        self._readers_opened = 0
        self._writer: sqlite3.Connection | None = None
        self._stand_in: StandIn | None = None
        self._writing = False
        self._watch: ChangeWatch | None = None

    def guard(self) -> None:
        """Diagnose the file (SPEC 2.4). `read` and `write` do it by themselves where it has not happened.

        Raises:
            DatabaseError: one of its subclasses, for every state but *current*.
        """
        file = connections.real_path(self.path)
        identity = connections.identity(file)
        if replaced := identity != self._identity:
            self._close_connections()
        found = diagnosis.diagnose(self.path, busy_timeout_seconds=self._busy_timeout_seconds)
        error = diagnosis.refusal(self.path, found)
        if error is not None:
            self.close()
            raise error
        self._file, self._identity, self._schema_cookie = file, identity, found.schema_cookie
        self.files_met += replaced
        self._wakeups = _wakeups_beside(file)

    def read(self) -> "Reading":
        """`with database.read() as connection:` one snapshot for several selects.

        Works on a read-only file or folder too. Every transaction checks that the schema is still the
        one that was diagnosed, so a long-lived process notices an upgrade.

        Raises:
            DatabaseError: the file cannot be used.
        """
        return Reading(self)

    def write(self) -> "Writing":
        """`with database.write() as connection:` one IMMEDIATE transaction; never nested.

        Committed at the end of the block, rolled back on any exception; after the commit every waiter
        gets a hint.

        Raises:
            DatabaseError: like `read`; also DatabaseBusy, DatabaseReadOnly, DatabaseFull,
                DatabaseDiskError and ConstraintViolated, with nothing stored.
        """
        return Writing(self)

    def prove_writable(self) -> None:
        """Raise as `write` would where nothing could be stored now; stores nothing, wakes nobody."""
        connection = self._begin_write()
        try:
            # BEGIN IMMEDIATE alone is content with a file that may only be read.
            connection.execute("UPDATE fleets SET name = name WHERE 0")
        except sqlite3.DatabaseError as error:
            raise self._failure(error) from error
        finally:
            self._writing = False
            self._roll_back(connection)

    def wait_for_change(self, timeout_seconds: float) -> bool:
        """Block until the file may have changed since the last call: True; or the time is over: False.

        The first call answers True at once, so `read, wait_for_change, read, …` misses no commit, one
        between the read and the wait included. No transaction is open meanwhile, so nothing is held up.

        Raises:
            DatabaseError: the file is gone or cannot be used any more.
        """
        if self._watch is None:
            self._watch = import_module("cafleet.db.change_watch").ChangeWatch(self._wakeups, self._look)
            return True
        return self._watch.wait(timeout_seconds)

    def another(self, *, busy_timeout_seconds: float | None = None) -> "Database":
        """A further object on the same file, for another thread, or with another patience."""
        patience = self._busy_timeout_seconds if busy_timeout_seconds is None else busy_timeout_seconds
        return Database(self.path, busy_timeout_seconds=patience)

    def close(self) -> None:
        """Close the connections and the waiter's socket. The object may be used again."""
        self._close_connections()
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    # -- transactions: what `Reading` and `Writing` do ------------------------------------------------

    def _begin_read(self) -> sqlite3.Connection:
        self._stay_with_the_path()
        try:
            reader = self._open_reader()
            reader.execute("BEGIN")
            self._check_format(reader)
        except sqlite3.DatabaseError as error:
            if primary_code(error) not in NOT_IN_PLACE_CODES:
                raise self._failure(error) from error
            return self._begin_stand_in()
        return reader

    def _begin_stand_in(self) -> sqlite3.Connection:
        self._close_reader()
        try:
            stand_in: StandIn = import_module("cafleet.db.stand_in").StandIn(self._file)
        except OSError as error:
            raise DatabaseUnreadable(self.path, str(error)) from error
        except sqlite3.DatabaseError as error:
            raise self._failure(error) from error
        self._stand_in = stand_in
        try:
            stand_in.connection.execute("BEGIN")
            self._check_format(stand_in.connection)
        except BaseException as error:
            self._close_stand_in()
            if isinstance(error, sqlite3.DatabaseError):
                raise self._failure(error) from error
            raise
        return stand_in.connection

    def _end_read(self, error: BaseException | None) -> None:
        stand_in = self._stand_in
        if stand_in is not None:
            changed = stand_in.has_changed()
            self._close_stand_in()
            if changed and (error is None or isinstance(error, sqlite3.DatabaseError)):
                raise DatabaseBusy from error
        elif self._reader is not None:
            self._roll_back(self._reader)
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.ProgrammingError):
            raise self._failure(error) from error

    def _begin_write(self) -> sqlite3.Connection:
        assert not self._writing, "a write transaction is already open"
        self._stay_with_the_path()
        try:
            if self._writer is None:
                self._writer = self._open("rw")
                self._writer.execute("PRAGMA busy_timeout=0")  # From here on it takes turns.
            execute_in_turn(self._writer, "BEGIN IMMEDIATE", self._busy_timeout_seconds)
            self._check_format(self._writer)
        except sqlite3.DatabaseError as error:
            if self._writer is not None:
                self._roll_back(self._writer)
            raise self._failure(error) from error
        self._writing = True
        return self._writer

    def _end_write(self, error: BaseException | None) -> None:
        assert self._writer is not None
        self._writing = False
        if error is None:
            try:
                execute_in_turn(self._writer, "COMMIT", self._busy_timeout_seconds)
            except sqlite3.DatabaseError as failure:
                self._roll_back(self._writer)
                raise self._failure(failure) from failure
            self._send_hints()
            return
        self._roll_back(self._writer)
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.ProgrammingError):
            raise self._failure(error) from error

    def _check_format(self, connection: sqlite3.Connection) -> None:
        """Prove inside the transaction just begun that the schema still is the one that was diagnosed."""
        try:
            # The counter is read under the transaction's own lock: whatever changes it now comes later.
            if connection.execute("PRAGMA schema_version").fetchone()[0] != self._schema_cookie:
                found = diagnosis.examine(connection)
                error = diagnosis.refusal(self.path, found)
                if error is not None:
                    raise error
                self._schema_cookie = found.schema_cookie
        except BaseException:
            self._roll_back(connection)
            raise

    def _roll_back(self, connection: sqlite3.Connection) -> None:
        """End the transaction without a change, where one is still open."""
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.DatabaseError:
            # Closing takes everything back, too; the next use opens the file anew.
            self._close_connections()

    def _failure(self, error: sqlite3.DatabaseError) -> DatabaseError:
        """What to tell a user of SQLite's error."""
        if self._identity is not None and connections.identity(self._file) is None:
            return DatabaseMissing(self.path)  # Taken away while it was in use: the disk is well.
        return database_error(error, self.path)

    # -- opening and closing --------------------------------------------------------------------------

    def _open(self, mode: str) -> sqlite3.Connection:
        return connections.open_live(self._file, mode, timeout_seconds=self._busy_timeout_seconds)

    def _open_reader(self) -> sqlite3.Connection:
        if self._reader is None:
            self._reader = self._open("ro")
            self._readers_opened += 1
        return self._reader

    def _stay_with_the_path(self) -> None:
        """Diagnose the file where that has not happened, and again where another one is in its place now (a
        restored backup), or none: what is stored in a file that has no name any more is lost."""
        if self._schema_cookie is None or connections.identity(self.path) != self._identity:
            self.guard()

    def _close_connections(self) -> None:
        self._close_reader()
        self._close_stand_in()
        if self._writer is not None:
            connections.close_live(self._writer)
            self._writer = None
        self._schema_cookie = None

    def _close_reader(self) -> None:
        if self._reader is not None:
            connections.close_live(self._reader)
            self._reader = None

    def _close_stand_in(self) -> None:
        if self._stand_in is not None:
            self._stand_in.close()
            self._stand_in = None

    # -- waiting and waking ---------------------------------------------------------------------------

    def _look(self) -> object:
        """A value that differs from the last one if anything was committed in between."""
        self._stay_with_the_path()
        try:
            version = self._open_reader().execute("PRAGMA data_version").fetchone()[0]
        except sqlite3.DatabaseError as error:
            if primary_code(error) not in NOT_IN_PLACE_CODES:
                raise self._failure(error) from error
            return connections.signature(self._file)
        # The version counts per connection: a new connection must not be taken for the old one.
        return (self._identity, self._readers_opened, version)

    def _send_hints(self) -> None:
        try:
            names = os.listdir(self._wakeups)
        except OSError:
            return
        if names:
            import_module("cafleet.db.wakeups").send_hints(self._wakeups, names)


def _wakeups_beside(file: str) -> str:
    return os.path.join(os.path.dirname(file), WAKEUPS_DIRECTORY)


class Reading:
    """The context manager behind `Database.read`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __enter__(self) -> sqlite3.Connection:
        return self._database._begin_read()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database._end_read(error)


class Writing:
    """The context manager behind `Database.write`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __enter__(self) -> sqlite3.Connection:
        return self._database._begin_write()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database._end_write(error)
