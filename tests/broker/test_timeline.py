import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.fleet_builder import World

from cafleet.broker import inbox, messages, timeline
from cafleet.broker.member_deletion import delete_member
from cafleet.errors import FleetNotFound, IntegrityError, MemberNotFound
from cafleet.models import Message, MessageState, MessageType

STATES = st.sampled_from(list(MessageState))


def delivery(message_id: int, origin: int | None, state: MessageState) -> Message:
    return Message(message_id, 1, 2, 1, MessageType.UNICAST, "t", state, "t", origin, "x")


@given(st.lists(st.tuples(st.none() | st.integers(1, 4), STATES), max_size=30))
def test_grouping_keeps_every_delivery_and_the_order_of_first_appearance(
    rows: list[tuple[int | None, MessageState]],
) -> None:
    deliveries = [delivery(100 + at, origin, state) for at, (origin, state) in enumerate(rows)]
    entries = timeline.group(deliveries)

    assert sorted(m for entry in entries for m in entry.deliveries) == sorted(deliveries)
    assert [entry.deliveries[0] for entry in entries] == sorted(entry.deliveries[0] for entry in entries)
    for entry in entries:
        if entry.origin_message_id is None:
            assert len(entry.deliveries) == 1
        assert {message.origin_message_id for message in entry.deliveries} == {entry.origin_message_id}
        assert entry.recipients == len(entry.deliveries)
        completed = [m for m in entry.deliveries if m.status_state is MessageState.COMPLETED]
        assert entry.acknowledged == len(completed)
    origins = [entry.origin_message_id for entry in entries if entry.origin_message_id is not None]
    assert len(origins) == len(set(origins))


def test_an_origin_that_equals_a_message_id_is_not_mixed_up_with_that_message() -> None:
    rows = [delivery(7, None, MessageState.COMPLETED), delivery(8, 7, MessageState.COMPLETED)]
    assert [entry.origin_message_id for entry in timeline.group(rows)] == [None, 7]


def test_previews_are_the_timeline_with_the_beginnings_of_its_texts(world: World) -> None:
    director = world.fleet()
    for text in ("ab", "äöü", "x🙂" * 400):
        messages.send(world.runtime, director.member_id, director.member_id, text)
    whole = timeline.timeline(world.runtime, director.fleet_id)

    found = timeline.previews(world.runtime, director.fleet_id, 3)

    assert found.deliveries == [message._replace(text=message.text[:3]) for message in whole]
    assert found.lengths == {message.message_id: len(message.text) for message in whole}
    with pytest.raises(FleetNotFound):
        timeline.previews(world.runtime, 99, 3)


def test_the_timeline_has_the_fleets_deliveries_newest_status_first(world: World) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)
    first = messages.send(world.runtime, director.member_id, worker.member_id, "one").message
    note = messages.send(world.runtime, worker.member_id, worker.member_id, "note").message
    spread = messages.broadcast(world.runtime, director.member_id, "all")
    other = world.fleet("other")
    messages.send(world.runtime, other.member_id, other.member_id, "elsewhere")
    acked = inbox.ack(world.runtime, first.message_id)

    found = timeline.timeline(world.runtime, director.fleet_id)

    assert [m.message_id for m in found] == [acked.message_id, spread.results[0].message_id, note.message_id]
    assert timeline.timeline(world.runtime, director.fleet_id, limit=1) == found[:1]


def test_the_limit_cuts_a_broadcast_and_the_counts_cover_what_is_left(world: World) -> None:
    director = world.fleet()
    for i in range(3):
        world.member(director.fleet_id, f"w{i}")
    spread = messages.broadcast(world.runtime, director.member_id, "all")
    (entry,) = timeline.group(timeline.timeline(world.runtime, director.fleet_id, limit=2))
    assert (entry.origin_message_id, entry.recipients) == (spread.summary.message_id, 2)


def test_no_more_than_200_deliveries_are_looked_at(world: World) -> None:
    director = world.fleet()
    me, states = director.member_id, ("input_required", "completed")
    rows = [(me, me, f"{i:04}", states[i % 2], f"{i:04}") for i in range(450)]
    with world.database.write() as conn:
        conn.executemany(
            """INSERT INTO messages (from_member_id, to_member_id, created_at, status_state, status_timestamp,
                text) VALUES (?, ?, ?, ?, ?, 'x')""",
            rows,
        )
    found = timeline.timeline(world.runtime, director.fleet_id, limit=1000)
    assert [message.status_timestamp for message in found] == [f"{i:04}" for i in range(449, 249, -1)]
    assert timeline.received(world.runtime, director.member_id, limit=200) == found


def test_received_and_sent_hold_deliveries_of_a_member_that_has_gone(world: World) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)
    got = messages.send(world.runtime, director.member_id, worker.member_id, "one").message
    gave = messages.send(world.runtime, worker.member_id, director.member_id, "two").message
    messages.broadcast(world.runtime, worker.member_id, "all")
    delete_member(world.runtime, worker.member_id)

    assert timeline.received(world.runtime, worker.member_id) == [got]
    sent = timeline.sent(world.runtime, worker.member_id)
    assert [message.text for message in sent] == ["all", "two"]
    assert timeline.sent(world.runtime, worker.member_id, limit=1) == sent[:1]
    assert gave in sent


def test_an_unknown_state_is_noticed_on_the_timeline_too(world: World) -> None:
    director = world.fleet()
    messages.send(world.runtime, director.member_id, director.member_id, "x")
    with world.database.write() as conn:
        conn.execute("UPDATE messages SET status_state = 'lost'")
    with pytest.raises(IntegrityError, match="lost"):
        timeline.timeline(world.runtime, director.fleet_id)
    with pytest.raises(IntegrityError, match="lost"):
        timeline.received(world.runtime, director.member_id)


def test_unknown_ids_are_named(world: World) -> None:
    with pytest.raises(FleetNotFound):
        timeline.timeline(world.runtime, 9)
    with pytest.raises(MemberNotFound):
        timeline.received(world.runtime, 9)
    with pytest.raises(MemberNotFound):
        timeline.sent(world.runtime, 9)
