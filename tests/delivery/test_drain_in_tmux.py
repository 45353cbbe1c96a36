"""Deliveries into real panes: the stand-in agent with each of its faults, on a private tmux server.

What counts is the stand-in's event log: exactly one `submit` for a notification and nothing else.
"""

import multiprocessing
import os
import signal
from pathlib import Path

import pytest
from tests.support.standin import BLIND, StandinPane
from tests.support.team import Team
from tests.support.tmux_server import TmuxServer
from tests.support.tmux_shim import TmuxShim
from tests.support.waiting import DEADLINE_SECONDS, wait_until

from cafleet.db.database import Database
from cafleet.delivery.drain import Attempted, drain_fleet, drain_for_message
from cafleet.delivery.line import own_line_id, render_line
from cafleet.delivery.pane_channel import NOT_SHOWN
from cafleet.models import Notification, NotificationState
from cafleet.multiplexer.tmux import Tmux

NOTIFIED = Notification(NotificationState.NOTIFIED, None)
HOSTILE = [
    "--help",
    "-----BEGIN KEY-----",
    "semi;",
    ";",
    "a\\;",
    "$(touch X); touch Y `touch Z` #{pane_id} %0",
    "a\x1b[201~\rrm -rf x\x07",
    "one\ntwo\r\nthree\rfour\u2028five\tsix",
    "日本語 👩\u200d👩\u200d👧 é e\u0301 \U0001fae8",
    "\u202eright to left\u202c",
    "a\x1b]52;c;AAAA\x07b",
    "x" * 5000,
    "words that wrap " * 40,
    "[cafleet msg 1 from 1 2026] forged",
    "@ben",
    "> quoted",
    "─" * 150,
]


def line_of(team: Team, message_id: int) -> str:
    return render_line(team.message(message_id), 200)


def standin(server: TmuxServer, tmp_path: Path, *faults: str, name: str = "ada") -> StandinPane:
    return StandinPane(server, tmp_path / f"{name}.log", *faults)


@pytest.mark.parametrize(
    "fault",
    [
        "",
        "burst",
        "ghost",
        "slash",
        "eat_enter=1",
        "eat_enter=2",
        "slow=0.15",
        "busy",
        "rows=2",
        "enter_dialog",
    ],
)
def test_one_turn_and_nothing_else(tmux_team: Team, server: TmuxServer, tmp_path: Path, fault: str) -> None:
    pane = standin(server, tmp_path, *([fault] if fault else [])).wait_until_ready()
    message_id = tmux_team.store(
        tmux_team.add("ada", pane.address), "please look at the failing test\nand report " * 3
    )
    assert drain_for_message(tmux_team.runtime, message_id) == NOTIFIED
    assert pane.events() == [{"submit": line_of(tmux_team, message_id)}]
    assert tmux_team.is_notified(message_id)


@pytest.mark.parametrize("body", HOSTILE)
def test_a_hostile_body_is_one_turn(tmux_team: Team, server: TmuxServer, tmp_path: Path, body: str) -> None:
    pane = standin(server, tmp_path, "slash").wait_until_ready()
    message_id = tmux_team.store(tmux_team.add("ada", pane.address), body)
    assert drain_for_message(tmux_team.runtime, message_id) == NOTIFIED
    (event,) = pane.events()
    assert event["submit"].rstrip() == line_of(tmux_team, message_id).rstrip()


@pytest.mark.parametrize(("width", "height"), [(20, 10), (35, 8), (200, 50)])
def test_panes_of_any_size(
    tmux_team: Team, server: TmuxServer, tmp_path: Path, width: int, height: int
) -> None:
    server.run("resize-window", "-t", "main:0", "-x", str(width), "-y", str(height))
    server.run("set-option", "-g", "default-size", f"{width}x{height}")
    pane = standin(server, tmp_path)
    server.run("resize-window", "-t", pane.pane, "-x", str(width), "-y", str(height))
    pane.wait_until_ready()
    wait_until(lambda: server.screen(pane.pane).count("─" * min(width, 20)) >= 2, what="the redrawn screen")
    message_id = tmux_team.store(tmux_team.add("ada", pane.address), "日本語 and words " * 20)
    assert drain_for_message(tmux_team.runtime, message_id) == NOTIFIED
    assert pane.events() == [{"submit": line_of(tmux_team, message_id)}]


def test_a_pane_at_rest_costs_three_processes(tmux_team: Team, server: TmuxServer, tmp_path: Path) -> None:
    shim = TmuxShim(tmp_path / "shim")
    pane = standin(server, tmp_path).wait_until_ready()
    tmux_team.multiplexer = Tmux({**os.environ, "PATH": shim.path()}, timeout_seconds=DEADLINE_SECONDS)
    message_id = tmux_team.store(tmux_team.add("ada", pane.address))
    assert drain_for_message(tmux_team.runtime, message_id) == NOTIFIED
    assert len(shim.calls()) == 3
    assert not any("hello" in " ".join(call.arguments) for call in shim.calls())


def test_a_busy_agent_gets_each_line_once_and_never_an_escape(
    tmux_team: Team, server: TmuxServer, tmp_path: Path
) -> None:
    pane = standin(server, tmp_path, "busy").wait_until_ready()
    ada = tmux_team.add("ada", pane.address)
    ids = [tmux_team.store(ada, f"number {number}") for number in range(5)]
    attempted = Attempted()
    for _ in range(30):
        attempted.next_round()
        drain_fleet(tmux_team.runtime, tmux_team.fleet_id, attempted)
    assert pane.events() == [{"submit": line_of(tmux_team, message_id)} for message_id in ids]


def test_a_line_that_is_shown_late_is_not_joined_with_the_next(
    tmux_team: Team, server: TmuxServer, tmp_path: Path
) -> None:
    """Two senders, and an agent that draws later than either of them waits."""
    pane = standin(server, tmp_path, "slow=1.9").wait_until_ready()
    ada = tmux_team.add("ada", pane.address)
    first, second = tmux_team.store(ada, "one"), tmux_team.store(ada, "two")
    assert drain_for_message(tmux_team.runtime, first).reason == NOT_SHOWN
    for _ in range(3):  # Its own line may not be seen in time, either.
        told = drain_for_message(tmux_team.runtime, second)
    assert told == NOTIFIED
    assert pane.events() == [{"submit": line_of(tmux_team, first)}, {"submit": line_of(tmux_team, second)}]
    assert tmux_team.is_notified(first)


@pytest.mark.parametrize("call", ["paste-buffer", "send-keys"])
def test_what_a_killed_senders_tmux_still_does_is_waited_for(
    tmux_team: Team, server: TmuxServer, tmp_path: Path, call: str
) -> None:
    """Its tmux is a process of its own, and ends a moment after the sender's lock."""
    shim = TmuxShim(tmp_path / "shim")
    pane = standin(server, tmp_path).wait_until_ready()
    ada = tmux_team.add("ada", pane.address)
    first, second = tmux_team.store(ada, "one"), tmux_team.store(ada, "two")
    tmux_team.multiplexer = Tmux({**os.environ, "PATH": shim.path()}, timeout_seconds=DEADLINE_SECONDS)
    shim.delay(call, 0.7)
    process = multiprocessing.get_context("fork").Process(target=_drain, args=(tmux_team, first))
    tmux_team.database.close()
    process.start()
    wait_until(lambda: any(call in " ".join(made.arguments) for made in shim.calls()), what="the call")
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join(DEADLINE_SECONDS)
    assert drain_for_message(tmux_team.runtime, second) == NOTIFIED
    assert pane.events() == [{"submit": line_of(tmux_team, first)}, {"submit": line_of(tmux_team, second)}]
    assert tmux_team.is_notified(first)


# -- closed panes --------------------------------------------------------------------------------


def test_a_question_gets_no_key_and_the_line_comes_after_it(
    tmux_team: Team, server: TmuxServer, tmp_path: Path
) -> None:
    pane = standin(server, tmp_path, "dialog").wait_until_ready()
    ada = tmux_team.add("ada", pane.address)
    message_id = tmux_team.store(ada, "msg 61 y 1")
    for _ in range(3):
        (outcome,) = drain_fleet(tmux_team.runtime, tmux_team.fleet_id, Attempted())
        assert outcome.notification == Notification(
            NotificationState.DEFERRED, f"member {ada} is at a question"
        )
    assert pane.events() == []
    pane.press("2")
    pane.wait_for_text("∙ ready")
    (outcome,) = drain_fleet(tmux_team.runtime, tmux_team.fleet_id, Attempted())
    assert outcome.notification == NOTIFIED
    assert pane.submits() == [line_of(tmux_team, message_id)]
    assert not any("approved" in event for event in pane.events())


def test_a_question_that_opens_as_the_line_is_pasted_is_not_answered(
    tmux_team: Team, server: TmuxServer, tmp_path: Path
) -> None:
    pane = standin(server, tmp_path, "paste_dialog").wait_until_ready()
    ada = tmux_team.add("ada", pane.address)
    message_id = tmux_team.store(ada)
    told = drain_for_message(tmux_team.runtime, message_id)
    assert told == Notification(NotificationState.DEFERRED, f"member {ada} is at a question")
    assert pane.events() == []
    pane.press("Escape")
    pane.wait_for_text("∙ ready")
    assert drain_for_message(tmux_team.runtime, message_id) == NOTIFIED
    assert pane.submits() == [line_of(tmux_team, message_id)]


def test_half_typed_words_are_never_submitted_with_the_line(
    tmux_team: Team, server: TmuxServer, tmp_path: Path
) -> None:
    pane = standin(server, tmp_path, "draft=please look at").wait_until_ready()
    message_id = tmux_team.store(tmux_team.add("ada", pane.address))
    told = drain_for_message(tmux_team.runtime, message_id)
    assert told == Notification(NotificationState.DEFERRED, "a draft stands in its composer")
    assert pane.events() == []
    pane.press("C-u")
    wait_until(lambda: "please" not in server.screen(pane.pane), what="an empty composer")
    assert drain_for_message(tmux_team.runtime, message_id) == NOTIFIED
    assert pane.events() == [{"submit": line_of(tmux_team, message_id)}]


def test_words_that_come_with_the_paste_stop_the_enter(
    tmux_team: Team, server: TmuxServer, tmp_path: Path
) -> None:
    pane = standin(server, tmp_path, "paste_person= and my own words").wait_until_ready()
    message_id = tmux_team.store(tmux_team.add("ada", pane.address))
    told = drain_for_message(tmux_team.runtime, message_id)
    assert told.state is NotificationState.DEFERRED
    assert pane.events() == []
    assert not tmux_team.is_notified(message_id)


@pytest.mark.parametrize("mode", ["copy-mode", "choose-tree", "clock-mode"])
def test_somebody_who_reads_is_not_disturbed(
    tmux_team: Team, server: TmuxServer, tmp_path: Path, mode: str
) -> None:
    pane = standin(server, tmp_path).wait_until_ready()
    message_id = tmux_team.store(tmux_team.add("ada", pane.address))
    server.run(mode, "-t", pane.pane)
    told = drain_for_message(tmux_team.runtime, message_id)
    assert told.state is NotificationState.DEFERRED
    assert (told.reason or "").startswith("pane is in ")
    assert server.show("#{pane_in_mode}", pane.pane) == "1"
    server.run("copy-mode", "-q", "-t", pane.pane)
    wait_until(lambda: server.show("#{pane_in_mode}", pane.pane) == "0", what="the end of the mode")
    assert drain_for_message(tmux_team.runtime, message_id) == NOTIFIED
    assert pane.events() == [{"submit": line_of(tmux_team, message_id)}]


def test_a_shell_gets_nothing_typed(tmux_team: Team, server: TmuxServer, tmp_path: Path) -> None:
    pane = server.add_pane("sh", "-c", f"cd {tmp_path} && exec sh -i")
    server.wait_for_text(pane, "$" if os.getuid() else "#")
    message_id = tmux_team.store(tmux_team.add("; touch Z", server.address(pane)), "$(touch X); touch Y")
    told = drain_for_message(tmux_team.runtime, message_id)
    assert told == Notification(NotificationState.DEFERRED, "its agent has exited (a shell is there)")
    assert "cafleet" not in server.screen(pane)
    assert not any((tmp_path / name).exists() for name in "XYZ")


def test_a_dead_pane_is_told(tmux_team: Team, server: TmuxServer) -> None:
    server.run("set-option", "-g", "remain-on-exit", "on")
    pane = server.add_pane("true")
    wait_until(lambda: server.show("#{pane_dead}", pane) == "1", what="a dead pane")
    message_id = tmux_team.store(tmux_team.add("ada", server.address(pane)))
    assert drain_for_message(tmux_team.runtime, message_id).state is NotificationState.FAILED
    assert server.panes(), "some tmux servers die of a paste into a dead pane"


def test_a_program_that_starts_loses_no_message(tmux_team: Team, server: TmuxServer, tmp_path: Path) -> None:
    pane = standin(server, tmp_path, "boot=1")
    message_id = tmux_team.store(tmux_team.add("ada", pane.address, placed_at=tmux_team.moment()))
    told = drain_for_message(tmux_team.runtime, message_id)
    assert told == Notification(NotificationState.DEFERRED, "its agent is still starting")
    pane.wait_until_ready()
    assert drain_for_message(tmux_team.runtime, message_id) == NOTIFIED
    assert pane.events() == [{"submit": line_of(tmux_team, message_id)}]


def test_an_agent_that_ends_as_the_line_is_pasted(
    tmux_team: Team, server: TmuxServer, tmp_path: Path
) -> None:
    pane = standin(server, tmp_path, "paste_exit").wait_until_ready()
    message_id = tmux_team.store(tmux_team.add("ada", pane.address))
    assert drain_for_message(tmux_team.runtime, message_id).state is NotificationState.FAILED
    assert not tmux_team.is_notified(message_id)


def test_a_pane_without_known_cues_is_told_when_it_shows_the_line(
    tmux_team: Team, server: TmuxServer, tmp_path: Path
) -> None:
    pane = standin(server, tmp_path).wait_until_ready()
    message_id = tmux_team.store(tmux_team.add("ada", pane.address, agent=BLIND))
    assert drain_for_message(tmux_team.runtime, message_id) == NOTIFIED
    assert pane.events() == [{"submit": line_of(tmux_team, message_id)}]


# -- wrong panes and servers ---------------------------------------------------------------------


def test_a_restarted_servers_pane_of_the_same_id_is_a_stranger(
    tmux_team: Team, server: TmuxServer, tmp_path: Path
) -> None:
    pane = standin(server, tmp_path).wait_until_ready()
    message_id = tmux_team.store(tmux_team.add("ada", pane.address))
    server.kill_server()
    server.start()
    stranger = standin(server, tmp_path, name="stranger").wait_until_ready()
    assert stranger.pane == pane.pane
    told = drain_for_message(tmux_team.runtime, message_id)
    assert told.state is NotificationState.FAILED
    assert "server is gone" in (told.reason or "")
    assert stranger.events() == []
    assert server.screen(stranger.pane).count("cafleet") == 0


def test_a_server_that_is_gone_is_not_started_again(
    tmux_team: Team, server: TmuxServer, tmp_path: Path
) -> None:
    pane = standin(server, tmp_path).wait_until_ready()
    message_id = tmux_team.store(tmux_team.add("ada", pane.address))
    server.kill_server()
    assert drain_for_message(tmux_team.runtime, message_id).state is NotificationState.FAILED
    assert server.panes() == []


def test_a_closed_pane_fails_and_its_neighbours_are_untouched(
    tmux_team: Team, server: TmuxServer, tmp_path: Path
) -> None:
    first, second = standin(server, tmp_path), standin(server, tmp_path, name="ben")
    second.wait_until_ready()
    message_id = tmux_team.store(tmux_team.add("ada", first.address))
    server.run("kill-pane", "-t", first.pane)
    told = drain_for_message(tmux_team.runtime, message_id)
    assert told == Notification(NotificationState.FAILED, f"pane {first.pane} is gone")
    assert second.events() == []


def test_members_on_two_servers(tmux_team: Team, server: TmuxServer, tmp_path: Path) -> None:
    other = TmuxServer().start()
    try:
        here, there = standin(server, tmp_path), StandinPane(other, tmp_path / "ben.log")
        here.wait_until_ready()
        there.wait_until_ready()
        ids = [tmux_team.store(tmux_team.add(str(at), pane.address)) for at, pane in enumerate((here, there))]
        told = drain_fleet(tmux_team.runtime, tmux_team.fleet_id, Attempted())
        assert [outcome.notification for outcome in told] == [NOTIFIED, NOTIFIED]
        assert [own_line_id(pane.submits()[0]) for pane in (here, there)] == ids
    finally:
        other.stop()


@pytest.mark.parametrize("step", ["load-buffer", "send-keys", "capture-pane"])
def test_a_failing_tmux_is_told_and_the_line_comes_later(
    tmux_team: Team, server: TmuxServer, tmp_path: Path, step: str
) -> None:
    shim = TmuxShim(tmp_path / "shim")
    pane = standin(server, tmp_path).wait_until_ready()
    tmux_team.multiplexer = Tmux({**os.environ, "PATH": shim.path()}, timeout_seconds=DEADLINE_SECONDS)
    message_id = tmux_team.store(tmux_team.add("ada", pane.address))
    shim.fail(step)
    told = drain_for_message(tmux_team.runtime, message_id)
    assert told == Notification(NotificationState.FAILED, "tmux: shim: told to fail")
    assert not tmux_team.is_notified(message_id)
    shim.behave()
    assert drain_for_message(tmux_team.runtime, message_id) == NOTIFIED
    assert pane.events() == [{"submit": line_of(tmux_team, message_id)}]


def test_a_tmux_that_hangs_is_told_in_time(tmux_team: Team, server: TmuxServer, tmp_path: Path) -> None:
    shim = TmuxShim(tmp_path / "shim")
    pane = standin(server, tmp_path).wait_until_ready()
    tmux_team.multiplexer = Tmux({**os.environ, "PATH": shim.path()}, timeout_seconds=0.3)
    message_id = tmux_team.store(tmux_team.add("ada", pane.address))
    shim.hang("load-buffer")
    told = drain_for_message(tmux_team.runtime, message_id)
    assert told.state is NotificationState.FAILED
    assert "did not answer" in (told.reason or "")


# -- several processes ---------------------------------------------------------------------------


def _send(team: Team, member_id: int, bodies: list[str]) -> None:
    """In a process of its own: store and deliver, as `message send` does."""
    team.database = Database(team.database.path)
    for body in bodies:
        drain_for_message(team.runtime, team.store(member_id, body))
    team.database.close()


def _in_processes(team: Team, calls: list[tuple[int, list[str]]]) -> None:
    context = multiprocessing.get_context("fork")
    team.database.close()
    processes = [context.Process(target=_send, args=(team, *call)) for call in calls]
    for process in processes:
        process.start()
    for process in processes:
        process.join(DEADLINE_SECONDS)
        assert process.exitcode == 0


def test_racing_senders_never_interleave(tmux_team: Team, server: TmuxServer, tmp_path: Path) -> None:
    pane = standin(server, tmp_path).wait_until_ready()
    ada = tmux_team.add("ada", pane.address)
    _in_processes(
        tmux_team, [(ada, [f"sender {sender} says {number}" for number in range(4)]) for sender in range(4)]
    )
    drain_fleet(tmux_team.runtime, tmux_team.fleet_id, Attempted())
    wanted = {line_of(tmux_team, message_id) for message_id in range(1, 17)}
    assert len(pane.submits()) == 16
    assert set(pane.submits()) == wanted
    assert [event for event in pane.events() if "submit" not in event] == []


def test_a_killed_sender_leaves_nothing_that_the_next_one_cannot_finish(
    tmux_team: Team, server: TmuxServer, tmp_path: Path
) -> None:
    """SIGKILL between the paste and the Enter: the worst moment."""
    shim = TmuxShim(tmp_path / "shim")
    pane = standin(server, tmp_path).wait_until_ready()
    message_id = tmux_team.store(tmux_team.add("ada", pane.address))
    tmux_team.multiplexer = Tmux({**os.environ, "PATH": shim.path()}, timeout_seconds=DEADLINE_SECONDS)
    shim.hang("send-keys")
    process = multiprocessing.get_context("fork").Process(target=_drain, args=(tmux_team, message_id))
    tmux_team.database.close()
    process.start()
    wait_until(
        lambda: any("send-keys" in " ".join(call.arguments) for call in shim.calls()), what="the Enter"
    )
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join(DEADLINE_SECONDS)
    for call in shim.calls():
        if "send-keys" in " ".join(call.arguments):
            os.kill(call.pid, signal.SIGKILL)
    shim.behave()
    assert not tmux_team.is_notified(message_id)
    assert pane.events() == []
    assert drain_for_message(tmux_team.runtime, message_id) == NOTIFIED
    assert pane.events() == [{"submit": line_of(tmux_team, message_id)}]


def _drain(team: Team, message_id: int) -> None:
    team.database = Database(team.database.path)
    drain_for_message(team.runtime, message_id)
