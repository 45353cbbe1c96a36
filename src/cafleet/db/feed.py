"""Statements for whoever follows a fleet's messages as they change: one per function, records out.

State and type are written as literals, not bound: only so may SQLite use the partial indexes.
"""

from sqlite3 import Connection
from typing import Any

from cafleet.db.messages import message_of_row
from cafleet.models import Message

_COLUMNS = """
    x.message_id, x.owner_member_id, x.from_member_id, x.to_member_id, x.type, x.created_at,
    x.status_state, x.status_timestamp, x.origin_message_id, x.text
"""


def newest_id(conn: Connection) -> int:
    """The id of the newest message of any fleet; 0: there is none."""
    return int(conn.execute("SELECT coalesce(max(message_id), 0) FROM messages").fetchone()[0])


def creation_of(conn: Connection, message_id: int) -> str | None:
    """When any fleet's message with this id was created; None: there is none."""
    row = conn.execute("SELECT created_at FROM messages WHERE message_id = ?", (message_id,)).fetchone()
    return None if row is None else str(row[0])


def newest_acknowledgement(conn: Connection, fleet_id: int) -> str:
    """The greatest status timestamp of the fleet's completed deliveries; empty: there is none."""
    statement = """
        SELECT coalesce(max((SELECT max(x.status_timestamp) FROM messages x INDEXED BY idx_messages_closed
            WHERE x.owner_member_id = m.member_id AND x.status_state <> 'input_required'
                AND x.status_state = 'completed' AND x.type = 'unicast')), '')
        FROM members m WHERE m.fleet_id = ?
    """
    return str(conn.execute(statement, (fleet_id,)).fetchone()[0])


def count_open(conn: Connection, fleet_id: int, up_to_id: int) -> int:
    """How many of the fleet's deliveries with an id of at most `up_to_id` wait for an ACK."""
    statement = """
        SELECT count(*) FROM members m CROSS JOIN messages x INDEXED BY idx_messages_inbox
            ON x.owner_member_id = m.member_id
        WHERE m.fleet_id = ? AND x.status_state = 'input_required' AND x.type = 'unicast'
            AND x.message_id <= ?
    """
    return int(conn.execute(statement, (fleet_id, up_to_id)).fetchone()[0])


def deliveries_after(
    conn: Connection, fleet_id: int, message_id: int, limit: int, characters: int
) -> list[Message] | None:
    """The fleet's deliveries with greater ids, oldest first, in whatever state they are by now.

    None where there are more than `limit`, or where their texts are longer than `characters` together."""
    statement = f"""
        SELECT {_COLUMNS} FROM messages x CROSS JOIN members m ON m.member_id = x.owner_member_id
        WHERE x.message_id > ? AND x.type = 'unicast' AND m.fleet_id = ?
        ORDER BY x.message_id LIMIT ?
    """  # noqa: S608  # a constant of this module
    return _bounded(conn, statement, (message_id, fleet_id), limit, characters)


def acknowledged_after(
    conn: Connection, fleet_id: int, timestamp: str, up_to_id: int, limit: int, characters: int
) -> list[Message] | None:
    """The fleet's deliveries up to an id that were ACKed after `timestamp`, in the order of their ACKs.

    None as for `deliveries_after`."""
    statement = f"""
        SELECT {_COLUMNS} FROM members m CROSS JOIN messages x INDEXED BY idx_messages_closed
            ON x.owner_member_id = m.member_id
        WHERE m.fleet_id = ? AND x.status_state <> 'input_required' AND x.status_state = 'completed'
            AND x.type = 'unicast' AND x.status_timestamp > ? AND x.message_id <= ?
        ORDER BY x.status_timestamp, x.message_id LIMIT ?
    """  # noqa: S608  # a constant of this module
    return _bounded(conn, statement, (fleet_id, timestamp, up_to_id), limit, characters)


def _bounded(
    conn: Connection, statement: str, values: tuple[Any, ...], limit: int, characters: int
) -> list[Message] | None:
    found: list[Message] = []
    for row in conn.execute(statement, (*values, limit + 1)):
        message = message_of_row(row)
        characters -= len(message.text)
        if len(found) == limit or characters < 0:
            return None
        found.append(message)
    return found
