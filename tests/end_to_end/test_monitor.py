"""A fleet that nobody watches: the loop of the installed program over a real tmux (SPEC 9)."""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.conftest import World
from tests.support.database import held_by_another_process, run_sql
from tests.support.program import SCRIPT, Program
from tests.support.running_loop import RunningLoop, running_loop, runtime_row
from tests.support.tmux_server import TmuxServer
from tests.support.tmux_shim import TmuxShim
from tests.support.waiting import DEADLINE_SECONDS, wait_until

from cafleet.clock import format_timestamp, parse_timestamp


def _send(world: World, member_id: int, text: str = "hello") -> str:
    """Store a message; the state of its notification."""
    sent = world.run("message", "send", "--from", "1", "--to", str(member_id), text, "--json")
    assert sent.code == 0, sent
    state = json.loads(sent.stdout)["notification"]["state"]
    assert isinstance(state, str)
    return state


def _status(world: World) -> dict[str, Any]:
    found = json.loads(world.done("monitor", "status", "1", "--json", pane=None))
    assert isinstance(found, dict)
    return found


def _bodies(world: World, name: str) -> list[str]:
    """What the agent was told, without the lines' headers."""
    return [line.split("] ", 1)[-1] for line in world.submitted(name)]


def _wait_for_bodies(world: World, name: str, *bodies: str) -> None:
    wait_until(lambda: _bodies(world, name) == list(bodies), what=f"{bodies} told to {name}")


# -- what was held back is typed later ---------------------------------------------------------


def test_a_member_sits_at_a_question_for_ten_ticks(fleet: World) -> None:
    ann, pane = fleet.member("ann", "--fault", "dialog")
    with running_loop(fleet.program) as loop:
        assert _send(fleet, ann) == "deferred"
        loop.wait_for_ticks(10)
        assert [event for event in fleet.events("ann") if "ready" not in event] == [], "no key came"
        assert loop.said()[1:] == [f"member {ann} is not told of message 1: member {ann} is at a question"]
        (held,) = [one for one in _status(fleet)["members"] if one["held"]]
        assert (held["member_id"], held["pane_state"], held["held"]) == (ann, "alive", 1)
        assert held["why_held"] == f"member {ann} is at a question"

        fleet.server.run("send-keys", "-t", pane, "1")
        _wait_for_bodies(fleet, "ann", "hello")
        loop.wait_for_ticks(1)
        assert _bodies(fleet, "ann") == ["hello"], "exactly once"
        assert loop.said()[2:] == [f"member {ann} was told of message 1"]
    assert [one["held"] for one in _status(fleet)["members"]] == [0, 0]


def test_a_draft_is_typed_and_sent_by_a_person(fleet: World) -> None:
    ann, pane = fleet.member("ann")
    with running_loop(fleet.program) as loop:
        fleet.server.run("send-keys", "-l", "-t", pane, "--", "please look at")
        fleet.server.wait_for_text(pane, "please look at")
        assert _send(fleet, ann) == "deferred"
        loop.wait_for("a draft stands in its composer")
        assert fleet.submitted("ann") == []
        fleet.server.run("send-keys", "-l", "-t", pane, "--", " the tests")
        fleet.server.run("send-keys", "-t", pane, "Enter")
        _wait_for_bodies(fleet, "ann", "please look at the tests", "hello")
        loop.wait_for("was told of message 1")
        loop.wait_for_ticks(1)
        assert len(fleet.submitted("ann")) == 2


def test_a_deferred_one_comes_within_two_ticks(fleet: World) -> None:
    ann, pane = fleet.member("ann")
    with running_loop(fleet.program) as loop:
        fleet.server.run("copy-mode", "-t", pane)
        _send(fleet, ann)
        loop.wait_for("copy-mode")
        fleet.server.run("send-keys", "-t", pane, "-X", "cancel")
        loop.wait_for_ticks(2)
        _wait_for_bodies(fleet, "ann", "hello")
        assert len(loop.said()) == 3


def test_a_pane_dies_and_its_member_is_respawned(fleet: World) -> None:
    ann, pane = fleet.member("ann")
    bob, _ = fleet.member("bob")
    with running_loop(fleet.program) as loop:
        fleet.server.run("kill-pane", "-t", pane)
        assert _send(fleet, ann, "first") == "failed"
        assert _send(fleet, bob, "for bob") == "notified"
        loop.wait_for("is not told of message 1")
        loop.wait_for_ticks(1)
        assert len([line for line in loop.said() if "not told" in line]) == 1
        listed = fleet.done("member", "list", "1").splitlines()
        assert listed[2].split("\t")[4] == f"{pane} (gone; 1 held)"
        assert f"member {ann} ann: {pane} (gone; 1 held)\n" in fleet.done("monitor", "status", "1")

        again = fleet.done("member", "respawn", str(ann), "You are ann, again.")
        assert again.startswith(f"{ann} ann backend=ann pane=%")
        _wait_for_bodies(fleet, "ann", "first")
        assert [message["text"] for message in fleet.inbox(ann)] == ["first"]
        assert (
            fleet.done("member", "list", "1").splitlines()[2].split("\t")[4]
            == again.split("pane=")[1].strip()
        )


def test_the_tmux_server_is_restarted(fleet: World) -> None:
    ann, pane = fleet.member("ann")
    watch = fleet.run(*fleet.creation(fleet.agent("watch")), "--role", "monitor")
    assert watch.code == 0, watch
    with running_loop(fleet.program, "--tick", "1", "--interval", "1") as loop:
        fleet.wait_for_submits("watch", 1)
        fleet.server.kill_server()
        fleet.server.start()
        strangers = ["%0", *(fleet.server.add_pane("/bin/cat") for _ in range(3))]
        assert pane in strangers
        assert _send(fleet, ann) == "failed"
        loop.wait_for("no wake: ")
        loop.wait_for("is not told of message 1")
        before = loop.row()["last_wake_at"]
        loop.wait_for_ticks(2)
        assert loop.row()["last_wake_at"] == before, "a wake that was not typed changes nothing"
        for stranger in strangers:
            assert "cafleet" not in fleet.server.screen(stranger)
        rows = [row.split("\t") for row in fleet.done("member", "list", "1", pane=None).splitlines()[1:]]
        assert [row[4].split(" ", 1)[1] for row in rows] == ["(gone)", "(gone; 1 held)", "(gone)"]
        assert {one["pane_state"] for one in _status(fleet)["members"]} == {"gone"}

        # The Director first, in the pane that respawns it; then the others beside it.
        caller = fleet.server.environ("%0", {})
        for member_id in (1, ann, 3):
            done = fleet.program.run("member", "respawn", str(member_id), "Go on.", environ=caller)
            assert done.code == 0, done
        _wait_for_bodies(fleet, "ann", "hello")
        woken = len(fleet.submitted("watch"))
        wait_until(lambda: len(fleet.submitted("watch")) > woken, what="a wake in the new pane")
        assert {one["pane_state"] for one in _status(fleet)["members"]} == {"alive"}


def test_no_tmux_server_and_no_tmux_at_all(fleet: World) -> None:
    ann, _ = fleet.member("ann")
    fleet.server.kill_server()
    _send(fleet, ann)
    empty = fleet.home / "empty"
    empty.mkdir()
    without = {"PATH": str(empty)}
    with running_loop(fleet.program, environ=without) as loop:
        loop.wait_for("is not told of message 1: tmux not found on PATH")
        loop.wait_for_ticks(1)
        status = json.loads(fleet.program.run("monitor", "status", "1", "--json", environ=without).stdout)
        assert [one["pane_state"] for one in status["members"]] == ["unknown", "unknown"]
        assert status["members"][1]["why_held"] == "tmux not found on PATH"
        listed = fleet.program.run("member", "list", "1", environ=without)
        assert listed.code == 0
        assert listed.stdout.count("(unknown: tmux not found on PATH") == 2
        assert fleet.server.panes() == [], "nobody has started a server"
        assert loop.end() == 0


def _with_a_held_line_and_a_hanging_look(fleet: World, tmux_shim: TmuxShim) -> dict[str, str]:
    """An environ for the loop, in whose tmux every look hangs."""
    ann, pane = fleet.member("ann")
    fleet.server.run("copy-mode", "-t", pane)
    _send(fleet, ann)
    tmux_shim.hang("capture-pane")
    return {"PATH": tmux_shim.path(fleet.program.environ["PATH"])}


def test_a_tmux_call_hangs(fleet: World, tmux_shim: TmuxShim) -> None:
    with running_loop(fleet.program, environ=_with_a_held_line_and_a_hanging_look(fleet, tmux_shim)) as loop:
        loop.wait_for("is not told of message 1: tmux did not answer within 5 s")
        assert _status(fleet)["live"]
        fleet.server.run("send-keys", "-t", "%1", "-X", "cancel")
        tmux_shim.behave()
        _wait_for_bodies(fleet, "ann", "hello")
        assert loop.end() == 0


def test_a_stop_while_a_tmux_call_hangs(fleet: World, tmux_shim: TmuxShim) -> None:
    with running_loop(fleet.program, environ=_with_a_held_line_and_a_hanging_look(fleet, tmux_shim)) as loop:
        wait_until(tmux_shim.calls, what="the call that hangs")
        assert loop.end() == 0
        assert loop.row()["pid"] is None


# -- one per fleet -----------------------------------------------------------------------------


def test_a_killed_loop_is_followed_by_the_next_one_at_once(fleet: World) -> None:
    ann, pane = fleet.member("ann")
    fleet.server.run("copy-mode", "-t", pane)
    _send(fleet, ann)
    with running_loop(fleet.program, "--tick", "1", "--interval", "77") as loop:
        loop.wait_for("copy-mode")
        os.kill(loop.process.pid, signal.SIGKILL)
        # Not reaped yet: the number still exists, the process does not.
        with running_loop(fleet.program) as second:
            row = second.row()
            assert (row["pid"], row["wake_interval_seconds"]) == (second.process.pid, 77)
            fleet.server.run("send-keys", "-t", pane, "-X", "cancel")
            _wait_for_bodies(fleet, "ann", "hello")
    dead = _status(fleet)
    assert (dead["live"], dead["pid"]) == (False, second.process.pid), "the crash left its row"
    text = fleet.done("monitor", "status", "1")
    assert f"loop: not running (it was pid {second.process.pid}, and did not end in order)\n" in text


def test_of_many_that_start_at_once_one_runs(fleet: World) -> None:
    started = [RunningLoop(fleet.program, 1, "--tick", "1", environ={}) for _ in range(6)]
    try:
        wait_until(
            lambda: sum(one.process.poll() is not None for one in started) == 5, what="five to give way"
        )
        (left,) = [one for one in started if one.process.poll() is None]
        for one in started:
            if one is not left:
                assert one.process.returncode == 1
                pid = left.process.pid
                assert one.said() == [f"Error: a monitor is already running for fleet 1 (pid {pid})"]
        left.wait_for_ticks(1)
        assert left.row()["pid"] == left.process.pid
        assert left.end() == 0
    finally:
        for one in started:
            one.process.kill()
            one.process.wait()


def test_a_frozen_loop_is_displaced_and_ends_itself(fleet: World) -> None:
    with running_loop(fleet.program, "--tick", "2") as old:
        old.wait_for_ticks(1)  # It pauses now: frozen within a transaction it would hold up everybody.
        os.kill(old.process.pid, signal.SIGSTOP)
        # Its heartbeat is old now, without anybody waiting for that.
        run_sql(
            fleet.program.database_path,
            "UPDATE monitor_runtime SET last_tick_at = '2026-01-01T00:00:00+00:00'",
        )
        with running_loop(fleet.program) as new:
            os.kill(old.process.pid, signal.SIGCONT)
            assert old.process.wait(DEADLINE_SECONDS) == 1
            assert old.said()[-1] == (
                "Error: this loop is not the monitor of fleet 1 any more: "
                f"pid {new.process.pid} took its place"
            )
            new.wait_for_ticks(1)
            assert new.row()["pid"] == new.process.pid


def test_two_fleets_have_a_loop_each(fleet: World) -> None:
    fleet.done("fleet", "create", "--name", "other", "--coding-agent", "director")
    with running_loop(fleet.program) as one, running_loop(fleet.program, fleet_id=2) as two:
        assert one.row()["pid"] != two.row()["pid"]
        assert (one.end(), two.end()) == (0, 0)


# -- signals, clocks, the file -----------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_longest_pause_at_once(fleet: World, number: signal.Signals) -> None:
    with running_loop(fleet.program, "--tick", "3600", "--interval", "55") as loop:
        loop.wait_for("runs")
        assert loop.end(number) == 0
        assert loop.said()[-1] == f"ended by {number.name}"
        row = loop.row()
        assert (row["pid"], row["started_at"], row["last_tick_at"]) == (None, None, None)
        assert (row["tick_seconds"], row["wake_interval_seconds"]) == (3600, 55)
    assert _status(fleet)["live"] is False
    assert "loop: not running\n" in fleet.done("monitor", "status", "1")


def test_the_clock_steps_back_an_hour(fleet: World) -> None:
    """What it looks like from inside: everything that is stored lies in the future."""
    fleet.agent("watch")
    assert fleet.run(*fleet.creation("watch"), "--role", "monitor").code == 0
    ann, pane = fleet.member("ann")
    with running_loop(fleet.program, "--tick", "1", "--interval", "2") as loop:
        fleet.wait_for_submits("watch", 1)
        fleet.server.run("copy-mode", "-t", pane)
        _send(fleet, ann)
        moment = parse_timestamp(loop.row()["last_tick_at"])
        assert moment is not None
        future = format_timestamp(moment.replace(year=moment.year + 1))
        run_sql(
            fleet.program.database_path,
            f"UPDATE monitor_runtime SET last_tick_at = '{future}', last_wake_at = '{future}'",  # noqa: S608
            f"UPDATE messages SET created_at = '{future}', status_timestamp = '{future}'",  # noqa: S608
        )
        woken = len(fleet.submitted("watch"))
        wait_until(lambda: len(fleet.submitted("watch")) > woken, what="the next wake")
        assert _status(fleet)["live"]
        refused = fleet.run("monitor", "run", "1")
        assert refused.stderr == f"Error: a monitor is already running for fleet 1 (pid {loop.process.pid})\n"
        fleet.server.run("send-keys", "-t", pane, "-X", "cancel")
        _wait_for_bodies(fleet, "ann", "hello")


def test_the_database_is_locked_for_six_seconds(fleet: World) -> None:
    ann, pane = fleet.member("ann")
    fleet.server.run("copy-mode", "-t", pane)
    _send(fleet, ann)
    with running_loop(fleet.program) as loop:
        loop.wait_for("copy-mode")
        with held_by_another_process(fleet.program.database_path, "BEGIN IMMEDIATE"):
            fleet.server.run("send-keys", "-t", pane, "-X", "cancel")
            loop.wait_for("a tick was cut short: the database is busy")
        _wait_for_bodies(fleet, "ann", "hello")
        loop.wait_for_ticks(1)
        assert loop.said().count("the database answers again") == 1
        assert _bodies(fleet, "ann") == ["hello"]


def test_the_fleet_is_deleted(fleet: World) -> None:
    with running_loop(fleet.program) as loop:
        fleet.done("fleet", "delete", "1")
        assert loop.process.wait(DEADLINE_SECONDS) == 0
        assert loop.said()[-1] == "ended: fleet 1 is deleted"
        assert loop.row() == {}
    assert fleet.run("monitor", "run", "1") == (1, "", "Error: fleet 1 is deleted\n")


def test_the_file_is_upgraded(fleet: World) -> None:
    with running_loop(fleet.program) as loop:
        run_sql(
            fleet.program.database_path,
            "ALTER TABLE monitor_runtime ADD COLUMN mood TEXT",
            "INSERT INTO refinery_schema_history VALUES (6, 'mood', '2027-01-01', 'x')",
        )
        assert loop.process.wait(DEADLINE_SECONDS) == 1
        message = "database format 6 is newer than this cafleet's (5); upgrade cafleet"
        assert loop.said()[-2:] == [f"ended: {message}", f"Error: {message}"]


def test_a_loop_without_standard_streams_or_a_terminal(fleet: World) -> None:
    """Field case J5: as cron, `setsid` or an agent starts it."""
    ann, pane = fleet.member("ann")
    fleet.server.run("copy-mode", "-t", pane)
    _send(fleet, ann)
    script = f'exec "{SCRIPT}" monitor run 1 --tick 1 0<&- 1>&- 2>&-'
    process = subprocess.Popen(
        ["/bin/sh", "-c", script], env=fleet.program.environ, cwd="/", start_new_session=True
    )
    try:
        wait_until(lambda: runtime_row(fleet.program, 1).get("pid") == process.pid, what="the claim")
        fleet.server.run("send-keys", "-t", pane, "-X", "cancel")
        _wait_for_bodies(fleet, "ann", "hello")
        status = _status(fleet)
        assert (status["live"], status["pid"], status["restart_needed"]) == (True, process.pid, False)
        process.terminate()
        assert process.wait(DEADLINE_SECONDS) == 0
    finally:
        process.kill()
        process.wait()


def test_a_loop_whose_log_nobody_reads_goes_on(fleet: World) -> None:
    process = fleet.program.start("monitor", "run", "1", "--tick", "1")
    try:
        assert process.stdout is not None
        assert b"monitor of fleet 1 runs" in process.stdout.readline()
        process.stdout.close()
        ann, pane = fleet.member("ann")
        fleet.server.run("copy-mode", "-t", pane)
        _send(fleet, ann)
        fleet.server.run("send-keys", "-t", pane, "-X", "cancel")
        _wait_for_bodies(fleet, "ann", "hello")
        process.terminate()
        assert process.wait(DEADLINE_SECONDS) == 0
    finally:
        process.kill()
        process.communicate()


# -- waking ------------------------------------------------------------------------------------


def test_a_wake_by_schedule_and_by_request(fleet: World) -> None:
    fleet.agent("watch")
    assert fleet.run(*fleet.creation("watch"), "--role", "monitor").code == 0
    ann, _ = fleet.member("ann")
    _send(fleet, ann)
    assert fleet.run("monitor", "wake", "1").stderr.startswith("Error: no monitor is running for fleet 1")
    with running_loop(fleet.program, "--tick", "1", "--interval", "0") as loop:
        loop.wait_for_ticks(1)
        assert fleet.submitted("watch") == []
        asked = json.loads(fleet.done("monitor", "wake", "1", "--json"))
        assert asked["fleet_id"] == 1
        (line,) = fleet.wait_for_submits("watch", 1)
        assert line.startswith("[cafleet tick] fleet 1: 1 members: 3 ann (ann, unread 1, idle ")
        assert line.endswith("s) Director: 1 (unread 0). Follow your monitor role.")
        assert len(line) < 700
        wait_until(lambda: loop.row()["wake_requested_at"] is None, what="the request to be met")
        loop.wait_for_ticks(1)
        assert len(fleet.submitted("watch")) == 1
    with running_loop(fleet.program, "--tick", "1", "--interval", "1"):
        fleet.wait_for_submits("watch", 2)


def test_a_request_for_a_fleet_without_a_monitor(fleet: World) -> None:
    with running_loop(fleet.program):
        asked = fleet.run("monitor", "wake", "1")
        assert asked.code == 0
        assert asked.stderr == "Warning: fleet 1 has no active monitor; the request waits for one.\n"


def test_what_cannot_be_run(program_only: Program) -> None:
    assert program_only.run("monitor", "run", "9").stderr == "Error: fleet 9 not found\n"
    for arguments in (("--tick", "0"), ("--tick", "x"), ("--interval", "-1")):
        assert program_only.run("monitor", "run", "1", *arguments).code == 2


@pytest.fixture
def program_only(tmp_path: Path, tmux_servers: Callable[..., TmuxServer]) -> Program:
    program = Program(tmp_path)
    assert program.run("setup").code == 0
    return program
