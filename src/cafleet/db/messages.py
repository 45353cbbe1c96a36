"""Statements on `messages`: one per function, connection in, records out.

State and type are written as literals, not bound: only so may SQLite use the partial indexes. Where
two indexes would do, the one whose cost does not grow with the history is named (`INDEXED BY`).
"""

from __future__ import annotations

from sqlite3 import Connection

from cafleet.db.records import decode
from cafleet.light_typing import TYPE_CHECKING, NamedTuple
from cafleet.models import Message, MessageState, MessageType

if TYPE_CHECKING:
    from typing import Any

_SELECT = """
    SELECT x.message_id, x.owner_member_id, x.from_member_id, x.to_member_id, x.type, x.created_at,
        x.status_state, x.status_timestamp, x.origin_message_id, x.text
    FROM messages x
"""


class ActivityRow(NamedTuple):
    """A member's counters as the file gives them; `idle` is the broker's rule."""

    unread: int
    last_sent: str | None
    last_recv: str | None
    last_ack: str | None


# -- writing -----------------------------------------------------------------------------------


def insert(
    conn: Connection,
    *,
    from_member_id: int,
    to_member_id: int,
    text: str,
    created_at: str,
    notified_at: str | None = None,
    origin_message_id: int | None = None,
    client_key: str | None = None,
) -> int:
    """One `input_required` delivery; returns its id."""
    statement = """
        INSERT INTO messages (from_member_id, to_member_id, created_at, status_state, status_timestamp, text,
            notified_at, type, origin_message_id, client_key)
        VALUES (?, ?, ?, 'input_required', ?, ?, ?, 'unicast', ?, ?)
    """
    values = (
        from_member_id,
        to_member_id,
        created_at,
        created_at,
        text,
        notified_at,
        origin_message_id,
        client_key,
    )
    return int(conn.execute(statement, values).lastrowid or 0)


def insert_summary(
    conn: Connection, *, from_member_id: int, text: str, created_at: str, client_key: str | None = None
) -> int:
    """The summary of a broadcast, completed from the start, not yet linked to itself; returns its id."""
    statement = """
        INSERT INTO messages (from_member_id, to_member_id, created_at, status_state, status_timestamp, text,
            type, client_key)
        VALUES (?, ?, ?, 'completed', ?, ?, 'broadcast_summary', ?)
    """
    values = (from_member_id, from_member_id, created_at, created_at, text, client_key)
    return int(conn.execute(statement, values).lastrowid or 0)


def link_summary(conn: Connection, message_id: int) -> None:
    """Give a summary its own id as `origin_message_id`: the id exists only after the insert."""
    conn.execute("UPDATE messages SET origin_message_id = message_id WHERE message_id = ?", (message_id,))


def complete(conn: Connection, message_id: int, at: str) -> bool:
    """ACK: from `input_required` to `completed`; False where the row was not a waiting delivery."""
    statement = """
        UPDATE messages SET status_state = 'completed', status_timestamp = ?
        WHERE message_id = ? AND status_state = 'input_required' AND type = 'unicast'
    """
    return conn.execute(statement, (at, message_id)).rowcount == 1


# -- single rows -------------------------------------------------------------------------------


def get(conn: Connection, message_id: int) -> Message | None:
    """Any message by id."""
    return _one(conn, "WHERE x.message_id = ?", (message_id,))


def find_key(conn: Connection, from_member_id: int, to_member_id: int, key: str) -> Message | None:
    """The message that this sender stored for this recipient under `key`."""
    where = "WHERE x.from_member_id = ? AND x.to_member_id = ? AND x.client_key = ?"
    return _one(conn, where, (from_member_id, to_member_id, key))


# -- lists -------------------------------------------------------------------------------------


def inbox(
    conn: Connection, member_id: int, limit: int | None = None, characters: int | None = None
) -> list[Message]:
    """The member's waiting deliveries, newest status first; `limit` None: all. `characters`: read no further
    than to the message at which the texts together reach so many."""
    where = """
        WHERE x.owner_member_id = ? AND x.status_state = 'input_required' AND x.type = 'unicast'
        ORDER BY x.status_timestamp DESC, x.message_id DESC LIMIT ?
    """
    if characters is None:
        return _all(conn, where, (member_id, _limit(limit)))
    found: list[Message] = []
    for row in conn.execute(_SELECT + where, (member_id, _limit(limit))):
        message = _message(row)
        found.append(message)
        characters -= len(message.text)
        if characters <= 0:
            break
    return found


def count_inbox(conn: Connection, member_id: int) -> int:
    """How many deliveries wait for the member."""
    statement = """
        SELECT count(*) FROM messages INDEXED BY idx_messages_inbox
        WHERE owner_member_id = ? AND type = 'unicast' AND status_state = 'input_required'
    """
    return int(conn.execute(statement, (member_id,)).fetchone()[0])


def received(conn: Connection, member_id: int, limit: int | None = None) -> list[Message]:
    """Deliveries that the member owns, in any state, newest status first."""
    where = """
        WHERE x.message_id IN (
            SELECT message_id FROM (
                SELECT z.message_id FROM messages z INDEXED BY idx_messages_inbox
                WHERE z.owner_member_id = ?1 AND z.type = 'unicast' AND z.status_state = 'input_required'
                ORDER BY z.status_timestamp DESC, z.message_id DESC LIMIT ?2)
            UNION ALL
            SELECT message_id FROM (
                SELECT z.message_id FROM messages z INDEXED BY idx_messages_closed
                WHERE z.owner_member_id = ?1 AND z.type = 'unicast' AND z.status_state <> 'input_required'
                ORDER BY z.status_timestamp DESC, z.message_id DESC LIMIT ?2))
        ORDER BY x.status_timestamp DESC, x.message_id DESC LIMIT ?2
    """
    return _all(conn, where, (member_id, _limit(limit)))


def sent(conn: Connection, member_id: int, limit: int | None = None) -> list[Message]:
    """Deliveries that the member sent, newest status first."""
    where = """
        WHERE x.from_member_id = ? AND x.type = 'unicast'
        ORDER BY x.status_timestamp DESC, x.message_id DESC LIMIT ?
    """
    return _all(conn, where, (member_id, _limit(limit)))


def deliveries_of(conn: Connection, summary: Message) -> list[Message]:
    """The deliveries of one broadcast, by id."""
    # All rows of a broadcast carry the summary's creation time: that is what the index finds.
    where = """
        WHERE x.from_member_id = ? AND x.created_at = ? AND x.origin_message_id = ?
            AND x.type = 'unicast'
        ORDER BY x.message_id
    """
    return _all(conn, where, (summary.from_member_id, summary.created_at, summary.message_id))


def activity(conn: Connection, fleet_id: int, *, deregistered: bool = False) -> dict[int, ActivityRow]:
    """Counters of the fleet's active members by id, on request of deregistered ones too (SPEC 3)."""
    statement = """
        SELECT m.member_id,
            (SELECT count(*) FROM messages x INDEXED BY idx_messages_inbox
                WHERE x.owner_member_id = m.member_id AND x.type = 'unicast'
                    AND x.status_state = 'input_required'),
            (SELECT max(x.created_at) FROM messages x INDEXED BY idx_messages_sent
                WHERE x.from_member_id = m.member_id),
            (SELECT max(x.created_at) FROM messages x INDEXED BY idx_messages_received
                WHERE x.owner_member_id = m.member_id AND x.type = 'unicast'),
            (SELECT max(x.status_timestamp) FROM messages x INDEXED BY idx_messages_closed
                WHERE x.owner_member_id = m.member_id AND x.type = 'unicast'
                    AND x.status_state <> 'input_required' AND x.status_state = 'completed')
        FROM members m WHERE m.fleet_id = ? AND (m.status <> 'deregistered' OR ?)
    """
    rows = conn.execute(statement, (fleet_id, deregistered))
    return {row[0]: ActivityRow(*row[1:]) for row in rows}


# -- rows to records ---------------------------------------------------------------------------


def _one(conn: Connection, where: str, values: tuple[Any, ...]) -> Message | None:
    row = conn.execute(_SELECT + where, values).fetchone()
    return None if row is None else _message(row)


def _all(conn: Connection, where: str, values: tuple[Any, ...]) -> list[Message]:
    return [_message(row) for row in conn.execute(_SELECT + where, values)]


def _message(row: tuple[Any, ...]) -> Message:
    message_id, owner, sender, recipient, type_text, created, state_text, status_time, origin, text = row
    kind = decode(MessageType, type_text, "messages", message_id, "type")
    state = decode(MessageState, state_text, "messages", message_id, "status_state")
    shown_recipient = None if kind is MessageType.BROADCAST_SUMMARY else recipient
    return Message(
        message_id, owner, sender, shown_recipient, kind, created, state, status_time, origin, text
    )


message_of_row = _message
"""For `feed.py` and `timeline.py`, which read the same columns in the same order."""


def _limit(limit: int | None) -> int:
    return -1 if limit is None else limit  # SQLite: a negative limit is none
