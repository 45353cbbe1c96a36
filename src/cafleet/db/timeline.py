"""Statements for a fleet's newest deliveries: one per function, connection in, records out.

State and type are written as literals, not bound: only so may SQLite use the partial indexes.
"""

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice
from sqlite3 import Connection, Cursor

from cafleet.db.messages import message_of_row
from cafleet.models import Message


def newest(conn: Connection, fleet_id: int, limit: int, characters: int | None = None) -> list[Message]:
    """Deliveries of the fleet, through their owners, newest status first, at most `limit`; their texts whole,
    or so many characters of each."""
    # A member's deliveries are in order already, in one index for each of the two states, so the newest of
    # all are found by a merge that goes no further than it must. One statement for all would sort every
    # message that the fleet has ever had.
    walks = [
        walk for owner in _owners(conn, fleet_id) for walk in (_waiting(conn, owner), _closed(conn, owner))
    ]
    try:
        found = [message_id for _, message_id in islice(merge(*walks, reverse=True), limit)]
    finally:
        for walk in walks:
            walk.close()
    return list(_by_id(conn, found, characters))


def lengths(conn: Connection, message_ids: Iterable[int]) -> dict[int, int]:
    """How many characters the texts of these messages have."""
    statement = """
        SELECT message_id, length(text) FROM messages WHERE message_id IN (SELECT value FROM json_each(?))
    """
    return dict(conn.execute(statement, (_listed(message_ids),)))


def _owners(conn: Connection, fleet_id: int) -> list[int]:
    rows = conn.execute("SELECT member_id FROM members WHERE fleet_id = ?", (fleet_id,))
    return [member_id for (member_id,) in rows]


def _waiting(conn: Connection, owner: int) -> Cursor:
    """(status timestamp, id) of what waits for the member, newest first; read from the index alone."""
    statement = """
        SELECT status_timestamp, message_id FROM messages INDEXED BY idx_messages_inbox
        WHERE owner_member_id = ? AND type = 'unicast' AND status_state = 'input_required'
        ORDER BY status_timestamp DESC, message_id DESC
    """
    return conn.execute(statement, (owner,))


def _closed(conn: Connection, owner: int) -> Cursor:
    """The same of what does not wait any more."""
    statement = """
        SELECT status_timestamp, message_id FROM messages INDEXED BY idx_messages_closed
        WHERE owner_member_id = ? AND type = 'unicast' AND status_state <> 'input_required'
        ORDER BY status_timestamp DESC, message_id DESC
    """
    return conn.execute(statement, (owner,))


def _by_id(conn: Connection, message_ids: Sequence[int], characters: int | None) -> Iterator[Message]:
    """The messages with these ids, newest status first."""
    statement = """
        SELECT message_id, owner_member_id, from_member_id, to_member_id, type, created_at, status_state,
            status_timestamp, origin_message_id,
            CASE WHEN ?2 IS NULL THEN text ELSE substr(text, 1, ?2) END
        FROM messages WHERE message_id IN (SELECT value FROM json_each(?1))
        ORDER BY status_timestamp DESC, message_id DESC
    """
    return map(message_of_row, conn.execute(statement, (_listed(message_ids), characters)))


def _listed(message_ids: Iterable[int]) -> str:
    return f"[{','.join(map(str, message_ids))}]"
