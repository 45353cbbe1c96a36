"""Lists of records as text: aligned on a terminal, plain in a pipe (SPEC 7.1)."""

from collections.abc import Sequence
from unicodedata import combining, east_asian_width

from cafleet.cli.escapes import escape
from cafleet.cli.output import BOLD, Output


def show_table(columns: Sequence[str], rows: Sequence[Sequence[object]], out: Output) -> None:
    """A header line and one line per row; an absent value is a dash.

    In a pipe the cells are separated by one tab: no name holds one, so programs can split there.
    """
    cells = [["-" if cell is None else escape(str(cell)) for cell in row] for row in rows]
    if not out.terminal:
        for line in (columns, *cells):
            out.write("\t".join(line))
        return
    widths = [max(map(display_width, column)) for column in zip(columns, *cells, strict=True)]
    out.write(out.paint(_aligned(columns, widths), BOLD))
    for line in cells:
        out.write(_aligned(line, widths))


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell + " " * (width - display_width(cell)) for cell, width in zip(cells, widths, strict=True))
    return "  ".join(padded).rstrip()


def display_width(text: str) -> int:
    """Terminal columns: wide characters take two, combining marks none."""
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)
