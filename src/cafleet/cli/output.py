"""Everything that the command line writes; the only place that does (SPEC 7.1).

Data goes to standard output, diagnostics go to standard error. Both are UTF-8 whatever the locale.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Mapping, Sequence

from cafleet.cli.escapes import escape
from cafleet.light_typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TextIO

BOLD, DIM, YELLOW, RED, CYAN, PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[33m", "\x1b[31m", "\x1b[36m", "\x1b[0m"


class OutputClosed(Exception):
    """Nobody reads any more: not an error (SPEC 7.1)."""


class OutputFailed(Exception):
    """The output could not be written, for instance to a full disk."""


class Output:
    """Where one invocation writes."""

    def __init__(self, stdout: TextIO | None, stderr: TextIO | None) -> None:
        """Either may be None: the process was started with it closed."""
        self._stdout, self._stderr = stdout, stderr
        self.encode: Callable[[object], str] | None = None
        """Set with `--json`: a value to one line of JSON."""
        self.color = False
        self._dumb = False
        """The terminal can only write on: no line can be taken back."""

    @property
    def as_json(self) -> bool:
        """`--json` was given."""
        return self.encode is not None

    @property
    def terminal(self) -> bool:
        """Standard output is a terminal: tables are aligned there."""
        return self._stdout is not None and self._stdout.isatty()

    @property
    def width(self) -> int | None:
        """Columns of the terminal; None: it does not say, or there is none."""
        if self._stdout is None or not self.terminal:
            return None
        try:
            return os.get_terminal_size(self._stdout.fileno()).columns or None
        except (OSError, ValueError):
            return None

    def pipe(self) -> int | None:
        """The descriptor of standard output where that is a pipe or a socket."""
        if self._stdout is None:
            return None
        try:
            descriptor = self._stdout.fileno()
            kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
        except (OSError, ValueError):
            return None
        return descriptor if kind in (stat.S_IFIFO, stat.S_IFSOCK) else None

    def set_color(self, environ: Mapping[str, str]) -> None:
        """Colour where a terminal reads, unless `NO_COLOR` is set to anything (https://no-color.org)."""
        self._dumb = environ.get("TERM") == "dumb"
        self.color = self.terminal and not environ.get("NO_COLOR") and not self._dumb

    def paint(self, text: str, style: str) -> str:
        """`text` in a style where colour is on."""
        return f"{style}{text}{PLAIN}" if self.color and text else text

    def write(self, text: str) -> None:
        """One text, which may have several lines, to standard output.

        Raises:
            OutputClosed: its reader has gone.
            OutputFailed: it cannot be written.
        """
        if self._stdout is not None:
            _guarded(lambda stream: print(text, file=stream), self._stdout)

    def json(self, value: object) -> None:
        """One value as one line of JSON. Raises like `write`."""
        assert self.encode is not None
        self.write(self.encode(value))

    def flush(self) -> None:
        """What was written so far is with its reader. Raises like `write`."""
        if self._stdout is not None:
            _guarded(lambda stream: stream.flush(), self._stdout)

    def give_up(self) -> None:
        """Write no more to standard output, what it did not take included: it has failed."""
        self._stdout = None

    def progress(self, text: str) -> None:
        """How far a long work is: one line on standard error, where a terminal reads that, which the next
        one overwrites; an empty one removes it."""
        if self._stderr is not None and self._stderr.isatty() and not self._dumb:
            self._tell(f"\r{escape(text)}\x1b[K", end="")

    def warn(self, text: str) -> None:
        """`Warning: …` on standard error, in one line."""
        self._complain(f"Warning: {escape(text)}")

    def error(self, text: str, *following: str) -> None:
        """`Error: …` on standard error, in one line, and the lines that belong to it."""
        self._complain("\n".join([f"Error: {escape(text)}", *map(escape, following)]))

    def debug(self, text: str) -> None:
        """Text for those who debug, as it is, on standard error."""
        self._complain(text)

    def _complain(self, text: str) -> None:
        try:  # noqa: SIM105  # `contextlib` costs every command more than a line
            self.flush()  # Where both go to one place, lines keep the order in which they were written.
        except (OutputClosed, OutputFailed):
            pass
        self._tell(text, end="\n")

    def _tell(self, text: str, end: str) -> None:
        if self._stderr is None:
            return
        try:
            print(text, end=end, file=self._stderr, flush=True)
        except (OSError, ValueError):
            return  # There is no place left to complain to.


def _guarded(action: Callable[[TextIO], object], stream: TextIO) -> None:
    try:
        action(stream)
    except BrokenPipeError as error:
        raise OutputClosed from error
    except OSError as error:
        raise OutputFailed(
            f"cannot write to standard output: {os.strerror(error.errno or errno.EIO)}"
        ) from error


def record(fields: Sequence[tuple[str, object]]) -> str:
    """`name: value` lines for one record; an absent value is a dash."""
    return "\n".join(f"{name}: {'-' if value is None else escape(str(value))}" for name, value in fields)
