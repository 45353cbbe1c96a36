"""Tables, columns, keys and indexes as facts to compare (SPEC 2.4).

What is compared is what queries rely on, not the text: other implementations write `VARCHAR` for
`TEXT`, other blanks, other column orders.
"""

import sqlite3
from typing import NamedTuple


class Column(NamedTuple):
    """One column as `PRAGMA table_xinfo` shows it."""

    affinity: str
    not_null: bool
    default: str | None
    primary_key: int
    """Position in the primary key, from 1; 0 outside it."""
    generated: int
    """0: stored as given; 2: virtual generated; 3: stored generated."""


class ForeignKey(NamedTuple):
    """One single-column reference."""

    column: str
    table: str
    target: str
    on_delete: str


class Index(NamedTuple):
    """One named index."""

    table: str
    unique: bool
    columns: tuple[tuple[str | None, bool, str | None], ...]
    """Name (None: an expression), descending, collation; in order."""
    condition: str
    """The normalised text from WHERE on; empty for a full index."""


class Table(NamedTuple):
    """One table."""

    columns: dict[str, Column]
    foreign_keys: frozenset[ForeignKey]
    autoincrement: bool


class Shape(NamedTuple):
    """A whole schema."""

    tables: dict[str, Table]
    indexes: dict[str, Index]


def shape_of(connection: sqlite3.Connection) -> Shape:
    """What `connection`'s file holds."""
    tables: dict[str, Table] = {}
    indexes: dict[str, Index] = {}
    master = connection.execute(
        "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    ).fetchall()
    for kind, name, table, sql in master:
        if kind == "table":
            tables[name] = _table(connection, name, sql)
        elif kind == "index":
            indexes[name] = _index(connection, name, table, sql)
    return Shape(tables, indexes)


def first_difference(found: Shape, required: Shape) -> str | None:
    """The first thing that `found` lacks or has otherwise, in words; None where nothing is wrong."""
    for name, table in required.tables.items():
        if name not in found.tables:
            return f"table {name} is missing"
        difference = _table_difference(name, found.tables[name], table)
        if difference is not None:
            return difference
    for name, index in required.indexes.items():
        if name not in found.indexes:
            return f"index {name} is missing"
        if found.indexes[name] != index:
            return f"index {name} differs"
    return None


def _table_difference(name: str, found: Table, required: Table) -> str | None:
    for column, facts in required.columns.items():
        if column not in found.columns:
            return f"column {name}.{column} is missing"
        if found.columns[column] != facts:
            return f"column {name}.{column} differs"
    for column, facts in found.columns.items():
        if (
            column not in required.columns
            and facts.not_null
            and facts.default is None
            and not facts.generated
        ):
            return f"column {name}.{column} is unknown and must be filled"
    for key in sorted(required.foreign_keys - found.foreign_keys):
        other = any(candidate.column == key.column for candidate in found.foreign_keys)
        return f"foreign key {name}.{key.column} {'differs' if other else 'is missing'}"
    if required.autoincrement and not found.autoincrement:
        return f"table {name} does not keep its ids from being used again"
    return None


def _table(connection: sqlite3.Connection, name: str, sql: str) -> Table:
    quoted = _quote(name)
    rows = connection.execute(f"PRAGMA table_xinfo({quoted})").fetchall()
    key_length = sum(1 for row in rows if row[5])
    columns = {}
    for _, column, declared, not_null, default, primary_key, hidden in rows:
        row_id = bool(primary_key) and key_length == 1 and declared.upper() == "INTEGER"
        # A row id is never null, whether or not the table says so.
        columns[column] = Column(_affinity(declared), bool(not_null) or row_id, default, primary_key, hidden)
    keys = frozenset(
        ForeignKey(row[3], row[2], row[4] or _single_key(connection, row[2]), row[6])
        for row in connection.execute(f"PRAGMA foreign_key_list({quoted})")
    )
    return Table(columns, keys, "AUTOINCREMENT" in sql.upper())


def _single_key(connection: sqlite3.Connection, table: str) -> str:
    """The column that `REFERENCES table` without a column name means."""
    for row in connection.execute(f"PRAGMA table_info({_quote(table)})"):
        if row[5]:
            return str(row[1])
    return ""


def _index(connection: sqlite3.Connection, name: str, table: str, sql: str) -> Index:
    columns = tuple(
        (row[2], bool(row[3]), row[4])
        for row in connection.execute(f"PRAGMA index_xinfo({_quote(name)})")
        if row[5]  # Key columns only: the last one is the row id.
    )
    words = sql.upper().split()
    return Index(table, "UNIQUE" in words[:2], columns, _condition(sql))


def _condition(sql: str) -> str:
    """Text from WHERE on, without what means nothing: case of words, blanks, quotes of names."""
    position = sql.upper().rfind("WHERE")
    if position < 0:
        return ""
    pieces = sql[position + len("WHERE") :].split("'")
    # Every second piece is inside a literal and stays as it is.
    pieces[::2] = ["".join(piece.lower().split()).replace('"', "").replace("`", "") for piece in pieces[::2]]
    return "'".join(pieces).strip(";()")


def _affinity(declared: str) -> str:
    """SQLite's own rule for what a declared type means."""
    name = declared.upper()
    if "INT" in name:
        return "INTEGER"
    if any(word in name for word in ("CHAR", "CLOB", "TEXT")):
        return "TEXT"
    if not name or "BLOB" in name:
        return "BLOB"
    if any(word in name for word in ("REAL", "FLOA", "DOUB")):
        return "REAL"
    return "NUMERIC"


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
