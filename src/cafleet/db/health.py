"""How a file that can be opened is doing: what `doctor` asks SQLite itself."""

from cafleet.db import connections
from cafleet.db.database import Database

_MOST_FAULTS = 20
_FORMATS, _LOGGED = slice(18, 20), b"\2\2"
"""Where the file says that it is written through a log (SQLite's file format)."""


def journal_mode(database: Database) -> str:
    """SQLite's name of the journal mode in use, `wal` where all is well. Raises DatabaseError."""
    with database.read() as connection:
        mode = str(connection.execute("PRAGMA journal_mode").fetchone()[0])
        return "wal" if mode != "wal" and _says_wal(database.path) else mode


def _says_wal(path: str) -> bool:
    """A read-only folder's file is read without its log's help, and SQLite then does not know of a log."""
    file = connections.real_path(path)
    if connections.is_live(file):
        return False
    try:
        with open(file, "rb") as header:
            return header.read(_FORMATS.stop)[_FORMATS] == _LOGGED
    except OSError:
        return False


def integrity_faults(database: Database) -> list[str]:
    """What SQLite's full check of the file finds, foreign keys included; reads the whole file.

    Raises DatabaseError."""
    with database.read() as connection:
        rows = connection.execute(f"PRAGMA integrity_check({_MOST_FAULTS})").fetchall()
        faults = [str(row[0]) for row in rows if row[0] != "ok"]
        for table, row_id, parent, _ in connection.execute("PRAGMA foreign_key_check").fetchmany(
            _MOST_FAULTS
        ):
            faults.append(f"row {row_id} of {table} refers to a row of {parent} that does not exist")
    return faults
