"""Somebody else changes a placement between the look and the write: found out, never overrun."""

from collections.abc import Callable

import pytest
from tests.support.fleet_builder import World

from cafleet.broker import fleets, members
from cafleet.broker.member_creation import register_member
from cafleet.broker.member_deletion import delete_member
from cafleet.db.database import Database, Writing
from cafleet.errors import MemberChanged, MultiplexerError, PaneBusy
from cafleet.launch import StartState
from cafleet.models import MemberStatus


class Crowded(Database):
    """Just before each of its write transactions, somebody else gets in."""

    def __init__(self, path: str, somebody: Callable[[Database], None]) -> None:
        super().__init__(path)
        self._somebody = somebody

    def write(self) -> Writing:
        other = Database(self.path)
        self._somebody(other)
        other.close()
        return super().write()


def move(member_id: int, panes: list[str]) -> Callable[[Database], None]:
    """Each time, give the member the next pane, as long as there are any."""

    def change(database: Database) -> None:
        if panes:
            with database.write() as conn:
                statement = "UPDATE member_placements SET mux_pane_id = ? WHERE member_id = ?"
                conn.execute(statement, (panes.pop(0), member_id))

    return change


def test_a_fleet_whose_member_moves_is_deleted_under_the_new_panes_lock(world: World) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)
    database = Crowded(world.database.path, move(worker.member_id, ["%50"]))
    done = fleets.delete_fleet(world.runtime_with(database), director.fleet_id)
    database.close()
    assert done.deregistered == 2


def test_a_fleet_that_never_stands_still_is_not_deleted(world: World) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)
    database = Crowded(world.database.path, move(worker.member_id, [f"%{i}" for i in range(50, 99)]))
    with pytest.raises(PaneBusy, match="try again"):
        fleets.delete_fleet(world.runtime_with(database), director.fleet_id)
    database.close()
    assert fleets.get_fleet(world.runtime, director.fleet_id).deleted_at is None


def test_a_member_that_gets_a_pane_while_it_is_deleted_stays(world: World) -> None:
    director = world.fleet()
    assert director.placement is not None
    pending = director.placement._replace(mux_pane_id=None)
    member = register_member(world.runtime, world.request(director.fleet_id), pending)
    database = Crowded(world.database.path, move(member.member_id, ["%50"]))
    with pytest.raises(MemberChanged):
        delete_member(world.runtime_with(database), member.member_id)
    database.close()
    assert members.get_member(world.runtime, member.member_id).status is MemberStatus.ACTIVE


def test_a_monitor_that_ends_after_a_good_start_stays_and_is_reported(world: World) -> None:
    world.stand_in()
    looks = 0

    def end(method: str, pane: str) -> None:
        nonlocal looks
        looks += method == "look"
        if looks == 2:
            world.multiplexer.end_program(world.multiplexer.panes(world.here.server or "")[-1].address, 1)

    world.multiplexer.before = end
    made = fleets.create_fleet(world.runtime, "team", "claude", world.monitor_wish())
    assert made.start is not None
    assert made.start.state is StartState.ENDED
    assert "exit status 1" in (made.start.detail or "")
    assert [one.member_count for one in fleets.list_fleets(world.runtime)] == [2]


def test_an_interrupted_creation_says_what_it_could_not_undo(world: World) -> None:
    world.stand_in()

    def interrupt(method: str, pane: str) -> None:
        if method == "look":
            raise KeyboardInterrupt

    world.multiplexer.before = interrupt
    world.multiplexer.fail("kill_pane", MultiplexerError("no answer"))
    with pytest.raises(KeyboardInterrupt) as caught:
        fleets.create_fleet(world.runtime, "team", "claude", world.monitor_wish())
    assert caught.value.__notes__ == ["cleanup failed for pane %1: no answer"]
