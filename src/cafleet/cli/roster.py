"""Fleets, members and placements as JSON records and as lines for people (SPEC 7.2)."""

from cafleet.broker.members import member_facts, placement_facts
from cafleet.cli.output import Output
from cafleet.launch import Start, StartState
from cafleet.models import Fleet, Member


def fleet_record(fleet: Fleet) -> dict[str, object]:
    """The whole fleet."""
    return fleet._asdict()


def member_record(member: Member) -> dict[str, object]:
    """The member with its skills and its placement."""
    return {
        "member_id": member.member_id,
        "fleet_id": member.fleet_id,
        **member_facts(member),
        "placement": placement_facts(member.placement),
    }


def warn_of_start(member: Member, start: Start | None, out: Output) -> None:
    """On standard error, where somebody should look at a new pane."""
    if start is not None and start.state is not StartState.READY:
        pane = member.placement.mux_pane_id if member.placement else None
        out.warn(f"member {member.member_id} in pane {pane} {start.state}: {start.detail}.")
