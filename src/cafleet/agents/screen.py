"""A pane's rows as the agent modules read them: escape sequences gone, faint text told apart.

Faint is how a program draws a placeholder or a hint; nobody's typed words look like that. Measured:
SGR 2 (two of the real programs), bright black and the middle greys (the third, and hints of the first).
"""

import re
import unicodedata
from collections.abc import Sequence

from cafleet.agents.base import Screen

_ESCAPE = re.compile(
    r"\x1b\[([0-9;:]*)m"  # SGR, the only one that is interpreted
    r"|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"
    r"|\x1b[ -/]*[0-~]?|[\x00-\x08\x0b-\x1f\x7f]"
)
_GREY_LEVELS = range(0x58, 0xB1)
"""Red, green and blue of a neutral grey that counts as faint, on dark and on light grounds."""


class _Style:
    """The part of the SGR state that decides faintness; it carries on from row to row."""

    __slots__ = ("dim", "grey", "reverse")

    def __init__(self) -> None:
        self.dim = self.grey = self.reverse = False

    def apply(self, parameters: str) -> None:
        codes = [int(code or 0) for code in parameters.replace(":", ";").split(";")]
        at = 0
        while at < len(codes):
            code = codes[at]
            at += 1
            if code == 0:
                self.dim = self.grey = self.reverse = False
            elif code == 2:
                self.dim = True
            elif code == 22:
                self.dim = False
            elif code in (7, 27):
                self.reverse = code == 7
            elif code in (38, 48):
                used, grey = _extended_colour(codes[at:])
                at += used
                if code == 38:
                    self.grey = grey
            elif 30 <= code <= 39 or 90 <= code <= 97:
                self.grey = code == 90

    @property
    def faint(self) -> bool:
        return self.dim or self.grey


def _extended_colour(codes: Sequence[int]) -> tuple[int, bool]:
    """How many codes an indexed or RGB colour uses, and whether it is a faint grey."""
    if codes[:1] == [5] and len(codes) >= 2:
        index = codes[1]
        return 2, index == 8 or (index >= 232 and 8 + 10 * (index - 232) in _GREY_LEVELS)
    if codes[:1] == [2] and len(codes) >= 4:
        rgb = codes[1:4]
        return 4, max(rgb) - min(rgb) <= 8 and rgb[0] in _GREY_LEVELS
    return len(codes), False


def parse(rows: Sequence[str], *, title: str = "", cursor_y: int = 0, width: int = 0) -> Screen:
    """The screen behind rows that still hold escape sequences. Never raises."""
    style = _Style()
    plain: list[str] = []
    inked: list[str] = []
    for row in rows:
        text, faint, reverse = _cells(row, style)
        plain.append(text.rstrip())
        inked.append(_ink(text, faint, reverse).rstrip())
    return Screen(tuple(plain), tuple(inked), title, cursor_y, width)


def _cells(row: str, style: _Style) -> tuple[str, list[bool], list[bool]]:
    text: list[str] = []
    faint: list[bool] = []
    reverse: list[bool] = []
    at = 0
    for match in _ESCAPE.finditer(row):
        _extend(text, faint, reverse, row[at : match.start()], style)
        if match[1] is not None:
            style.apply(match[1])
        at = match.end()
    _extend(text, faint, reverse, row[at:], style)
    return "".join(text), faint, reverse


def _extend(text: list[str], faint: list[bool], reverse: list[bool], piece: str, style: _Style) -> None:
    text.extend(piece)
    faint.extend([style.faint] * len(piece))
    reverse.extend([style.reverse] * len(piece))


def _ink(text: str, faint: list[bool], reverse: list[bool]) -> str:
    """A program that draws its own cursor shows a placeholder's first character reversed and not
    dim: a reversed cell in front of faint text belongs to that text."""
    kept: list[str] = []
    for at, character in enumerate(text):
        cursor = reverse[at] and faint[at + 1 : at + 2] == [True] and reverse[at + 1] is False
        kept.append(" " if faint[at] or cursor else character)
    return "".join(kept)


def columns(text: str) -> int:
    """Terminal columns that `text` takes."""
    if text.isascii():
        return len(text)
    return sum(_width(character) for character in text)


def _width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut_columns(text: str, start: int, end: int) -> str:
    """The part of `text` between two terminal columns, without a wide character that straddles an edge."""
    if text.isascii():
        return text[start:end]
    kept: list[str] = []
    column = 0
    for character in text:
        width = _width(character)
        if start <= column and column + width <= end:
            kept.append(character)
        column += width
    return "".join(kept)


def last_inked(rows: Sequence[str]) -> int:
    """Index of the last row that is not blank, or -1."""
    for at in range(len(rows) - 1, -1, -1):
        if rows[at].strip():
            return at
    return -1
