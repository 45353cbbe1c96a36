"""Statements about pending notifications (SPEC 4.1): one per function, connection in, records out.

*Pending*: `input_required`, not stamped, sender ≠ recipient, and the recipient is an active member
other than the Director with a concrete pane.
"""

from __future__ import annotations

from collections.abc import Collection
from sqlite3 import Connection

from cafleet.db.records import decode
from cafleet.light_typing import TYPE_CHECKING, NamedTuple
from cafleet.models import MemberStatus, MessageState, MessageType, Placement

if TYPE_CHECKING:
    from typing import Any

# The index's own predicate, word for word, and its order. There is no condition on the type: only
# unicast rows are ever `input_required`.
_OLDEST = """
    SELECT x.message_id FROM messages x INDEXED BY idx_messages_unnotified
    WHERE x.owner_member_id = m.member_id AND x.status_state = 'input_required' AND x.notified_at IS NULL
        AND x.from_member_id <> x.owner_member_id
        AND x.message_id NOT IN (SELECT value FROM json_each(:messages))
    ORDER BY x.created_at, x.message_id LIMIT 1
"""
_TOLD = """
    FROM members m
    JOIN fleets f ON f.fleet_id = m.fleet_id AND f.deleted_at IS NULL
    JOIN member_placements p ON p.member_id = m.member_id AND p.mux_pane_id IS NOT NULL
    WHERE m.status = 'active' AND m.member_id IS NOT f.director_member_id
"""


class Pending(NamedTuple):
    """A delivery whose line is still to be typed."""

    message_id: int
    member_id: int
    """The recipient."""


class Delivery(NamedTuple):
    """A delivery and all that decides whether, where and how its line is typed."""

    message_id: int
    from_member_id: int
    member_id: int
    """The recipient."""
    created_at: str
    text: str
    settled: bool
    """Stamped as notified, or ACKed: nothing is left to type."""
    active: bool
    """The recipient is an active member of a fleet that is not deleted."""
    director: bool
    placement: Placement | None


def next_of_member(conn: Connection, member_id: int, exclude: Collection[int]) -> Pending | None:
    """The member's oldest pending delivery that is not in `exclude`."""
    statement = f"SELECT ({_OLDEST}), m.member_id {_TOLD} AND m.member_id = :member"  # constants only
    row = conn.execute(statement, {"messages": _array(exclude), "member": member_id}).fetchone()
    return None if row is None or row[0] is None else Pending(*row)


def next_of_fleet(
    conn: Connection, fleet_id: int, exclude: Collection[int], exclude_members: Collection[int]
) -> Pending | None:
    """The fleet's oldest pending delivery that is not in `exclude`, nor to one of `exclude_members`."""
    # Each member's oldest comes from the index: a long queue for one dead pane costs nothing.
    statement = f"""
        WITH oldest AS (
            SELECT ({_OLDEST}) AS message_id, m.member_id {_TOLD} AND m.fleet_id = :fleet
                AND m.member_id NOT IN (SELECT value FROM json_each(:members)))
        SELECT o.message_id, o.member_id FROM oldest o JOIN messages y ON y.message_id = o.message_id
        ORDER BY y.created_at, y.message_id LIMIT 1
    """  # noqa: S608  # constants only
    values = {"messages": _array(exclude), "fleet": fleet_id, "members": _array(exclude_members)}
    row = conn.execute(statement, values).fetchone()
    return None if row is None else Pending(*row)


def delivery(conn: Connection, message_id: int) -> Delivery | None:
    """Any delivery with its recipient as it is now; a broadcast's summary is none."""
    statement = """
        SELECT x.message_id, x.from_member_id, x.owner_member_id, x.created_at, x.text, x.status_state,
            x.notified_at, x.type, m.status, f.deleted_at, f.director_member_id,
            p.member_id, p.mux_session, p.mux_window_id, p.mux_pane_id, p.backend, p.coding_agent,
            p.created_at, p.mux_server
        FROM messages x
        JOIN members m ON m.member_id = x.owner_member_id
        JOIN fleets f ON f.fleet_id = m.fleet_id
        LEFT JOIN member_placements p ON p.member_id = m.member_id
        WHERE x.message_id = ?
    """
    row = conn.execute(statement, (message_id,)).fetchone()
    return None if row is None else _delivery(row)


def stamp(conn: Connection, message_id: int, at: str) -> bool:
    """Note when the line was typed; False where the row is not pending any more."""
    statement = """
        UPDATE messages SET notified_at = ?
        WHERE message_id = ? AND notified_at IS NULL AND status_state = 'input_required'
    """
    return conn.execute(statement, (at, message_id)).rowcount == 1


def unstamped(conn: Connection, member_id: int, limit: int) -> list[int]:
    """Ids of the member's oldest deliveries without a stamp, ACKed ones left out."""
    statement = """
        SELECT x.message_id FROM messages x INDEXED BY idx_messages_unnotified
        WHERE x.owner_member_id = ? AND x.status_state = 'input_required' AND x.notified_at IS NULL
            AND x.from_member_id <> x.owner_member_id
        ORDER BY x.created_at, x.message_id LIMIT ?
    """
    return [row[0] for row in conn.execute(statement, (member_id, limit))]


def pending_count(conn: Connection, fleet_id: int) -> dict[int, int]:
    """How many notifications are pending, by recipient; members with none are left out."""
    statement = f"""
        SELECT m.member_id, count(*) FROM (SELECT m.member_id {_TOLD} AND m.fleet_id = ?) m
        JOIN messages x INDEXED BY idx_messages_unnotified ON x.owner_member_id = m.member_id
            AND x.status_state = 'input_required' AND x.notified_at IS NULL
            AND x.from_member_id <> x.owner_member_id
        GROUP BY m.member_id
    """  # noqa: S608  # constants only
    return dict(conn.execute(statement, (fleet_id,)).fetchall())


# -- the reading side: wait and listen ----------------------------------------------------------


def listening_fleet(conn: Connection, member_id: int) -> int | None:
    """The fleet of an active member; None where the member or its fleet is gone."""
    statement = """
        SELECT m.fleet_id FROM members m JOIN fleets f ON f.fleet_id = m.fleet_id
        WHERE m.member_id = ? AND m.status = 'active' AND f.deleted_at IS NULL
    """
    row = conn.execute(statement, (member_id,)).fetchone()
    return None if row is None else int(row[0])


def arrived_after(conn: Connection, member_id: int, message_id: int) -> list[int]:
    """Ids of the member's waiting deliveries that are greater than `message_id`, ascending.

    Ids are given inside the write transaction, one at a time: what is committed later has a
    greater id, so a reader that remembers the last one misses nothing and repeats nothing.
    """
    statement = """
        SELECT message_id FROM messages INDEXED BY idx_messages_inbox
        WHERE owner_member_id = ? AND status_state = 'input_required' AND message_id > ?
        ORDER BY message_id
    """
    return [row[0] for row in conn.execute(statement, (member_id, message_id))]


# -- rows to records ---------------------------------------------------------------------------


def _array(ids: Collection[int]) -> str:
    return f"[{','.join(map(str, ids))}]"


def _delivery(row: tuple[Any, ...]) -> Delivery | None:
    message_id, sender, owner, created_at, text, state, notified_at, kind = row[:8]
    status, deleted_at, director_id = row[8:11]
    if decode(MessageType, kind, "messages", message_id, "type") is not MessageType.UNICAST:
        return None
    completed = decode(MessageState, state, "messages", message_id, "status_state") is MessageState.COMPLETED
    active = decode(MemberStatus, status, "members", owner, "status") is MemberStatus.ACTIVE
    return Delivery(
        message_id=message_id,
        from_member_id=sender,
        member_id=owner,
        created_at=created_at,
        text=text,
        settled=completed or notified_at is not None,
        active=active and deleted_at is None,
        director=owner == director_id,
        placement=None if row[11] is None else Placement(*row[11:]),
    )
