"""Create a database file or bring it to the head version (SPEC 2.2, 2.3). Only `setup` comes here."""

import os
import sqlite3
from datetime import datetime
from hashlib import sha256
from typing import NamedTuple

from cafleet.clock import format_timestamp
from cafleet.db.diagnosis import APPLICATION_ID, HEAD_VERSION

MIGRATIONS_DIRECTORY = os.path.join(os.path.dirname(__file__), "migrations")

LEDGER = (
    "CREATE TABLE refinery_schema_history"
    "(version INT4 PRIMARY KEY, name VARCHAR(255), applied_on VARCHAR(255), checksum VARCHAR(255))"
)


class Migration(NamedTuple):
    """One numbered step. Never edited after its release."""

    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the SQL text, hexadecimal."""
        return sha256(self.sql.encode()).hexdigest()

    def statements(self) -> list[str]:
        """The step's statements, one by one, so that they can run inside one open transaction."""
        found = []
        pending = ""
        for line in self.sql.splitlines(keepends=True):
            pending += line
            if line.rstrip().endswith(";") and sqlite3.complete_statement(pending):
                found.append(pending.strip())
                pending = ""
        return found


def migrations(target_version: int = HEAD_VERSION) -> list[Migration]:
    """Every step up to `target_version`, in order."""
    found = []
    for file_name in os.listdir(MIGRATIONS_DIRECTORY):
        if file_name.startswith("V") and file_name.endswith(".sql"):
            number, _, name = file_name[1 : -len(".sql")].partition("__")
            with open(os.path.join(MIGRATIONS_DIRECTORY, file_name), encoding="utf-8") as file:
                found.append(Migration(int(number), name, file.read()))
    return [step for step in sorted(found) if step.version <= target_version]


def apply(
    connection: sqlite3.Connection, now: datetime, *, above: int = 0, target: int = HEAD_VERSION
) -> None:
    """Run the steps `above` < version <= `target` with their ledger rows and the file's identity.

    The caller holds the transaction; nothing here commits.
    """
    if above == 0:
        connection.execute(LEDGER)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    for step in migrations(target):
        if step.version > above:
            for statement in step.statements():
                connection.execute(statement)
            connection.execute(
                "INSERT INTO refinery_schema_history (version, name, applied_on, checksum) VALUES (?, ?, ?, ?)",
                (step.version, step.name, format_timestamp(now), step.checksum),
            )


class SetupResult(NamedTuple):
    """What `setup_database` did."""

    created: bool
    from_version: int | None
    """The version before; None where the file was created."""
    version: int
    journal_mode: str
    backup_path: str | None
    notes: tuple[str, ...]


def setup_database(path: str, now: datetime) -> SetupResult:
    """Create the file at `path`, or upgrade it."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
        connection.execute("BEGIN EXCLUSIVE")
        apply(connection, now)
        connection.execute("COMMIT")
    finally:
        connection.close()
    return SetupResult(True, None, HEAD_VERSION, mode, None, ())
