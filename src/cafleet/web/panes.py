"""What the panes of a fleet show at this moment: who works, who waits for a person, who was not told."""

from cafleet.broker.members import list_members
from cafleet.broker.survey import PaneReport, survey
from cafleet.runtime import Runtime
from cafleet.web.rows import Json


def look(runtime: Runtime, fleet_id: int) -> dict[int, Json]:
    """A row for each placed member, by its id.

    Raises:
        FleetNotFound, FleetDeleted, FleetNotLive, DatabaseError. Never because of a multiplexer.
    """
    roster = [entry.member for entry in list_members(runtime, fleet_id)]
    reports = survey(runtime, fleet_id, roster, closely=True)
    return {member_id: _row(member_id, report) for member_id, report in reports.items()}


def _row(member_id: int, report: PaneReport) -> Json:
    return {
        "member_id": member_id,
        "condition": report.condition,
        "state": report.state,
        "detail": report.detail,
        "held": report.held,
        "why_held": report.why_held,
    }
