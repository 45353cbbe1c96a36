import pytest
from tests.support.fleet_builder import World

from cafleet.broker import fleets, inbox, messages
from cafleet.broker.member_deletion import delete_member
from cafleet.broker.members import list_members
from cafleet.errors import (
    AlreadyAcknowledged,
    IntegrityError,
    MemberNotFound,
    MessageNotFound,
    SummaryNotAcknowledgeable,
)
from cafleet.models import MessageState


def test_poll_is_newest_status_first_and_changes_nothing(world: World) -> None:
    director = world.fleet()
    ids = [
        messages.send(world.runtime, director.member_id, director.member_id, f"{i}").message.message_id
        for i in range(5)
    ]
    first = inbox.poll(world.runtime, director.member_id)
    assert [message.message_id for message in first] == ids[::-1]
    assert inbox.poll(world.runtime, director.member_id) == first
    assert inbox.poll(world.runtime, director.member_id, limit=2) == first[:2]


@pytest.mark.parametrize(("characters", "read"), [(1, 1), (5, 1), (6, 2), (10, 2), (11, 3), (15, 3), (99, 3)])
def test_no_more_is_read_than_is_asked_for(world: World, characters: int, read: int) -> None:
    """Each text has five characters; the one that reaches the sum is the last."""
    director = world.fleet()
    for text in ("one..", "two..", "three"):
        messages.send(world.runtime, director.member_id, director.member_id, text)
    all_of_it = inbox.poll(world.runtime, director.member_id)
    assert inbox.poll(world.runtime, director.member_id, characters=characters) == all_of_it[:read]
    assert inbox.poll(world.runtime, director.member_id, 1, characters=characters) == all_of_it[:1]


def test_what_was_dealt_with_is_neither_shown_nor_counted(world: World) -> None:
    """Field cases H5 and G13: a history costs no tokens, and what a text says does not choose its reader."""
    director = world.fleet()
    ann, bob = (world.member(director.fleet_id, name).member_id for name in ("ann", "bob"))
    for text in ("for ann", "bob", f"{bob}", "nothing"):
        for reader in (ann, bob):
            messages.send(world.runtime, director.member_id, reader, text)
    for message in inbox.poll(world.runtime, ann)[2:]:
        inbox.ack(world.runtime, message.message_id)
    assert [message.text for message in inbox.poll(world.runtime, ann)] == ["nothing", f"{bob}"]
    unread = {one.member.member_id: one.unread for one in list_members(world.runtime, director.fleet_id)}
    for reader in (director.member_id, ann, bob):
        shown = inbox.poll(world.runtime, reader)
        assert all(message.to_member_id == reader for message in shown)
        assert unread[reader] == inbox.count_unread(world.runtime, reader) == len(shown)


def test_ids_decide_where_the_clock_stood_still_and_time_where_it_stepped_back(world: World) -> None:
    director = world.fleet()
    world.clock.step *= 0
    a, b = (messages.send(world.runtime, director.member_id, director.member_id, t).message for t in "ab")
    world.clock.advance(-60)
    c = messages.send(world.runtime, director.member_id, director.member_id, "c").message
    assert inbox.poll(world.runtime, director.member_id) == [b, a, c]


def test_an_acknowledgement_happens_once_and_stamps_the_time(world: World) -> None:
    director = world.fleet()
    sent = messages.send(world.runtime, director.member_id, director.member_id, "x").message
    acked = inbox.ack(world.runtime, sent.message_id)
    assert acked.status_state is MessageState.COMPLETED
    assert acked.status_timestamp > sent.status_timestamp
    assert acked.created_at == sent.created_at
    assert inbox.show(world.runtime, sent.message_id) == acked
    with pytest.raises(AlreadyAcknowledged) as caught:
        inbox.ack(world.runtime, sent.message_id)
    assert str(caught.value) == f"message {sent.message_id} is already acknowledged"
    assert inbox.show(world.runtime, sent.message_id) == acked


def test_a_summary_is_shown_but_not_acknowledged(world: World) -> None:
    director = world.fleet()
    summary = messages.broadcast(world.runtime, director.member_id, "x").summary
    assert inbox.show(world.runtime, summary.message_id) == summary
    with pytest.raises(SummaryNotAcknowledgeable):
        inbox.ack(world.runtime, summary.message_id)


def test_unknown_ids_are_named(world: World) -> None:
    with pytest.raises(MessageNotFound, match=r"^message 7 not found$"):
        inbox.show(world.runtime, 7)
    with pytest.raises(MessageNotFound, match=r"^message 7 not found$"):
        inbox.ack(world.runtime, 7)
    with pytest.raises(MemberNotFound, match=r"^member 7 not found$"):
        inbox.poll(world.runtime, 7)
    with pytest.raises(MemberNotFound):
        inbox.count_unread(world.runtime, 7)


def test_what_waits_for_a_deregistered_member_stays_readable(world: World) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)
    sent = messages.send(world.runtime, director.member_id, worker.member_id, "x").message
    delete_member(world.runtime, worker.member_id)
    fleets.delete_fleet(world.runtime, director.fleet_id)
    assert inbox.poll(world.runtime, worker.member_id) == [sent]
    assert inbox.ack(world.runtime, sent.message_id).status_state is MessageState.COMPLETED


@pytest.mark.parametrize(
    ("column", "value"), [("status_state", "half done"), ("type", "multicast"), ("status_state", "COMPLETED")]
)
def test_an_unknown_stored_value_is_named_and_never_shown_as_another(
    world: World, column: str, value: str
) -> None:
    director = world.fleet()
    sent = messages.send(world.runtime, director.member_id, director.member_id, "x").message
    with world.database.write() as conn:
        conn.execute(f"UPDATE messages SET {column} = ?", (value,))  # noqa: S608  # names above
    for call in (inbox.show, inbox.ack):
        with pytest.raises(IntegrityError) as caught:
            call(world.runtime, sent.message_id)
        assert str(caught.value) == (
            f"integrity error: messages {sent.message_id} has an unknown {column} '{value}'"
        )
