import pytest
from tests.support.fleet_builder import World

from cafleet.broker import fleets, inbox, messages
from cafleet.broker.member_creation import register_member
from cafleet.broker.member_deletion import MemberDeletion, PaneEnd, close_own_pane, delete_member
from cafleet.errors import (
    DirectorProtected,
    FleetDeleted,
    MemberNotActive,
    MemberNotFound,
    MultiplexerError,
    PaneBusy,
)
from cafleet.models import MemberStatus
from cafleet.multiplexer.pane_lock import pane_lock


def test_deleting_a_member_closes_its_pane_and_keeps_its_messages(world: World) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)
    sent = messages.send(world.runtime, worker.member_id, director.member_id, "x").message

    done = delete_member(world.runtime, worker.member_id)

    assert (done.pane, done.problem) == (PaneEnd.CLOSED, None)
    assert done.placement == worker.placement
    assert done.member.status is MemberStatus.DEREGISTERED
    assert done.member.deregistered_at is not None
    assert done.member.placement is None
    assert world.multiplexer.killed == [world.pane(worker)]
    assert inbox.show(world.runtime, sent.message_id) == sent
    with pytest.raises(MemberNotActive):
        delete_member(world.runtime, worker.member_id)


def test_the_director_goes_with_its_fleet_only(world: World) -> None:
    director = world.fleet()
    with pytest.raises(DirectorProtected) as caught:
        delete_member(world.runtime, director.member_id)
    assert str(caught.value) == (
        f"member {director.member_id} is fleet {director.fleet_id}'s Director;"
        f" use 'cafleet fleet delete {director.fleet_id}'"
    )
    fleets.delete_fleet(world.runtime, director.fleet_id)
    with pytest.raises(FleetDeleted):
        delete_member(world.runtime, director.member_id)
    with pytest.raises(MemberNotFound):
        delete_member(world.runtime, 99)


def test_a_pane_that_is_gone_or_someone_elses_is_not_touched(world: World) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)
    pane = world.pane(worker)
    world.multiplexer.stop_server(pane.server or "")
    stranger = world.multiplexer.add_pane(server="host|/run/memory/default|999", pane=pane.pane)
    done = delete_member(world.runtime, worker.member_id)
    assert done.pane is PaneEnd.GONE
    assert not world.multiplexer.pane(stranger).dead


def test_a_pane_that_cannot_be_closed_is_reported_and_the_member_goes_all_the_same(world: World) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)
    world.multiplexer.fail("kill_pane", MultiplexerError("no answer"))
    done = delete_member(world.runtime, worker.member_id)
    assert (done.pane, done.problem) == (PaneEnd.LEFT, "no answer")
    assert done.member.status is MemberStatus.DEREGISTERED


def test_a_member_that_deletes_itself_is_deregistered_before_its_pane_goes(world: World) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)
    world.stand_in(world.pane(worker))

    done = delete_member(world.runtime, worker.member_id)

    assert done.pane is PaneEnd.OWN
    assert done.member.status is MemberStatus.DEREGISTERED
    assert world.multiplexer.killed == []
    close_own_pane(world.runtime, done)
    assert world.multiplexer.killed == [world.pane(worker)]


def test_only_an_own_pane_is_closed_late(world: World) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)
    done: MemberDeletion = delete_member(world.runtime, worker.member_id)
    world.multiplexer.killed.clear()
    close_own_pane(world.runtime, done)
    assert world.multiplexer.killed == []


def test_a_member_without_a_pane_can_be_deleted(world: World) -> None:
    director = world.fleet()
    assert director.placement is not None
    pending = director.placement._replace(mux_pane_id=None)
    member = register_member(world.runtime, world.request(director.fleet_id), pending)
    assert delete_member(world.runtime, member.member_id).pane is PaneEnd.NONE


def test_deletion_waits_for_the_pane_lock(world: World) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)

    def look_at_lock(method: str, pane: str) -> None:
        if method == "kill_pane":
            data = world.runtime.config.data_directory
            with pytest.raises(PaneBusy), pane_lock(data, "tmux", world.pane(worker), timeout_seconds=0):
                pass

    world.multiplexer.before = look_at_lock
    assert delete_member(world.runtime, worker.member_id).pane is PaneEnd.CLOSED
