"""How wide the columns of a table are, and which of them there is room for; pure."""

from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.text import Text

PADDING = 2
"""Cells beside the content of a column."""


class Column(NamedTuple):
    """One column of a table; widths are in cells of the terminal."""

    label: str
    least: int = 0
    """To how much its content may be cut; 0: it is never cut."""
    share: int = 0
    """It takes no more than this part of the table while others want room: 6 is a sixth; 0: no such limit."""
    stretch: bool = False
    """It takes what is left, so that new content seldom changes its width."""
    dropped: int = 0
    """Which column goes first where there is no room at all, 1 before 2; 0: none of these."""


class Fitted(NamedTuple):
    """A column that is shown."""

    cell: int
    """Which cell of a row it shows."""
    label: str
    width: int


def fit(columns: Sequence[Column], rows: Sequence[Sequence[Text]], width: int) -> list[Fitted]:
    """The columns that a table of `width` cells shows for these rows."""
    wanted = [_wanted(index, column, rows) for index, column in enumerate(columns)]
    shown = list(range(len(columns)))
    needed = [min(column.least, wanted[i]) if column.least else wanted[i] for i, column in enumerate(columns)]
    for going in sorted((i for i in shown if columns[i].dropped), key=lambda i: columns[i].dropped):
        if _total(needed, shown) <= width:
            break
        shown.remove(going)
    room = width - _total(needed, shown)
    given = list(needed)
    for limits in (_limits(columns, wanted, width), wanted):  # First everyone's share, then whatever is left.
        for i in shown:
            more = max(0, min(room, limits[i] - given[i]))
            given[i] += more
            room -= more
    for i in shown:
        if columns[i].stretch and room > 0:
            given[i] += room
            break
    return [Fitted(i, columns[i].label, given[i]) for i in shown]


def _wanted(index: int, column: Column, rows: Sequence[Sequence[Text]]) -> int:
    return max(cell_len(column.label), *(row[index].cell_len for row in rows), 1)


def _limits(columns: Sequence[Column], wanted: Sequence[int], width: int) -> list[int]:
    return [
        min(most, width // column.share) if column.share else most
        for column, most in zip(columns, wanted, strict=True)
    ]


def _total(widths: Sequence[int], shown: Sequence[int]) -> int:
    return sum(widths[i] + PADDING for i in shown)
