import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.fleet_builder import World

from cafleet.broker import fleets, inbox, members, messages
from cafleet.broker.member_deletion import delete_member
from cafleet.errors import FleetDeleted, FleetNotFound, FleetNotLive, IntegrityError
from cafleet.models import Member, MemberKind, MemberStatus


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
