"""Statements on `fleets`: one per function, connection in, records out."""

from sqlite3 import Connection

from cafleet.models import Fleet

_SELECT = "SELECT f.fleet_id, f.name, f.created_at, f.deleted_at, f.director_member_id FROM fleets f "

_SELECT_LIVE = """
    SELECT f.fleet_id, f.name, f.created_at, f.deleted_at, f.director_member_id
    FROM fleets f
    JOIN members d ON d.member_id = f.director_member_id AND d.status = 'active'
    JOIN member_placements p ON p.member_id = d.member_id
    WHERE f.deleted_at IS NULL
"""
"""SPEC 3: not deleted, and the Director is active and placed."""


def insert(conn: Connection, name: str, created_at: str) -> int:
    """A fleet whose Director is still to come; returns its id."""
    cursor = conn.execute("INSERT INTO fleets (name, created_at) VALUES (?, ?)", (name, created_at))
    return int(cursor.lastrowid or 0)


def set_director(conn: Connection, fleet_id: int, member_id: int) -> None:
    """Fill the back-reference that bootstrap leaves open."""
    conn.execute("UPDATE fleets SET director_member_id = ? WHERE fleet_id = ?", (member_id, fleet_id))


def get(conn: Connection, fleet_id: int) -> Fleet | None:
    """Any fleet, deleted or not."""
    row = conn.execute(_SELECT + "WHERE f.fleet_id = ?", (fleet_id,)).fetchone()
    return None if row is None else Fleet(*row)


def is_live(conn: Connection, fleet_id: int) -> bool:
    """Whether the fleet exists, is not deleted, and has an active, placed Director."""
    return conn.execute(_SELECT_LIVE + "AND f.fleet_id = ?", (fleet_id,)).fetchone() is not None


def list_live(conn: Connection) -> list[Fleet]:
    """Live fleets, newest first."""
    return [Fleet(*row) for row in conn.execute(_SELECT_LIVE + "ORDER BY f.fleet_id DESC")]


def mark_deleted(conn: Connection, fleet_id: int, at: str) -> bool:
    """Stamp `deleted_at`; False where the fleet was already deleted (or does not exist)."""
    statement = "UPDATE fleets SET deleted_at = ? WHERE fleet_id = ? AND deleted_at IS NULL"
    return conn.execute(statement, (at, fleet_id)).rowcount == 1
