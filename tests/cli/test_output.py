"""Streams: data on one, diagnostics on the other, nothing that surprises a terminal (SPEC 7.1)."""

import fcntl
import io
import os
import struct
import termios

import pytest

from cafleet.cli.output import BOLD, Output, OutputClosed, OutputFailed, record
from cafleet.cli.table import display_width, show_table


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_diagnostics_are_one_line_on_standard_error() -> None:
    stdout, stderr = io.StringIO(), io.StringIO()
    out = Output(stdout, stderr)
    out.warn("a\nb")
    out.error("bad \x1b[31m name", "cleanup failed for pane %3: gone\x07")
    assert stdout.getvalue() == ""
    assert stderr.getvalue() == (
        "Warning: a\\x0ab\nError: bad \\x1b[31m name\ncleanup failed for pane %3: gone\\x07\n"
    )


def test_streams_that_were_closed_at_start_are_not_an_error() -> None:
    out = Output(None, None)
    out.write("x")
    out.error("y")
    out.flush()
    assert not out.terminal
    assert out.pipe() is None


def test_a_reader_that_has_gone_is_told_apart_from_a_full_disk() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w", encoding="utf-8", buffering=1) as stream:
        with pytest.raises(OutputClosed):
            Output(stream, None).write("x")
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, writing)  # What is still buffered must not fail again when the file is closed.
        os.close(devnull)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_is_named() -> None:
    descriptor = os.open("/dev/full", os.O_WRONLY)
    with open(descriptor, "w", encoding="utf-8") as stream:
        out = Output(stream, None)
        out.write("x")
        with pytest.raises(OutputFailed, match="cannot write to standard output: No space left on device"):
            out.flush()
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, descriptor)
        os.close(devnull)


@pytest.mark.parametrize(
    ("environ", "colored"),
    [({}, True), ({"NO_COLOR": ""}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
)
def test_colour_on_a_terminal_unless_refused(environ: dict[str, str], colored: bool) -> None:
    out = Output(_Terminal(), None)
    out.set_color(environ)
    assert (out.paint("x", BOLD) != "x") is colored


def test_no_colour_in_a_pipe() -> None:
    out = Output(io.StringIO(), None)
    out.set_color({})
    assert out.paint("x", BOLD) == "x"


def test_a_pipe_gets_cells_between_tabs() -> None:
    stdout = io.StringIO()
    show_table(("id", "name"), [(1, "ann lee"), (2, None)], Output(stdout, None))
    assert stdout.getvalue() == "id\tname\n1\tann lee\n2\t-\n"


def test_a_terminal_gets_columns_also_for_wide_characters() -> None:
    stdout = _Terminal()
    show_table(("name", "id"), [("日本", 1), ("e\u0301x", 2)], Output(stdout, None))
    assert stdout.getvalue() == "name  id\n日本  1\ne\u0301x    2\n"


def test_a_name_in_a_table_cannot_break_it() -> None:
    stdout = io.StringIO()
    show_table(("name",), [("a\tb\n9\x1b]0;x\x07",)], Output(stdout, None))
    assert stdout.getvalue() == "name\na\\x09b\\x0a9\\x1b]0;x\\x07\n"


def test_display_width() -> None:
    assert display_width("ab") == 2
    assert display_width("日本") == 4
    assert display_width("e\u0301") == 1
    assert display_width("ภาษาไทยที่นี่") == 9  # Thai vowel signs combine, too.
    assert display_width("❤\ufe0f") == 1
    assert display_width("\u1112\u1161\u11ab") == 2  # One Hangul syllable.


class _Narrow(_Terminal):
    """A terminal on a real descriptor, as wide as the test says."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self._ends = os.openpty()
        fcntl.ioctl(self._ends[1], termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def fileno(self) -> int:
        return self._ends[1]

    def close(self) -> None:
        for end in self._ends:
            os.close(end)
        super().close()


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        (80, "id  name                  at\n1   日本日本日本日本日本  now\n"),
        (29, "id  name                  at\n1   日本日本日本日本日本  now\n"),
        (28, "id  name                 at\n1   日本日本日本日本日…  now\n"),
        (10, "id  name              at\n1   日本日本日本日…   now\n"),
        (0, "id  name                  at\n1   日本日本日本日本日本  now\n"),
    ],
)
def test_a_name_gives_way_on_a_narrow_terminal(columns: int, shown: str) -> None:
    terminal = _Narrow(columns)
    show_table(("id", "name", "at"), [(1, "日本" * 5, "now")], Output(terminal, None), cut="name")
    assert terminal.getvalue() == shown
    terminal.close()


def test_a_name_is_whole_in_a_pipe() -> None:
    stdout = io.StringIO()
    show_table(("name",), [("n" * 300,)], Output(stdout, None), cut="name")
    assert stdout.getvalue() == "name\n" + "n" * 300 + "\n"


def test_a_record_has_one_line_per_field() -> None:
    assert record([("name", "a\nb"), ("pane", None)]) == "name: a\\x0ab\npane: -"
