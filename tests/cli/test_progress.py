"""The line that says how far a long work is."""

import io
import os
import select
import subprocess
from pathlib import Path

import pytest
from tests.support.database import held_by_another_process, run_sql
from tests.support.program import SCRIPT, Program
from tests.support.waiting import DEADLINE_SECONDS, wait_until

from cafleet.cli.output import Output
from cafleet.cli.progress import ProgressLine
from cafleet.errors import BackupFailed


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class _Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def _run(stderr: io.StringIO, *times: float, environ: dict[str, str] | None = None) -> str:
    out, clock = Output(None, stderr), _Clock()
    out.set_color(environ or {})
    with ProgressLine(out, clock) as line:
        for moment in times:
            clock.now = moment
            line.show(f"at {moment}")
    return stderr.getvalue()


def test_it_is_overwritten_now_and_then_and_gone_at_the_end() -> None:
    shown = _run(_Terminal(), 0.0, 0.4, 0.6, 0.65, 2.0)
    assert shown == "\rat 0.6, 0 s\x1b[K\rat 2.0, 2 s\x1b[K\r\x1b[K"


def test_its_seconds_go_on_while_the_work_says_nothing() -> None:
    stderr, clock = _Terminal(), _Clock()
    with ProgressLine(Output(None, stderr), clock) as line:
        clock.now = 1.0
        line.show("all rows")
        clock.now = 7.0
        wait_until(lambda: "7 s" in stderr.getvalue(), what="a line without news")
    assert stderr.getvalue() == "\rall rows, 1 s\x1b[K\rall rows, 7 s\x1b[K\r\x1b[K"


def test_short_work_shows_nothing() -> None:
    assert _run(_Terminal(), 0.0, 0.1, 0.4) == ""


def test_it_is_gone_after_an_error_too() -> None:
    stderr, clock = _Terminal(), _Clock()

    def work() -> None:
        with ProgressLine(Output(None, stderr), clock) as line:
            clock.now = 1.0
            line.show("x")
            raise BackupFailed("copy.db", "no room")

    with pytest.raises(BackupFailed):
        work()
    assert stderr.getvalue() == "\rx, 1 s\x1b[K\r\x1b[K"


def test_it_is_for_terminals_that_can_take_a_line_back() -> None:
    assert _run(io.StringIO(), 1.0) == ""
    assert _run(_Terminal(), 1.0, environ={"TERM": "dumb"}) == ""


def _start_with_a_terminal(program: Program, *arguments: str) -> "tuple[subprocess.Popen[bytes], int]":
    """The program, and the end of the terminal that gets its standard error."""
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [SCRIPT, *arguments], env=program.environ, stdout=subprocess.DEVNULL, stderr=theirs, cwd=program.home
    )
    os.close(theirs)
    return process, ours


def _read_until(terminal: int, wanted: bytes) -> None:
    found = b""
    while wanted not in found:
        assert select.select([terminal], [], [], DEADLINE_SECONDS)[0], found
        found += os.read(terminal, 4096)


def test_a_doctor_who_takes_long_says_so(tmp_path: Path) -> None:
    program = Program(tmp_path)
    fifo, agent = tmp_path / "answer", tmp_path / "bin" / "claude"
    os.mkfifo(fifo)
    agent.parent.mkdir()
    agent.write_text(f"#!/bin/sh\nread version < {fifo}\necho 1.2.3\n", encoding="utf-8")
    agent.chmod(0o755)
    program.environ["PATH"] = f"{agent.parent}:{program.environ['PATH']}"
    process, terminal = _start_with_a_terminal(program, "doctor")
    _read_until(terminal, b"\rlooking, ")
    fifo.write_text("\n", encoding="ascii")
    process.wait(DEADLINE_SECONDS)
    os.close(terminal)


def test_a_setup_that_takes_long_says_so(tmp_path: Path) -> None:
    program = Program(tmp_path)
    program.run("setup")
    run_sql(program.database_path, "PRAGMA journal_mode=DELETE")  # Where a writer keeps readers out.
    with held_by_another_process(program.database_path, "BEGIN EXCLUSIVE"):
        process, terminal = _start_with_a_terminal(program, "setup")
        _read_until(terminal, b"\rdatabase: at work, ")
    process.wait(DEADLINE_SECONDS)
    os.close(terminal)
