"""The stand-in's screen: transcript, composer, footer, or a question in their place."""

from collections.abc import Sequence
from typing import NamedTuple

from cafleet.agents.screen import columns
from cafleet.demo.standin.screen import DIM, NORMAL, wrap

_FOOTER_REST = " ∙ ready"
_FOOTER_WORK = " ∙ esc to interrupt"
_FOOTER_QUESTION = " ∙ Enter to confirm · Esc to cancel"


class Looks(NamedTuple):
    """What there is to show of the agent at one moment."""

    transcript: Sequence[str]
    composer: str
    question: str | None
    """It waits for an answer, and shows nothing but this."""
    working: bool
    queued: int
    """Turns that were submitted while it works."""
    list_open: bool
    """A list of completions is open, which takes the next Enter."""
    ghost: bool
    """An empty composer shows a dim placeholder."""
    composer_rows: int
    """How many rows of the composer are shown at most; 0: all."""


def picture(looks: Looks, width: int, height: int) -> tuple[list[str], int, int]:
    """All rows, and the cursor's row and column."""
    bottom, cursor_row, cursor_column = _bottom(looks, width, height)
    above = _above(looks, width, max(0, height - len(bottom)))
    blank = [""] * (height - len(bottom) - len(above))
    rows = [*blank, *above, *bottom][-height:]
    return rows, max(0, len(rows) - len(bottom) + cursor_row), min(cursor_column, width - 1)


def _above(looks: Looks, width: int, count: int) -> list[str]:
    """The last `count` rows of the transcript; no more of it is laid out than is shown."""
    rows: list[str] = []
    for line in reversed(looks.transcript):
        if len(rows) >= count:
            break
        rows = [*wrap(line, width), *rows]
    return rows[len(rows) - count :] if len(rows) > count else rows


def _bottom(looks: Looks, width: int, height: int) -> tuple[list[str], int, int]:
    if looks.question is not None:
        rows = ["", *wrap(looks.question, width), "  1. Yes", "  2. No", _FOOTER_QUESTION]
        return rows, len(rows) - 3, 0
    rule = "─" * width
    text = "".join(c if c.isprintable() or c == "\n" else "␦" for c in looks.composer)
    rows = wrap(text, width - 1, "> ")
    shown = rows[-min(looks.composer_rows or len(rows), max(1, height - 4)) :]
    if shown[0] == rows[0] and looks.ghost and not looks.composer:
        shown = [f"> {DIM}Ask the stand-in to do anything{NORMAL}"]
    elif len(shown) < len(rows):
        shown[0] = "> " + shown[0][2:]
    menu = ["  ▸ a completion"] if looks.list_open else []
    footer = _FOOTER_WORK if looks.working else _FOOTER_REST
    if looks.queued:
        footer += f" · {looks.queued} queued"
    status = ["", "* Working…"] if looks.working else [""]
    bottom = [*status, rule, *shown, rule, *menu, footer]
    column = 2 if looks.ghost and not looks.composer else columns(shown[-1])
    return bottom, len(status) + len(shown), column
