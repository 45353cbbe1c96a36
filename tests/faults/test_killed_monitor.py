"""A monitor loop that is killed, or fails, at any of its steps (SPEC 9, 14; field case P3).

One tick meets all of them: claim, heartbeat, a pending notification, a wake that is due, and the end.
Each part of a test takes every third step, so that the parts can run side by side.
"""

import re
import signal
from itertools import count
from pathlib import Path

import pytest
from tests.faults.broken_panes import FAILING, STEPS
from tests.faults.conftest import DIRECTOR, MEMBER, Team
from tests.support.breaking import Breaker
from tests.support.database import run_sql
from tests.support.file_content import TABLES, content
from tests.support.program import seed_messages
from tests.support.running_loop import running_loop
from tests.support.tmux_shim import TmuxShim
from tests.support.waiting import DEADLINE_SECONDS, wait_until


@pytest.mark.parametrize(("calls", "lines"), [(0, 1), (1, 1), (2, 2)], ids=["look", "paste", "enter"])
def test_the_next_loop_goes_on_where_it_was_killed(
    team: Team, tmux_shim: TmuxShim, calls: int, lines: int
) -> None:
    pane = team.server.panes()[-1]
    team.server.run("copy-mode", "-t", pane)
    team.cafleet(*team.send_words("hello"))
    team.server.run("send-keys", "-t", pane, "-X", "cancel")
    tmux_shim.kill_caller(skip=calls)
    shimmed = {"PATH": tmux_shim.path(team.program.environ["PATH"])}
    with running_loop(team.program, environ=shimmed) as loop:
        assert loop.process.wait(DEADLINE_SECONDS) == -signal.SIGKILL
    assert team.pending() == 1

    with running_loop(team.program) as second:
        wait_until(lambda: team.pending() == 0, what="the notification")
        second.wait_for_ticks(2)
        assert second.end() == 0
    told = team.lines()
    assert len(told) == lines, "doubled only where nobody can know that the Enter was taken"
    assert all(line.endswith("] hello") for line in told)
    assert team.cafleet("message", "poll", str(MEMBER)).endswith("\n  hello\n")
    team.check_file()


LONG_AGO = "2026-01-01T00:00:00.000000+00:00"
LOOP = ("monitor", "run", "1", "--tick", "1", "--interval", "3600")
TICKS = 2
"""Enough for whatever has to be tried again."""
UNTOUCHED = tuple(table for table in TABLES if table not in ("messages", "monitor_runtime"))


class Watched:
    """The team with a monitor, and what the next tick has to do."""

    def __init__(self, team: Team) -> None:
        self.team, self._seen = team, 0
        self._folder = team.program.database_path.parent
        create = ("member", "create", "--fleet-id", "1", "--role", "monitor", "--name", "watch")
        team.cafleet(*create, "--description", "d", "Watch")
        wait_until(lambda: team.log.read_text().count("ready") == 2, what="the monitor's agent")

    def make_work(self) -> None:
        """A message of which nobody was told, and a wake that is long due; nothing of the last loop."""
        for lock in self._locks():
            lock.unlink()
        run_sql(
            self.team.program.database_path,
            f"UPDATE messages SET notified_at = '{LONG_AGO}' WHERE notified_at IS NULL",  # noqa: S608
            "DELETE FROM monitor_runtime",
            f"INSERT INTO monitor_runtime (fleet_id, last_wake_at) VALUES (1, '{LONG_AGO}')",  # noqa: S608
        )
        seed_messages(self.team.program, 1, from_id=DIRECTOR, to_id=MEMBER)

    def typed(self) -> tuple[int, int]:
        """How many lines of messages, and how many wakes, were submitted since the last look."""
        lines = self.team.lines()[self._seen :]
        self._seen += len(lines)
        told = [line for line in lines if line.startswith("[cafleet msg ")]
        woken = [line for line in lines if line.startswith("[cafleet tick] fleet 1: ")]
        assert len(set(told)) <= 1, "of one message"
        assert len(told) + len(woken) == len(lines), lines
        return len(told), len(woken)

    def row(self) -> tuple[object, object]:
        ((pid, last_wake_at),) = self.team.query("SELECT pid, last_wake_at FROM monitor_runtime")
        return pid, last_wake_at

    def left(self) -> object:
        """What the next loop meets, without times and numbers. Equal ones are equally far."""
        (runtime,) = self.team.query("SELECT * FROM monitor_runtime")
        return (
            content(self._folder, self._folder.with_name("scratch"), tables=UNTOUCHED),
            [cell is None for cell in runtime],
            self.row()[1] == LONG_AGO,
            self.team.pending(),
            [(path.name, re.findall(r"[a-z]+", path.read_text())) for path in self._locks()],
        )

    def _locks(self) -> list[Path]:
        return sorted((self._folder / "locks").glob("*"))


@pytest.mark.parametrize("part", range(3))
def test_the_next_loop_goes_on_wherever_it_was_killed(team: Team, part: int) -> None:
    watched, stale, seen, met = Watched(team), 0, set(), []
    with Breaker(team.program) as breaker:
        for at in count(1 + part, 3):
            watched.make_work()
            run = breaker.run(*LOOP, at=at, only=STEPS)
            team.check_file()
            stale += watched.row()[0] is not None
            typed = watched.typed()
            if run.step is not None and not run.step.startswith("spawn"):
                # No tmux is at work any more, so what is there now is what the next loop meets.
                left = (typed, watched.left())
                if left in met:
                    continue
                met.append(left)
            again = breaker.run(*LOOP, ticks=TICKS)
            assert (again.code, again.stderr) == (0, ""), (run.step, again)
            assert team.pending() == 0, (run.step, again)
            pid, last_wake_at = watched.row()
            assert pid is None, run.step
            assert last_wake_at != LONG_AGO, (run.step, again)
            told, woken = watched.typed()
            typed = typed[0] + told, typed[1] + woken
            assert {1} <= {*typed} <= {1, 2}, (run.step, typed)
            seen.add(typed)
            if run.step is None:
                break
    assert stale > 10, "killed while it held the fleet's place"
    assert len(met) > 5, "it can leave more behind than that"
    assert seen == {(1, 1), (2, 1), (1, 2)}


@pytest.mark.parametrize("part", range(3))
def test_a_failing_loop_goes_on_or_says_why_it_ends(team: Team, part: int) -> None:
    watched, codes, refused = Watched(team), set(), []
    with Breaker(team.program, fail=True) as breaker:
        for at in count(1 + part, 3):
            watched.make_work()
            run = breaker.run(*LOOP, at=at, only=FAILING, ticks=TICKS)
            codes.add(run.code)
            over = run.step is None
            if run.code:
                assert re.fullmatch(r"Error: (?!internal).+\n", run.stderr), run
                assert watched.row()[0] is None, run
                assert ("was told" in run.stdout, "was woken" in run.stdout) == (False, False), run
                left = watched.left()
                if left in refused:
                    assert watched.typed() == (0, 0), run
                    continue
                refused.append(left)
                run = breaker.run(*LOOP, ticks=TICKS)
            assert team.pending() == 0, run
            assert watched.row()[1] != LONG_AGO, run
            assert watched.typed() == (1, 1), run
            if over:
                break
    team.check_file()
    assert codes == {0, 1}
