"""The numbered steps of the schema, and what a file must look like after each (SPEC 2.2, 2.3)."""

import os
import sqlite3
from datetime import UTC, datetime
from hashlib import sha256
from typing import NamedTuple

from cafleet.clock import format_timestamp
from cafleet.db.head_schema import APPLICATION_ID, HEAD_VERSION
from cafleet.db.shapes import first_difference, shape_of

MIGRATIONS_DIRECTORY = os.path.join(os.path.dirname(__file__), "migrations")

LEDGER = (
    "CREATE TABLE refinery_schema_history"
    "(version INT4 PRIMARY KEY, name VARCHAR(255), applied_on VARCHAR(255), checksum VARCHAR(255))"
)

_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)
"""For a ledger that only serves as a model."""


class Step(NamedTuple):
    """One migration. Never edited after its release."""

    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the SQL text, hexadecimal."""
        return sha256(self.sql.encode()).hexdigest()

    def statements(self) -> list[str]:
        """The statements one by one, so that they can run inside an open transaction."""
        found = []
        pending = ""
        for line in self.sql.splitlines(keepends=True):
            pending += line
            if line.rstrip().endswith(";") and sqlite3.complete_statement(pending):
                found.append(pending.strip())
                pending = ""
        return found


def steps(*, above: int = 0, target: int = HEAD_VERSION) -> list[Step]:
    """The steps with `above` < version <= `target`, in order."""
    found = []
    for file_name in os.listdir(MIGRATIONS_DIRECTORY):
        number, separator, rest = file_name.partition("__")
        if separator and above < int(number.removeprefix("V")) <= target:
            with open(os.path.join(MIGRATIONS_DIRECTORY, file_name), encoding="utf-8") as file:
                found.append(Step(int(number.removeprefix("V")), rest.removesuffix(".sql"), file.read()))
    return sorted(found)


def apply_steps(
    connection: sqlite3.Connection, now: datetime, *, above: int = 0, target: int = HEAD_VERSION
) -> None:
    """Run the steps with `above` < version <= `target`, each with its ledger row; from 0 also the identity.

    The caller holds the transaction: nothing here commits, and SQLite rolls the identity back too.
    """
    if above == 0:
        connection.execute(LEDGER)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    for step in steps(above=above, target=target):
        for statement in step.statements():
            connection.execute(statement)
        connection.execute(
            "INSERT INTO refinery_schema_history (version, name, applied_on, checksum) VALUES (?, ?, ?, ?)",
            (step.version, step.name, format_timestamp(now), step.checksum),
        )


def first_difference_from(connection: sqlite3.Connection, version: int) -> str | None:
    """What `connection`'s file lacks first of format `version`, in words; None where it is complete."""
    model = sqlite3.connect(":memory:", isolation_level=None)
    try:
        apply_steps(model, _ANY_TIME, target=version)
        required = shape_of(model)
    finally:
        model.close()
    return first_difference(shape_of(connection), required)
