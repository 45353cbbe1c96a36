"""The lines that cafleet types, and how one of them is recognised again on a screen (SPEC 4.1).

A line is data from a stranger on its way into a terminal. Whatever a terminal, or a reader of
the screen, could take for something else is removed before it is typed.
"""

import re
import unicodedata
from binascii import crc32
from collections.abc import Callable
from typing import NamedTuple, Protocol

from cafleet.agents.base import utf16_length

MAX_LINE_UNITS = 699
"""UTF-16 units of a whole line: some agents count in these, and wrap longer input as an attachment."""

NEWLINE = "⏎"
ELLIPSIS = "…"
SHORTEST_TAIL = 24
MOST_JOINED = 12
"""Among how many starts of lines those in one composer are told apart."""
TICK_ENDING = "Follow your monitor role."

_SPECIAL = re.compile(
    # Whole escape sequences go, their parameters and payload with them: CSI, then the string
    # sequences (DCS, SOS, OSC, PM, APC), then the short ones. Of an unfinished one only the
    # introducer goes, so that a stray ESC cannot swallow the rest of a body.
    r"(?P<gone>"
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[PX\]^_]|[\x90\x98\x9d-\x9f])[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~])"
    r"|(?P<newline>\r\n|[\n\r\x0b\x0c\x85\u2028\u2029])"
    r"|(?P<tab>\t)"
    # C0, DEL, C1; then what a reader cannot see: bidirectional controls, zero-width characters but
    # the two joiners (scripts and emoji need those), tags and supplementary variation selectors;
    # then what is no character at all (lone surrogates, noncharacters).
    r"|[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    r"\ufff9-\ufffb\U000e0000-\U000e0fff\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)
_LONGEST_TIMESTAMP = 40
_VISIBLE = {"newline": NEWLINE, "tab": " "}

# Matched against `comparable` text, in which no blanks are left.
_START = re.compile(r"\[cafleet")
_MESSAGE = re.compile(r"\[cafleetmsg(?P<id>[1-9][0-9]{0,18}?)from[1-9]")
_TICK = re.compile(r"\[cafleettick\]fleet[1-9][0-9]*:.*" + TICK_ENDING.replace(" ", "").replace(".", r"\."))
_PING = re.compile(r"\[cafleetping\]Pollyourinbox:cafleetmessagepoll[1-9][0-9]*")
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Mn", "Me", "So", "Sk"})


class Stored(Protocol):
    """What a notification line shows of a message; `Message` and `Delivery` both have it."""

    @property
    def message_id(self) -> int: ...
    @property
    def from_member_id(self) -> int: ...
    @property
    def created_at(self) -> str: ...
    @property
    def text(self) -> str: ...


class OwnLine(NamedTuple):
    """One of cafleet's lines, found in a composer."""

    message_id: int | None
    """None: a wake or a ping, which belongs to no message."""
    content: str
    """The whole line, as `comparable` text."""
    further: tuple[int, ...] = ()
    """The messages whose lines stand right behind it: the agent showed the pastes of several late."""

    @property
    def message_ids(self) -> list[int]:
        """Every message that submitting it tells of."""
        return [*([] if self.message_id is None else [self.message_id]), *self.further]


def render_line(message: Stored, max_text_len: int, *, units: int = MAX_LINE_UNITS) -> str:
    """`[cafleet msg <id> from <sender> <created_at>] <body>` on one line (SPEC 4.1).

    `max_text_len`: code points of the body that are shown before `…`; 0: the header alone. The
    whole line stays within `units` UTF-16 units, whatever was asked for.
    """
    units = min(units, MAX_LINE_UNITS)
    header = _header(message)
    shown = plain(message.text, max_text_len, units=units - utf16_length(header) - 1)
    return f"{header} {shown}" if shown else header


def ping_line(member_id: int) -> str:
    """The fixed line of `member ping`."""
    return f"[cafleet ping] Poll your inbox: cafleet message poll {member_id}"


def plain_line(text: str) -> str:
    """`text` as one line to be typed, uncut: for what a person or the monitor types, not for bodies."""
    return plain(text, len(text), units=2 * len(text))


def plain(text: str, max_text_len: int, *, units: int = MAX_LINE_UNITS) -> str:
    """`text` as one line that is safe in a terminal.

    Each line end (CR LF counts as one, U+2028 and the like too) becomes `⏎`, a tab a blank; escape
    sequences, other controls and invisible characters are removed. Longer than `max_text_len` code
    points or `units` UTF-16 units: cut, with `…`. Reads no more of `text` than it needs.
    """
    if max_text_len <= 0 or units <= 0:
        return ""
    parts: list[str] = []
    length = position = 0
    room = min(max_text_len, units)  # A code point is at least one unit.
    for match in _SPECIAL.finditer(text):
        piece = text[position : min(match.start(), position + room + 1 - length)]
        piece += _VISIBLE.get(match.lastgroup or "", "")
        parts.append(piece)
        length += len(piece)
        position = match.end()
        if length > room:
            break
    else:
        parts.append(text[position : position + room + 1 - length])
    return _cut("".join(parts), max_text_len, units)


def comparable(text: str) -> str:
    """`text` without all that an agent's screen may change: blanks and line breaks (wrapping),
    frames, accents' encoding, and symbols that terminals draw in different ways."""
    return "".join(
        character
        for character in unicodedata.normalize("NFD", text)
        if "!" <= character <= "~"
        or not (character.isspace() or unicodedata.category(character) in _INVISIBLE)
    )


def fingerprint(text: str) -> str:
    """A word by which a line is known again on a screen, and which tells nothing of what it says."""
    content = comparable(text).encode("utf-8", "surrogatepass")
    return f"{len(content)}-{crc32(content):08x}"


def own_line(text: str) -> OwnLine | None:
    """The line of cafleet's that `text`, the content of a composer, seems to be, however wrapped.

    A seeming notification is one only where `is_line_of` agrees: a person may have typed on.
    """
    content = comparable(text)
    if match := _MESSAGE.match(content):
        return OwnLine(int(match["id"]), content)
    if _TICK.fullmatch(content) or _PING.fullmatch(content):
        return OwnLine(None, content)
    return None


def own_line_id(text: str) -> int | None:
    """The id in a notification line, or None where `text` is none."""
    line = own_line(text)
    return line.message_id if line else None


def joined_lines(text: str, recognise: Callable[[str], OwnLine | None]) -> OwnLine | None:
    """The own lines that `text` is made of, one behind the other, and nothing but that.

    `recognise` tells for a piece whether it is exactly one. A body can quote a line, so the longest
    piece counts.
    """
    content = comparable(text)
    starts = [match.start() for match in _START.finditer(content)][1 : MOST_JOINED + 1]
    found: list[OwnLine] = []
    begin = 0
    while begin < len(content):
        ends = [len(content), *(start for start in reversed(starts) if start > begin)]
        lines = ((end, recognise(content[begin:end])) for end in ends)
        begin, line = next(((end, line) for end, line in lines if line), (0, None))
        if line is None:
            return None
        found.append(line)
    if len(found) < 2:
        return found[0] if found else None
    told = [message_id for line in found for message_id in line.message_ids]
    first = found[0].message_id
    return OwnLine(first, content, tuple(told if first is None else told[1:]))


def same_errand(one: OwnLine, other: OwnLine) -> bool:
    """Whether it is enough to submit one of two lines that belong to no message: two wakes of a fleet
    differ in numbers only."""
    if one.message_id is not None or other.message_id is not None:
        return False
    heads = (one.content.partition(":")[0], other.content.partition(":")[0])
    return one == other or (heads[0] == heads[1] and heads[0].startswith("[cafleettick]"))


def is_line_of(line: OwnLine, message: Stored) -> bool:
    """Whether `line` is what some `max_text_len` makes of `message`, and no more."""
    header = comparable(_header(message))
    if not line.content.startswith(header):
        return False
    shown = line.content[len(header) :]
    body = comparable(plain(message.text, MAX_LINE_UNITS))
    if shown in ("", body):
        return True
    return shown.endswith(ELLIPSIS) and body.startswith(shown.removesuffix(ELLIPSIS))


def is_tail_of(shown: str, line: str, *, shortest: int = SHORTEST_TAIL) -> bool:
    """Whether `shown`, all that a scrolled composer shows, is the end of `line`.

    `shortest`: how many characters, blanks not counted, are beyond coincidence.
    """
    content = comparable(shown)
    return len(content) >= shortest and comparable(line).endswith(content)


def _header(message: Stored) -> str:
    created_at = plain(message.created_at, _LONGEST_TIMESTAMP)
    return f"[cafleet msg {message.message_id} from {message.from_member_id} {created_at}]"


def _cut(text: str, max_text_len: int, units: int) -> str:
    if len(text) <= max_text_len and utf16_length(text) <= units:
        return text
    kept = text[:max_text_len]
    while kept and utf16_length(kept) > units - 1:
        kept = kept[: -max(1, (utf16_length(kept) - units + 1) // 2)]
    return kept + ELLIPSIS
