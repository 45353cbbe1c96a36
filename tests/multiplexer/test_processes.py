"""The processes of a pane, also where the system does not list processes, as on macOS.

With a list it is tried out on real panes, too, in test_tmux.py and test_herdr.py.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.support.waiting import DEADLINE_SECONDS

from cafleet.multiplexer.processes import (
    SYSTEM,
    Process,
    ProcessTable,
    ancestors,
    end_pane_processes,
    of_pane,
    shell_waits,
    tree,
)

GROUP = """
import signal, subprocess, sys, time
for name in sys.argv[1:]:
    signal.signal(getattr(signal, name), signal.SIG_IGN)
child = subprocess.Popen(["sleep", "100000"])
print("up", flush=True)
time.sleep(100000)
"""
OWN_GROUP = """
import os, sys
from cafleet.multiplexer.processes import ProcessTable, end_pane_processes
print(end_pane_processes(os.getpgrp(), 0.2, table=ProcessTable(sys.argv[1])))
"""


@pytest.fixture
def unlisted(tmp_path: Path) -> ProcessTable:
    return ProcessTable(str(tmp_path / "absent"))


@contextmanager
def group(*ignored: str) -> Iterator["subprocess.Popen[str]"]:
    """A process and its child in a group of their own, as in a pane; both ignore the signals named."""
    command = [sys.executable, "-S", "-c", GROUP, *ignored]
    # Its output ends when both have ended.
    with subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE, text=True) as leader:
        try:
            assert leader.stdout is not None
            assert leader.stdout.readline() == "up\n"
            yield leader
        finally:
            with suppress(ProcessLookupError):
                os.killpg(leader.pid, signal.SIGKILL)


def test_nothing_is_known(unlisted: ProcessTable) -> None:
    own = os.getpid()
    assert (tree(own, table=unlisted), of_pane(own, table=unlisted)) == ([], [])
    assert ancestors(own, table=unlisted) == {own}


@pytest.mark.parametrize(
    ("command", "shell"),
    [("bash", True), ("-zsh", True), ("/bin/sh", True), ("bash5.2", True), ("node", False), ("", False)],
)
def test_a_shell_is_known_by_its_name(unlisted: ProcessTable, command: str, shell: bool) -> None:
    assert shell_waits(command, os.getpid(), table=unlisted) is shell


@pytest.mark.parametrize(
    ("ignored", "number"),
    [((), signal.SIGHUP), (("SIGHUP",), signal.SIGTERM), (("SIGHUP", "SIGTERM"), signal.SIGKILL)],
    ids=["hang-up", "request", "kill"],
)
@pytest.mark.parametrize("listed", [False, True], ids=["by its group", "by the list"])
def test_a_pane_is_hung_up_on_then_asked_then_killed(
    unlisted: ProcessTable, ignored: tuple[str, ...], number: signal.Signals, listed: bool
) -> None:
    table = SYSTEM if listed else unlisted
    with group(*ignored) as leader, group() as neighbour:
        assert end_pane_processes(leader.pid, 0.5, table=table) is False
        output, _ = leader.communicate(timeout=DEADLINE_SECONDS)
        assert (leader.returncode, output) == (-number, "")
        assert neighbour.poll() is None


def test_what_has_ended_already_is_no_matter(unlisted: ProcessTable) -> None:
    with group() as leader:
        os.killpg(leader.pid, signal.SIGKILL)
        leader.communicate(timeout=DEADLINE_SECONDS)
        assert end_pane_processes(leader.pid, 0.5, table=unlisted) is False
        assert end_pane_processes(leader.pid, 0.5, ended=True, table=unlisted) is False


def test_a_strangers_process_with_the_number_of_one_that_has_ended_is_spared() -> None:
    """Field case E1: a dead pane keeps the number of its program, which the system gives away again."""
    with group() as stranger:
        assert end_pane_processes(stranger.pid, 0.0, ended=True) is False
        assert stranger.poll() is None


def test_a_process_that_another_one_has_started_is_spared() -> None:
    """A number that means another process where the multiplexer runs: in a sandbox with its own numbers."""
    with group() as stranger:
        assert end_pane_processes(stranger.pid, 0.0, parent=os.getppid()) is False
        assert stranger.poll() is None
        assert end_pane_processes(stranger.pid, 0.0, parent=os.getpid()) is False
        assert stranger.wait(DEADLINE_SECONDS) < 0


class Reused(ProcessTable):
    """After the first process of a pane has ended, its number is a stranger's at once."""

    def __init__(self, first: int, stranger: int) -> None:
        super().__init__()
        self._first, self._stranger = first, stranger

    def read(self, pid: int) -> Process | None:
        found, first = super().read(pid), super().read(self._first)
        if first is not None and first.state not in "ZX":
            return found
        if pid == self._first and (found := super().read(self._stranger)):
            found.pid = self._first
        elif found and found.parent == self._stranger:
            found.parent = self._first
        return found


def test_a_number_that_is_given_away_during_the_grace_is_a_strangers() -> None:
    with group() as pane, group("SIGHUP", "SIGTERM") as stranger:
        assert end_pane_processes(pane.pid, 0.2, table=Reused(pane.pid, stranger.pid)) is False
        states = [process.state for process in tree(stranger.pid)]
        assert len(states) == 2, "a process and its child"
        assert not set(states) & {"Z", "X"}, "they belong to the stranger, not to the pane"


def test_the_callers_own_group_is_spared(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", OWN_GROUP, str(tmp_path / "absent")],
        start_new_session=True,
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "False\n", "")


@pytest.mark.parametrize("number", [0, 1])
def test_a_number_that_means_more_than_one_group_ends_nothing(unlisted: ProcessTable, number: int) -> None:
    """To `kill`, 0 is the caller's group and 1 everybody."""
    assert end_pane_processes(number, 0.0, table=unlisted) is False
