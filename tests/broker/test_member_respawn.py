import pytest
from tests.support.fleet_builder import World

from cafleet.broker import fleets, inbox, messages
from cafleet.broker.identity import whoami
from cafleet.broker.member_respawn import RespawnRequest, respawn_member
from cafleet.broker.members import get_member
from cafleet.errors import (
    AgentDidNotStart,
    DirectorPaneGone,
    FleetDeleted,
    MemberChanged,
    NoPane,
    PaneStillThere,
)
from cafleet.models import Member


def respawn(world: World, member: Member) -> RespawnRequest:
    return RespawnRequest(member.member_id, "Again, {member_id}.", str(world.directory))


def test_a_respawned_member_keeps_id_inbox_and_history(world: World) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)
    world.multiplexer.remove_pane(world.pane(worker))
    sent = messages.send(world.runtime, director.member_id, worker.member_id, "x").message

    again = respawn_member(world.runtime, respawn(world, worker), start_wait_seconds=0).member

    assert again._replace(placement=None) == worker._replace(placement=None)
    assert world.pane(again) != world.pane(worker)
    launch = world.multiplexer.pane(world.pane(again)).launch
    assert launch is not None
    assert launch.argv[-1] == f"Again, {worker.member_id}."
    assert inbox.poll(world.runtime, worker.member_id) == [sent]


def test_an_agent_is_known_by_its_new_pane_before_it_has_survived_its_start(world: World) -> None:
    """Field case F9: some ask who they are with their first command."""
    worker = world.member(world.fleet().fleet_id)
    world.multiplexer.remove_pane(world.pane(worker))
    known: list[int] = []

    def ask(method: str, pane: str) -> None:
        if method == "look" and not known and pane not in (world.here.pane, world.pane(worker).pane):
            world.stand_in(world.multiplexer.panes(world.here.server or "")[-1].address)
            known.append(whoami(world.runtime).member.member_id)

    world.multiplexer.before = ask
    respawn_member(world.runtime, respawn(world, worker), start_wait_seconds=0)
    assert known == [worker.member_id]


@pytest.mark.parametrize("pending", [False, True])
def test_an_agent_that_ends_at_once_leaves_the_placement_as_it_was(world: World, pending: bool) -> None:
    worker = world.member(world.fleet().fleet_id)
    world.multiplexer.remove_pane(world.pane(worker))
    if pending:
        world.unplace(worker)
    before = get_member(world.runtime, worker.member_id)
    panes = len(world.multiplexer.panes(world.here.server or ""))

    def end(method: str, pane: str) -> None:
        if method == "look" and pane not in (world.here.pane, world.pane(worker).pane):
            world.multiplexer.end_program(world.multiplexer.panes(world.here.server or "")[-1].address)

    world.multiplexer.before = end
    with pytest.raises(AgentDidNotStart) as caught:
        respawn_member(world.runtime, respawn(world, worker), start_wait_seconds=0)
    assert caught.value.cleanup_failures == []
    assert get_member(world.runtime, worker.member_id) == before
    assert len(world.multiplexer.panes(world.here.server or "")) == panes


def test_a_live_pane_is_not_replaced_and_a_dead_one_is_closed(world: World) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)
    with pytest.raises(PaneStillThere):
        respawn_member(world.runtime, respawn(world, worker), start_wait_seconds=0)
    world.multiplexer.end_program(world.pane(worker))
    respawn_member(world.runtime, respawn(world, worker), start_wait_seconds=0)
    assert world.multiplexer.killed == [world.pane(worker)]


def test_a_member_whose_agent_exited_to_a_shell_gets_a_new_pane_and_the_shell_stays(world: World) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)
    for member in (worker, director):
        pane = world.multiplexer.pane(world.pane(member))
        pane.command, pane.shell = "bash", True
    again = respawn_member(world.runtime, respawn(world, worker), start_wait_seconds=0)
    assert again.left_open == world.pane(worker).pane
    assert world.pane(again.member) != world.pane(worker)
    assert world.multiplexer.killed == []
    with pytest.raises(PaneStillThere):
        respawn_member(world.runtime, respawn(world, director), start_wait_seconds=0)


def test_after_a_restart_of_the_server_the_whole_team_can_be_respawned(world: World) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)
    world.multiplexer.stop_server(world.pane(director).server or "")
    with pytest.raises(DirectorPaneGone, match="; run this in a pane, beside which the new one can open"):
        respawn_member(world.runtime, respawn(world, worker), start_wait_seconds=0)
    new_server = "host|/run/memory/default|101"
    world.stand_in(world.multiplexer.add_pane(server=new_server))

    for member in (worker, director):
        again = respawn_member(world.runtime, respawn(world, member), start_wait_seconds=0).member
        assert world.pane(again).server == new_server
    done = messages.send(world.runtime, director.member_id, worker.member_id, "welcome back")
    assert done.notification.state.value in ("notified", "deferred")


def test_who_cannot_be_respawned(world: World) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)
    with world.database.write() as conn:
        conn.execute("DELETE FROM member_placements WHERE member_id = ?", (worker.member_id,))
    with pytest.raises(NoPane):
        respawn_member(world.runtime, respawn(world, worker))
    fleets.delete_fleet(world.runtime, director.fleet_id)
    with pytest.raises(FleetDeleted):
        respawn_member(world.runtime, respawn(world, worker))


def test_a_respawn_that_meets_another_one_gives_way(world: World) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)
    world.multiplexer.remove_pane(world.pane(worker))

    def interfere(method: str, pane: str) -> None:
        if method == "open_pane":
            world.multiplexer.before = lambda method, pane: None
            with world.database.write() as conn:
                conn.execute(
                    "UPDATE member_placements SET mux_pane_id = '%77' WHERE member_id = ?",
                    (worker.member_id,),
                )

    world.multiplexer.before = interfere
    with pytest.raises(MemberChanged):
        respawn_member(world.runtime, respawn(world, worker), start_wait_seconds=0)
    assert len(world.multiplexer.killed) == 1
