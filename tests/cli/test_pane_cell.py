"""What a roster says of a member's pane."""

import pytest

from cafleet.broker.survey import PaneCondition, PaneReport
from cafleet.cli.member import pane_cell
from cafleet.models import Member, MemberKind, MemberStatus, Placement

AT = "2026-11-29T10:00:00.000000+00:00"
SHELL = PaneReport(PaneCondition.EXITED, None, "a shell is there", 0, None)


def member(kind: MemberKind) -> Member:
    placement = Placement(2, "s", "@0", "%5", "tmux", "claude", AT, None)
    return Member(2, 1, "ada", "", MemberStatus.ACTIVE, kind, AT, None, "{}", placement)


@pytest.mark.parametrize(
    ("kind", "report", "cell"),
    [
        (MemberKind.MEMBER, None, "%5"),
        (MemberKind.MEMBER, PaneReport(PaneCondition.ALIVE, None, None, 0, None), "%5"),
        (MemberKind.MEMBER, PaneReport(PaneCondition.GONE, None, None, 2, "…"), "%5 (gone; 2 held)"),
        (MemberKind.MEMBER, PaneReport(PaneCondition.EXITED, 3, None, 0, None), "%5 (exited 3)"),
        (MemberKind.MEMBER, SHELL, "%5 (exited: a shell is there)"),
        # A person who directs from a shell has not lost an agent.
        (
            MemberKind.DIRECTOR,
            PaneReport(PaneCondition.ALIVE, None, "a shell is there", 0, None),
            "%5 (a shell is there)",
        ),
        (MemberKind.DIRECTOR, PaneReport(PaneCondition.EXITED, 3, None, 0, None), "%5 (exited 3)"),
    ],
)
def test_a_pane_and_what_there_is_to_say_of_it(
    kind: MemberKind, report: PaneReport | None, cell: str
) -> None:
    assert pane_cell(member(kind), report) == cell
