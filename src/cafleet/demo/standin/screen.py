"""A small full-screen terminal: raw keys in, rows out. What the stand-in agent is drawn with."""

import codecs
import fcntl
import os
import re
import struct
import termios
import tty
from collections.abc import Iterator, Sequence
from enum import StrEnum
from types import TracebackType
from typing import NamedTuple

from cafleet.agents.screen import columns

DIM, NORMAL = "\x1b[2m", "\x1b[22m"

_ENTER = b"\x1b[?1049h\x1b[?2004h\x1b[2J"
_LEAVE = b"\x1b[?2004l\x1b[?1049l"
_PASTE_START, _PASTE_END = b"\x1b[200~", b"\x1b[201~"
_SEQUENCE = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO[ -~]")
_WORD = re.compile(r"\S+|\s+")
_TEXT = re.compile(rb"[^\x00-\x1f\x7f]+")


class Kind(StrEnum):
    """What a key event is."""

    TEXT = "text"
    PASTE = "paste"
    ENTER = "enter"
    NEWLINE = "newline"
    ESCAPE = "escape"
    BACKSPACE = "backspace"
    CLEAR = "clear"
    INTERRUPT = "interrupt"
    END = "end"
    OTHER = "other"


class Key(NamedTuple):
    """One key event; `text` for typed and pasted characters."""

    kind: Kind
    text: str = ""


_CONTROLS = {
    b"\r": Kind.ENTER,
    b"\n": Kind.NEWLINE,
    b"\x7f": Kind.BACKSPACE,
    b"\x08": Kind.BACKSPACE,
    b"\x15": Kind.CLEAR,
    b"\x03": Kind.INTERRUPT,
    b"\x04": Kind.END,
}


class Keys:
    """From the bytes of a terminal to key events, across reads that cut anywhere."""

    def __init__(self) -> None:
        self._pending = b""
        self._pasting = False
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def undecided(self) -> bool:
        """An ESC came: a key of its own, or the start of a sequence. Call `settle` when nothing follows."""
        return not self._pasting and self._pending == b"\x1b"

    def feed(self, data: bytes) -> Iterator[Key]:
        """The events that are complete now."""
        self._pending += data
        while self._pending:
            key = self._pasted() if self._pasting else self._typed()
            if key is None:
                return
            yield key

    def settle(self) -> Iterator[Key]:
        """Nothing follows a lone ESC: it was the key."""
        if self.undecided:
            self._pending = b""
            yield Key(Kind.ESCAPE)

    def _pasted(self) -> Key | None:
        text, end, rest = self._pending.partition(_PASTE_END)
        if not end:
            return None
        self._pending, self._pasting = rest, False
        return Key(Kind.PASTE, text.decode("utf-8", "replace").replace("\r", "\n"))

    def _typed(self) -> Key | None:
        pending = self._pending
        if pending.startswith(_PASTE_START):
            self._pending, self._pasting = pending[len(_PASTE_START) :], True
            return self._pasted()
        if pending.startswith(b"\x1b"):
            return self._sequence()
        if match := _TEXT.match(pending):
            self._pending = pending[match.end() :]
            return Key(Kind.TEXT, self._decoder.decode(match[0]))
        self._pending = pending[1:]
        return Key(_CONTROLS.get(pending[:1], Kind.OTHER))

    def _sequence(self) -> Key | None:
        if match := _SEQUENCE.match(self._pending):
            self._pending = self._pending[match.end() :]
            return Key(Kind.OTHER)
        if re.fullmatch(rb"\x1b(?:\[[0-?]*[ -/]*|O)?", self._pending):
            return None  # Cut in the middle, or a lone ESC.
        self._pending = self._pending[1:]
        return Key(Kind.ESCAPE)


def wrap(text: str, width: int, first: str = "", following: str = "  ") -> list[str]:
    """`text` in rows of at most `width` columns, at blanks where it can be; `first` and `following`
    start the rows."""
    rows: list[str] = []
    for line in text.split("\n"):
        row = following if rows else first
        used, empty = columns(row), True
        for word in _WORD.findall(line):
            needed = columns(word)
            if used + needed > width and not empty and not word.isspace():
                rows.append(row)
                row, used, empty = following, columns(following), True
            if used + needed <= width:
                row, used, empty = row + word, used + needed, False
                continue
            for character in word:  # Longer than a row: broken anywhere.
                if used + columns(character) > width:
                    rows.append(row)
                    row, used = following, columns(following)
                row, used, empty = row + character, used + columns(character), False
        rows.append(row)
    return rows


class Terminal:
    """Standard input and output in raw mode on the alternate screen, put back at the end."""

    def __init__(self) -> None:
        self._drawn: list[str] = []
        self._before = termios.tcgetattr(0)

    def __enter__(self) -> "Terminal":
        tty.setraw(0)
        os.write(1, _ENTER)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            os.write(1, _LEAVE)
            termios.tcsetattr(0, termios.TCSANOW, self._before)
        except (OSError, termios.error):
            pass  # The terminal is gone: that is why we end.

    @staticmethod
    def size() -> tuple[int, int]:
        """Columns and rows."""
        rows, width, _, _ = struct.unpack("HHHH", fcntl.ioctl(1, termios.TIOCGWINSZ, b"\0" * 8))
        return max(width, 10), max(rows, 6)

    def forget(self) -> None:
        """The next `draw` draws every row: the size has changed."""
        self._drawn = []
        os.write(1, b"\x1b[2J")

    def draw(self, rows: Sequence[str], cursor_row: int, cursor_column: int) -> None:
        """Show `rows` from the top, in one write that holds only what changed."""
        out = ["\x1b[?25l"]
        for at, row in enumerate(rows):
            if at >= len(self._drawn) or self._drawn[at] != row:
                out.append(f"\x1b[{at + 1};1H{row}\x1b[0m\x1b[K")
        out.append(f"\x1b[{cursor_row + 1};{cursor_column + 1}H\x1b[?25h")
        self._drawn = list(rows)
        data = "".join(out).encode("utf-8", "replace")
        while data:
            data = data[os.write(1, data) :]
