"""The thread that takes snapshots."""

from pathlib import Path

from tests.support.fleet_builder import World
from tests.support.waiting import wait_until

from cafleet.broker import fleets
from cafleet.db.database import Database
from cafleet.top.follow import Follower
from cafleet.top.snapshot import Snapshot, Wanted


def test_the_panes_are_those_of_whoever_is_shown(tmp_path: Path) -> None:
    """Also in the first snapshot with somebody new, or with another fleet than a moment ago."""
    world = World(tmp_path)
    first = world.fleet()
    taken: list[Snapshot] = []
    failures: list[Exception] = []
    follower = Follower(world.runtime.for_another_thread, Wanted(), taken.append, failures.append)

    def shown() -> list[int]:
        view = taken[-1].view if taken else None
        return [] if view is None else [entry.member.member_id for entry in view.roster]

    follower.start()
    try:
        wait_until(lambda: shown() == [1], what="the fleet")
        world.member(first.fleet_id, "ann")
        wait_until(lambda: shown() == [1, 2], what="a new member")
        world.fleet("second")
        wait_until(lambda: shown() == [3], what="a newer fleet")
        fleets.delete_fleet(world.runtime, 2)
        wait_until(lambda: shown() == [1, 2], what="the fleet of before")
    finally:
        follower.stop()
        world.close()
    assert failures == []
    for snapshot in taken:
        assert snapshot.view is not None
        placed = [e.member.member_id for e in snapshot.view.roster if e.member.placement is not None]
        assert sorted(snapshot.view.panes) == placed


class Waiting(Database):
    """Notes how long it is asked to wait."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.asked_seconds: list[float] = []

    def wait_for_change(self, timeout_seconds: float) -> bool:
        self.asked_seconds.append(timeout_seconds)
        return super().wait_for_change(timeout_seconds)


def test_it_sleeps_until_something_changes(tmp_path: Path) -> None:
    """It looks around now and then, and burns nothing in between."""
    world = World(tmp_path)
    world.fleet()
    database = Waiting(world.database.path)
    failures: list[Exception] = []
    follower = Follower(lambda: world.runtime_with(database), Wanted(), lambda _: None, failures.append)
    follower.start()
    try:
        wait_until(lambda: len(database.asked_seconds) > 3, what="some rounds")
    finally:
        follower.stop()
        world.close()
    assert failures == []
    assert min(database.asked_seconds) >= 0.1
