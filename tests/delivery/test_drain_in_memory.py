"""Exact interleavings: what happens when the world changes between two steps of a delivery."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from tests.support.drawn import QUESTION, RULE, standin_screen, working_screen
from tests.support.memory_multiplexer import ComposerProgram, MemoryMultiplexer, MemoryPane
from tests.support.standin import BLIND
from tests.support.team import Team

from cafleet.clock import format_timestamp, utc_now
from cafleet.delivery.drain import (
    LOCK_SECONDS,
    SEND_SECONDS,
    Attempted,
    drain_fleet,
    drain_for_message,
    type_plain_line,
)
from cafleet.delivery.line import ping_line, render_line
from cafleet.delivery.pane_channel import ENTERED, NOT_SHOWN, PASTED
from cafleet.errors import DatabaseFull, MultiplexerError, MultiplexerTimeout
from cafleet.models import Notification, NotificationState
from cafleet.multiplexer.base import PaneAddress
from cafleet.multiplexer.pane_lock import pane_lock
from cafleet.runtime import Runtime

NOTIFIED = Notification(NotificationState.NOTIFIED, None)


def deferred(reason: str) -> Notification:
    return Notification(NotificationState.DEFERRED, reason)


def failed(reason: str) -> Notification:
    return Notification(NotificationState.FAILED, reason)


def skipped(reason: str) -> Notification:
    return Notification(NotificationState.SKIPPED, reason)


def standin(**options: object) -> ComposerProgram:
    return ComposerProgram(standin_screen, **options)  # type: ignore[arg-type]


def line_of(team: Team, message_id: int) -> str:
    return render_line(team.message(message_id), 200)


def note_from_long_ago(team: Team, address: PaneAddress, note: str = PASTED) -> None:
    """The pane's note as it is when nobody needs to mind it any more."""
    with pane_lock(team.runtime.config.data_directory, "tmux", address) as lock:
        lock.leave_note(note, 0.0)


def fresh_note(team: Team, address: PaneAddress, note: str) -> None:
    """The pane's note right after its holder was killed."""
    with pane_lock(team.runtime.config.data_directory, "tmux", address) as lock:
        lock.leave_note(note, 30.0)


def at_call(memory: MemoryMultiplexer, method: str, action: Callable[[], object], *, nth: int = 1) -> None:
    """Do `action` right before the nth call of `method`."""
    seen = 0

    def before(called: str, _pane: str) -> None:
        nonlocal seen
        seen += called == method
        if called == method and seen == nth:
            action()

    memory.before = before


# -- the usual way -------------------------------------------------------------------------------


@pytest.mark.parametrize("draw", [standin_screen, working_screen])
def test_a_free_pane_gets_the_line_once_and_the_stamp_after_it(
    team: Team, memory: MemoryMultiplexer, draw: Callable[[str], list[str]]
) -> None:
    address, program = memory.add_composer(ComposerProgram(draw))
    ada = team.add("ada", address)
    message_id = team.store(ada, "hi\nthere")
    stamped: list[bool] = []
    memory.before = lambda *_: stamped.append(team.is_notified(message_id))
    assert drain_for_message(team.runtime, message_id) == NOTIFIED
    assert program.submitted == [line_of(team, message_id)]
    assert program.submitted[0].endswith("] hi⏎there")
    assert [method for method, _ in memory.calls] == ["look", "paste", "press_enter"]
    assert stamped == [False, False, False]
    assert team.is_notified(message_id)
    assert team.message(message_id).status_state == "input_required"


def test_a_second_drain_finds_nothing_to_do(team: Team, memory: MemoryMultiplexer) -> None:
    address, program = memory.add_composer(standin())
    message_id = team.store(team.add("ada", address))
    assert drain_for_message(team.runtime, message_id) == NOTIFIED
    calls = len(memory.calls)
    assert drain_for_message(team.runtime, message_id) == NOTIFIED
    assert drain_fleet(team.runtime, team.fleet_id, Attempted()) == []
    assert len(memory.calls) == calls
    assert len(program.submitted) == 1


def test_a_sender_delivers_older_ones_first_and_leaves_newer_ones(
    team: Team, memory: MemoryMultiplexer
) -> None:
    address, program = memory.add_composer(standin())
    ada = team.add("ada", address)
    ids = [team.store(ada, f"number {number}") for number in range(4)]
    assert drain_for_message(team.runtime, ids[2]) == NOTIFIED
    assert program.submitted == [line_of(team, message_id) for message_id in ids[:3]]
    assert not team.is_notified(ids[3])


def test_the_text_setting_is_used(
    tmp_path_factory: pytest.TempPathFactory, memory: MemoryMultiplexer
) -> None:
    team = Team(tmp_path_factory.mktemp("team"), memory, CAFLEET_MAX_TEXT_LEN="0")
    address, program = memory.add_composer(standin())
    message_id = team.store(team.add("ada", address), "rm -rf /")
    assert drain_for_message(team.runtime, message_id) == NOTIFIED
    assert program.submitted[0].endswith("]")
    team.database.close()


def test_a_line_that_ends_in_a_completion_mark_does_not_open_a_list(
    team: Team, memory: MemoryMultiplexer
) -> None:
    address, program = memory.add_composer(standin())
    message_id = team.store(team.add("ada", address), "ask @ben")
    assert drain_for_message(team.runtime, message_id) == NOTIFIED
    assert program.submitted == [line_of(team, message_id) + " "]


# -- nothing to type -----------------------------------------------------------------------------


def test_who_is_not_typed_at(team: Team, memory: MemoryMultiplexer) -> None:
    ada, ben, cyd = team.add("ada", None), team.add("ben", None, pending=True), team.add("cyd", None)
    assert drain_for_message(team.runtime, team.store(ada)) == skipped(f"member {ada} has no pane")
    assert drain_for_message(team.runtime, team.store(ben)) == skipped(f"member {ben} has no pane yet")
    to_director = team.store(team.director, sender=ada)
    assert drain_for_message(team.runtime, to_director) == skipped(
        "the Director reads by wait, listen or poll"
    )
    own = team.store(ada, sender=ada)
    assert drain_for_message(team.runtime, own) == skipped("a message to oneself is not typed")
    late = team.store(cyd)
    team.deregister(cyd)
    assert drain_for_message(team.runtime, late) == skipped(f"member {cyd} is no longer active")
    assert drain_for_message(team.runtime, 999) == skipped("not a delivery")
    assert memory.calls == []


# -- states --------------------------------------------------------------------------------------


def in_mode(pane: MemoryPane) -> None:
    pane.mode = "copy-mode"


def in_shell(pane: MemoryPane) -> None:
    pane.shell = True


def at_question(pane: MemoryPane) -> None:
    assert isinstance(pane.program, ComposerProgram)
    pane.program.draw = lambda _: QUESTION
    pane.program.ignore_pastes = True
    pane.program.show(pane)


def with_draft(pane: MemoryPane) -> None:
    assert isinstance(pane.program, ComposerProgram)
    pane.program.composer = "please look at"
    pane.program.show(pane)


CLOSED = {
    "pane is in copy-mode": in_mode,
    "its agent has exited (a shell is there)": in_shell,
    "member 2 is at a question": at_question,
    "a draft stands in its composer": with_draft,
}


@pytest.mark.parametrize(("reason", "change"), CLOSED.items())
def test_a_closed_pane_is_not_touched(
    team: Team, memory: MemoryMultiplexer, reason: str, change: Callable[[MemoryPane], None]
) -> None:
    address, _ = memory.add_composer(standin())
    message_id = team.store(team.add("ada", address))
    change(memory.pane(address))
    assert drain_for_message(team.runtime, message_id) == deferred(reason)
    assert not memory.pane(address).touched
    assert not team.is_notified(message_id)


@pytest.mark.parametrize(("reason", "change"), CLOSED.items())
@pytest.mark.parametrize("call", ["paste", "press_enter"])
def test_what_closes_a_pane_between_two_looks_is_seen(
    team: Team, memory: MemoryMultiplexer, reason: str, change: Callable[[MemoryPane], None], call: str
) -> None:
    """Of the moment between the last look and the Enter only the modes can be told: tmux guards those."""
    if call == "press_enter" and change is not in_mode:
        return
    address, program = memory.add_composer(standin())
    message_id = team.store(team.add("ada", address))
    at_call(memory, call, lambda: change(memory.pane(address)))
    if change is with_draft:
        reason = "someone typed into its composer meanwhile"
    assert drain_for_message(team.runtime, message_id) == deferred(reason)
    assert program.submitted == []
    assert memory.pane(address).enters == 0
    assert not team.is_notified(message_id)


def test_a_dead_pane_fails(team: Team, memory: MemoryMultiplexer) -> None:
    address, _ = memory.add_composer(standin())
    message_id = team.store(team.add("ada", address))
    memory.end_program(address)
    assert drain_for_message(team.runtime, message_id) == failed("pane %0 is dead: its program has ended")
    assert not memory.pane(address).touched


@pytest.mark.parametrize("call", ["look", "paste", "press_enter"])
def test_a_pane_that_goes_between_two_steps_fails(team: Team, memory: MemoryMultiplexer, call: str) -> None:
    address, program = memory.add_composer(standin())
    message_id = team.store(team.add("ada", address))
    at_call(memory, call, lambda: memory.remove_pane(address))
    assert drain_for_message(team.runtime, message_id) == failed("pane %0 is gone")
    assert program.submitted == []
    assert not team.is_notified(message_id)


@pytest.mark.parametrize("call", ["look", "paste", "press_enter"])
def test_a_server_that_restarts_between_two_steps_gets_nothing_typed(
    team: Team, memory: MemoryMultiplexer, call: str
) -> None:
    address, _ = memory.add_composer(standin())
    message_id = team.store(team.add("ada", address))
    strangers: list[PaneAddress] = []

    def restart() -> None:
        memory.stop_server()
        strangers.append(memory.add_pane(server="host|/run/memory/default|101", pane=address.pane))

    at_call(memory, call, restart)
    assert drain_for_message(team.runtime, message_id).state is NotificationState.FAILED
    assert not memory.pane(strangers[0]).touched
    assert not team.is_notified(message_id)


@pytest.mark.parametrize("call", ["look", "paste", "press_enter"])
@pytest.mark.parametrize("error", [MultiplexerError("tmux: hard error"), MultiplexerTimeout("tmux", 5)])
def test_a_multiplexer_error_is_the_notifications_own(
    team: Team, memory: MemoryMultiplexer, call: str, error: MultiplexerError
) -> None:
    address, _ = memory.add_composer(standin())
    message_id = team.store(team.add("ada", address))
    memory.fail(call, error)
    assert drain_for_message(team.runtime, message_id) == failed(str(error))
    assert not team.is_notified(message_id)
    # Retried later, by whoever comes: the line that may be left over is finished, not typed again.
    if (call, type(error)) == ("paste", MultiplexerTimeout):
        assert drain_for_message(team.runtime, message_id) == deferred(NOT_SHOWN)
        note_from_long_ago(team, address)
    assert drain_for_message(team.runtime, message_id) == NOTIFIED
    assert len(memory.pane(address).pasted) == 1


def test_a_server_that_hangs_is_asked_once_a_drain_and_again_in_the_next(
    team: Team, memory: MemoryMultiplexer
) -> None:
    programs = []
    for name in ("ada", "ben", "cyd"):
        address, program = memory.add_composer(standin())
        team.store(team.add(name, address))
        programs.append(program)
    memory.fail("look", MultiplexerTimeout("tmux", 5))
    attempted = Attempted()
    told = [a.notification for a in drain_fleet(team.runtime, team.fleet_id, attempted)]
    assert told == [failed("tmux did not answer within 5 s")] * 3
    assert [method for method, _ in memory.calls] == ["look"]
    attempted.next_round()
    told = [a.notification for a in drain_fleet(team.runtime, team.fleet_id, attempted)]
    assert told == [NOTIFIED] * 3
    assert [len(program.submitted) for program in programs] == [1, 1, 1]


def test_an_agent_that_is_not_configured_any_more_fails_with_its_name(
    team: Team, memory: MemoryMultiplexer
) -> None:
    message_id = team.store(team.add("ada", memory.add_pane(), agent="vanished"))
    told = drain_for_message(team.runtime, message_id)
    assert told.state is NotificationState.FAILED
    assert "vanished" in (told.reason or "")


def test_a_backend_that_does_not_exist_fails(team: Team, memory: MemoryMultiplexer) -> None:
    ada = team.add("ada", memory.add_pane())
    with team.database.write() as connection:
        connection.execute("UPDATE member_placements SET backend = 'screen' WHERE member_id = ?", (ada,))

    def unknown(name: str) -> MemoryMultiplexer:
        raise MultiplexerError(f"unknown multiplexer '{name}'")

    ours = team.runtime
    runtime = Runtime(ours.config, ours.database, unknown, ours.now)
    assert drain_for_message(runtime, team.store(ada)) == failed("unknown multiplexer 'screen'")


# -- Enter ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("eaten", [1, 2])
def test_a_lost_enter_is_pressed_again_and_the_text_is_not_typed_again(
    team: Team, memory: MemoryMultiplexer, eaten: int
) -> None:
    address, program = memory.add_composer(standin(eat_enters=eaten))
    message_id = team.store(team.add("ada", address))
    assert drain_for_message(team.runtime, message_id) == NOTIFIED
    assert program.submitted == [line_of(team, message_id)]
    assert program.blank_enters == 0
    assert len(memory.pane(address).pasted) == 1


def test_three_lost_enters_are_the_end_of_it_and_the_next_drain_goes_on(
    team: Team, memory: MemoryMultiplexer
) -> None:
    address, program = memory.add_composer(standin(eat_enters=3))
    message_id = team.store(team.add("ada", address))
    told = drain_for_message(team.runtime, message_id)
    assert told == failed("its agent did not take the Enter; the line stands in its composer")
    assert memory.pane(address).enters == 3
    assert not team.is_notified(message_id)
    assert drain_for_message(team.runtime, message_id) == NOTIFIED
    assert program.submitted == [line_of(team, message_id)]
    assert len(memory.pane(address).pasted) == 1


def test_a_question_after_the_enter_is_not_answered(team: Team, memory: MemoryMultiplexer) -> None:
    address, program = memory.add_composer(standin())
    message_id = team.store(team.add("ada", address))
    program.draw = lambda composer: standin_screen(composer) if not program.submitted else QUESTION
    assert drain_for_message(team.runtime, message_id) == NOTIFIED
    assert memory.pane(address).enters == 1


def test_a_list_that_changes_the_text_gets_no_second_enter(team: Team, memory: MemoryMultiplexer) -> None:
    class Completing(ComposerProgram):
        def enter(self, pane: MemoryPane) -> None:
            self.composer += "pleted"
            self.show(pane)

    address, program = memory.add_composer(Completing(standin_screen))
    message_id = team.store(team.add("ada", address))
    told = drain_for_message(team.runtime, message_id)
    assert told.state is NotificationState.FAILED
    assert memory.pane(address).enters == 0 or memory.pane(address).enters == 1
    assert program.submitted == []


def test_an_agent_that_exits_on_the_enter_is_not_counted_as_told(
    team: Team, memory: MemoryMultiplexer
) -> None:
    class Exiting(ComposerProgram):
        def enter(self, pane: MemoryPane) -> None:
            pane.shell = True

    address, _ = memory.add_composer(Exiting(standin_screen))
    message_id = team.store(team.add("ada", address))
    assert drain_for_message(team.runtime, message_id) == failed("its agent has exited meanwhile")
    assert not team.is_notified(message_id)


# -- what the screen shows of the paste ----------------------------------------------------------


def test_a_paste_that_is_drawn_late_is_waited_for(team: Team, memory: MemoryMultiplexer) -> None:
    looks = 0

    def draw(composer: str) -> list[str]:
        return standin_screen(composer if looks >= 2 else composer[: 10 * looks])

    program = ComposerProgram(draw)
    address, _ = memory.add_composer(program)
    message_id = team.store(team.add("ada", address))

    def before(method: str, _pane: str) -> None:
        nonlocal looks
        if method == "look" and program.composer:
            looks += 1
            program.show(memory.pane(address))

    memory.before = before
    assert drain_for_message(team.runtime, message_id) == NOTIFIED
    assert len(memory.calls) == 5
    assert memory.settled[-1] > memory.settled[1], "a slow agent gets more time after the Enter, too"


def test_a_paste_that_never_shows_is_not_submitted(team: Team, memory: MemoryMultiplexer) -> None:
    address, program = memory.add_composer(standin(ignore_pastes=True))
    message_id = team.store(team.add("ada", address))
    assert drain_for_message(team.runtime, message_id) == deferred("its agent did not show the line")
    assert memory.pane(address).enters == 0
    assert program.submitted == []
    assert len(memory.calls) == 4


@pytest.mark.parametrize("width", [30, 50])
def test_a_wrapped_line_is_the_line(team: Team, memory: MemoryMultiplexer, width: int) -> None:
    def draw(composer: str) -> list[str]:
        rows = [composer[at : at + width] for at in range(0, max(1, len(composer)), width)]
        return ["", RULE, f"> {rows[0]}", *(f"  {row}" for row in rows[1:]), RULE, " ∙ ready"]

    address, program = memory.add_composer(ComposerProgram(draw))
    message_id = team.store(team.add("ada", address), "words and more words, " * 6)
    assert drain_for_message(team.runtime, message_id) == NOTIFIED
    assert len(program.submitted) == 1


def test_a_small_pane_may_show_only_the_end_of_the_line(team: Team, memory: MemoryMultiplexer) -> None:
    address, program = memory.add_composer(ComposerProgram(lambda composer: standin_screen(composer[-38:])))
    message_id = team.store(team.add("ada", address), "words and more words, " * 6)
    assert drain_for_message(team.runtime, message_id) == NOTIFIED
    assert len(program.submitted) == 1


def test_characters_that_screens_draw_differently_do_not_matter(
    team: Team, memory: MemoryMultiplexer
) -> None:
    def draw(composer: str) -> list[str]:
        return standin_screen(composer.replace("⏎", "␤").replace("👩", "").replace("\u200d", ""))

    address, program = memory.add_composer(ComposerProgram(draw))
    message_id = team.store(team.add("ada", address), "日本語\n👩\u200d👩\u200d👧 é")
    assert drain_for_message(team.runtime, message_id) == NOTIFIED
    assert program.submitted[0].endswith("日本語⏎👩\u200d👩\u200d👧 é")


# -- an agent whose composer cannot be read ------------------------------------------------------


def test_an_unknown_screen_gets_the_line_where_it_is_seen(team: Team, memory: MemoryMultiplexer) -> None:
    address, program = memory.add_composer(ComposerProgram(lambda composer: ["some program", composer]))
    message_id = team.store(team.add("ada", address, agent=BLIND))
    assert drain_for_message(team.runtime, message_id) == NOTIFIED
    assert program.submitted == [line_of(team, message_id)]
    assert memory.pane(address).enters == 1


def test_an_unknown_screen_that_does_not_show_the_line_gets_no_enter(
    team: Team, memory: MemoryMultiplexer
) -> None:
    address, _ = memory.add_composer(ComposerProgram(lambda _: ["some program"]))
    message_id = team.store(team.add("ada", address, agent=BLIND))
    assert drain_for_message(team.runtime, message_id).state is NotificationState.DEFERRED
    assert memory.pane(address).enters == 0


def test_an_unknown_screen_that_does_not_move_gets_enter_again(team: Team, memory: MemoryMultiplexer) -> None:
    address, program = memory.add_composer(
        ComposerProgram(lambda composer: ["some program", composer], eat_enters=1)
    )
    message_id = team.store(team.add("ada", address, agent=BLIND))
    assert drain_for_message(team.runtime, message_id) == NOTIFIED
    assert len(program.submitted) == 1


@pytest.mark.parametrize(("age", "typed"), [(-5, True), (0, False), (9, False), (11, True)])
def test_an_unknown_screen_soon_after_the_start_is_waited_for(
    team: Team, memory: MemoryMultiplexer, age: int, typed: bool
) -> None:
    address, program = memory.add_composer(ComposerProgram(lambda composer: [composer]))
    placed_at = format_timestamp(utc_now() - timedelta(seconds=age))
    message_id = team.store(team.add("ada", address, agent=BLIND, placed_at=placed_at))
    told = drain_for_message(team.runtime, message_id)
    assert told == (NOTIFIED if typed else deferred("its agent is still starting"))
    assert len(program.submitted) == typed


# -- left-overs ----------------------------------------------------------------------------------


def test_a_line_that_a_killed_sender_left_is_finished_and_then_ours_is_typed(
    team: Team, memory: MemoryMultiplexer
) -> None:
    address, program = memory.add_composer(standin())
    ada = team.add("ada", address)
    first, second = team.store(ada, "one"), team.store(ada, "two")
    program.composer = line_of(team, second)
    program.show(memory.pane(address))
    assert drain_for_message(team.runtime, first) == NOTIFIED
    assert program.submitted == [line_of(team, second), line_of(team, first)]
    assert team.is_notified(first)
    assert team.is_notified(second)


def test_a_left_over_of_the_message_itself_is_only_finished(team: Team, memory: MemoryMultiplexer) -> None:
    address, program = memory.add_composer(standin())
    message_id = team.store(team.add("ada", address), "words " * 60)
    program.composer = render_line(team.message(message_id), 30)  # Typed under another setting.
    program.show(memory.pane(address))
    assert drain_for_message(team.runtime, message_id) == NOTIFIED
    assert len(program.submitted) == 1
    assert memory.pane(address).pasted == []


def test_a_left_over_of_an_acked_message_is_finished_without_a_stamp(
    team: Team, memory: MemoryMultiplexer
) -> None:
    address, program = memory.add_composer(standin())
    ada = team.add("ada", address)
    old, new = team.store(ada, "old"), team.store(ada, "new")
    team.acknowledge(old)
    program.composer = line_of(team, old)
    program.show(memory.pane(address))
    assert drain_for_message(team.runtime, new) == NOTIFIED
    assert len(program.submitted) == 2
    assert not team.is_notified(old)


def test_a_left_over_for_another_member_in_the_same_pane_is_finished(
    team: Team, memory: MemoryMultiplexer
) -> None:
    address, program = memory.add_composer(standin())
    first = team.store(team.add("ada", address))
    second = team.store(team.add("ben", address))
    program.composer = line_of(team, first)
    program.show(memory.pane(address))
    assert drain_for_message(team.runtime, second) == NOTIFIED
    assert program.submitted == [line_of(team, first), line_of(team, second)]
    assert team.is_notified(first)


def test_a_left_over_that_shows_only_its_end_is_known_among_the_pending_ones(
    team: Team, memory: MemoryMultiplexer
) -> None:
    address, program = memory.add_composer(ComposerProgram(lambda composer: standin_screen(composer[-60:])))
    ada = team.add("ada", address)
    first = team.store(ada, "short")
    message_id = team.store(ada, "a body that is long enough to scroll away " * 2)
    program.composer = line_of(team, message_id)
    program.show(memory.pane(address))
    assert drain_for_message(team.runtime, message_id) == NOTIFIED
    assert program.submitted == [line_of(team, message_id), line_of(team, first)]


@pytest.mark.parametrize(
    "change", ["words behind", "words before", "another body", "another member", "no such message"]
)
def test_a_persons_draft_is_never_taken_for_a_left_over(
    team: Team, memory: MemoryMultiplexer, change: str
) -> None:
    address, program = memory.add_composer(standin())
    ada, ben = team.add("ada", address), team.add("ben", memory.add_pane())
    message_id = team.store(ada, "one")
    line = line_of(team, message_id)
    program.composer = {
        "words behind": f"{line} and mine",
        "words before": f"look: {line}",
        "another body": line.replace("] one", "] two"),
        "another member": line_of(team, team.store(ben, "one")),
        "no such message": line.replace(f"msg {message_id} ", "msg 999 "),
    }[change]
    program.show(memory.pane(address))
    assert drain_for_message(team.runtime, message_id) == deferred("a draft stands in its composer")
    assert not memory.pane(address).touched


def test_a_wake_that_was_left_over_is_finished_first(team: Team, memory: MemoryMultiplexer) -> None:
    address, program = memory.add_composer(standin())
    message_id = team.store(team.add("ada", address))
    tick = "[cafleet tick] fleet 1: 1 members: 2 ada (x, unread 1, idle 3). Follow your monitor role."
    program.composer = tick
    program.show(memory.pane(address))
    assert drain_for_message(team.runtime, message_id) == NOTIFIED
    assert program.submitted == [tick, line_of(team, message_id)]


@pytest.mark.parametrize("bodies", [["one", "two"], ["one", "two", "three"], ["one", "one"]])
def test_lines_that_were_joined_are_submitted_and_all_stamped(
    team: Team, memory: MemoryMultiplexer, bodies: list[str]
) -> None:
    """An agent showed the pastes of two senders at once: that must not bar its pane for ever."""
    address, program = memory.add_composer(standin())
    ada = team.add("ada", address)
    ids = [team.store(ada, body) for body in bodies]
    last = team.store(ada, "last")
    joined = "".join(line_of(team, message_id) for message_id in ids)
    program.composer = joined
    program.show(memory.pane(address))
    assert drain_for_message(team.runtime, last) == NOTIFIED
    assert program.submitted == [joined, line_of(team, last)]
    assert all(team.is_notified(message_id) for message_id in [*ids, last])


def test_a_line_that_was_joined_with_itself_is_submitted_once(team: Team, memory: MemoryMultiplexer) -> None:
    address, program = memory.add_composer(standin())
    message_id = team.store(team.add("ada", address))
    program.composer = line_of(team, message_id) * 2
    program.show(memory.pane(address))
    assert drain_for_message(team.runtime, message_id) == NOTIFIED
    assert len(program.submitted) == 1


@pytest.mark.parametrize("words", ["{0}{1} and mine", "{0} mine {1}", "mine {0}{1}"])
def test_words_among_joined_lines_are_a_persons(team: Team, memory: MemoryMultiplexer, words: str) -> None:
    address, program = memory.add_composer(standin())
    ada = team.add("ada", address)
    ids = [team.store(ada, "one"), team.store(ada, "two")]
    program.composer = words.format(*(line_of(team, message_id) for message_id in ids))
    program.show(memory.pane(address))
    assert drain_for_message(team.runtime, ids[0]) == deferred("a draft stands in its composer")
    assert not memory.pane(address).touched


# -- what is still to be shown -------------------------------------------------------------------


class Late(ComposerProgram):
    """Takes keys at once, and shows what they did when it is told to."""

    def __init__(self) -> None:
        super().__init__(standin_screen)
        self.shown = False

    def show(self, pane: MemoryPane) -> None:
        if not pane.rows or self.shown:
            super().show(pane)

    def catch_up(self, pane: MemoryPane) -> None:
        self.shown = True
        self.show(pane)


def test_nothing_is_pasted_behind_a_paste_that_is_still_to_be_shown(
    team: Team, memory: MemoryMultiplexer
) -> None:
    program = Late()
    address, _ = memory.add_composer(program)
    ada = team.add("ada", address)
    first, second = team.store(ada, "one"), team.store(ada, "two")
    assert drain_for_message(team.runtime, first) == deferred(NOT_SHOWN)
    for _ in range(3):
        assert drain_for_message(team.runtime, second) == deferred(NOT_SHOWN)
    assert memory.pane(address).pasted == [line_of(team, first)]
    assert memory.pane(address).enters == 0
    program.catch_up(memory.pane(address))
    assert drain_for_message(team.runtime, second) == NOTIFIED
    assert program.submitted == [line_of(team, first), line_of(team, second)]
    assert team.is_notified(first)


@pytest.mark.parametrize("plain", [False, True])
def test_a_late_paste_is_waited_for(team: Team, memory: MemoryMultiplexer, plain: bool) -> None:
    """Its sender was killed right after the paste."""
    program = Late()
    address, _ = memory.add_composer(program)
    ada = team.add("ada", address)
    first, second = team.store(ada, "one"), team.store(ada, "two")
    program.composer = line_of(team, first)
    fresh_note(team, address, PASTED)
    at_call(memory, "look", lambda: program.catch_up(memory.pane(address)), nth=3)
    if plain:
        assert type_plain_line(team.runtime, team.member(ada), "wake up") == NOTIFIED
    else:
        assert drain_for_message(team.runtime, second) == NOTIFIED
    assert program.submitted == [line_of(team, first), "wake up" if plain else line_of(team, second)]
    assert len(memory.pane(address).pasted) == 1


def test_a_paste_that_is_never_shown_is_repeated_in_the_end(team: Team, memory: MemoryMultiplexer) -> None:
    address, program = memory.add_composer(standin(ignore_pastes=True))
    message_id = team.store(team.add("ada", address))
    for _ in range(2):
        assert drain_for_message(team.runtime, message_id) == deferred(NOT_SHOWN)
    assert len(memory.pane(address).pasted) == 1
    note_from_long_ago(team, address)
    program.ignore_pastes = False
    assert drain_for_message(team.runtime, message_id) == NOTIFIED
    assert len(memory.pane(address).pasted) == 2


def test_a_paste_that_a_blind_pane_never_shows_is_not_repeated_at_once(
    team: Team, memory: MemoryMultiplexer
) -> None:
    """Each further one could stand behind the first: a pane too small for its agent's screen."""
    address, _ = memory.add_composer(standin(ignore_pastes=True))
    message_id = team.store(team.add("ada", address, agent=BLIND))
    for _ in range(3):
        assert drain_for_message(team.runtime, message_id) == deferred(NOT_SHOWN)
    assert len(memory.pane(address).pasted) == 1
    note_from_long_ago(team, address)
    assert drain_for_message(team.runtime, message_id) == deferred(NOT_SHOWN)
    assert len(memory.pane(address).pasted) == 2


def test_an_enter_that_is_still_to_be_shown_is_not_repeated(team: Team, memory: MemoryMultiplexer) -> None:
    """Its sender was killed right after the Enter: a further one would answer whatever comes next."""
    program = Late()
    address, _ = memory.add_composer(program)
    message_id = team.store(team.add("ada", address))
    program.composer = line_of(team, message_id)
    ComposerProgram.show(program, memory.pane(address))
    program.enter(memory.pane(address))
    fresh_note(team, address, ENTERED)
    at_call(memory, "look", lambda: program.catch_up(memory.pane(address)), nth=3)
    assert drain_for_message(team.runtime, message_id) == NOTIFIED
    assert memory.pane(address).enters == 0
    assert program.submitted == [line_of(team, message_id)]
    assert team.is_notified(message_id)


def test_an_enter_that_was_never_pressed_is_pressed(team: Team, memory: MemoryMultiplexer) -> None:
    """Its sender was killed right before the Enter."""
    address, program = memory.add_composer(standin())
    message_id = team.store(team.add("ada", address))
    program.composer = line_of(team, message_id)
    program.show(memory.pane(address))
    fresh_note(team, address, ENTERED)
    assert drain_for_message(team.runtime, message_id) == NOTIFIED
    assert memory.pane(address).enters == 1
    assert program.submitted == [line_of(team, message_id)]


def test_what_was_seen_through_leaves_no_note(team: Team, memory: MemoryMultiplexer) -> None:
    address, _ = memory.add_composer(standin())
    ada = team.add("ada", address)
    for number in range(3):
        assert drain_for_message(team.runtime, team.store(ada, f"{number}")) == NOTIFIED
    assert [method for method, _ in memory.calls] == ["look", "paste", "press_enter"] * 3
    with pane_lock(team.runtime.config.data_directory, "tmux", address) as lock:
        assert lock.note == ""


# -- a plain line of which only the lock knows ---------------------------------------------------


class Killed(BaseException):
    """In place of SIGKILL: nothing is tidied up."""


def die() -> None:
    raise Killed


def killed_prompt(team: Team, memory: MemoryMultiplexer, words: str) -> tuple[int, ComposerProgram]:
    """A member in whose composer `words` stand, pasted by a sender that did not live to press Enter."""
    address, program = memory.add_composer(standin())
    ada = team.add("ada", address)
    at_call(memory, "press_enter", die)
    with pytest.raises(Killed):
        type_plain_line(team.runtime, team.member(ada), words)
    memory.before = lambda _method, _pane: None
    assert program.composer.strip() == words
    return ada, program


@pytest.mark.parametrize("words", ["go on", "/compact", "ein langer Satz – mit Gedankenstrich 👍", "x" * 600])
def test_a_killed_prompt_is_finished_by_whoever_types_next(
    team: Team, memory: MemoryMultiplexer, words: str
) -> None:
    ada, program = killed_prompt(team, memory, words)
    message_id = team.store(ada, "one")
    assert drain_for_message(team.runtime, message_id) == NOTIFIED
    assert [line.strip() for line in program.submitted] == [words, line_of(team, message_id)]


def test_a_killed_prompt_that_is_repeated_is_one_turn(team: Team, memory: MemoryMultiplexer) -> None:
    ada, program = killed_prompt(team, memory, "go on")
    assert type_plain_line(team.runtime, team.member(ada), "go on") == NOTIFIED
    assert program.submitted == ["go on"]
    assert type_plain_line(team.runtime, team.member(ada), "go on") == NOTIFIED
    assert program.submitted == ["go on", "go on"]


def test_a_prompt_that_is_shown_late_is_no_persons_draft(team: Team, memory: MemoryMultiplexer) -> None:
    program = Late()
    address, _ = memory.add_composer(program)
    ada = team.add("ada", address)
    assert type_plain_line(team.runtime, team.member(ada), "go on") == deferred(NOT_SHOWN)
    program.catch_up(memory.pane(address))
    message_id = team.store(ada, "one")
    assert drain_for_message(team.runtime, message_id) == NOTIFIED
    assert program.submitted == ["go on", line_of(team, message_id)]


def test_a_prompt_whose_enters_were_lost_is_finished(team: Team, memory: MemoryMultiplexer) -> None:
    address, program = memory.add_composer(standin(eat_enters=3))
    ada = team.add("ada", address)
    assert type_plain_line(team.runtime, team.member(ada), "go on").state is NotificationState.FAILED
    message_id = team.store(ada, "one")
    assert drain_for_message(team.runtime, message_id) == NOTIFIED
    assert program.submitted == ["go on", line_of(team, message_id)]


def test_a_killed_prompt_that_a_person_went_on_with_is_theirs(team: Team, memory: MemoryMultiplexer) -> None:
    ada, program = killed_prompt(team, memory, "go on")
    (address,) = (pane.address for pane in memory.panes(team.member(ada).placement.mux_server or ""))  # type: ignore[union-attr]
    pane = memory.pane(address)
    note_from_long_ago(team, address)
    program.composer = "go on with the tests"
    program.show(pane)
    message_id = team.store(ada, "one")
    assert drain_for_message(team.runtime, message_id) == deferred("a draft stands in its composer")
    assert pane.enters == 0


@pytest.mark.parametrize("meanwhile", ["", "something else"])
def test_the_words_of_a_prompt_that_was_submitted_are_a_persons(
    team: Team, memory: MemoryMultiplexer, meanwhile: str
) -> None:
    """Seen to have left the composer once, they are nobody's but who types them anew."""
    ada, program = killed_prompt(team, memory, "go on")
    (address,) = (pane.address for pane in memory.panes(team.member(ada).placement.mux_server or ""))  # type: ignore[union-attr]
    pane = memory.pane(address)
    note_from_long_ago(team, address)
    held = deferred("a draft stands in its composer")
    program.composer = meanwhile
    program.show(pane)
    assert drain_for_message(team.runtime, team.store(ada, "one")) == (held if meanwhile else NOTIFIED)
    program.composer = "go on"
    program.show(pane)
    assert drain_for_message(team.runtime, team.store(ada, "two")) == held
    assert "go on" not in program.submitted


# -- revalidation and stamps ---------------------------------------------------------------------


def test_an_ack_while_the_line_is_typed_counts_as_notified(team: Team, memory: MemoryMultiplexer) -> None:
    address, _ = memory.add_composer(standin())
    message_id = team.store(team.add("ada", address))
    other = team.another_database()
    at_call(memory, "press_enter", lambda: team.acknowledge(message_id, other))
    assert drain_for_message(team.runtime, message_id) == NOTIFIED
    assert not team.is_notified(message_id)
    assert team.message(message_id).status_state == "completed"
    other.close()


def test_no_transaction_is_open_while_a_line_is_typed(team: Team, memory: MemoryMultiplexer) -> None:
    address, _ = memory.add_composer(standin())
    ada = team.add("ada", address)
    message_id = team.store(ada)
    other = team.another_database()

    def write(method: str, _pane: str) -> None:
        with other.write() as connection:
            connection.execute("UPDATE fleets SET name = name || 'x'")

    memory.before = write
    assert drain_for_message(team.runtime, message_id) == NOTIFIED
    other.close()


def test_a_stamp_that_the_database_refuses_is_told_and_the_line_is_not_typed_again(
    team: Team, memory: MemoryMultiplexer
) -> None:
    address, program = memory.add_composer(standin())
    message_id = team.store(team.add("ada", address))
    with team.database.write() as connection:
        connection.execute(
            "CREATE TRIGGER full BEFORE UPDATE OF notified_at ON messages "
            "BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
    attempted = Attempted()
    for _ in range(3):
        attempted.next_round()
        (outcome,) = drain_fleet(team.runtime, team.fleet_id, attempted)
        assert outcome.notification.state is NotificationState.FAILED
        assert "typed" in (outcome.notification.reason or "")
    assert len(program.submitted) == 1
    with team.database.write() as connection:
        connection.execute("DROP TRIGGER full")
    attempted.next_round()
    (outcome,) = drain_fleet(team.runtime, team.fleet_id, attempted)
    assert outcome.notification == NOTIFIED
    assert team.is_notified(message_id)
    assert len(program.submitted) == 1


def test_nothing_is_typed_where_it_could_not_be_stamped(team: Team, memory: MemoryMultiplexer) -> None:
    """A sandboxed waiter that may only read the file would repeat every line."""
    address, _ = memory.add_composer(standin())
    message_id = team.store(team.add("ada", address))
    with team.database.write() as connection:
        connection.execute("PRAGMA query_only = ON")
    told = drain_for_message(team.runtime, message_id)
    assert told.state is NotificationState.FAILED
    assert "read-only" in (told.reason or "")
    assert not memory.pane(address).touched


# -- a whole fleet -------------------------------------------------------------------------------


def test_a_sender_stops_at_an_older_line_that_failed(team: Team, memory: MemoryMultiplexer) -> None:
    """Else its own line would overtake the older one."""
    address, program = memory.add_composer(standin())
    ada = team.add("ada", address)
    older, own = team.store(ada, "older"), team.store(ada, "own")
    memory.fail("look", MultiplexerError("told to fail"))
    assert drain_for_message(team.runtime, own) == failed("told to fail")
    assert not memory.pane(address).touched
    assert drain_for_message(team.runtime, own) == NOTIFIED
    assert program.submitted == [line_of(team, older), line_of(team, own)]


def test_one_bad_pane_does_not_spoil_the_others(team: Team, memory: MemoryMultiplexer) -> None:
    good, good_program = memory.add_composer(standin())
    dead, _ = memory.add_composer(standin())
    asking, asking_program = memory.add_composer(standin())
    members = {
        name: team.add(name, address)
        for name, address in [("good", good), ("dead", dead), ("asking", asking)]
    }
    lost = team.add("lost", PaneAddress("host|/gone|7", "main", "@0", "%0"))
    memory.end_program(dead)
    at_question(memory.pane(asking))
    ids = {name: [team.store(member), team.store(member)] for name, member in members.items()}
    lost_id = team.store(lost)
    attempts = drain_fleet(team.runtime, team.fleet_id, Attempted())
    told = {attempt.message_id: attempt.notification.state.value for attempt in attempts}
    assert told == {
        ids["good"][0]: "notified",
        ids["good"][1]: "notified",
        ids["dead"][0]: "failed",
        ids["asking"][0]: "deferred",
        lost_id: "failed",
    }
    assert len(good_program.submitted) == 2
    assert asking_program.submitted == []


def test_an_invocation_attempts_each_message_once_and_the_next_one_again(
    team: Team, memory: MemoryMultiplexer
) -> None:
    address, program = memory.add_composer(standin())
    message_id = team.store(team.add("ada", address))
    in_mode(memory.pane(address))
    attempted = Attempted()
    assert len(drain_fleet(team.runtime, team.fleet_id, attempted)) == 1
    assert drain_fleet(team.runtime, team.fleet_id, attempted) == []
    memory.pane(address).mode = ""
    attempted.next_round()
    assert [a.message_id for a in drain_fleet(team.runtime, team.fleet_id, attempted)] == [message_id]
    assert len(program.submitted) == 1


def test_one_member_can_be_left_out(team: Team, memory: MemoryMultiplexer) -> None:
    address, _ = memory.add_composer(standin())
    ada = team.add("ada", address)
    team.store(ada)
    assert drain_fleet(team.runtime, team.fleet_id, Attempted(), skip_members=[ada]) == []
    assert memory.calls == []


# -- the lock ------------------------------------------------------------------------------------


def test_a_pane_whose_lock_is_taken_is_busy_and_not_attempted(team: Team, memory: MemoryMultiplexer) -> None:
    address, _ = memory.add_composer(standin())
    message_id = team.store(team.add("ada", address))
    attempted = Attempted()
    with pane_lock(team.runtime.config.data_directory, "tmux", address):
        (outcome,) = drain_fleet(team.runtime, team.fleet_id, attempted, lock_seconds=0)
    assert outcome.notification == deferred("pane is busy")
    assert not outcome.touched
    assert memory.calls == []
    assert [a.message_id for a in drain_fleet(team.runtime, team.fleet_id, attempted)] == [message_id]


def test_a_lock_that_cannot_be_made_fails_the_notification_only(
    team: Team, memory: MemoryMultiplexer
) -> None:
    address, _ = memory.add_composer(standin())
    message_id = team.store(team.add("ada", address))
    (team.directory / "locks").write_text("in the way")
    told = drain_for_message(team.runtime, message_id)
    assert told.state is NotificationState.FAILED
    assert "lock" in (told.reason or "")
    assert memory.calls == []


class Clock:
    """Seconds that pass only when they are told to."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self.asked: list[Callable[[], object]] = []
        """What else happens when the time is asked for, one after the other."""

    def __call__(self) -> float:
        if self.asked:
            self.asked.pop(0)()
        return self.seconds

    def pass_by(self, seconds: float) -> None:
        self.seconds += seconds


def test_a_send_types_others_lines_for_a_limited_time(team: Team, memory: MemoryMultiplexer) -> None:
    address, program = memory.add_composer(standin())
    ada = team.add("ada", address)
    ids = [team.store(ada, f"number {number}") for number in range(20)]
    clock = Clock()
    memory.before = lambda method, _: clock.pass_by(1.0 if method == "paste" else 0.0)
    told = drain_for_message(team.runtime, ids[-1], monotonic=clock)
    assert told == deferred("pane is busy")
    typed = int(SEND_SECONDS)
    assert program.submitted == [line_of(team, message_id) for message_id in ids[:typed]]
    assert not team.is_notified(ids[-1])
    drain_fleet(team.runtime, team.fleet_id, Attempted())
    assert program.submitted == [line_of(team, message_id) for message_id in ids]


def test_a_send_waits_for_the_lock_for_a_limited_time(team: Team, memory: MemoryMultiplexer) -> None:
    address, _ = memory.add_composer(standin())
    message_id = team.store(team.add("ada", address))
    clock = Clock()
    clock.asked = [lambda: None, lambda: None, lambda: clock.pass_by(LOCK_SECONDS)]
    with pane_lock(team.runtime.config.data_directory, "tmux", address):
        assert drain_for_message(team.runtime, message_id, monotonic=clock) == deferred("pane is busy")
    assert clock.asked == [], "the lock was waited for more than once"
    assert memory.calls == []


def test_a_send_ends_once_another_has_typed_its_line(team: Team, memory: MemoryMultiplexer) -> None:
    """Not only once the other, which has many more to type, lets go of the pane."""
    address, _ = memory.add_composer(standin())
    ada = team.add("ada", address)
    team.store(ada, "older")
    message_id = team.store(ada)
    clock, other = Clock(), team.another_database()

    def stamp() -> None:
        with other.write() as connection:
            connection.execute("UPDATE messages SET notified_at = created_at")

    clock.asked = [lambda: None, stamp]
    with pane_lock(team.runtime.config.data_directory, "tmux", address):
        assert drain_for_message(team.runtime, message_id, monotonic=clock) == NOTIFIED
    assert clock.seconds == 1000.0
    assert memory.calls == []
    other.close()


# -- plain lines ---------------------------------------------------------------------------------


def test_a_plain_line_is_typed_like_a_notification(team: Team, memory: MemoryMultiplexer) -> None:
    address, program = memory.add_composer(standin())
    ada = team.add("ada", address)
    assert type_plain_line(team.runtime, team.member(ada), "do\nthis \x1b[31mnow") == NOTIFIED
    assert program.submitted == ["do⏎this now"]


@pytest.mark.parametrize(("reason", "change"), CLOSED.items())
def test_a_plain_line_waits_for_a_free_pane(
    team: Team, memory: MemoryMultiplexer, reason: str, change: Callable[[MemoryPane], None]
) -> None:
    address, _ = memory.add_composer(standin())
    ada = team.add("ada", address)
    change(memory.pane(address))
    assert type_plain_line(team.runtime, team.member(ada), "wake up") == deferred(reason)
    assert not memory.pane(address).touched


def test_a_plain_line_needs_a_member_with_the_same_pane(team: Team, memory: MemoryMultiplexer) -> None:
    address, _ = memory.add_composer(standin())
    unplaced, moved, gone = team.add("ada", None), team.add("ben", address), team.add("cyd", address)
    before = {member: team.member(member) for member in (unplaced, moved, gone)}
    team.move(moved, memory.add_pane())
    team.deregister(gone)
    assert type_plain_line(team.runtime, before[unplaced], "x") == skipped(f"member {unplaced} has no pane")
    assert type_plain_line(team.runtime, before[moved], "x") == deferred("its pane has changed meanwhile")
    assert type_plain_line(team.runtime, before[gone], "x") == skipped(f"member {gone} is no longer active")
    assert memory.calls == []


def test_a_plain_line_finishes_a_left_over_first(team: Team, memory: MemoryMultiplexer) -> None:
    address, program = memory.add_composer(standin())
    ada = team.add("ada", address)
    message_id = team.store(ada)
    program.composer = line_of(team, message_id)
    program.show(memory.pane(address))
    assert type_plain_line(team.runtime, team.member(ada), "next") == NOTIFIED
    assert program.submitted == [line_of(team, message_id), "next"]
    assert team.is_notified(message_id)


def test_a_ping_that_was_left_over_is_not_typed_twice(team: Team, memory: MemoryMultiplexer) -> None:
    address, program = memory.add_composer(standin())
    ada = team.add("ada", address)
    program.composer = ping_line(ada)
    program.show(memory.pane(address))
    assert type_plain_line(team.runtime, team.member(ada), ping_line(ada)) == NOTIFIED
    assert program.submitted == [ping_line(ada)]


def test_a_busy_or_broken_pane_is_told_for_a_plain_line_too(team: Team, memory: MemoryMultiplexer) -> None:
    address, _ = memory.add_composer(standin())
    ada = team.member(team.add("ada", address))
    with pane_lock(team.runtime.config.data_directory, "tmux", address):
        assert type_plain_line(team.runtime, ada, "x", lock_seconds=0) == deferred("pane is busy")
    memory.fail("paste", DatabaseFull("x"))  # type: ignore[arg-type]
    assert type_plain_line(team.runtime, ada, "x").state is NotificationState.FAILED
