"""A monitor loop that is killed at any of its tmux calls (field case P3)."""

import signal

import pytest
from tests.faults.conftest import MEMBER, Team
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
