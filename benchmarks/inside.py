"""Inside one process: a durable send against its bare transaction, and growth of the file."""

import os
import sqlite3
import statistics
from collections.abc import Callable, Iterator
from typing import NoReturn

from benchmarks.measure import interleave, median_ratio, timed
from benchmarks.place import Place
from benchmarks.table import Row, at_most
from cafleet.broker import inbox, members, messages, timeline
from cafleet.clock import format_timestamp, utc_now
from cafleet.config import load
from cafleet.db.database import Database
from cafleet.runtime import Runtime

SEND_ROUNDS = 2000
SEND_LIMIT = 1.3
FEW, MANY = 1_000, 1_000_000
GROWTH_ROUNDS = 100
GROWTH_LIMIT = 1.5
BODY = "hello, this is a line of ordinary length from one member to another"


def rows() -> Iterator[Row]:
    """Both parts."""
    with Place() as place:
        yield _durable_send(place)
    yield from _growth()


def runtime_of(place: Place) -> Runtime:
    """What a face would build; no row here types into a pane."""
    config = load(place.environ)
    return Runtime(config, Database(config.database_path), _no_multiplexer, utc_now)


def _no_multiplexer(name: str) -> NoReturn:
    raise AssertionError(f"nothing here needs a multiplexer, least of all {name}")


def _durable_send(place: Place) -> Row:
    """A broker call and the bare SQL that it cannot do without, on the same file, in turns."""
    runtime = runtime_of(place)
    bare = sqlite3.connect(place.database_path, isolation_level=None)
    for pragma in ("foreign_keys = ON", "busy_timeout = 5000", "synchronous = FULL"):
        bare.execute(f"PRAGMA {pragma}")

    def transaction() -> None:
        now = format_timestamp(utc_now())
        bare.execute("BEGIN IMMEDIATE")
        for _ in ("sender", "recipient"):
            bare.execute(
                "SELECT m.*, f.* FROM members m JOIN fleets f USING (fleet_id) WHERE m.member_id = 2"
            ).fetchone()
        bare.execute(
            "INSERT INTO messages (from_member_id, to_member_id, created_at, status_state, status_timestamp,"
            " text, notified_at) VALUES (2, 2, ?, 'input_required', ?, ?, ?)",
            (now, now, BODY, now),
        )
        bare.execute("COMMIT")

    times = interleave(
        {"bare": timed(transaction), "send": timed(lambda: messages.send(runtime, 2, 2, BODY))}, SEND_ROUNDS
    )
    bare.close()
    runtime.database.close()
    send, least = (statistics.median(times[name]) * 1000 for name in ("send", "bare"))
    return at_most(
        "a durable send inside a process",
        SEND_LIMIT,
        median_ratio(times["send"], times["bare"]),
        f"{send:.2f} ms, bare {least:.2f} ms",
        against="the bare SQLite transaction",
    )


def _growth() -> Iterator[Row]:
    with Place() as young, Place() as old:
        young.add_history(FEW)
        old.add_history(MANY)
        size = os.path.getsize(old.database_path) / 2**20
        works: dict[str, Callable[[], float]] = {}
        for label, place in (("few", young), ("many", old)):
            works |= {
                f"{name}, {label}": timed(work) for name, work in _daily_work(runtime_of(place)).items()
            }
        times = interleave(works, GROWTH_ROUNDS)
    for name in ("send", "poll", "ack", "member list", "timeline"):
        few, many = times[f"{name}, few"], times[f"{name}, many"]
        yield at_most(
            f"{name} with a million old messages ({size:.0f} MiB)",
            GROWTH_LIMIT,
            median_ratio(many, few),
            f"{statistics.median(many) * 1000:.2f} ms, few: {statistics.median(few) * 1000:.2f} ms",
            against="the same with a thousand",
        )


def _daily_work(runtime: Runtime) -> dict[str, Callable[[], object]]:
    """What members do all day; each ack takes the message that the send before it left."""
    sent: list[int] = []

    def send() -> None:
        sent.append(messages.send(runtime, 2, 2, BODY).message.message_id)

    return {
        "send": send,
        "poll": lambda: inbox.poll(runtime, 2),
        "ack": lambda: inbox.ack(runtime, sent.pop()),
        "member list": lambda: members.list_members(runtime, 1),
        "timeline": lambda: timeline.timeline(runtime, 1),
    }
