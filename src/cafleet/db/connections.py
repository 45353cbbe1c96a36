"""Opening SQLite connections, and which files this process has open.

POSIX locks belong to a process: closing *any* descriptor of a file drops every lock that the process holds
on it, those of SQLite included. So nothing in this package opens a database file with `open()` while a
live connection of this process may exist; `is_live` says whether one does.
"""

import os
import sqlite3
from _thread import allocate_lock

opening = allocate_lock()
"""Held while a file is diagnosed or opened: a diagnosis maps the shared memory read-only, and a connection
that another thread opens in that moment would inherit the read-only mapping."""

_live: dict[int, tuple[int, int] | None] = {}
"""`id()` of each live connection of this process to the identity of its file."""


def real_path(path: str) -> str:
    """The file behind `path`: SQLite keeps `-wal` and `-shm` beside the target of a link."""
    return os.path.realpath(path) if os.path.islink(path) else path


def identity(path: str) -> tuple[int, int] | None:
    """Which file is at `path` now (device, inode); None where there is none."""
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return facts.st_dev, facts.st_ino


def size_of(path: str) -> int:
    """Bytes in the file, 0 where there is none."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def signature(path: str) -> tuple[object, ...]:
    """A value that changes whenever the file at real path `path`, its log or its journal is written."""
    parts: list[object] = []
    for suffix in ("", "-wal", "-journal"):
        try:
            facts = os.stat(path + suffix)
            parts.append((facts.st_ino, facts.st_size, facts.st_mtime_ns))
        except OSError:
            parts.append(None)
    return tuple(parts)


def is_live(path: str) -> bool:
    """Whether this process has a live connection to the file at real path `path`."""
    return bool(_live) and identity(path) in _live.values()


def file_uri(path: str, parameters: str) -> str:
    """SQLite's name for the file at `path`, absolute; `parameters`: `mode=ro&…`."""
    escaped = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return f"file://{escaped}?{parameters}"


def connect(path: str, parameters: str, *, timeout_seconds: float = 5.0) -> sqlite3.Connection:
    """A connection in autocommit mode; `parameters` as for `file_uri`."""
    return sqlite3.connect(
        file_uri(path, parameters), uri=True, isolation_level=None, timeout=timeout_seconds
    )


def open_live(path: str, mode: str, *, timeout_seconds: float) -> sqlite3.Connection:
    """A connection that takes part in SQLite's locking, with the settings of SPEC 2.5.

    `mode`: `ro` or `rw`; neither creates the file. End it with `close_live`. Raises sqlite3.Error.
    """
    with opening:
        connection = connect(path, f"mode={mode}", timeout_seconds=timeout_seconds)
        try:
            connection.execute("PRAGMA foreign_keys=ON")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA schema_version")  # Maps the shared memory while the lock is held.
        except BaseException:
            connection.close()
            raise
        _live[id(connection)] = identity(path)
    return connection


def close_live(connection: sqlite3.Connection) -> None:
    """End what `open_live` began. The last connection of all moves the log into the file."""
    with opening:
        connection.close()
        del _live[id(connection)]
