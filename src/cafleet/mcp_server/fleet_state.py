"""How fleets are: what `fleet_status` answers."""

from collections.abc import Sequence

from cafleet.broker import fleets, members, monitors
from cafleet.broker.members import RosterEntry
from cafleet.broker.survey import PaneCondition, PaneReport, survey
from cafleet.mcp_server import answers
from cafleet.runtime import Runtime


def fleet_states(runtime: Runtime, fleet_ids: Sequence[int]) -> answers.FleetStates:
    """Each fleet's state, as far as an answer holds them.

    Raises:
        FleetNotFound, FleetDeleted, FleetNotLive.
    """
    states: list[answers.FleetState] = []
    room = answers.MAX_ROWS
    for fleet_id in fleet_ids[: answers.MAX_ROWS]:
        states.append(_fleet_state(runtime, fleet_id, room))
        room -= len(states[-1].attention)
    return answers.FleetStates(fleets=states, more=len(fleet_ids) - len(states))


def _fleet_state(runtime: Runtime, fleet_id: int, room: int) -> answers.FleetState:
    """`room`: for so many members whose panes need attention."""
    overview = monitors.monitor_overview(runtime, fleet_id)
    fleet = fleets.get_fleet(runtime, fleet_id)
    roster = members.list_members(runtime, fleet_id)
    reports = survey(runtime, fleet_id, [entry.member for entry in roster])
    attention = _attention(roster, reports)
    return answers.FleetState(
        fleet_id=fleet_id,
        name=fleet.name,
        created_at=fleet.created_at,
        director_member_id=fleet.director_member_id,
        members=len(roster),
        unread=sum(entry.unread for entry in roster),
        monitor=_monitor_state(overview),
        attention=attention[:room],
        more_attention=max(0, len(attention) - room),
    )


def _monitor_state(overview: monitors.MonitorOverview) -> answers.MonitorState:
    row = overview.runtime
    return answers.MonitorState(
        running=overview.live,
        monitor_member_id=overview.monitor_member_id,
        last_tick_at=row.last_tick_at if row else None,
        last_wake_at=row.last_wake_at if row else None,
        wake_requested_at=row.wake_requested_at if row else None,
        wake_interval_seconds=row.wake_interval_seconds if row else None,
    )


def _attention(roster: Sequence[RosterEntry], reports: dict[int, PaneReport]) -> list[answers.PaneTrouble]:
    found = []
    for entry in roster:
        report = reports.get(entry.member.member_id)
        if report is not None and (report.held or report.condition is not PaneCondition.ALIVE):
            found.append(
                answers.PaneTrouble(
                    member_id=entry.member.member_id,
                    name=entry.member.name,
                    pane=report.condition,
                    detail=report.detail,
                    notifications_held=report.held,
                    reason=report.why_held,
                )
            )
    return found
