"""What changed since a position: exactly that, or the honest answer that it cannot be told."""

import os
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.web_fleet import WebFleet, new_database, no_multiplexer

from cafleet import config
from cafleet.broker import feed
from cafleet.broker.feed import Changes, Position
from cafleet.clock import utc_now
from cafleet.db.backup import backup
from cafleet.runtime import Runtime


def _since(runtime: Runtime, fleet: WebFleet, position: Position, limit: int = 100) -> Changes:
    found = feed.changes_since(runtime, fleet.fleet_id, position, limit=limit)
    assert found is not None
    return found


def _told(found: Changes) -> list[tuple[int, bool]]:
    return [(change.message.message_id, change.acknowledged) for change in found.changes]


def test_new_deliveries_and_acks_are_told_apart(runtime: Runtime, fleet: WebFleet) -> None:
    worker = fleet.member("worker")
    old = fleet.send(fleet.director, worker, "old")
    start = feed.position(runtime, fleet.fleet_id)
    new = fleet.send(fleet.director, worker, "new")
    fleet.ack(old)
    found = _since(runtime, fleet, start)
    assert _told(found) == [(new, False), (old, True)]
    assert found.position == feed.position(runtime, fleet.fleet_id)
    assert _told(_since(runtime, fleet, found.position)) == []


def test_a_delivery_that_was_acked_at_once_is_told_once(runtime: Runtime, fleet: WebFleet) -> None:
    worker = fleet.member("worker")
    start = feed.position(runtime, fleet.fleet_id)
    message = fleet.send(fleet.director, worker, "x", ack=True)
    found = _since(runtime, fleet, start)
    assert _told(found) == [(message, False)]
    assert _told(_since(runtime, fleet, found.position)) == []


def test_summaries_and_other_fleets_are_left_out(runtime: Runtime, fleet: WebFleet) -> None:
    worker = fleet.member("worker")
    other = WebFleet(runtime.database, "other")
    start = feed.position(runtime, fleet.fleet_id)
    deliveries = fleet.broadcast(fleet.director, [worker], "to all")
    other.send(other.director, other.member("there"), "x")
    found = _since(runtime, fleet, start)
    assert _told(found) == [(message, False) for message in deliveries]
    assert found.position == feed.position(runtime, fleet.fleet_id)


def test_after_a_restore_the_same_numbers_are_no_history(tmp_path: Path) -> None:
    """Ids are given anew then: as many messages as were lost make id and count what they had been."""
    database = new_database(tmp_path)
    fleet = WebFleet(database)
    worker = fleet.member("worker")
    fleet.send(fleet.director, worker, "in the backup")
    backup(database, copy := str(tmp_path / "copy.db"))
    fleet.send(fleet.director, worker, "lost")
    fleet.broadcast(fleet.director, [worker], "lost")
    runtime = Runtime(config.load({"HOME": "/nowhere"}), database, no_multiplexer, utc_now)
    since = feed.position(runtime, fleet.fleet_id)
    database.close()
    os.replace(copy, database.path)
    assert feed.changes_since(runtime, fleet.fleet_id, since, limit=9) is None
    fleet.send(fleet.director, worker, "anew")
    fleet.broadcast(fleet.director, [worker], "anew")
    for verify in (True, False):
        assert feed.changes_since(runtime, fleet.fleet_id, since, limit=9, verify=verify) is None
    now = feed.position(runtime, fleet.fleet_id)
    assert (now.message_id, now.open_deliveries, now.newest_ack) == (
        since.message_id,
        since.open_deliveries,
        since.newest_ack,
    )
    database.close()


def test_too_many_changes_cannot_be_told(runtime: Runtime, fleet: WebFleet) -> None:
    worker = fleet.member("worker")
    start = feed.position(runtime, fleet.fleet_id)
    messages = [fleet.send(fleet.director, worker, "x") for _ in range(4)]
    assert feed.changes_since(runtime, fleet.fleet_id, start, limit=3) is None
    middle = _since(runtime, fleet, start, limit=4).position
    for message in messages:
        fleet.ack(message)
    assert feed.changes_since(runtime, fleet.fleet_id, middle, limit=3) is None
    assert len(_since(runtime, fleet, middle, limit=4).changes) == 4


def test_a_position_of_another_history_cannot_be_told(runtime: Runtime, fleet: WebFleet) -> None:
    worker = fleet.member("worker")
    fleet.send(fleet.director, worker, "x")
    here = feed.position(runtime, fleet.fleet_id)
    for wrong in (
        here._replace(message_id=here.message_id + 1),
        here._replace(open_deliveries=here.open_deliveries + 1),
        here._replace(open_deliveries=0),
    ):
        assert feed.changes_since(runtime, fleet.fleet_id, wrong, limit=10) is None


def test_an_ack_from_a_clock_that_was_set_back_is_noticed(runtime: Runtime, fleet: WebFleet) -> None:
    worker = fleet.member("worker")
    first, second = (fleet.send(fleet.director, worker, "x") for _ in range(2))
    fleet.ack(first)
    start = feed.position(runtime, fleet.fleet_id)
    fleet.pass_time(-60)
    fleet.ack(second)
    assert feed.changes_since(runtime, fleet.fleet_id, start, limit=10) is None


def test_an_end_before_now_is_kept(runtime: Runtime, fleet: WebFleet) -> None:
    worker = fleet.member("worker")
    start = feed.position(runtime, fleet.fleet_id)
    first, second = (fleet.send(fleet.director, worker, "x") for _ in range(2))
    fleet.ack(first)
    end = feed.position(runtime, fleet.fleet_id)
    fleet.ack(second)
    fleet.send(fleet.director, worker, "x")
    found = feed.changes_since(runtime, fleet.fleet_id, start, limit=10, until=end)
    assert found is not None
    assert [message for message, _ in _told(found)] == [first, second]
    assert found.position == found.changes[-1].position == end
    later = _since(runtime, fleet, end)
    assert (second, True) in _told(later)


ACTIONS = st.lists(
    st.sampled_from(["send", "ack", "ack newest", "send acked", "broadcast", "look"]), max_size=40
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(actions=ACTIONS)
def test_whoever_follows_from_anywhere_knows_everything_once(runtime: Runtime, actions: list[str]) -> None:
    fleet = WebFleet(runtime.database)
    workers = [fleet.member(f"worker {number}") for number in range(3)]
    start = feed.position(runtime, fleet.fleet_id)
    stops = [start]
    opened: list[int] = []
    for action in actions:
        if action == "send":
            opened.append(fleet.send(fleet.director, workers[0], "x"))
        elif action == "send acked":
            fleet.send(fleet.director, workers[1], "x", ack=True)
        elif action == "broadcast":
            opened += fleet.broadcast(fleet.director, workers, "x", acked=1)[1:]
        elif action == "look":
            stops.append(_since(runtime, fleet, stops[-1]).position)
        elif opened:
            fleet.ack(opened.pop(0 if action == "ack" else -1))
    everything = _since(runtime, fleet, start, limit=200)
    assert everything.position == feed.position(runtime, fleet.fleet_id)
    for stop in stops:
        told = _told(_since(runtime, fleet, stop, limit=200))
        assert len(set(told)) == len(told)
        new = [message for message, acknowledged in told if not acknowledged]
        assert new == [
            c.message.message_id for c in everything.changes if c.message.message_id > stop.message_id
        ]
    # A reader that was cut off after any single change gets the rest, or is told to start over.
    for index, change in enumerate(everything.changes):
        rest = feed.changes_since(runtime, fleet.fleet_id, change.position, limit=200)
        if rest is not None:
            assert _told(rest) == _told(everything)[index + 1 :]
