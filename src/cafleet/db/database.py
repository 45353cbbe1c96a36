"""The one door to the SQLite file: `read()`, `write()` and `wait_for_change()` (SPEC 2.5)."""

import sqlite3
from types import TracebackType


class Database:
    """One SQLite file, opened lazily. One object per thread: connections are never shared."""

    def __init__(self, path: str, *, busy_timeout_seconds: float = 5.0) -> None:
        self.path = path
        self._busy_timeout_seconds = busy_timeout_seconds
        self._reader: sqlite3.Connection | None = None
        self._writer: sqlite3.Connection | None = None

    def guard(self) -> None:
        """Diagnose the file."""

    def read(self) -> "Transaction":
        """One read transaction."""
        if self._reader is None:
            self._reader = self._connect("ro")
        return Transaction(self._reader, "BEGIN")

    def write(self) -> "Transaction":
        """One write transaction."""
        if self._writer is None:
            self._writer = self._connect("rw")
        return Transaction(self._writer, "BEGIN IMMEDIATE")

    def _connect(self, mode: str) -> sqlite3.Connection:
        escaped = self.path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
        connection = sqlite3.connect(
            f"file://{escaped}?mode={mode}",
            uri=True,
            isolation_level=None,
            timeout=self._busy_timeout_seconds,
        )
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA synchronous=FULL")
        return connection

    def wait_for_change(self, timeout_seconds: float) -> bool:
        """True: something may have changed since the last call."""
        raise NotImplementedError

    def close(self) -> None:
        """Close both connections."""
        for connection in (self._reader, self._writer):
            if connection is not None:
                connection.close()
        self._reader = self._writer = None


class Transaction:
    """The context manager behind `read()` and `write()`."""

    def __init__(self, connection: sqlite3.Connection, begin: str) -> None:
        self._connection = connection
        self._begin = begin

    def __enter__(self) -> sqlite3.Connection:
        self._connection.execute(self._begin)
        return self._connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.execute("COMMIT" if error is None else "ROLLBACK")
