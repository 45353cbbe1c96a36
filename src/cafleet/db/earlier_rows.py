"""How the rows of an earlier format become rows of the current one (SPEC 2.6).

Every function gets a connection to the new file with the old one attached as `earlier`, and runs inside
the import's one transaction with foreign keys off; they are checked at its end.
"""

import json
import sqlite3
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from cafleet.errors import IntegrityError, MonitorDuplicates, NotAnActiveMonitor
from cafleet.models import MemberStatus, MessageState, MessageType

MONITOR_MARKERS = ("monitor", "monitoring-member")
"""Both mark a monitor in a member's card, the second in the first line."""

CANCELED = "canceled"
"""A state that the current format does not have: the sender took the message back."""

CHUNK = 50_000
"""Messages copied between two reports of progress."""

Progress = Callable[[int, int], None]
"""Called with the number of messages that are copied, and of all."""


_ADD_STAND_IN = """
    INSERT INTO members (member_id, fleet_id, name, description, status, registered_at, deregistered_at)
    VALUES (
        :member,
        coalesce(
            (SELECT owner.fleet_id FROM messages JOIN members owner ON owner.member_id = owner_member_id
                WHERE from_member_id = :member LIMIT 1),
            (SELECT sender.fleet_id FROM messages JOIN members sender ON sender.member_id = from_member_id
                WHERE owner_member_id = :member LIMIT 1),
            (SELECT fleet_id FROM fleets WHERE director_member_id = :member LIMIT 1),
            (SELECT min(fleet_id) FROM fleets),
            1
        ),
        'unknown-' || :member,
        'stands for a member that the imported file had no more',
        'deregistered',
        coalesce((SELECT min(created_at) FROM messages WHERE from_member_id = :member), :now),
        :now
    )
"""

# Whose inbox a message belongs to follows from its type in the current format.
_COPY_MESSAGES = """
    INSERT INTO messages (message_id, from_member_id, to_member_id, created_at, status_state,
        status_timestamp, text, notified_at, type, origin_message_id)
    SELECT message_id, from_member_id,
        CASE type WHEN 'unicast' THEN owner_member_id ELSE from_member_id END,
        created_at,
        CASE status_state WHEN 'canceled' THEN 'completed' ELSE status_state END,
        status_timestamp, text,
        CASE status_state WHEN 'input_required' THEN coalesce({notified}, created_at) ELSE {notified} END,
        type, origin_message_id
    FROM earlier.messages WHERE message_id > ? ORDER BY message_id LIMIT ?
"""


class Mending(NamedTuple):
    """Makes names and descriptions what the rules of SPEC 3 allow; what is allowed stays as it is."""

    name: Callable[[str], str]
    description: Callable[[str], str]


class Members(NamedTuple):
    """What became of the members."""

    mended: tuple[int, ...]
    """Members whose name or description was changed to what the rules allow."""
    surplus_monitors: tuple[int, ...]
    """Monitors that were deregistered because another one was chosen."""


def count(connection: sqlite3.Connection, table: str) -> int:
    """Rows of `table`, given with its schema (`earlier.messages`)."""
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608  # own names


def earlier_tables(connection: sqlite3.Connection) -> set[str]:
    """Names of the old file's tables."""
    return {
        name for (name,) in connection.execute("SELECT name FROM earlier.sqlite_master WHERE type = 'table'")
    }


def copy_fleets(connection: sqlite3.Connection, mending: Mending) -> tuple[int, ...]:
    """All fleets; the ids of those whose name was mended."""
    mended = []
    for fleet_id, name, *rest in connection.execute(
        "SELECT fleet_id, name, created_at, deleted_at, director_member_id FROM earlier.fleets"
    ).fetchall():
        new_name = None if name is None else mending.name(str(name))
        if new_name != name:
            mended.append(fleet_id)
        connection.execute("INSERT INTO fleets VALUES (?, ?, ?, ?, ?)", (fleet_id, new_name, *rest))
    return tuple(mended)


def copy_members(
    connection: sqlite3.Connection, chosen: Mapping[int, int], mending: Mending, now: str
) -> Members:
    """All members, with cards as the current format has them.

    `chosen`: for a fleet with several active monitors the one that stays; the others are deregistered.

    Raises:
        MonitorDuplicates: several active monitors in a fleet, and none chosen.
        NotAnActiveMonitor: the chosen member is none of them.
        IntegrityError: a status that is not known.
    """
    rows = connection.execute(
        "SELECT member_id, fleet_id, name, description, status, registered_at, deregistered_at,"
        " member_card_json, member_id IN (SELECT director_member_id FROM earlier.fleets) FROM earlier.members"
    ).fetchall()
    cards = {row[0]: _card(row[7], director=bool(row[8])) for row in rows}
    surplus = _surplus(rows, cards, chosen)
    mended = []
    for member_id, fleet_id, name, description, status, registered_at, deregistered_at, *_ in rows:
        if status not in (MemberStatus.ACTIVE, MemberStatus.DEREGISTERED):
            raise IntegrityError("member", member_id, status, "status")
        if member_id in surplus:
            status, deregistered_at = MemberStatus.DEREGISTERED.value, now
        new_name, new_description = mending.name(str(name)), mending.description(str(description))
        if (new_name, new_description) != (name, description):
            mended.append(member_id)
        card = json.dumps(cards[member_id], ensure_ascii=False, separators=(",", ":"))
        connection.execute(
            "INSERT INTO members (member_id, fleet_id, name, description, status, registered_at,"
            " deregistered_at, member_card_json) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (member_id, fleet_id, new_name, new_description, status, registered_at, deregistered_at, card),
        )
    return Members(tuple(mended), tuple(sorted(surplus)))


def add_stand_ins(connection: sqlite3.Connection, now: str) -> tuple[int, ...]:
    """A deregistered member `unknown-<id>` for each id that a row names and no row has; their ids.

    Each belongs to the fleet of somebody that it wrote to, else of the fleet that names it. Comes after all
    rows are copied: only the new file is sure to have the indexes that this needs.
    """
    missing = [
        member_id
        for (member_id,) in connection.execute(
            "SELECT from_member_id FROM messages UNION SELECT owner_member_id FROM messages"
            " UNION SELECT director_member_id FROM fleets WHERE director_member_id IS NOT NULL"
            " EXCEPT SELECT member_id FROM members ORDER BY 1"
        )
    ]
    parameters = [{"member": member_id, "now": now} for member_id in missing]
    connection.executemany(_ADD_STAND_IN, parameters)
    return tuple(missing)


def add_stand_in_fleets(connection: sqlite3.Connection, now: str) -> tuple[int, ...]:
    """A deleted fleet `unknown-<id>` for each id that a member names and no row has; their ids."""
    missing = [
        fleet_id
        for (fleet_id,) in connection.execute(
            "SELECT fleet_id FROM members UNION SELECT fleet_id FROM monitor_runtime"
            " EXCEPT SELECT fleet_id FROM fleets ORDER BY 1"
        )
    ]
    connection.executemany(
        "INSERT INTO fleets (fleet_id, name, created_at, deleted_at) VALUES (?, ?, ?, ?)",
        [(fleet_id, f"unknown-{fleet_id}", now, now) for fleet_id in missing],
    )
    return tuple(missing)


def copy_messages(connection: sqlite3.Connection, progress: Progress) -> int:
    """All messages; how many canceled ones became completed ones.

    A pending delivery that was never typed into a pane counts as notified, so that no old line is typed
    into a new one.

    Raises:
        IntegrityError: a type or state that is not known.
    """
    states = (MessageState.INPUT_REQUIRED.value, MessageState.COMPLETED.value, CANCELED)
    _refuse_unknown(connection, "type", (MessageType.UNICAST.value, MessageType.BROADCAST_SUMMARY.value))
    _refuse_unknown(connection, "status_state", states)
    columns = {row[1] for row in connection.execute("PRAGMA earlier.table_info(messages)")}
    notified = "notified_at" if "notified_at" in columns else "NULL"
    statement = _COPY_MESSAGES.replace("{notified}", notified)
    total, copied, last = count(connection, "earlier.messages"), 0, -(2**63)
    indexes = _drop_indexes(connection, "messages")
    # Until nothing is left, whatever the count says: in a damaged file an index may count rows that are gone.
    while found := connection.execute(statement, (last, CHUNK)).rowcount:
        copied += found
        last = connection.execute("SELECT max(message_id) FROM main.messages").fetchone()[0]
        progress(copied, total)
    for index in indexes:
        connection.execute(index)
    query = "SELECT count(*) FROM earlier.messages WHERE status_state = ?"
    return int(connection.execute(query, (CANCELED,)).fetchone()[0])


def copy_placements(connection: sqlite3.Connection) -> None:
    """All placements of active members; of which multiplexer server a pane is was not recorded."""
    connection.execute(
        "INSERT INTO member_placements"
        " (member_id, mux_session, mux_window_id, mux_pane_id, backend, coding_agent, created_at)"
        " SELECT p.member_id, p.mux_session, p.mux_window_id, p.mux_pane_id, p.backend, p.coding_agent,"
        " p.created_at FROM earlier.member_placements p JOIN main.members m ON m.member_id = p.member_id"
        " WHERE m.status = 'active'"
    )


def copy_monitor_runtime(connection: sqlite3.Connection) -> None:
    """All rows of monitor loops, with the columns that the old file has."""
    kept = {row[1] for row in connection.execute("PRAGMA main.table_info(monitor_runtime)")}
    found = {row[1] for row in connection.execute("PRAGMA earlier.table_info(monitor_runtime)")}
    columns = ", ".join(sorted(kept & found))
    connection.execute(
        f"INSERT INTO monitor_runtime ({columns}) SELECT {columns} FROM earlier.monitor_runtime"  # noqa: S608
    )


def carry_counters_on(connection: sqlite3.Connection) -> None:
    """No id of the old file is given out again, those of rows that it had lost included."""
    known = "sqlite_sequence" in earlier_tables(connection)
    for table, key in (("fleets", "fleet_id"), ("members", "member_id"), ("messages", "message_id")):
        used = connection.execute(f"SELECT coalesce(max({key}), 0) FROM main.{table}").fetchone()[0]  # noqa: S608
        if known:
            # SQLite itself passes over a counter that is no number.
            query = "SELECT max(seq) FROM earlier.sqlite_sequence WHERE name = ? AND typeof(seq) = 'integer'"
            used = max(used, connection.execute(query, (table,)).fetchone()[0] or 0)
        connection.execute("DELETE FROM main.sqlite_sequence WHERE name = ?", (table,))
        connection.execute("INSERT INTO main.sqlite_sequence (name, seq) VALUES (?, ?)", (table, used))


def _drop_indexes(connection: sqlite3.Connection, table: str) -> list[str]:
    """The statements that make them again: sorting once is several times as fast as keeping order."""
    found = connection.execute(
        "SELECT name, sql FROM main.sqlite_master WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL",
        (table,),
    ).fetchall()
    for name, _ in found:
        connection.execute(f'DROP INDEX main."{name}"')
    return [sql for _, sql in found]


def _card(text: object, *, director: bool) -> dict[str, object]:
    """The card of the current format: skills, and the marker on a monitor."""
    try:
        old = json.loads(str(text))
    except ValueError:
        old = None
    if not isinstance(old, dict):
        return {"skills": []}
    skills, own = old.get("skills"), old.get("cafleet")
    card: dict[str, object] = {"skills": skills if isinstance(skills, list) else []}
    if isinstance(own, dict) and own.get("kind") in MONITOR_MARKERS and not director:
        card["cafleet"] = {"kind": "monitor"}
    return card


def _surplus(
    rows: list[Any], cards: Mapping[int, Mapping[str, object]], chosen: Mapping[int, int]
) -> set[int]:
    """Ids of the active monitors that do not stay."""
    monitors: dict[int, list[int]] = {}
    for member_id, fleet_id, _, _, status, *_ in rows:
        if status == MemberStatus.ACTIVE and "cafleet" in cards[member_id]:
            monitors.setdefault(fleet_id, []).append(member_id)
    for fleet_id, member_id in chosen.items():
        if member_id not in monitors.get(fleet_id, []):
            raise NotAnActiveMonitor(fleet_id, member_id)
    duplicates = {fleet: ids for fleet, ids in monitors.items() if len(ids) > 1 and fleet not in chosen}
    if duplicates:
        raise MonitorDuplicates(duplicates)
    return {member_id for fleet_id in chosen for member_id in monitors[fleet_id]} - set(chosen.values())


def _refuse_unknown(connection: sqlite3.Connection, column: str, known: tuple[str, ...]) -> None:
    marks = ", ".join("?" * len(known))
    row = connection.execute(
        f"SELECT message_id, {column} FROM earlier.messages"  # noqa: S608  # own names
        f" WHERE {column} NOT IN ({marks}) LIMIT 1",
        known,
    ).fetchone()
    if row is not None:
        raise IntegrityError("message", row[0], row[1], column)
