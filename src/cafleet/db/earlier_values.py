"""Whether the values of an earlier file are of the kinds that its columns are for (SPEC 2.6).

SQLite keeps any bytes in any column. What is no text, or no number, would come over unnoticed and then fail
whoever reads it: an inbox with such a message could never be read again.
"""

import sqlite3
from collections.abc import Callable, Collection

from cafleet.db.failures import primary_code
from cafleet.errors import WrongKind

REPORT_EVERY = 50_000
"""Rows between two calls of `tick`."""

_ROWS = {
    "fleets": ("fleet", "fleet_id"),
    "members": ("member", "member_id"),
    "member_placements": ("the placement of member", "member_id"),
    "messages": ("message", "message_id"),
    "monitor_runtime": ("the monitor loop of fleet", "fleet_id"),
}
"""By table: what a row is called, and the column that says which one it is."""

_UNFIT = {
    "TEXT": ("text", "typeof({}) = 'blob'"),
    "INTEGER": ("a number", "typeof({}) NOT IN ('integer', 'null')"),
}
"""By the current format's type: what it holds, and what tells a value that is none."""


def check_values(connection: sqlite3.Connection, tables: Collection[str], tick: Callable[[], None]) -> None:
    """Look through all rows of those `tables` of the schema `earlier` that are to be copied to `main`.

    `tick` is called now and then.

    Raises:
        WrongKind: a value that its column is not for, or a text that is not UTF-8.
    """
    for table, (what, key) in _ROWS.items():
        if table in tables:
            kinds = _kinds(connection, table)
            if key in kinds:  # Else the copying says what is missing.
                _check_kinds(connection, table, what, key, kinds)
                texts = [column for column, kind in kinds.items() if kind == "TEXT"]
                _check_texts(connection, table, what, key, texts, tick)


def _kinds(connection: sqlite3.Connection, table: str) -> dict[str, str]:
    """Types of the columns that both formats have."""
    found = {row[1] for row in connection.execute(f"PRAGMA earlier.table_info({table})")}
    wanted = connection.execute(f"PRAGMA main.table_info({table})")
    return {row[1]: row[2] for row in wanted if row[1] in found}


def _check_kinds(
    connection: sqlite3.Connection, table: str, what: str, key: str, kinds: dict[str, str]
) -> None:
    unfit = {column: _UNFIT[kind][1].format(column) for column, kind in kinds.items()}
    row = connection.execute(
        f"SELECT {key}, {', '.join(unfit.values())} FROM earlier.{table}"  # noqa: S608  # own names
        f" WHERE {' OR '.join(unfit.values())} LIMIT 1"
    ).fetchone()
    if row is not None:
        column = next(column for column, is_unfit in zip(unfit, row[1:], strict=True) if is_unfit)
        raise WrongKind(what, row[0], column, _UNFIT[kinds[column]][0])


def _check_texts(
    connection: sqlite3.Connection,
    table: str,
    what: str,
    key: str,
    columns: list[str],
    tick: Callable[[], None],
) -> None:
    """Python reads every text, and refuses what is not UTF-8."""
    query = f"SELECT {key}, {{}} FROM earlier.{table} WHERE {key} > ? ORDER BY {key}"  # noqa: S608
    last = -(2**63)
    try:
        for number, row in enumerate(connection.execute(query.format(", ".join(columns)), (last,)), 1):
            last = row[0]
            if number % REPORT_EVERY == 0:
                tick()
    except sqlite3.OperationalError as error:
        if primary_code(error):
            raise
        bytes_of = ", ".join(f"CAST({column} AS BLOB)" for column in columns)
        row_id, *values = connection.execute(query.format(bytes_of), (last,)).fetchone()
        column = next(name for name, value in zip(columns, values, strict=True) if not _is_text(value))
        raise WrongKind(what, row_id, column, "UTF-8 text") from error


def _is_text(value: bytes | None) -> bool:
    try:
        (value or b"").decode()
    except UnicodeDecodeError:
        return False
    return True
