"""The line that wakes a monitor: numbers and names, and nothing that could be an order (SPEC 9)."""

from collections.abc import Mapping, Sequence, Set

from cafleet.agents.base import utf16_length
from cafleet.broker.members import RosterEntry
from cafleet.clock import span
from cafleet.delivery.line import ELLIPSIS, MAX_LINE_UNITS, TICK_ENDING, plain
from cafleet.models import MemberKind

LONGEST_NAME = 32
"""Code points of a name that are shown."""
LEAST_MEMBER = len("1 a (b, unread 0, idle -)")
_STRUCTURE = str.maketrans(dict.fromkeys("[](),:", " "))
"""What the line itself is made of: no name may look like another member."""


def wake_line(fleet_id: int, roster: Sequence[RosterEntry], units: int = MAX_LINE_UNITS) -> str:
    """`[cafleet tick] fleet <id>: <n> members: … Director: <id> (unread <u>). Follow your monitor role.`

    The monitor itself is left out. Where not all members fit into `units` UTF-16 units, those that need
    somebody most are shown: with unread messages first, then the longest idle.
    """
    others = [entry for entry in roster if entry.member.kind is MemberKind.MEMBER]
    directors = [entry for entry in roster if entry.member.kind is MemberKind.DIRECTOR]
    head = f"[cafleet tick] fleet {fleet_id}: {len(others)} members:"
    tail = "".join(f" Director: {one.member.member_id} (unread {one.unread})." for one in directors)
    tail += f" {TICK_ENDING}"
    words = {entry.member.member_id: _member(entry) for entry in others}
    by_need = [entry.member.member_id for entry in sorted(others, key=_need, reverse=True)]
    limit = min(units, MAX_LINE_UNITS)
    for count in range(min(len(others), limit // LEAST_MEMBER), -1, -1):
        line = f"{head}{_members(words, set(by_need[:count]))}{tail}"
        if utf16_length(line) <= limit:
            return line
    return f"{head}{tail}"


def _need(entry: RosterEntry) -> tuple[bool, int]:
    return entry.unread > 0, entry.activity.idle or 0


def _members(words: Mapping[int, str], shown: Set[int]) -> str:
    parts = [text for member_id, text in words.items() if member_id in shown]
    if len(parts) < len(words):
        parts.append(f"{ELLIPSIS} +{len(words) - len(parts)} more")
    return f" {', '.join(parts)}" if parts else ""


def _member(entry: RosterEntry) -> str:
    member = entry.member
    agent = _word(member.placement.coding_agent) if member.placement else "no pane"
    return (
        f"{member.member_id} {_word(member.name)}"
        f" ({agent}, unread {entry.unread}, idle {span(entry.activity.idle)})"
    )


def _word(text: str) -> str:
    return " ".join(plain(text, LONGEST_NAME).translate(_STRUCTURE).split()) or "?"
