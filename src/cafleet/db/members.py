"""Statements on `members` and `member_placements`: one per function, connection in, records out."""

from __future__ import annotations

from collections.abc import Sequence
from sqlite3 import Connection
from sqlite3 import IntegrityError as SqliteIntegrityError

from cafleet.db.records import decode
from cafleet.errors import IntegrityError, MonitorExists
from cafleet.light_typing import TYPE_CHECKING, NamedTuple
from cafleet.models import Member, MemberKind, MemberStatus, Placement

if TYPE_CHECKING:
    from typing import Any

NAMES_PER_QUERY = 500
"""At most so many ids are bound in one name look-up (SPEC 3)."""

_SELECT = """
    SELECT m.member_id, m.fleet_id, m.name, m.description, m.status, f.director_member_id,
        CASE WHEN json_valid(m.member_card_json)
            THEN json_extract(m.member_card_json, '$.cafleet.kind') ELSE 'unreadable' END,
        m.registered_at, m.deregistered_at, m.member_card_json,
        p.member_id, p.mux_session, p.mux_window_id, p.mux_pane_id, p.backend, p.coding_agent, p.created_at,
        p.mux_server
    FROM members m
    JOIN fleets f ON f.fleet_id = m.fleet_id
    LEFT JOIN member_placements p ON p.member_id = m.member_id
"""


class Side(NamedTuple):
    """What the rules of a send must know of its sender or recipient, and no more."""

    member_id: int
    fleet_id: int
    status: MemberStatus
    fleet_deleted: bool
    fleet_live: bool


# -- members -----------------------------------------------------------------------------------


def insert(
    conn: Connection, fleet_id: int, name: str, description: str, card_json: str, registered_at: str
) -> int:
    """An active member without placement; returns its id.

    Raises:
        MonitorExists: the card marks a second active monitor of the fleet; the index has the last word.
    """
    statement = """
        INSERT INTO members (fleet_id, name, description, status, registered_at, member_card_json)
        VALUES (?, ?, ?, 'active', ?, ?)
    """
    try:
        cursor = conn.execute(statement, (fleet_id, name, description, registered_at, card_json))
    except SqliteIntegrityError:
        taken = active_monitor(conn, fleet_id)
        if taken is None:
            raise
        raise MonitorExists(fleet_id, taken) from None
    return int(cursor.lastrowid or 0)


def exists(conn: Connection, member_id: int) -> bool:
    """Whether a member, active or not, has this id."""
    row = conn.execute("SELECT 1 FROM members WHERE member_id = ?", (member_id,)).fetchone()
    return row is not None


def get(conn: Connection, member_id: int) -> Member | None:
    """Any member, active or not, with its placement."""
    return _one(conn, "WHERE m.member_id = ?", (member_id,))


def list_active(conn: Connection, fleet_id: int) -> list[Member]:
    """The fleet's active members by id; an unknown status is not passed over in silence."""
    where = "WHERE m.fleet_id = ? AND m.status <> 'deregistered' ORDER BY m.member_id"
    return _all(conn, where, (fleet_id,))


def list_known(conn: Connection, fleet_id: int) -> list[Member]:
    """The fleet's active members and those deregistered ones that own messages, by id."""
    where = """
        WHERE m.fleet_id = ? AND (m.status <> 'deregistered'
        OR EXISTS (SELECT 1 FROM messages x WHERE x.owner_member_id = m.member_id))
        ORDER BY m.member_id
    """
    return _all(conn, where, (fleet_id,))


def list_all(conn: Connection, fleet_id: int) -> list[Member]:
    """Whoever was ever a member of the fleet, by id."""
    return _all(conn, "WHERE m.fleet_id = ? ORDER BY m.member_id", (fleet_id,))


def count_active(conn: Connection, fleet_id: int) -> int:
    """How many active members the fleet has, the Director included."""
    statement = "SELECT count(*) FROM members WHERE fleet_id = ? AND status = 'active'"
    return int(conn.execute(statement, (fleet_id,)).fetchone()[0])


def active_monitor(conn: Connection, fleet_id: int) -> int | None:
    """Id of the fleet's active monitor."""
    # The predicate of idx_members_one_active_monitor_per_fleet, word for word, so that it is used.
    statement = """
        SELECT member_id FROM members WHERE fleet_id = ? AND status = 'active'
            AND json_extract(member_card_json, '$.cafleet.kind') = 'monitor'
    """
    row = conn.execute(statement, (fleet_id,)).fetchone()
    return None if row is None else int(row[0])


def names(conn: Connection, member_ids: Sequence[int]) -> dict[int, str]:
    """Names of the members among `member_ids`, at most `NAMES_PER_QUERY` ids, in id order."""
    marks = ", ".join("?" * len(member_ids))
    statement = f"SELECT member_id, name FROM members WHERE member_id IN ({marks}) ORDER BY member_id"  # noqa: S608  # marks only
    return dict(conn.execute(statement, tuple(member_ids)).fetchall())


def deregister(conn: Connection, member_id: int, at: str) -> bool:
    """From active to deregistered; False where the member was not active."""
    statement = """
        UPDATE members SET status = 'deregistered', deregistered_at = ?
        WHERE member_id = ? AND status = 'active'
    """
    return conn.execute(statement, (at, member_id)).rowcount == 1


def deregister_fleet(conn: Connection, fleet_id: int, at: str) -> int:
    """Deregister every active member of the fleet; returns how many."""
    statement = """
        UPDATE members SET status = 'deregistered', deregistered_at = ?
        WHERE fleet_id = ? AND status = 'active'
    """
    return conn.execute(statement, (at, fleet_id)).rowcount


def sides(conn: Connection, from_member_id: int, to_member_id: int) -> dict[int, Side]:
    """Sender and recipient by id, in one statement; unknown ids are missing from the answer."""
    statement = """
        SELECT m.member_id, m.fleet_id, m.status, f.deleted_at IS NOT NULL,
            d.status = 'active' AND p.member_id IS NOT NULL
        FROM members m
        JOIN fleets f ON f.fleet_id = m.fleet_id
        LEFT JOIN members d ON d.member_id = f.director_member_id
        LEFT JOIN member_placements p ON p.member_id = f.director_member_id
        WHERE m.member_id IN (?, ?)
    """
    return {row[0]: _side(row) for row in conn.execute(statement, (from_member_id, to_member_id))}


# -- placements --------------------------------------------------------------------------------


def insert_placement(conn: Connection, placement: Placement) -> None:
    """Place a member, with a pane or still pending."""
    statement = """
        INSERT INTO member_placements (member_id, mux_session, mux_window_id, mux_pane_id, backend,
            coding_agent, created_at, mux_server)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    """
    conn.execute(statement, placement)


def get_placement(conn: Connection, member_id: int) -> Placement | None:
    """The member's placement row."""
    statement = """
        SELECT member_id, mux_session, mux_window_id, mux_pane_id, backend, coding_agent, created_at,
            mux_server
        FROM member_placements WHERE member_id = ?
    """
    row = conn.execute(statement, (member_id,)).fetchone()
    return None if row is None else Placement(*row)


def list_placements(conn: Connection, fleet_id: int) -> list[Placement]:
    """Placements of every member of the fleet, by member id."""
    statement = """
        SELECT p.member_id, p.mux_session, p.mux_window_id, p.mux_pane_id, p.backend, p.coding_agent,
            p.created_at, p.mux_server
        FROM members m JOIN member_placements p ON p.member_id = m.member_id
        WHERE m.fleet_id = ? ORDER BY p.member_id
    """
    return [Placement(*row) for row in conn.execute(statement, (fleet_id,))]


def move_placement(conn: Connection, placement: Placement) -> bool:
    """Point the member's placement row at where `placement` says; False where it has none.

    `created_at` is when its agent was started there; which agent that is does not change."""
    statement = """
        UPDATE member_placements
        SET backend = ?, mux_session = ?, mux_window_id = ?, mux_pane_id = ?, mux_server = ?, created_at = ?
        WHERE member_id = ?
    """
    where = (placement.mux_session, placement.mux_window_id, placement.mux_pane_id, placement.mux_server)
    values = (placement.backend, *where, placement.created_at, placement.member_id)
    return conn.execute(statement, values).rowcount == 1


def delete_placement(conn: Connection, member_id: int) -> bool:
    """Remove the member's placement row; False where there was none."""
    return conn.execute("DELETE FROM member_placements WHERE member_id = ?", (member_id,)).rowcount == 1


def delete_fleet_placements(conn: Connection, fleet_id: int) -> int:
    """Remove the placement rows of all members of the fleet; returns how many."""
    statement = """
        DELETE FROM member_placements WHERE member_id IN (SELECT member_id FROM members WHERE fleet_id = ?)
    """
    return conn.execute(statement, (fleet_id,)).rowcount


def by_pane(conn: Connection, server: str | None, pane: str) -> Member | None:
    """The newest active member placed in this pane of this server.

    A pane may serve several fleets (its program created a second one): the newest is what it works on now.
    """
    where = """
        WHERE m.member_id IN (
            SELECT member_id FROM member_placements WHERE mux_pane_id = ? AND mux_server IS ?)
        AND m.status = 'active' AND f.deleted_at IS NULL
        ORDER BY m.member_id DESC LIMIT 1
    """
    return _one(conn, where, (pane, server))


def lives_in_pane(conn: Connection, member_id: int, server: str | None, pane: str) -> bool:
    """Whether this member is placed in this pane of this server."""
    statement = "SELECT 1 FROM member_placements WHERE member_id = ? AND mux_pane_id = ? AND mux_server IS ?"
    return conn.execute(statement, (member_id, pane, server)).fetchone() is not None


# -- rows to records ---------------------------------------------------------------------------


def _one(conn: Connection, where: str, values: tuple[Any, ...]) -> Member | None:
    row = conn.execute(_SELECT + where, values).fetchone()
    return None if row is None else _member(row)


def _all(conn: Connection, where: str, values: tuple[Any, ...]) -> list[Member]:
    return [_member(row) for row in conn.execute(_SELECT + where, values)]


def _member(row: tuple[Any, ...]) -> Member:
    member_id, fleet_id, name, description, status, director_id, card_kind, registered, deregistered, card = (
        row[:10]
    )
    return Member(
        member_id=member_id,
        fleet_id=fleet_id,
        name=name,
        description=description,
        status=decode(MemberStatus, status, "members", member_id, "status"),
        kind=_kind(member_id, director_id, card_kind),
        registered_at=registered,
        deregistered_at=deregistered,
        card_json=card,
        placement=None if row[10] is None else Placement(*row[10:]),
    )


def _kind(member_id: int, director_id: int | None, card_kind: object) -> MemberKind:
    if card_kind is not None and card_kind != MemberKind.MONITOR.value:
        raise IntegrityError("members", member_id, card_kind, "card kind")
    if member_id == director_id:
        return MemberKind.DIRECTOR
    return MemberKind.MEMBER if card_kind is None else MemberKind.MONITOR


def _side(row: tuple[Any, ...]) -> Side:
    member_id, fleet_id, status, deleted, directed = row
    return Side(
        member_id=member_id,
        fleet_id=fleet_id,
        status=decode(MemberStatus, status, "members", member_id, "status"),
        fleet_deleted=bool(deleted),
        fleet_live=bool(directed) and not deleted,
    )
