"""The statements of hot commands must not look at more rows as the history grows (SPEC 13).

A guard on SQLite's plans instead of a timed test: it cannot be slow by accident, only by design.
"""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.database import fresh_database

from cafleet.db import fleets, members, messages, notifications, timeline
from cafleet.models import Message, MessageState, MessageType

SUMMARY = Message(1, 1, 1, None, MessageType.BROADCAST_SUMMARY, "t", MessageState.COMPLETED, "t", 1, "x")

STATEMENTS: dict[str, Callable[[sqlite3.Connection], object]] = {
    "send: sides": lambda conn: members.sides(conn, 1, 2),
    "send: key": lambda conn: messages.find_key(conn, 1, 2, "k"),
    "poll": lambda conn: messages.inbox(conn, 1, 50),
    "poll: count": lambda conn: messages.count_inbox(conn, 1),
    "ack": lambda conn: messages.complete(conn, 1, "t"),
    "show": lambda conn: messages.get(conn, 1),
    "member list": lambda conn: members.list_active(conn, 1),
    "member list: activity": lambda conn: messages.activity(conn, 1),
    "roster": lambda conn: members.list_known(conn, 1),
    "timeline": lambda conn: timeline.newest(conn, 1, 200),
    "timeline: cut": lambda conn: timeline.newest(conn, 1, 200, 500),
    "timeline: lengths": lambda conn: timeline.lengths(conn, [1, 2]),
    "received": lambda conn: messages.received(conn, 1, 200),
    "sent": lambda conn: messages.sent(conn, 1, 200),
    "broadcast": lambda conn: messages.deliveries_of(conn, SUMMARY),
    "monitor slot": lambda conn: members.active_monitor(conn, 1),
    "who am i": lambda conn: members.by_pane(conn, "s", "%1"),
    "fleets": fleets.list_live,
    "next pending of a member": lambda conn: notifications.next_of_member(conn, 1, []),
}

GROWING = ("messages", "x", "y", "z")
"""The messages table and its aliases."""
INDEX_OF = {
    "poll": {"idx_messages_inbox"},
    "poll: count": {"idx_messages_inbox"},
    "member list: activity": {
        "idx_messages_inbox",
        "idx_messages_sent",
        "idx_messages_received",
        "idx_messages_closed",
    },
    "timeline": {"idx_messages_inbox", "idx_messages_closed"},
    "timeline: cut": {"idx_messages_inbox", "idx_messages_closed"},
    "received": {"idx_messages_inbox", "idx_messages_closed"},
    "send: key": {"idx_messages_client_key"},
    "broadcast": {"idx_messages_sent"},
    "next pending of a member": {"idx_messages_unnotified"},
}


@pytest.fixture(params=["fresh", "analyzed"])
def path(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A file with some history; once as it grows, once after somebody ran ANALYZE on it."""
    database = fresh_database(tmp_path)
    with database.write() as conn:
        fleet_id = fleets.insert(conn, "team", "t")
        first, second = (members.insert(conn, fleet_id, name, "", "{}", "t") for name in "ab")
        fleets.set_director(conn, fleet_id, first)
        for number in range(200):
            messages.insert(
                conn, from_member_id=first, to_member_id=second, text="x", created_at=f"{number:05}"
            )
        messages.insert_summary(conn, from_member_id=first, text="x", created_at="1")
        conn.execute("UPDATE messages SET status_state = 'completed' WHERE message_id > 5")
        if request.param == "analyzed":
            conn.execute("ANALYZE")
    database.close()
    return database.path


def plan(path: str, statement: Callable[[sqlite3.Connection], object]) -> list[str]:
    """The steps of every SQL statement that the function runs."""
    ran: list[str] = []
    conn = sqlite3.connect(path, isolation_level=None)
    conn.set_trace_callback(ran.append)
    statement(conn)
    conn.set_trace_callback(None)
    steps = [row[3] for sql in ran for row in conn.execute(f"EXPLAIN QUERY PLAN {sql}")]
    conn.close()
    assert ran
    return steps


@pytest.mark.parametrize("name", STATEMENTS)
def test_no_hot_statement_scans_or_sorts_the_history(path: str, name: str) -> None:
    steps = plan(path, STATEMENTS[name])
    for step in steps:
        assert not step.startswith(tuple(f"SCAN {table}" for table in GROWING)), steps
    if name in ("poll", "sent"):
        assert not any("B-TREE" in step for step in steps), steps


@pytest.mark.parametrize("name", INDEX_OF)
def test_statements_use_the_index_that_was_made_for_them(path: str, name: str) -> None:
    steps = plan(path, STATEMENTS[name])
    used = {
        word for step in steps if step.startswith("SEARCH") for word in step.split() if "idx_messages" in word
    }
    assert used == INDEX_OF[name], steps
