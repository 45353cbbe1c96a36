"""Live fleets: panes that are gone, and notifications that nobody types."""

from cafleet.broker import fleets, members, monitors
from cafleet.db.diagnosis import DatabaseState, diagnose
from cafleet.doctor.multiplexer import mend_of
from cafleet.doctor.records import Finding, Row, Section, issue, note
from cafleet.doctor.settings import names_a_database
from cafleet.errors import CafleetError, MultiplexerError, MultiplexerTimeout
from cafleet.models import Fleet, Member, MemberKind, Placement
from cafleet.multiplexer.base import PaneStatus
from cafleet.runtime import Runtime

NAME = "fleets"

Panes = dict[str, PaneStatus]


def check_fleets(runtime: Runtime) -> Section:
    """Per live fleet: members, pending notifications, and whether a monitor loop runs; and the multiplexer
    servers, where their panes are on several."""
    if (
        not names_a_database(runtime)
        or diagnose(runtime.config.database_path).state is not DatabaseState.CURRENT
    ):
        return Section(NAME, [], [])
    rows: list[Row] = []
    findings: list[Finding] = []
    seen: dict[tuple[str, str | None], Panes | MultiplexerError] = {}
    for overview in fleets.list_fleets(runtime):
        fleet_id = overview.fleet.fleet_id
        monitor = monitors.monitor_overview(runtime, fleet_id)
        pending = sum(monitor.pending.values())
        row: Row = {"fleet": fleet_id, "name": overview.fleet.name, "members": overview.member_count}
        rows.append({**row, "pending notifications": pending, "monitor loop": monitor.live})
        for entry in members.list_members(runtime, fleet_id):
            findings += _check_pane(runtime, entry.member, seen)
        if pending:
            findings.append(_pending(overview.fleet, pending, live=monitor.live))
    if len(seen) > 1:
        servers = ", ".join(_server(backend, name, found) for (backend, name), found in seen.items())
        findings.append(note(f"panes of live fleets are on {len(seen)} multiplexer servers: {servers}"))
    return Section(NAME, rows, findings)


def _server(backend: str, name: str | None, found: Panes | MultiplexerError) -> str:
    gone = "" if found else " (gone)"  # A living server has a pane.
    silent = " (cannot be looked at)" if isinstance(found, MultiplexerError) else gone
    return f"{backend} {name or '(not recorded)'}{silent}"


def _pending(fleet: Fleet, count: int, *, live: bool) -> Finding:
    some = "1 notification is" if count == 1 else f"{count} notifications are"
    text = f"fleet {fleet.fleet_id}: {some} still to be typed"
    if live:
        return note(f"{text}; its monitor loop tries again at each tick")
    director = fleet.director_member_id
    return issue(text, f"cafleet monitor run {fleet.fleet_id}, or cafleet message wait {director}")


def _check_pane(
    runtime: Runtime, member: Member, seen: dict[tuple[str, str | None], Panes | MultiplexerError]
) -> list[Finding]:
    placement = member.placement
    if placement is None:
        return []
    who = f"member {member.member_id} ({member.name}) of fleet {member.fleet_id}"
    respawn = f"cafleet member respawn {member.member_id} PROMPT"
    mend = f"{respawn}, or cafleet member delete {member.member_id}"
    if member.kind is MemberKind.DIRECTOR:
        mend = f"cafleet fleet delete {member.fleet_id}, or, in a pane, {respawn}"
    if placement.mux_pane_id is None:
        return [issue(f"{who} has no pane yet: its start was cut off", mend)]
    panes = _panes(runtime, placement, seen)
    if isinstance(panes, MultiplexerError):
        return [issue(f"the pane of {who} cannot be looked at: {panes}", _mend_of_server(panes))]
    pane = panes.get(placement.mux_pane_id)
    if pane is None:
        return [issue(f"the pane of {who} is gone", mend)]
    if pane.dead:
        status = "" if pane.exit_status is None else f" with status {pane.exit_status}"
        return [issue(f"the program of {who} has ended{status}", mend)]
    if pane.shell and member.kind is not MemberKind.DIRECTOR:  # Whose user may lead a fleet from a shell.
        return [issue(f"the program of {who} has ended: a shell is there", mend)]
    return []


def _mend_of_server(error: MultiplexerError) -> str:
    slow = isinstance(error, MultiplexerTimeout)
    return mend_of(error) if slow else "start its multiplexer, then look again"


def _panes(
    runtime: Runtime, placement: Placement, seen: dict[tuple[str, str | None], Panes | MultiplexerError]
) -> Panes | MultiplexerError:
    """The panes of a server, asked for once."""
    key = (placement.backend, placement.mux_server)
    if key not in seen:
        try:
            seen[key] = runtime.multiplexer_for(placement.backend).list_panes(placement.mux_server)
        except MultiplexerError as error:
            seen[key] = error
        except CafleetError as error:
            seen[key] = MultiplexerError(str(error))
    return seen[key]
