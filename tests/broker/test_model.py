"""The broker against a model of a few dictionaries, whatever is done in whatever order (SPEC 3).

Several writers, each with connections of its own as a process has them, take turns or race; the clock
jumps, back as well. No message is lost, doubled or moved twice, and everybody sees what the model says.
"""

import re
import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from threading import Barrier

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.support.fleet_builder import World
from tests.support.memory_multiplexer import ComposerProgram

from cafleet.broker import fleets, inbox, members, messages, timeline
from cafleet.broker.member_creation import register_member
from cafleet.broker.member_deletion import delete_member
from cafleet.clock import format_timestamp
from cafleet.db.database import Database
from cafleet.errors import (
    AlreadyAcknowledged,
    CafleetError,
    DifferentFleets,
    DirectorProtected,
    FleetDeleted,
    KeyReused,
    MemberNotActive,
    MonitorExists,
    SummaryNotAcknowledgeable,
)
from cafleet.models import (
    Member,
    MemberKind,
    Message,
    MessageState,
    MessageType,
    NotificationState,
    Placement,
)
from cafleet.runtime import Runtime

WRITERS = 3
WRITER = st.integers(0, WRITERS - 1)
PICK = st.integers(0, 10**6)
"""Taken modulo the number of things to pick from."""
BODY = st.sampled_from(["go", "line\nline", "日本語 👩‍👧", "--help", "$(touch x);", "\u202eabc", "a\x1b[31m"])
KEY = st.sampled_from("kl")


class BrokerModel(RuleBasedStateMachine):
    """What there should be, beside what there is."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="cafleet-model-"))
        self.world = World(self.directory)
        self.world.clock.step = timedelta(milliseconds=700)  # Ages differ by whole seconds.
        self.databases = [Database(self.world.database.path) for _ in range(WRITERS)]
        self.members: dict[int, Member] = {}
        """As they were created."""
        self.active: set[int] = set()
        self.deleted_fleets: set[int] = set()
        self.directors: dict[int, int] = {}
        """By fleet."""
        self.programs: dict[int, ComposerProgram] = {}
        """Agents in panes, by member."""
        self.messages: dict[int, Message] = {}
        self.keys: dict[tuple[int, int, str], int] = {}
        self.since = ""
        """When the last call to the broker began: what it stamps is later."""
        self.lines: list[int] = []
        """Messages of which a line was typed."""
        self.create_fleet(0)

    def teardown(self) -> None:
        for database in (*self.databases, self.world.database):
            database.close()
        shutil.rmtree(self.directory)

    def runtime(self, writer: int) -> Runtime:
        return self.world.runtime_with(self.databases[writer])

    def now(self) -> str:
        """The moment of the last look at the clock."""
        return format_timestamp(self.world.clock.moment)

    def member(self, pick: int) -> int:
        return sorted(self.members)[pick % len(self.members)]

    def fleet_of(self, member_id: int) -> int:
        return self.members[member_id].fleet_id

    def live_fleet(self, pick: int) -> int:
        live = sorted(set(self.directors) - self.deleted_fleets)
        return live[pick % len(live)]

    def has_live_fleet(self) -> bool:
        return bool(set(self.directors) - self.deleted_fleets)

    def in_fleet(self, fleet_id: int) -> list[int]:
        return sorted(m for m in self.active if self.fleet_of(m) == fleet_id)

    def refusal(self, *member_ids: int) -> type[CafleetError] | None:
        """Why these sides cannot have a message between them."""
        if any(self.fleet_of(m) in self.deleted_fleets for m in member_ids):
            return FleetDeleted
        if any(m not in self.active for m in member_ids):
            return MemberNotActive
        return DifferentFleets if len(set(map(self.fleet_of, member_ids))) > 1 else None

    def both_at_once(self, action: Callable[[Runtime], object]) -> list[object]:
        """The results of two writers that start together; an error is a result."""
        barrier = Barrier(2)

        def act(number: int) -> object:
            runtime = self.runtime(0).for_another_thread()
            barrier.wait()
            try:
                return action(runtime)
            except CafleetError as error:
                return error
            finally:
                runtime.database.close()

        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(act, range(2)))

    # -- fleets and members ------------------------------------------------------------------------

    @precondition(lambda self: len(self.directors) < 3)
    @rule(writer=WRITER)
    def create_fleet(self, writer: int) -> None:
        self.world.stand_in()
        director = fleets.create_fleet(self.runtime(writer), "team", "claude").director
        self.directors[director.fleet_id] = director.member_id
        self.note_member(director)

    @precondition(lambda self: self.has_live_fleet() and len(self.members) < 10)
    @rule(pick=PICK)
    def create_member(self, pick: int) -> None:
        fleet_id = self.live_fleet(pick)
        director = self.members[self.directors[fleet_id]]
        self.world.stand_in(self.world.pane(director))
        member = self.world.member(fleet_id)
        self.note_member(member)
        program = self.world.multiplexer.pane(self.world.pane(member)).program
        assert isinstance(program, ComposerProgram)
        self.programs[member.member_id] = program

    @precondition(lambda self: self.has_live_fleet() and len(self.members) < 10)
    @rule(pick=PICK, race=st.booleans(), writer=WRITER)
    def register_a_monitor(self, pick: int, race: bool, writer: int) -> None:
        """One without a pane, so that nobody is told anything."""
        fleet_id = self.live_fleet(pick)
        request = self.world.request(fleet_id, "watch", monitor=True)
        placement = Placement(0, "s", "@0", None, "tmux", "claude", "", None)

        def register(runtime: Runtime) -> object:
            return register_member(runtime, request, placement)

        taken = any(self.members[m].kind is MemberKind.MONITOR for m in self.in_fleet(fleet_id))
        if race:
            results = self.both_at_once(register)
        elif taken:
            with pytest.raises(MonitorExists):
                register(self.runtime(writer))
            return
        else:
            results = [register(self.runtime(writer))]
        made = [found for found in results if isinstance(found, Member)]
        assert len(made) == (0 if taken else 1)
        assert all(isinstance(found, Member | MonitorExists) for found in results)
        for member in made:
            self.note_member(member)

    @rule(pick=PICK, writer=WRITER)
    def delete_member(self, pick: int, writer: int) -> None:
        member_id = self.member(pick)
        expected = self.refusal(member_id)
        if expected is None and member_id in self.directors.values():
            expected = DirectorProtected
        if expected is not None:
            with pytest.raises((expected, DirectorProtected)):
                delete_member(self.runtime(writer), member_id)
            return
        delete_member(self.runtime(writer), member_id)
        self.active.discard(member_id)
        director = self.directors[self.fleet_of(member_id)]
        for pair in ((director, member_id), (member_id, director)):
            with pytest.raises(MemberNotActive):
                messages.send(self.runtime(writer), *pair, "too late")

    @precondition(lambda self: len(self.directors) > 1)
    @rule(pick=PICK, writer=WRITER)
    def delete_fleet(self, pick: int, writer: int) -> None:
        fleet_id = sorted(self.directors)[pick % len(self.directors)]
        done = fleets.delete_fleet(self.runtime(writer), fleet_id)
        gone = self.in_fleet(fleet_id)
        assert done.deregistered == len(gone)
        self.active -= set(gone)
        self.deleted_fleets.add(fleet_id)

    # -- messages ----------------------------------------------------------------------------------

    @rule(sender=PICK, recipient=PICK, text=BODY, writer=WRITER)
    def send(self, sender: int, recipient: int, text: str, writer: int) -> None:
        pair = self.member(sender), self.member(recipient)
        self.since = self.now()
        refusal = self.refusal(*pair)
        if refusal is not None:
            with pytest.raises(refusal):
                messages.send(self.runtime(writer), *pair, text)
            return
        self.note_sent(messages.send(self.runtime(writer), *pair, text), text)

    @rule(sender=PICK, recipient=PICK, text=BODY, key=KEY, race=st.booleans(), writer=WRITER)
    def send_with_a_key(
        self, sender: int, recipient: int, text: str, key: str, race: bool, writer: int
    ) -> None:
        pair = self.member(sender), self.member(recipient)
        stored = self.keys.get((*pair, key))
        self.since = self.now()

        def send(runtime: Runtime) -> object:
            return messages.send(runtime, *pair, text, key)

        if stored is None and self.refusal(*pair) is not None:
            with pytest.raises(self.refusal(*pair) or CafleetError):
                send(self.runtime(writer))
            return
        if stored is not None and self.messages[stored].text != text:
            with pytest.raises(KeyReused):
                send(self.runtime(writer))
            return
        results = self.both_at_once(send) if race else [send(self.runtime(writer))]
        sent = [found for found in results if isinstance(found, messages.Sent)]
        assert len(sent) == len(results), results
        assert len({found.message.message_id for found in sent}) == 1
        first = [found for found in sent if not found.repeated]
        assert len(first) == (1 if stored is None else 0)
        for found in first:
            self.keys[(*pair, key)] = found.message.message_id
            self.note_sent(found, text)

    @rule(sender=PICK, text=BODY, key=st.none() | KEY, writer=WRITER)
    def broadcast(self, sender: int, text: str, key: str | None, writer: int) -> None:
        member_id = self.member(sender)
        self.since = self.now()
        if key is not None and (member_id, member_id, key) in self.keys:
            self.repeat_a_broadcast(member_id, text, key, writer)
            return
        refusal = self.refusal(member_id)
        if refusal is not None:
            with pytest.raises(refusal):
                messages.broadcast(self.runtime(writer), member_id, text, key)
            return
        done = messages.broadcast(self.runtime(writer), member_id, text, key)
        assert not done.repeated
        if key is not None:
            self.keys[(member_id, member_id, key)] = done.summary.message_id
        others = [m for m in self.in_fleet(self.fleet_of(member_id)) if m != member_id]
        assert [result.member_id for result in done.results] == others
        summary = done.summary
        assert (summary.type, summary.status_state) == (MessageType.BROADCAST_SUMMARY, MessageState.COMPLETED)
        assert summary.text == f"Broadcast sent to {len(others)} recipients"
        assert (summary.to_member_id, summary.owner_member_id) == (None, member_id)
        assert summary.origin_message_id == summary.message_id
        self.note_message(summary)
        for result in done.results:
            delivery = inbox.show(self.runtime(writer), result.message_id)
            assert (delivery.text, delivery.origin_message_id) == (text, summary.message_id)
            assert (delivery.owner_member_id, delivery.status_state) == (
                result.member_id,
                MessageState.INPUT_REQUIRED,
            )
            self.note_message(delivery)
            self.note_line(delivery, result.notification.state)

    def repeat_a_broadcast(self, member_id: int, text: str, key: str, writer: int) -> None:
        """A key of a broadcast meets those of messages to oneself."""
        stored = self.messages[self.keys[(member_id, member_id, key)]]
        deliveries = [
            message
            for message in self.messages.values()
            if message.type is MessageType.UNICAST and message.origin_message_id == stored.message_id
        ]
        if stored.type is MessageType.UNICAST or any(delivery.text != text for delivery in deliveries):
            with pytest.raises(KeyReused):
                messages.broadcast(self.runtime(writer), member_id, text, key)
            return
        done = messages.broadcast(self.runtime(writer), member_id, text, key)
        assert (done.repeated, done.summary) == (True, stored)
        assert [result.message_id for result in done.results] == sorted(d.message_id for d in deliveries)

    @precondition(lambda self: self.messages)
    @rule(pick=PICK, race=st.booleans(), writer=WRITER)
    def acknowledge(self, pick: int, race: bool, writer: int) -> None:
        message = self.messages[sorted(self.messages)[pick % len(self.messages)]]
        since = self.now()

        def ack(runtime: Runtime) -> object:
            return inbox.ack(runtime, message.message_id)

        if message.type is MessageType.BROADCAST_SUMMARY:
            with pytest.raises(SummaryNotAcknowledgeable):
                ack(self.runtime(writer))
        elif message.status_state is MessageState.COMPLETED:
            with pytest.raises(AlreadyAcknowledged):
                ack(self.runtime(writer))
        else:
            results = self.both_at_once(ack) if race else [ack(self.runtime(writer))]
            moved = [found for found in results if isinstance(found, Message)]
            assert len(moved) == 1, "moved twice, or not at all"
            assert all(isinstance(found, Message | AlreadyAcknowledged) for found in results)
            stamp = moved[0].status_timestamp
            assert since < stamp <= self.now()
            expected = message._replace(status_state=MessageState.COMPLETED, status_timestamp=stamp)
            assert moved[0] == expected
            self.messages[message.message_id] = expected

    @rule(seconds=st.sampled_from([-3600, -1, 1, 90]))
    def let_the_clock_jump(self, seconds: int) -> None:
        self.world.clock.advance(seconds)

    # -- what everybody sees -----------------------------------------------------------------------

    @invariant()
    def inboxes_hold_what_was_sent_and_not_acknowledged(self) -> None:
        for member_id in self.members:
            waiting = [
                message
                for message in self.messages.values()
                if message.owner_member_id == member_id
                and message.status_state is MessageState.INPUT_REQUIRED
            ]
            waiting.sort(key=lambda m: (m.status_timestamp, m.message_id), reverse=True)
            assert inbox.poll(self.runtime(member_id % WRITERS), member_id) == waiting

    @invariant()
    def rosters_and_activity(self) -> None:
        for fleet_id in self.directors:
            if fleet_id in self.deleted_fleets:
                with pytest.raises(FleetDeleted):
                    members.list_members(self.runtime(0), fleet_id)
                continue
            roster = members.list_members(self.runtime(1), fleet_id)
            moment = self.world.clock.moment
            assert [entry.member.member_id for entry in roster] == self.in_fleet(fleet_id)
            for entry in roster:
                self.check_activity(entry, moment)

    @rule()
    def timelines(self) -> None:
        for fleet_id in self.directors:
            expected = [
                message
                for message in self.messages.values()
                if message.type is MessageType.UNICAST and self.fleet_of(message.owner_member_id) == fleet_id
            ]
            expected.sort(key=lambda m: (m.status_timestamp, m.message_id), reverse=True)
            found = timeline.timeline(self.runtime(2), fleet_id)
            assert found == expected
            groups = timeline.group(found)
            assert sorted(m for entry in groups for m in entry.deliveries) == sorted(expected)
            origins = [entry.origin_message_id for entry in groups if entry.origin_message_id is not None]
            assert len(origins) == len(set(origins)), "one broadcast, one entry"

    @rule()
    def every_message_is_kept(self) -> None:
        for message in self.messages.values():
            assert inbox.show(self.runtime(0), message.message_id) == message
        with self.databases[0].read() as connection:
            (stored,) = connection.execute("SELECT count(*) FROM messages").fetchone()
        assert stored == len(self.messages)

    @invariant()
    def each_line_was_typed_once(self) -> None:
        typed = [
            int(found.group(1))
            for program in self.programs.values()
            for line in program.submitted
            if (found := re.match(r"\[cafleet msg (\d+) from ", line))
        ]
        assert sorted(typed) == sorted(self.lines)

    # -- notes -------------------------------------------------------------------------------------

    def note_member(self, member: Member) -> None:
        assert member.member_id > max(self.members, default=0), "an id was given out again"
        self.members[member.member_id] = member
        self.active.add(member.member_id)

    def note_message(self, message: Message) -> None:
        assert message.message_id > max(self.messages, default=0), "an id was given out again"
        assert self.since < message.created_at == message.status_timestamp <= self.now()
        self.messages[message.message_id] = message

    def note_sent(self, sent: messages.Sent, text: str) -> None:
        message = sent.message
        assert (message.text, message.status_state) == (text, MessageState.INPUT_REQUIRED)
        self.note_message(message)
        self.note_line(message, sent.notification.state)

    def note_line(self, message: Message, state: NotificationState) -> None:
        recipient = message.owner_member_id
        if recipient in self.programs and recipient != message.from_member_id:
            assert state is NotificationState.NOTIFIED
            self.lines.append(message.message_id)
        else:
            assert state is NotificationState.SKIPPED

    def check_activity(self, entry: members.RosterEntry, moment: datetime) -> None:
        """`moment`: when the list was made."""
        me = entry.member.member_id
        mine = list(self.messages.values())
        received = [m for m in mine if m.owner_member_id == me and m.type is MessageType.UNICAST]
        completed = [m for m in received if m.status_state is MessageState.COMPLETED]
        found = entry.activity
        assert entry.unread == len(received) - len(completed)
        assert found.last_sent == max((m.created_at for m in mine if m.from_member_id == me), default=None)
        assert found.last_recv == max((m.created_at for m in received), default=None)
        assert found.last_ack == max((m.status_timestamp for m in completed), default=None)
        known = [stamp for stamp in (found.last_sent, found.last_recv, found.last_ack) if stamp is not None]
        if not known:
            assert found.idle is None
            return
        age = moment - datetime.fromisoformat(max(known))
        assert found.idle == max(0, age // timedelta(seconds=1))


TestBroker = BrokerModel.TestCase
TestBroker.settings = settings(
    max_examples=20,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
