import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.fleet_builder import World

from cafleet.broker import fleets, inbox, members, messages
from cafleet.broker.member_creation import register_member
from cafleet.broker.member_deletion import MemberDeletion, PaneEnd, close_own_pane, delete_member
from cafleet.broker.member_respawn import RespawnRequest, respawn_member
from cafleet.errors import (
    DirectorPaneGone,
    DirectorProtected,
    FleetDeleted,
    FleetNotFound,
    FleetNotLive,
    IntegrityError,
    MemberChanged,
    MemberNotActive,
    MemberNotFound,
    MultiplexerError,
    NoPane,
    PaneBusy,
    PaneStillThere,
)
from cafleet.models import Member, MemberKind, MemberStatus
from cafleet.multiplexer.pane_lock import pane_lock


def respawn(world: World, member: Member) -> RespawnRequest:
    return RespawnRequest(member.member_id, "Again, {member_id}.", str(world.directory))


# -- reading -----------------------------------------------------------------------------------


def test_kinds_are_derived_and_the_back_reference_wins(world: World) -> None:
    director = world.fleet()
    monitor = world.member(director.fleet_id, "mon", monitor=True)
    worker = world.member(director.fleet_id)
    assert [m.kind for m in (director, monitor, worker)] == ["director", "monitor", "member"]
    with world.database.write() as conn:
        conn.execute("UPDATE fleets SET director_member_id = ?", (monitor.member_id,))
    assert members.get_member(world.runtime, monitor.member_id).kind is MemberKind.DIRECTOR


@pytest.mark.parametrize("card", ['{"cafleet": {"kind": "boss"}}', "{not json"])
def test_an_unknown_card_kind_is_an_integrity_error(world: World, card: str) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)
    delete_member(world.runtime, worker.member_id)
    with world.database.write() as conn:
        conn.execute("UPDATE members SET member_card_json = ? WHERE member_id = ?", (card, worker.member_id))
    with pytest.raises(IntegrityError, match=rf"members {worker.member_id} has an unknown card kind"):
        members.get_member(world.runtime, worker.member_id)


def test_an_unknown_status_is_an_integrity_error_in_lists_too(world: World) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)
    with world.database.write() as conn:
        conn.execute("UPDATE members SET status = 'asleep' WHERE member_id = ?", (worker.member_id,))
    text = rf"^integrity error: members {worker.member_id} has an unknown status 'asleep'$"
    with pytest.raises(IntegrityError, match=text):
        members.get_member(world.runtime, worker.member_id)
    with pytest.raises(IntegrityError, match=text):
        members.list_members(world.runtime, director.fleet_id)
    with pytest.raises(IntegrityError, match=text):
        messages.send(world.runtime, worker.member_id, director.member_id, "x")


def test_the_roster_has_active_members_with_their_counters(world: World) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)
    gone = world.member(director.fleet_id, "gone")
    delete_member(world.runtime, gone.member_id)
    one = messages.send(world.runtime, director.member_id, worker.member_id, "1").message
    two = messages.send(world.runtime, director.member_id, worker.member_id, "2").message
    acked = inbox.ack(world.runtime, one.message_id)
    summary = messages.broadcast(world.runtime, worker.member_id, "3").summary
    world.clock.advance(42)

    first, second = members.list_members(world.runtime, director.fleet_id)

    assert (first.member.member_id, second.member.member_id) == (director.member_id, worker.member_id)
    assert (first.unread, second.unread) == (1, 1)
    assert first.activity == (two.created_at, summary.created_at, None, 42)
    assert second.activity == (summary.created_at, two.created_at, acked.status_timestamp, 42)


def test_a_summary_counts_as_sent_but_not_as_received_or_acknowledged(world: World) -> None:
    director = world.fleet()
    summary = messages.broadcast(world.runtime, director.member_id, "alone").summary
    (entry,) = members.list_members(world.runtime, director.fleet_id)
    assert entry.unread == 0
    assert entry.activity[:3] == (summary.created_at, None, None)


def test_a_fleet_without_traffic_has_no_activity(world: World) -> None:
    director = world.fleet()
    (entry,) = members.list_members(world.runtime, director.fleet_id)
    assert entry.activity == (None, None, None, None)


def test_the_known_roster_adds_those_deregistered_who_own_messages(world: World) -> None:
    director = world.fleet()
    silent, owner, speaker = (world.member(director.fleet_id, name) for name in ("s", "o", "p"))
    messages.send(world.runtime, director.member_id, owner.member_id, "x")
    messages.send(world.runtime, speaker.member_id, director.member_id, "x")
    for member in (silent, owner, speaker):
        delete_member(world.runtime, member.member_id)
    known = members.list_known_members(world.runtime, director.fleet_id)
    assert [entry.member.member_id for entry in known] == [director.member_id, owner.member_id]
    assert known[1].unread == 1
    assert known[1].member.status is MemberStatus.DEREGISTERED
    fleets.delete_fleet(world.runtime, director.fleet_id)
    assert len(members.list_known_members(world.runtime, director.fleet_id)) == 2


def test_lists_say_why_a_fleet_has_none(world: World) -> None:
    with pytest.raises(FleetNotFound):
        members.list_members(world.runtime, 5)
    director = world.fleet()
    with world.database.write() as conn:
        conn.execute("DELETE FROM member_placements")
    with pytest.raises(FleetNotLive):
        members.list_members(world.runtime, director.fleet_id)
    fleets.delete_fleet(world.runtime, director.fleet_id)
    with pytest.raises(FleetDeleted):
        members.list_members(world.runtime, director.fleet_id)


def test_names_are_found_in_batches(world: World) -> None:
    director = world.fleet()
    with world.database.write() as conn:
        conn.executemany(
            """INSERT INTO members (fleet_id, name, description, status, registered_at)
            VALUES (?, ?, '', 'deregistered', 't')""",
            [(director.fleet_id, f"n{i}") for i in range(1200)],
        )
    wanted = [*range(1300, 0, -1), *range(1, 1300)]
    found = members.names_of(world.runtime, wanted)
    assert list(found) == list(range(1, 1202))
    assert (found[director.member_id], found[1201]) == (director.name, "n1199")
    assert members.names_of(world.runtime, []) == {}


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_skills_come_back_as_they_were_stored(skill: object) -> None:
    member = Member(1, 1, "n", "", MemberStatus.ACTIVE, MemberKind.MEMBER, "t", None, "", None)
    assert members.skills(member._replace(card_json=json.dumps({"skills": [skill]}))) == [skill]
    for card in ("{}", "[]", "broken", '{"skills": 3}'):
        assert members.skills(member._replace(card_json=card)) == []


# -- deleting ----------------------------------------------------------------------------------


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


# -- respawning --------------------------------------------------------------------------------


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
