import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.fleet_builder import World

from cafleet.broker import fleets, inbox, messages
from cafleet.broker.member_deletion import delete_member
from cafleet.errors import (
    CafleetError,
    DifferentFleets,
    FleetDeleted,
    InvalidInput,
    KeyReused,
    MemberNotActive,
    MemberNotFound,
    MultiplexerTimeout,
)
from cafleet.models import Member, MessageState, MessageType, Notification, NotificationState


def stored_rows(world: World) -> int:
    with world.database.read() as conn:
        return int(conn.execute("SELECT count(*) FROM messages").fetchone()[0])


def test_a_send_stores_the_body_exactly_and_types_one_line(world: World) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)
    body = "line one\r\n\x1b[31mtwo\x07  \n"

    sent = messages.send(world.runtime, director.member_id, worker.member_id, body)

    assert inbox.show(world.runtime, sent.message.message_id) == sent.message
    assert sent.message.text == body
    assert sent.notification == (NotificationState.NOTIFIED, None)
    assert not sent.repeated
    (line,) = world.multiplexer.pane(world.pane(worker)).pasted
    assert line.startswith(f"[cafleet msg {sent.message.message_id} from {director.member_id} ")


def test_a_message_to_oneself_waits_in_the_inbox_and_is_never_typed(world: World) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)

    sent = messages.send(world.runtime, worker.member_id, worker.member_id, "note")

    assert sent.notification.state is NotificationState.SKIPPED
    assert inbox.poll(world.runtime, worker.member_id) == [sent.message]
    with world.database.read() as conn:  # Other programs that read this file go by the stamp alone.
        stamped = conn.execute("SELECT notified_at FROM messages").fetchall()
    assert stamped == [(sent.message.created_at,)]
    messages.send(world.runtime, director.member_id, worker.member_id, "real")
    (line,) = world.multiplexer.pane(world.pane(worker)).pasted
    assert line.endswith("real")


def test_the_director_is_never_typed_at(world: World) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)

    sent = messages.send(world.runtime, worker.member_id, director.member_id, "done")

    assert sent.notification.state is NotificationState.SKIPPED
    assert not world.multiplexer.pane(world.pane(director)).touched
    assert inbox.poll(world.runtime, director.member_id) == [sent.message]


def test_who_may_send_to_whom(world: World) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)
    gone = world.member(director.fleet_id, "gone")
    delete_member(world.runtime, gone.member_id)
    stranger = world.fleet("other")
    cases: list[tuple[int, int, type[CafleetError], str]] = [
        (99, worker.member_id, MemberNotFound, "member 99 not found"),
        (worker.member_id, 98, MemberNotFound, "member 98 not found"),
        (99, 98, MemberNotFound, "member 99 not found"),
        (gone.member_id, worker.member_id, MemberNotActive, f"member {gone.member_id} is not active"),
        (worker.member_id, gone.member_id, MemberNotActive, f"member {gone.member_id} is not active"),
        (
            worker.member_id,
            stranger.member_id,
            DifferentFleets,
            f"members {worker.member_id} and {stranger.member_id} are not in the same fleet",
        ),
    ]
    for sender, recipient, error, text in cases:
        with pytest.raises(error) as caught:
            messages.send(world.runtime, sender, recipient, "hi")
        assert str(caught.value) == text

    fleets.delete_fleet(world.runtime, stranger.fleet_id)
    for sender, recipient in ((stranger.member_id,) * 2, (worker.member_id, stranger.member_id)):
        with pytest.raises(FleetDeleted, match=rf"^fleet {stranger.fleet_id} is deleted$"):
            messages.send(world.runtime, sender, recipient, "hi")
    assert stored_rows(world) == 0


def test_a_bad_body_or_key_stores_nothing(world: World) -> None:
    director = world.fleet()
    with pytest.raises(InvalidInput):
        messages.send(world.runtime, director.member_id, director.member_id, " ")
    with pytest.raises(InvalidInput):
        messages.send(world.runtime, director.member_id, director.member_id, "x", key="")
    with pytest.raises(InvalidInput):
        messages.send_each(world.runtime, director.member_id, [director.member_id], "x", key="a\nb")
    with pytest.raises(InvalidInput):
        messages.broadcast(world.runtime, director.member_id, "\n")
    assert stored_rows(world) == 0


# -- repeatable sends --------------------------------------------------------------------------


def test_a_repeated_send_returns_the_stored_message_and_types_nothing_again(world: World) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)

    first = messages.send(world.runtime, director.member_id, worker.member_id, "go", key="k1")
    again = messages.send(world.runtime, director.member_id, worker.member_id, "go", key="k1")

    assert again.repeated
    assert again.message == first.message
    assert again.notification.state is NotificationState.NOTIFIED
    assert len(world.multiplexer.pane(world.pane(worker)).pasted) == 1
    assert stored_rows(world) == 1


def test_a_repeated_send_with_another_body_is_refused(world: World) -> None:
    director = world.fleet()
    first = messages.send(world.runtime, director.member_id, director.member_id, "go", key="k1")
    with pytest.raises(KeyReused) as caught:
        messages.send(world.runtime, director.member_id, director.member_id, "stop", key="k1")
    assert str(caught.value) == f"key 'k1' was already used for message {first.message.message_id}"
    assert stored_rows(world) == 1


def test_a_key_belongs_to_one_sender_and_one_recipient(world: World) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)
    pairs = [(director, worker), (worker, director), (director, director)]
    for sender, recipient in pairs:
        assert not messages.send(world.runtime, sender.member_id, recipient.member_id, "x", key="k").repeated
    assert stored_rows(world) == len(pairs)


def test_a_repeated_send_succeeds_after_its_recipient_has_gone(world: World) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)
    first = messages.send(world.runtime, director.member_id, worker.member_id, "go", key="k1")
    delete_member(world.runtime, worker.member_id)

    again = messages.send(world.runtime, director.member_id, worker.member_id, "go", key="k1")

    assert (again.repeated, again.message) == (True, first.message)


def test_a_repeat_after_an_acknowledgement_returns_the_message_as_it_now_is(world: World) -> None:
    director = world.fleet()
    first = messages.send(world.runtime, director.member_id, director.member_id, "go", key="k1")
    acked = inbox.ack(world.runtime, first.message.message_id)

    again = messages.send(world.runtime, director.member_id, director.member_id, "go", key="k1")

    assert again.message == acked


def test_a_repeat_types_the_line_that_the_first_could_not(world: World) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)
    pane = world.multiplexer.pane(world.pane(worker))
    pane.mode = "copy-mode"
    first = messages.send(world.runtime, director.member_id, worker.member_id, "go", key="k1")
    assert first.notification.state is NotificationState.DEFERRED

    pane.mode = ""
    again = messages.send(world.runtime, director.member_id, worker.member_id, "go", key="k1")

    assert (again.repeated, again.notification.state) == (True, NotificationState.NOTIFIED)
    assert len(pane.pasted) == 1


# -- fan-out -----------------------------------------------------------------------------------


def test_a_fan_out_is_several_sends_and_each_failure_stands_alone(world: World) -> None:
    director = world.fleet()
    workers = [world.member(director.fleet_id, f"w{i}") for i in range(2)]
    wanted = [workers[0].member_id, 99, workers[1].member_id, workers[0].member_id]

    results = messages.send_each(world.runtime, director.member_id, wanted, "go")

    assert [result.to_member_id for result in results] == [workers[0].member_id, 99, workers[1].member_id]
    assert [result.sent is not None for result in results] == [True, False, True]
    assert isinstance(results[1].error, MemberNotFound)
    assert stored_rows(world) == 2


# -- broadcast ---------------------------------------------------------------------------------


@pytest.mark.parametrize("others", [0, 1, 4])
def test_a_broadcast_is_one_summary_and_one_delivery_per_other_active_member(
    world: World, others: int
) -> None:
    director = world.fleet()
    sender = world.member(director.fleet_id, "sender")
    workers = [world.member(director.fleet_id, f"w{i}") for i in range(others)]
    gone = world.member(director.fleet_id, "gone")
    delete_member(world.runtime, gone.member_id)
    world.fleet("another fleet")

    done = messages.broadcast(world.runtime, sender.member_id, "all hands")

    expected = [director.member_id, *(worker.member_id for worker in workers)]
    summary = done.summary
    assert summary.text == f"Broadcast sent to {len(expected)} recipients"
    assert summary.type is MessageType.BROADCAST_SUMMARY
    assert summary.status_state is MessageState.COMPLETED
    assert (summary.owner_member_id, summary.to_member_id) == (sender.member_id, None)
    assert summary.origin_message_id == summary.message_id
    assert [result.member_id for result in done.results] == expected
    assert (done.recipients, done.notified, done.repeated) == (len(expected), others, False)
    for result in done.results:
        (message,) = inbox.poll(world.runtime, result.member_id)
        assert message.message_id == result.message_id
        assert (message.type, message.text) == (MessageType.UNICAST, "all hands")
        assert message.origin_message_id == summary.message_id
    assert stored_rows(world) == len(expected) + 1
    assert inbox.poll(world.runtime, sender.member_id) == []


def test_a_director_alone_in_its_fleet_reaches_nobody(world: World) -> None:
    director = world.fleet()
    done = messages.broadcast(world.runtime, director.member_id, "hello?")
    assert (done.recipients, done.notified) == (0, 0)
    assert done.summary.text == "Broadcast sent to 0 recipients"


def test_one_recipient_that_cannot_be_told_does_not_spoil_a_broadcast(world: World) -> None:
    director = world.fleet()
    workers = [world.member(director.fleet_id, f"w{i}") for i in range(4)]
    world.multiplexer.remove_pane(world.pane(workers[1]))
    world.multiplexer.pane(world.pane(workers[2])).mode = "copy-mode"

    done = messages.broadcast(world.runtime, director.member_id, "go")

    states = [result.notification.state for result in done.results]
    assert states == [
        NotificationState.NOTIFIED,
        NotificationState.FAILED,
        NotificationState.DEFERRED,
        NotificationState.NOTIFIED,
    ]
    assert done.notified == 2
    assert all(len(inbox.poll(world.runtime, worker.member_id)) == 1 for worker in workers)


@pytest.mark.parametrize("broadcast", [True, False])
def test_a_server_that_hangs_costs_its_time_limit_once_a_call(world: World, broadcast: bool) -> None:
    director = world.fleet()
    workers = [world.member(director.fleet_id, f"w{i}").member_id for i in range(3)]
    world.multiplexer.fail("look", MultiplexerTimeout("tmux", 5), times=None)
    calls = len(world.multiplexer.calls)

    if broadcast:
        told = [r.notification for r in messages.broadcast(world.runtime, director.member_id, "go").results]
    else:
        sent = messages.send_each(world.runtime, director.member_id, workers, "go")
        told = [result.sent.notification for result in sent if result.sent]

    assert [notification.state for notification in told] == [NotificationState.FAILED] * 3
    assert len(world.multiplexer.calls) == calls + 1


def test_a_repeated_broadcast_stores_and_types_nothing_again(world: World) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)
    first = messages.broadcast(world.runtime, director.member_id, "go", key="b1")
    world.member(director.fleet_id, "late")

    again = messages.broadcast(world.runtime, director.member_id, "go", key="b1")

    assert (again.repeated, again.summary) == (True, first.summary)
    assert [result.member_id for result in again.results] == [worker.member_id]
    assert len(world.multiplexer.pane(world.pane(worker)).pasted) == 1
    with pytest.raises(KeyReused):
        messages.broadcast(world.runtime, director.member_id, "other", key="b1")
    assert stored_rows(world) == 2


def test_a_key_is_not_shared_by_a_broadcast_and_a_message_to_oneself(world: World) -> None:
    director = world.fleet()
    summary = messages.broadcast(world.runtime, director.member_id, "go", key="k").summary
    with pytest.raises(KeyReused) as caught:
        messages.send(world.runtime, director.member_id, director.member_id, summary.text, key="k")
    assert str(caught.value) == f"key 'k' was already used for message {summary.message_id}"

    note = messages.send(world.runtime, director.member_id, director.member_id, "note", key="k2").message
    with pytest.raises(KeyReused, match=rf"message {note.message_id}$"):
        messages.broadcast(world.runtime, director.member_id, "note", key="k2")


def test_an_inactive_member_cannot_broadcast(world: World) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)
    delete_member(world.runtime, worker.member_id)
    with pytest.raises(MemberNotActive):
        messages.broadcast(world.runtime, worker.member_id, "go")
    fleets.delete_fleet(world.runtime, director.fleet_id)
    with pytest.raises(FleetDeleted):
        messages.broadcast(world.runtime, director.member_id, "go")
    with pytest.raises(MemberNotFound):
        messages.broadcast(world.runtime, 99, "go")


# -- visibility --------------------------------------------------------------------------------

ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(0, 2), st.integers(0, 2)),
        st.tuples(st.just("broadcast"), st.integers(0, 2), st.just(0)),
        st.tuples(st.just("ack"), st.integers(0, 30), st.just(0)),
    ),
    max_size=25,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(actions=ACTIONS)
def test_inboxes_hold_what_was_sent_and_not_acknowledged(
    world: World, actions: list[tuple[str, int, int]]
) -> None:
    team: list[Member] = [world.fleet()]
    team += [world.member(team[0].fleet_id, f"w{i}") for i in range(2)]
    waiting: dict[int, list[int]] = {member.member_id: [] for member in team}
    stored: list[int] = []
    acknowledged: set[int] = set()
    for action, a, b in actions:
        if action == "send":
            sender, recipient = team[a].member_id, team[b].member_id
            sent = messages.send(world.runtime, sender, recipient, "x").message.message_id
            waiting[recipient].append(sent)
            stored.append(sent)
        elif action == "broadcast":
            done = messages.broadcast(world.runtime, team[a].member_id, "y")
            for result in done.results:
                waiting[result.member_id].append(result.message_id)
                stored.append(result.message_id)
        elif stored:
            message_id = stored[a % len(stored)]
            if message_id in acknowledged:
                with pytest.raises(CafleetError, match="already acknowledged"):
                    inbox.ack(world.runtime, message_id)
            else:
                acked = inbox.ack(world.runtime, message_id)
                assert acked.status_state is MessageState.COMPLETED
                waiting[acked.owner_member_id].remove(message_id)
                acknowledged.add(message_id)
    for member_id, ids in waiting.items():
        found = [message.message_id for message in inbox.poll(world.runtime, member_id)]
        assert found == sorted(ids, reverse=True)
        assert inbox.count_unread(world.runtime, member_id) == len(ids)


def test_a_sender_is_warned_when_nobody_was_told() -> None:
    warned = {state: messages.untold(5, Notification(state, "pane is busy")) for state in NotificationState}
    line = "message 5 not notified: pane is busy. It is stored; do not send it again."
    assert warned == {
        NotificationState.NOTIFIED: None,
        NotificationState.SKIPPED: None,
        NotificationState.DEFERRED: line,
        NotificationState.FAILED: line,
    }
