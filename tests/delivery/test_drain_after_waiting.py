"""What is true when the pane's lock has been got need not be what was true when it was asked for."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from tests.support.drawn import standin_screen
from tests.support.interrupted import Interrupted
from tests.support.memory_multiplexer import ComposerProgram, MemoryMultiplexer
from tests.support.team import Team

from cafleet.delivery.drain import drain_for_message
from cafleet.delivery.line import render_line
from cafleet.errors import PaneBusy
from cafleet.models import Notification, NotificationState
from cafleet.multiplexer.pane_lock import pane_lock

NOTIFIED = Notification(NotificationState.NOTIFIED, None)
BEFORE_THE_LOCK = (1, 2)
"""A send reads what is pending, then what is to be typed; then it asks for the lock, and reads again."""


def drain(team: Team, message_id: int, after: int, action: Callable[[], object]) -> Notification:
    """What a sender is told in whose steps `action` happens."""
    database = Interrupted(team.database.path, after, action)
    try:
        told = drain_for_message(team.runtime_with(database), message_id)
        assert database.interrupted
        return told
    finally:
        database.close()


@pytest.mark.parametrize("after", BEFORE_THE_LOCK)
def test_what_was_acknowledged_meanwhile_is_not_typed(
    team: Team, memory: MemoryMultiplexer, after: int
) -> None:
    """Field case G15, too: so a sender takes back what its recipient was not told of."""
    address, program = memory.add_composer(ComposerProgram(standin_screen))
    message_id = team.store(team.add("ada", address))
    assert drain(team, message_id, after, lambda: team.acknowledge(message_id)) == NOTIFIED
    assert not memory.pane(address).touched
    assert program.submitted == []


@pytest.mark.parametrize("after", BEFORE_THE_LOCK)
def test_what_somebody_else_typed_meanwhile_is_not_typed_again(
    team: Team, memory: MemoryMultiplexer, after: int
) -> None:
    """Field case G3."""
    address, program = memory.add_composer(ComposerProgram(standin_screen))
    message_id = team.store(team.add("ada", address))
    told = drain(team, message_id, after, lambda: drain_for_message(team.runtime, message_id))
    assert told == NOTIFIED
    assert program.submitted == [render_line(team.message(message_id), 200)]


@pytest.mark.parametrize("after", BEFORE_THE_LOCK)
def test_a_recipient_that_got_another_pane_meanwhile_is_told_there(
    team: Team, memory: MemoryMultiplexer, after: int
) -> None:
    old, _ = memory.add_composer(ComposerProgram(standin_screen))
    new, program = memory.add_composer(ComposerProgram(standin_screen))
    ada = team.add("ada", old)
    message_id = team.store(ada)
    free: list[str] = []

    def note_free_lock(method: str, _pane: str) -> None:
        """Typing without its lock, or under the old pane's, would let another sender in between."""
        with suppress(PaneBusy), pane_lock(str(team.directory), "tmux", new, timeout_seconds=0):
            free.append(method)

    memory.before = note_free_lock
    assert drain(team, message_id, after, lambda: team.move(ada, new)) == NOTIFIED
    assert free == []
    assert not memory.pane(old).touched
    assert program.submitted == [render_line(team.message(message_id), 200)]


@pytest.mark.parametrize("after", BEFORE_THE_LOCK)
def test_a_recipient_that_was_deregistered_meanwhile_is_not_typed_at(
    team: Team, memory: MemoryMultiplexer, after: int
) -> None:
    address, _ = memory.add_composer(ComposerProgram(standin_screen))
    ada = team.add("ada", address)
    message_id = team.store(ada)
    told = drain(team, message_id, after, lambda: team.deregister(ada))
    assert told == Notification(NotificationState.SKIPPED, f"member {ada} is no longer active")
    assert not memory.pane(address).touched


@pytest.mark.parametrize(("step", "pasted"), [("look", 0), ("paste", 1)])
def test_a_lock_whose_file_is_removed_lets_nothing_more_be_typed(
    team: Team, memory: MemoryMultiplexer, step: str, pasted: int
) -> None:
    """Whoever comes next locks a new file, and is in the same pane."""
    address, program = memory.add_composer(ComposerProgram(standin_screen))
    message_id = team.store(team.add("ada", address))

    def remove(method: str, _pane: str) -> None:
        if method == step:
            for file in (team.directory / "locks").iterdir():
                file.unlink()

    memory.before = remove
    told = drain_for_message(team.runtime, message_id)
    assert told.state is NotificationState.DEFERRED
    assert "its lock file was removed" in (told.reason or "")
    assert (len(memory.pane(address).pasted), memory.pane(address).enters) == (pasted, 0)
    memory.before = lambda *_: None
    assert drain_for_message(team.runtime, message_id) == NOTIFIED
    assert program.submitted == [render_line(team.message(message_id), 200)]
