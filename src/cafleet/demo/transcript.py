"""How the demo is shown: steps, real commands with their real answers, and pictures of panes."""

import shlex
from collections.abc import Callable, Sequence
from itertools import zip_longest

from cafleet.agents.screen import columns

BOLD, DIM, CYAN, YELLOW = "\x1b[1m", "\x1b[2m", "\x1b[36m", "\x1b[33m"
PICTURE_WIDTH = 84
"""Columns of a pane's picture; longer rows are cut."""

Write = Callable[[str], None]
"""Shows some lines at once."""
Paint = Callable[[str, str], str]
"""A text in a style, or as it is where colour is off."""


class Transcript:
    """Writes what happens while it happens."""

    def __init__(self, write: Write, paint: Paint) -> None:
        self._write, self._paint = write, paint
        self._steps = 0

    def title(self, text: str, explanation: str) -> None:
        """The head of the whole."""
        self._write(f"{self._paint(text, BOLD)}\n{explanation}")

    def step(self, text: str) -> None:
        """What happens next, in one sentence."""
        self._steps += 1
        self._write("\n" + self._paint(f"{self._steps}. {text}", BOLD))

    def note(self, text: str) -> None:
        """A remark on what was just seen."""
        self._write("   " + text.replace("\n", "\n   "))

    def command(self, words: Sequence[str]) -> None:
        """A command line as one would type it."""
        self._write("   " + self._paint("$ " + shlex.join(words), CYAN))

    def answer(self, text: str) -> None:
        """What a command said."""
        for line in _aligned(text.splitlines()):
            style = YELLOW if line.startswith("Warning:") else ""
            self._write("     " + (self._paint(line, style) if style else line))

    def picture(self, name: str, rows: Sequence[str]) -> None:
        """A pane as it looks at this moment, in a frame."""
        width = min(PICTURE_WIDTH, max(len(name) + 4, *(columns(row) for row in rows)))
        edge = self._paint("│", DIM)
        self._write(self._paint(f"   ┌─ {name} " + "─" * (width - len(name) - 1) + "┐", DIM))
        for row in rows:
            self._write(f"   {edge} {_fitted(row, width)} {edge}")
        self._write(self._paint("   └" + "─" * (width + 2) + "┘", DIM))


def _aligned(lines: Sequence[str]) -> list[str]:
    """Rows of a table, whose cells a command separates by tabs in a pipe, as a terminal would show them."""
    rows = [line.split("\t") for line in lines]
    cells = [row for row in rows if len(row) > 1]
    widths = [max(map(columns, column)) for column in zip_longest(*cells, fillvalue="")]
    return ["  ".join(map(_padded, row, widths)).rstrip() if len(row) > 1 else row[0] for row in rows]


def _padded(text: str, width: int) -> str:
    return text + " " * (width - columns(text))


def _fitted(row: str, width: int) -> str:
    """`row` in exactly `width` columns."""
    if columns(row) > width:
        while columns(row) > width - 1:
            row = row[:-1]
        row += "…"
    return _padded(row, width)
