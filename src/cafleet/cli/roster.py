"""Fleets, members and placements as JSON records and as lines for people (SPEC 7.2)."""

from cafleet.broker.members import skills
from cafleet.cli.output import Output
from cafleet.launch import Start, StartState
from cafleet.models import Fleet, Member, Placement


def fleet_record(fleet: Fleet) -> dict[str, object]:
    return fleet._asdict()


def member_record(member: Member) -> dict[str, object]:
    """The member with its skills and its placement; the stored card stays inside."""
    return {
        "member_id": member.member_id,
        "fleet_id": member.fleet_id,
        "name": member.name,
        "description": member.description,
        "kind": member.kind,
        "status": member.status,
        "registered_at": member.registered_at,
        "deregistered_at": member.deregistered_at,
        "skills": skills(member),
        "placement": placement_record(member.placement),
    }


def placement_record(placement: Placement | None) -> dict[str, object] | None:
    """Without the member's id, which stands beside it."""
    if placement is None:
        return None
    record = placement._asdict()
    del record["member_id"]
    return record


def warn_of_start(member: Member, start: Start | None, out: Output) -> None:
    """On standard error, where somebody should look at a new pane."""
    if start is not None and start.state is not StartState.READY:
        pane = member.placement.mux_pane_id if member.placement else None
        out.warn(f"member {member.member_id} in pane {pane} {start.state}: {start.detail}.")
