"""Lists of records as text: aligned on a terminal, plain in a pipe (SPEC 7.1)."""

from collections.abc import Sequence
from unicodedata import category, east_asian_width

from cafleet.cli.escapes import escape
from cafleet.cli.output import BOLD, Output

GAP = 2
"""Blanks between two columns."""
SHORTEST_CUT = 16
"""Terminal columns that a cell keeps which is cut to fit."""


def show_table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], out: Output, *, cut: str | None = None
) -> None:
    """A header line and one line per row; an absent value is a dash.

    `cut`: the column whose cells are cut where a terminal is too narrow for the table; JSON has them whole.
    In a pipe the cells are separated by one tab: no name holds one, so programs can split there.
    """
    cells = [["-" if cell is None else escape(str(cell)) for cell in row] for row in rows]
    if not out.terminal:
        for line in (columns, *cells):
            out.write("\t".join(line))
        return
    widths = [max(map(display_width, column)) for column in zip(columns, *cells, strict=True)]
    over = 0 if out.width is None else sum(widths) + GAP * (len(widths) - 1) - out.width
    if cut is not None and over > 0:
        at = columns.index(cut)
        widths[at] = min(widths[at], max(SHORTEST_CUT, widths[at] - over))
        for line in cells:
            line[at] = shortened(line[at], widths[at])
    out.write(out.paint(_aligned(columns, widths), BOLD))
    for line in cells:
        out.write(_aligned(line, widths))


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell + " " * (width - display_width(cell)) for cell, width in zip(cells, widths, strict=True))
    return (" " * GAP).join(padded).rstrip()


def display_width(text: str) -> int:
    """Terminal columns: wide characters take two, combining marks none."""
    return len(text) if text.isascii() else sum(map(_width, text))


def shortened(text: str, width: int) -> str:
    """`text` in at most `width` terminal columns; `…` stands for what is left out."""
    if display_width(text) <= width:
        return text
    room, kept = width - 1, ""
    for character in text:
        room -= _width(character)
        if room < 0:
            break
        kept += character
    return f"{kept}…"


def _width(character: str) -> int:
    if category(character) in ("Mn", "Me", "Cf") or "\u1160" <= character <= "\u11ff":  # A syllable's end.
        return 0
    return 2 if east_asian_width(character) in "WF" else 1
