"""The line that says how far a long work is."""

import io

import pytest
from tests.support.waiting import wait_until

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
