import os
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.drawn import standin_screen
from tests.support.memory_multiplexer import ComposerProgram, MemoryMultiplexer
from tests.support.team import Team
from tests.support.waiting import DEADLINE_SECONDS, wait_until

from cafleet.db import fleets, messages
from cafleet.db.backup import backup
from cafleet.delivery.inbox import FIRST_DRAIN_SECONDS, listen, wait
from cafleet.errors import MemberGone, MemberNotFound
from cafleet.models import Message
from cafleet.multiplexer.pane_lock import pane_lock


class Waiting:
    """A `wait` or `listen` in a thread, with a database object of its own."""

    def __init__(self, team: Team, work: Callable[["Waiting"], None]) -> None:
        self.received: list[Message] = []
        self.answer: list[Message] | None = None
        self.error: BaseException | None = None
        self.stop = False
        self.arrived = threading.Condition()
        self._thread = threading.Thread(target=self._run, args=(team, work))
        self._thread.start()

    def _run(self, team: Team, work: Callable[["Waiting"], None]) -> None:
        self.database = team.another_database()
        self.runtime = team.runtime_with(self.database)
        try:
            work(self)
        except Exception as error:  # Looked at by the test.
            self.error = error
        finally:
            self.database.close()

    def add(self, message: Message) -> None:
        with self.arrived:
            self.received.append(message)
            self.arrived.notify_all()

    def wait_for(self, count: int) -> list[int]:
        """The ids received, once there are `count`."""
        with self.arrived:
            assert self.arrived.wait_for(lambda: len(self.received) >= count, DEADLINE_SECONDS)
            return [message.message_id for message in self.received]

    def join(self) -> None:
        self._thread.join(DEADLINE_SECONDS)
        assert not self._thread.is_alive()


def waiting(team: Team, member_id: int, timeout_seconds: float | None = DEADLINE_SECONDS) -> Waiting:
    def work(this: Waiting) -> None:
        this.answer = wait(this.runtime, member_id, timeout_seconds)

    return Waiting(team, work)


@contextmanager
def listening(team: Team, member_id: int) -> Iterator[Waiting]:
    def work(this: Waiting) -> None:
        for message in listen(this.runtime, member_id, stopped=lambda: this.stop):
            this.add(message)

    made = Waiting(team, work)
    try:
        yield made
    finally:
        made.stop = True
        made.join()


def until_asleep(waiter: Waiting) -> None:
    """Give it the time to reach its first sleep; what is tested holds at any moment."""
    time.sleep(0.05)
    assert waiter.answer is None


def ids(found: list[Message] | None) -> list[int]:
    assert found is not None
    return [message.message_id for message in found]


# -- wait ----------------------------------------------------------------------------------------


def test_what_is_there_is_returned_at_once_newest_first(team: Team) -> None:
    first, second = team.store(team.director, sender=1), team.store(team.director, sender=1)
    assert ids(wait(team.runtime, team.director, None)) == [second, first]
    assert ids(wait(team.runtime, team.director, None, limit=1)) == [second]


def test_a_message_that_comes_ends_the_wait(team: Team) -> None:
    waiter = waiting(team, team.director)
    until_asleep(waiter)
    message_id = team.store(team.director, sender=1)
    waiter.join()
    assert ids(waiter.answer) == [message_id]
    assert team.message(message_id).status_state == "input_required"


@pytest.mark.parametrize("timeout", [0, 0.01])
def test_an_empty_inbox_gives_an_empty_answer_in_time(team: Team, timeout: float) -> None:
    assert wait(team.runtime, team.director, timeout) == []


def test_other_peoples_messages_do_not_end_the_wait(team: Team) -> None:
    ada = team.add("ada", None)
    waiter = waiting(team, team.director)
    until_asleep(waiter)
    team.store(ada)
    mine = team.store(team.director, sender=ada)
    waiter.join()
    assert ids(waiter.answer) == [mine]


def test_a_message_at_any_moment_around_the_start_is_not_slept_over(team: Team) -> None:
    """200 rounds; a lost wake-up would last until the timeout."""
    for number in range(200):
        waiter = waiting(team, team.director)
        time.sleep(number % 20 / 4000)
        message_id = team.store(team.director, sender=1)
        waiter.join()
        assert ids(waiter.answer) == [message_id]
        team.acknowledge(message_id)


def test_a_member_that_ends_ends_its_wait(team: Team) -> None:
    ada = team.add("ada", None)
    waiter = waiting(team, ada)
    until_asleep(waiter)
    team.deregister(ada)
    waiter.join()
    assert isinstance(waiter.error, MemberGone)
    assert str(waiter.error) == f"member {ada} is no longer active"


def test_a_fleet_that_ends_ends_the_wait(team: Team) -> None:
    waiter = waiting(team, team.director)
    until_asleep(waiter)
    with team.database.write() as connection:
        fleets.mark_deleted(connection, team.fleet_id, team.moment())
    waiter.join()
    assert isinstance(waiter.error, MemberGone)


def test_who_cannot_wait(team: Team) -> None:
    ada = team.add("ada", None)
    team.deregister(ada)
    with pytest.raises(MemberGone):
        wait(team.runtime, ada, 0)
    with pytest.raises(MemberNotFound):
        wait(team.runtime, 99, 0)
    with pytest.raises(MemberNotFound):
        next(listen(team.runtime, 99))


def log_can_be_emptied(team: Team) -> bool:
    """Whether nobody has a transaction open: SQLite empties its log only then."""
    connection = sqlite3.connect(team.database.path, timeout=0)
    try:
        busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        connection.close()
    return not busy


def test_a_wait_in_a_thread_can_be_stopped(team: Team) -> None:
    def work(this: Waiting) -> None:
        this.answer = wait(this.runtime, team.director, None, stopped=lambda: this.stop)

    waiter = Waiting(team, work)
    until_asleep(waiter)
    waiter.stop = True
    waiter.join()
    assert waiter.answer == []


def test_no_transaction_is_open_while_one_waits(team: Team) -> None:
    waiter = waiting(team, team.director)
    until_asleep(waiter)
    with team.database.write() as connection:
        connection.execute("UPDATE fleets SET name = 'other'")
    assert wait_until(lambda: log_can_be_emptied(team))
    team.store(team.director, sender=1)
    waiter.join()


# -- the waiter's part in delivery ---------------------------------------------------------------


def test_a_waiter_delivers_what_senders_could_not(team: Team, memory: MemoryMultiplexer) -> None:
    address, program = memory.add_composer(ComposerProgram(standin_screen))
    message_id = team.store(team.add("ada", address))
    assert wait(team.runtime, team.director, 0) == []
    assert len(program.submitted) == 1
    assert team.is_notified(message_id)


def test_mail_that_is_there_does_not_keep_a_waiter_from_delivering(
    team: Team, memory: MemoryMultiplexer
) -> None:
    address, program = memory.add_composer(ComposerProgram(standin_screen))
    team.store(team.add("ada", address))
    mine = team.store(team.director, sender=2)
    assert ids(wait(team.runtime, team.director, None)) == [mine]
    assert len(program.submitted) == 1


def test_a_waiter_delivers_when_the_database_changes(team: Team, memory: MemoryMultiplexer) -> None:
    address, program = memory.add_composer(ComposerProgram(standin_screen))
    ada = team.add("ada", address)
    waiter = waiting(team, team.director)
    until_asleep(waiter)
    message_id = team.store(ada)
    wait_until(lambda: team.is_notified(message_id))
    assert len(program.submitted) == 1
    team.store(team.director, sender=ada)
    waiter.join()


def test_a_waiter_never_types_into_its_own_pane(team: Team, memory: MemoryMultiplexer) -> None:
    address, _ = memory.add_composer(ComposerProgram(standin_screen))
    ada = team.add("ada", address)
    message_id = team.store(ada)
    assert ids(wait(team.runtime, ada, 0)) == [message_id]
    assert memory.calls == []
    assert not team.is_notified(message_id)


def test_a_failing_pane_is_tried_once_however_often_the_database_changes(
    team: Team, memory: MemoryMultiplexer
) -> None:
    address, _ = memory.add_composer(ComposerProgram(standin_screen))
    ada = team.add("ada", address)
    memory.pane(address).mode = "copy-mode"
    team.store(ada)
    waiter = waiting(team, team.director)
    for _ in range(20):
        with team.database.write() as connection:
            connection.execute("UPDATE fleets SET name = name || 'x'")
        time.sleep(0.005)
    team.store(team.director, sender=ada)
    waiter.join()
    assert len(memory.calls) == 1


def test_a_taken_lock_is_not_waited_for_but_tried_again(team: Team, memory: MemoryMultiplexer) -> None:
    address, program = memory.add_composer(ComposerProgram(standin_screen))
    ada = team.add("ada", address)
    message_id = team.store(ada)
    with pane_lock(team.runtime.config.data_directory, "tmux", address):
        waiter = waiting(team, team.director)
        until_asleep(waiter)
        assert memory.calls == []
    wait_until(lambda: team.is_notified(message_id))
    assert len(program.submitted) == 1
    team.store(team.director, sender=ada)
    waiter.join()


def test_mail_ends_a_long_delivery(team: Team, memory: MemoryMultiplexer) -> None:
    """A waiter with much to deliver returns its own mail after the line that it is at."""
    address, program = memory.add_composer(ComposerProgram(standin_screen))
    ada = team.add("ada", address)
    waiter = waiting(team, team.director)
    until_asleep(waiter)
    stored: list[int] = []

    def before(method: str, _pane: str) -> None:
        if method == "paste" and not stored:
            other = team.another_database()
            stored.append(team.store(team.director, sender=ada, database=other))
            other.close()

    memory.before = before
    with team.database.write() as connection:
        for _ in range(5):
            messages.insert(
                connection,
                from_member_id=team.director,
                to_member_id=ada,
                text="work",
                created_at=team.moment(),
            )
    waiter.join()
    assert ids(waiter.answer) == stored
    assert len(program.submitted) == 1


def test_a_long_delivery_does_not_outlast_the_wait(team: Team, memory: MemoryMultiplexer) -> None:
    """Clients give up a call: a waiter with much to deliver stops after the line that it is at."""
    address, program = memory.add_composer(ComposerProgram(standin_screen))
    ada = team.add("ada", address)
    stored = [team.store(ada) for _ in range(3)]
    pastes: list[str] = []

    def before(method: str, pane: str) -> None:
        if method == "paste":
            pastes.append(pane)
            time.sleep(FIRST_DRAIN_SECONDS)

    memory.before = before
    assert wait(team.runtime, team.director, 0.01) == []
    assert len(pastes) == len(program.submitted) == 1
    assert [team.is_notified(message_id) for message_id in stored] == [True, False, False]


# -- listen --------------------------------------------------------------------------------------


def test_a_listener_gets_what_is_there_oldest_first_then_what_comes(team: Team) -> None:
    there = [team.store(team.director, sender=1) for _ in range(3)]
    with listening(team, team.director) as listener:
        assert listener.wait_for(3) == there
        more = [team.store(team.director, sender=1) for _ in range(3)]
        assert listener.wait_for(6) == there + more


def test_a_listener_gets_each_message_once_and_no_acked_one(team: Team) -> None:
    done = team.store(team.director, sender=1)
    team.acknowledge(done)
    with listening(team, team.director) as listener:
        first = team.store(team.director, sender=1)
        listener.wait_for(1)
        team.acknowledge(first)
        second = team.store(team.director, sender=1)
        assert listener.wait_for(2) == [first, second]


def test_a_slow_reader_is_not_told_of_what_was_dealt_with_meanwhile(team: Team) -> None:
    first, second, third = (team.store(team.director, sender=1) for _ in range(3))
    found = listen(team.runtime, team.director)
    assert next(found).message_id == first
    team.acknowledge(second)
    assert next(found).message_id == third


def test_a_listener_stamps_and_types_nothing(team: Team, memory: MemoryMultiplexer) -> None:
    address, _ = memory.add_composer(ComposerProgram(standin_screen))
    ada = team.add("ada", address)
    message_id = team.store(ada)
    with listening(team, ada) as listener:
        listener.wait_for(1)
    assert memory.calls == []
    assert not team.is_notified(message_id)


def test_two_listeners_get_the_same(team: Team) -> None:
    with listening(team, team.director) as one, listening(team, team.director) as other:
        sent = [team.store(team.director, sender=1) for _ in range(20)]
        assert one.wait_for(20) == sent
        assert other.wait_for(20) == sent


def test_a_listener_meets_a_restored_file(team: Team, tmp_path: Path) -> None:
    """Its ids are given out anew: a new message may have the id of one that was shown from the old file."""
    backup(team.database, copy := str(tmp_path / "copy.db"))
    with listening(team, team.director) as listener:
        first = team.store(team.director, sender=1, text="before")
        listener.wait_for(1)
        for suffix in ("", "-wal", "-shm"):
            os.unlink(team.database.path + suffix)
        os.rename(copy, team.database.path)
        assert team.store(team.director, sender=1, text="after") == first
        listener.wait_for(2)
    assert [message.text for message in listener.received] == ["before", "after"]


def test_a_listeners_end(team: Team) -> None:
    ada = team.add("ada", None)
    with listening(team, ada) as listener:
        team.store(ada)
        listener.wait_for(1)
        team.deregister(ada)
        listener.join()
    assert isinstance(listener.error, MemberGone)


def test_a_listener_holds_no_transaction_while_its_reader_is_slow(team: Team) -> None:
    team.store(team.director, sender=1)
    stream = listen(team.runtime, team.director)
    next(stream)
    other = team.another_database()
    with other.write() as connection:
        connection.execute("UPDATE fleets SET name = 'other'")
    other.close()
    assert log_can_be_emptied(team)
    assert isinstance(stream, Generator)
    stream.close()
