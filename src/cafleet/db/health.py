"""How a file that can be opened is doing: what `doctor` asks SQLite itself."""

from cafleet.db.database import Database

_MOST_FAULTS = 20


def journal_mode(database: Database) -> str:
    """SQLite's name of the journal mode in use, `wal` where all is well. Raises DatabaseError."""
    with database.read() as connection:
        return str(connection.execute("PRAGMA journal_mode").fetchone()[0])


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
