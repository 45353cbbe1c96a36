from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.memory_multiplexer import MemoryMultiplexer
from tests.support.team import Team

from cafleet.db import fleets, members, messages, notifications
from cafleet.db.notifications import Pending
from cafleet.multiplexer.base import PaneAddress


def pane(number: int) -> PaneAddress:
    return PaneAddress("host|/socket|1", "main", "@0", f"%{number}")


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    made = Team(tmp_path, MemoryMultiplexer())
    yield made
    made.database.close()


def next_of_member(team: Team, member_id: int, *exclude: int) -> Pending | None:
    with team.database.read() as connection:
        return notifications.next_of_member(connection, member_id, exclude)


def next_of_fleet(
    team: Team, exclude: list[int] | None = None, members: list[int] | None = None
) -> Pending | None:
    with team.database.read() as connection:
        return notifications.next_of_fleet(connection, team.fleet_id, exclude or [], members or [])


def test_the_oldest_comes_first_by_time_then_by_id(team: Team) -> None:
    ada = team.add("ada", pane(1))
    late = team.store(ada, at="2026-01-02T00:00:00.000000+00:00")
    early = team.store(ada, at="2026-01-01T00:00:00.000000+00:00")
    same = team.store(ada, at="2026-01-01T00:00:00.000000+00:00")
    order: list[int] = []
    while (found := next_of_member(team, ada, *order)) is not None:
        order.append(found.message_id)
    assert order == [early, same, late]


def test_a_fleets_oldest_is_sought_over_all_members(team: Team) -> None:
    ada, ben = team.add("ada", pane(1)), team.add("ben", pane(2))
    newer = team.store(ada, at="2026-01-02T00:00:00.000000+00:00")
    older = team.store(ben, at="2026-01-01T00:00:00.000000+00:00")
    assert next_of_fleet(team) == Pending(older, ben)
    assert next_of_fleet(team, exclude=[older]) == Pending(newer, ada)
    assert next_of_fleet(team, members=[ben]) == Pending(newer, ada)
    assert next_of_fleet(team, exclude=[older, newer]) is None


def test_another_fleets_deliveries_are_none_of_ours(team: Team) -> None:
    ada = team.add("ada", pane(1))
    team.store(ada)
    with team.database.write() as connection:
        other = fleets.insert(connection, "other", team.moment())
    with team.database.read() as connection:
        assert notifications.next_of_fleet(connection, other, [], []) is None


@pytest.mark.parametrize(
    "what", ["acked", "stamped", "self", "director", "gone", "unplaced", "pending pane", "deleted"]
)
def test_what_is_not_pending(team: Team, what: str) -> None:
    ada = team.add(
        "ada", None if what in ("unplaced", "pending pane") else pane(1), pending=what == "pending pane"
    )
    to = team.director if what == "director" else ada
    message_id = team.store(to, sender=ada if what in ("self", "director") else None)
    with team.database.write() as connection:
        if what == "acked":
            messages.complete(connection, message_id, team.moment())
        elif what == "stamped":
            assert notifications.stamp(connection, message_id, team.moment())
        elif what == "gone":
            members.deregister(connection, ada, team.moment())
        elif what == "deleted":
            fleets.mark_deleted(connection, team.fleet_id, team.moment())
    assert next_of_member(team, to) is None
    assert next_of_fleet(team) is None


def test_a_broadcasts_summary_is_no_delivery(team: Team) -> None:
    with team.database.write() as connection:
        summary = messages.insert_summary(
            connection, from_member_id=team.director, text="x", created_at=team.moment()
        )
    with team.database.read() as connection:
        assert notifications.delivery(connection, summary) is None
        assert notifications.delivery(connection, 999) is None


def test_a_delivery_tells_all_about_its_recipient(team: Team) -> None:
    ada = team.add("ada", pane(1))
    message_id = team.store(ada, "the body")
    with team.database.read() as connection:
        found = notifications.delivery(connection, message_id)
    assert found is not None
    assert (found.member_id, found.from_member_id, found.text) == (ada, team.director, "the body")
    assert (found.settled, found.active, found.director) == (False, True, False)
    assert found.placement is not None
    assert found.placement == team.member(ada).placement


def test_a_stamp_is_set_once_and_only_while_pending(team: Team) -> None:
    ada = team.add("ada", pane(1))
    first, second = team.store(ada), team.store(ada)
    with team.database.write() as connection:
        assert notifications.stamp(connection, first, "2026-01-01T00:00:00.000000+00:00")
        assert not notifications.stamp(connection, first, "2026-01-02T00:00:00.000000+00:00")
        messages.complete(connection, second, team.moment())
        assert not notifications.stamp(connection, second, "2026-01-02T00:00:00.000000+00:00")
    assert team.notified_at(first) == "2026-01-01T00:00:00.000000+00:00"
    assert team.notified_at(second) is None
    assert team.message(first).status_state == "input_required"


def test_pending_counts_by_recipient(team: Team) -> None:
    ada, ben = team.add("ada", pane(1)), team.add("ben", pane(2))
    team.store(ada)
    team.store(ada)
    team.store(ben, sender=ben)
    team.store(team.director, sender=ada)
    with team.database.read() as connection:
        assert notifications.pending_count(connection, team.fleet_id) == {ada: 2}
        assert notifications.unstamped(connection, ada, 1) == [1]


def test_who_can_listen(team: Team) -> None:
    ada = team.add("ada", None)
    with team.database.read() as connection:
        assert notifications.listening_fleet(connection, ada) == team.fleet_id
        assert notifications.listening_fleet(connection, 99) is None
    team.deregister(ada)
    with team.database.read() as connection:
        assert notifications.listening_fleet(connection, ada) is None
    with team.database.write() as connection:
        fleets.mark_deleted(connection, team.fleet_id, team.moment())
    with team.database.read() as connection:
        assert notifications.listening_fleet(connection, team.director) is None


def test_arrivals_are_told_apart_by_the_last_id(team: Team) -> None:
    ada = team.add("ada", None)
    one, own, three = team.store(ada), team.store(ada, sender=ada), team.store(ada)
    team.store(team.director, sender=ada)
    team.acknowledge(three)
    with team.database.read() as connection:
        assert notifications.arrived_after(connection, ada, 0) == [one, own]
        assert notifications.arrived_after(connection, ada, one) == [own]


@pytest.mark.parametrize("count", [0, 1, 40_000])
def test_any_number_of_ids_can_be_excluded(team: Team, count: int) -> None:
    ada = team.add("ada", pane(1))
    wanted = team.store(ada)
    assert next_of_member(team, ada, *range(1000, 1000 + count)) == Pending(wanted, ada)
    assert next_of_fleet(team, exclude=list(range(1000, 1000 + count))) == Pending(wanted, ada)


@pytest.mark.parametrize("query", ["member", "fleet"])
def test_the_oldest_is_found_by_its_index(team: Team, query: str) -> None:
    ada = team.add("ada", pane(1))
    team.store(ada)
    seen: list[str] = []
    with team.database.read() as connection:
        connection.set_trace_callback(seen.append)
        if query == "member":
            notifications.next_of_member(connection, ada, [])
        else:
            notifications.next_of_fleet(connection, team.fleet_id, [], [])
        connection.set_trace_callback(None)
        plan = " ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {seen[-1]}"))
    assert "idx_messages_unnotified" in plan
    assert "SCAN x" not in plan
