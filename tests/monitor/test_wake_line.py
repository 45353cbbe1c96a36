import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cafleet
from cafleet.broker.members import RosterEntry
from cafleet.delivery.line import own_line
from cafleet.models import Activity, Member, MemberKind, MemberStatus, Placement
from cafleet.monitor.wake_line import wake_line
from cafleet.multiplexer.base import is_one_line


def _entry(
    number: int,
    name: str = "ann",
    *,
    kind: MemberKind = MemberKind.MEMBER,
    unread: int = 0,
    idle: int | None = 0,
    placed: bool = True,
) -> RosterEntry:
    placement = Placement(number, "s", "@0", f"%{number}", "tmux", "claude", "t", None) if placed else None
    member = Member(number, 3, name, "", MemberStatus.ACTIVE, kind, "t", None, "{}", placement)
    return RosterEntry(member, unread, Activity(None, None, None, idle))


DIRECTOR = _entry(1, "boss", kind=MemberKind.DIRECTOR, unread=4)
MONITOR = _entry(2, "watch", kind=MemberKind.MONITOR)


def test_the_line() -> None:
    roster = [DIRECTOR, MONITOR, _entry(3, unread=2, idle=750), _entry(4, "bob", idle=None, placed=False)]
    assert wake_line(3, roster) == (
        "[cafleet tick] fleet 3: 2 members: 3 ann (claude, unread 2, idle 12m), "
        "4 bob (no pane, unread 0, idle -) Director: 1 (unread 4). Follow your monitor role."
    )


def test_an_empty_fleet() -> None:
    assert wake_line(3, [DIRECTOR, MONITOR]) == (
        "[cafleet tick] fleet 3: 0 members: Director: 1 (unread 4). Follow your monitor role."
    )


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("x (claude, unread 0), 9 boss", "x claude unread 0 9 boss"),
        ("[cafleet msg 9 from 1", "cafleet msg 9 from 1"),
        ("a\x1b[31mb\x07\u202ec\nd", "abc⏎d"),
        ("x" * 64, "x" * 32 + "…"),
        ("()", "?"),
        ("日本 👩‍👩‍👧", "日本 👩‍👩‍👧"),
    ],
)
def test_names_cannot_pass_for_something_else(name: str, shown: str) -> None:
    line = wake_line(3, [DIRECTOR, _entry(5, name)])
    assert line.split("members: ")[1].startswith(f"5 {shown} (claude, unread 0, idle 0s) Director: 1")


def test_many_members_are_shortened_to_those_that_need_somebody() -> None:
    roster = [DIRECTOR, MONITOR, *(_entry(n, f"member-{n}", idle=n) for n in range(3, 200))]
    roster[101] = _entry(102, "quiet", unread=1, idle=1)
    line = wake_line(3, roster)
    assert len(line) < 700
    assert line.startswith("[cafleet tick] fleet 3: 197 members: 102 quiet (claude, unread 1, idle 1s), ")
    shown = [int(number) for number in re.findall(r"(\d+) (?:member-\d+|quiet) \(", line)]
    assert shown == sorted(shown)
    assert shown[-1] == 199, "the longest idle"
    assert f", … +{197 - len(shown)} more Director: 1 (unread 4). Follow your monitor role." in line


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.text(min_size=1, max_size=64), st.integers(0, 10**6), st.integers(0, 10**9))),
    st.integers(100, 699),
)
def test_the_line_is_always_one_harmless_line_of_bounded_length(
    members: list[tuple[str, int, int]], units: int
) -> None:
    roster = [DIRECTOR, *(_entry(n, name, unread=u, idle=i) for n, (name, u, i) in enumerate(members, 3))]
    line = wake_line(3, roster, units)
    assert is_one_line(line)
    assert len(line.encode("utf-16-le")) // 2 <= units
    assert own_line(line) is not None, "a left-over of it is known again"


def test_the_monitors_skill_knows_the_line() -> None:
    skill = Path(cafleet.__file__).parent / "assets" / "skills" / "cafleet" / "SKILL.md"
    text = skill.read_text(encoding="utf-8")
    head, _, _ = wake_line(3, [DIRECTOR, MONITOR]).partition(" 0 members")
    assert f"`{head} …`" in text
    assert "… +n more" in text
