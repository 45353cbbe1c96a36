"""What was held back is typed later: once, soon, and without a storm (field cases G and H)."""

import threading
from contextlib import ExitStack

import pytest
from tests.support.fleet_builder import SERVER, claude_screen
from tests.support.memory_multiplexer import ComposerProgram
from tests.support.watched_fleet import WatchedFleet

from cafleet.broker import inbox
from cafleet.broker.member_respawn import RespawnRequest, respawn_member
from cafleet.db.database import Database
from cafleet.delivery.drain import drain_for_message
from cafleet.errors import MultiplexerError, MultiplexerTimeout
from cafleet.monitor.notify import Notify
from cafleet.multiplexer.pane_lock import pane_lock


def _question(_composer: str) -> list[str]:
    return ["Do you want to proceed?", "❯ 1. Yes", "  2. No", "Esc to cancel · Tab to amend"]


def test_nothing_pending_costs_no_call(watched: WatchedFleet) -> None:
    loop = watched.loop()
    watched.multiplexer.calls.clear()
    watched.ticks(loop, 10)
    assert watched.multiplexer.calls == []
    assert watched.lines == []


@pytest.mark.parametrize("reason", ["mode", "draft", "question", "shell"])
def test_a_deferred_one_is_typed_with_the_next_tick_after_its_reason_is_gone(
    watched: WatchedFleet, reason: str
) -> None:
    pane = watched.pane_now(watched.ann)
    program = pane.program
    assert isinstance(program, ComposerProgram)
    draw = program.draw
    if reason == "mode":
        pane.mode = "copy-mode"
    elif reason == "draft":
        program.composer = "please look at"
    elif reason == "question":
        program.draw = _question
    else:
        pane.shell = True
    program.show(pane)
    number = watched.store(watched.ann)
    loop = watched.loop()
    watched.ticks(loop, 10)
    assert not pane.touched
    assert len(watched.said) == 1, "the same thing is said once"
    assert watched.said[0].startswith("member 3 is not told of message 1: ")

    pane.mode, pane.shell, program.composer, program.draw = "", False, "", draw
    program.show(pane)
    watched.ticks(loop, 1)
    assert [line.split("] ")[1] for line in program.submitted] == ["hello"]
    watched.ticks(loop, 5)
    assert len(program.submitted) == 1
    assert watched.said[1:] == [f"member 3 was told of message {number}"]


def test_each_change_of_reason_is_said(watched: WatchedFleet) -> None:
    pane = watched.pane_now(watched.ann)
    watched.store(watched.ann)
    loop = watched.loop()
    for mode in ("copy-mode", "copy-mode", "tree-mode", "copy-mode"):
        pane.mode = mode
        watched.ticks(loop, 1)
    reasons = [line.rpartition(": ")[2] for line in watched.said]
    assert reasons == ["pane is in copy-mode", "pane is in tree-mode", "pane is in copy-mode"]


def test_a_reason_is_said_again_after_others_have_dealt_with_it(watched: WatchedFleet) -> None:
    pane = watched.pane_now(watched.ann)
    pane.mode = "copy-mode"
    loop = watched.loop()
    for _ in range(2):
        number = watched.store(watched.ann)
        watched.ticks(loop, 2)
        inbox.ack(watched.runtime, number)
        watched.ticks(loop, 2)
    assert len(watched.said) == 2


def test_a_first_failure_is_tried_again_with_the_next_tick(watched: WatchedFleet) -> None:
    watched.store(watched.ann)
    loop = watched.loop()
    watched.multiplexer.fail("look", MultiplexerError("told to fail"))
    watched.ticks(loop, 1)
    assert watched.submitted(watched.ann) == []
    watched.ticks(loop, 1)
    assert len(watched.submitted(watched.ann)) == 1
    assert watched.said == [
        "member 3 is not told of message 1: told to fail",
        "member 3 was told of message 1",
    ]


def test_a_failing_pane_is_left_alone_for_longer_and_longer(watched: WatchedFleet) -> None:
    watched.multiplexer.fail("look", MultiplexerTimeout("tmux", 5), times=None)
    for _ in range(5):
        watched.store(watched.ann)
    loop = watched.loop()
    watched.multiplexer.calls.clear()
    watched.ticks(loop, 52)
    assert watched.looks_at(watched.ann) == 8
    assert len(watched.said) == 1


def test_other_members_are_told_meanwhile(watched: WatchedFleet) -> None:
    bob = watched.member(watched.fleet_id, "bob")
    watched.multiplexer.end_program(watched.pane(watched.ann))
    loop = watched.loop()
    for number in range(4):
        watched.store(watched.ann)
        watched.store(bob, f"for bob {number}")
        watched.ticks(loop, 1)
    assert [line.split("] ")[1] for line in watched.submitted(bob)] == [f"for bob {n}" for n in range(4)]


def test_a_respawned_member_is_told_at_once(watched: WatchedFleet) -> None:
    watched.multiplexer.remove_pane(watched.pane(watched.ann))
    watched.store(watched.ann)
    loop = watched.loop()
    watched.ticks(loop, 20)  # The next try would be some ticks away.
    request = RespawnRequest(watched.ann.member_id, "Again.", str(watched.directory))
    respawn_member(watched.runtime, request, start_wait_seconds=0)
    pane = watched.pane_now(watched.ann)
    pane.program = ComposerProgram(claude_screen)
    pane.program.show(pane)
    watched.ticks(loop, 1)
    assert len(watched.submitted(watched.ann)) == 1


def test_a_paste_that_is_not_shown_is_not_repeated_with_each_tick(watched: WatchedFleet) -> None:
    pane = watched.pane_now(watched.ann)
    pane.program = ComposerProgram(claude_screen, ignore_pastes=True)
    pane.program.show(pane)
    watched.store(watched.ann)
    watched.ticks(watched.loop(), 52)
    assert len(pane.pasted) == 1
    looks = [method for method, _ in watched.multiplexer.calls].count("look")
    assert looks < 52, "a look costs a process"
    assert pane.enters == 0


def test_a_busy_agent_gets_each_line_once(watched: WatchedFleet) -> None:
    """Field case H1: five unread messages and thirty ticks are five lines."""
    for _ in range(5):
        watched.store(watched.ann)
    watched.ticks(watched.loop(), 30)
    assert len(watched.submitted(watched.ann)) == 5


def test_a_lost_enter_is_pressed_later_and_the_text_is_not_typed_again(watched: WatchedFleet) -> None:
    pane = watched.pane_now(watched.ann)
    pane.program = ComposerProgram(claude_screen, eat_enters=5)
    pane.program.show(pane)
    watched.store(watched.ann)
    loop = watched.loop()
    watched.ticks(loop, 3)
    assert len(pane.pasted) == 1
    assert len(watched.submitted(watched.ann)) == 1
    assert "does not" not in " ".join(watched.said[1:])


def test_a_line_that_could_not_be_recorded_is_not_typed_again(watched: WatchedFleet) -> None:
    number = watched.store(watched.ann)
    impatient = Database(watched.database.path, busy_timeout_seconds=0.05)
    notify = Notify(watched.runtime_with(impatient), watched.fleet_id, 5, watched.journal)
    blocker = Database(watched.database.path)
    with ExitStack() as blocked:

        def block(method: str, _pane: str) -> None:
            if method == "press_enter":
                blocked.enter_context(blocker.write())

        watched.multiplexer.before = block
        for _ in range(3):
            notify.run_once()
    assert len(watched.submitted(watched.ann)) == 1
    with watched.database.read() as conn:
        assert conn.execute("SELECT notified_at FROM messages").fetchone() == (None,)
    notify.run_once()
    with watched.database.read() as conn:
        assert conn.execute("SELECT notified_at FROM messages").fetchone() != (None,)
    assert len(watched.submitted(watched.ann)) == 1
    assert len(watched.said) == 2
    assert watched.said[0].startswith(f"member 3 is not told of message {number}: the line was typed, but")
    impatient.close()
    blocker.close()


def test_a_taken_pane_is_not_waited_for_and_not_talked_about(watched: WatchedFleet) -> None:
    watched.store(watched.ann)
    loop = watched.loop()
    with pane_lock(str(watched.directory), "tmux", watched.pane(watched.ann)):
        watched.ticks(loop, 3)
    assert (watched.submitted(watched.ann), watched.said) == ([], [])
    watched.ticks(loop, 1)
    assert len(watched.submitted(watched.ann)) == 1


def test_the_drain_ends_early_where_it_is_told_to(watched: WatchedFleet) -> None:
    for _ in range(3):
        watched.store(watched.ann)
    notify = Notify(watched.runtime, watched.fleet_id, 5, watched.journal)
    notify.run_once(lambda: False)
    assert len(watched.submitted(watched.ann)) == 1


def test_the_director_is_never_typed_at(watched: WatchedFleet) -> None:
    with watched.database.write() as conn:
        conn.execute(
            "INSERT INTO messages (from_member_id, to_member_id, created_at, status_state, status_timestamp,"
            " text) VALUES (3, 1, 't', 'input_required', 't', 'x')"
        )
    watched.ticks(watched.loop(), 3)
    assert not watched.pane_now(watched.director).touched


def test_senders_and_the_loop_at_the_same_moment(watched: WatchedFleet) -> None:
    """Field case G3: whoever comes first types; nobody types it again."""
    loop = watched.loop()

    def send(number: int) -> None:
        database = Database(watched.database.path)
        drain_for_message(watched.runtime_with(database), number)
        database.close()

    for round_number in range(30):
        sender = threading.Thread(target=send, args=(watched.store(watched.ann, f"round {round_number}"),))
        sender.start()
        watched.ticks(loop, 1)
        sender.join()
    watched.ticks(loop, 1)
    assert [line.split("] ")[1] for line in watched.submitted(watched.ann)] == [
        f"round {n}" for n in range(30)
    ]


def test_after_a_restart_of_the_server_nothing_is_typed_into_strangers(watched: WatchedFleet) -> None:
    watched.store(watched.ann)
    pane = watched.pane(watched.ann)
    watched.multiplexer.stop_server(SERVER)
    stranger = watched.multiplexer.add_pane(server="host|/run/memory/default|999", pane=pane.pane)
    watched.ticks(watched.loop(), 10)
    assert not watched.multiplexer.pane(stranger).touched
    assert len(watched.said) == 1
