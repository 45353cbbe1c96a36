"""`member create`, `list`, `show`, `delete`."""

from cafleet.broker import members
from cafleet.broker.member_creation import MemberRequest, create_member
from cafleet.broker.member_deletion import MemberDeletion, PaneEnd, close_own_pane, delete_member
from cafleet.broker.members import RosterEntry
from cafleet.broker.survey import PaneCondition, PaneReport, survey
from cafleet.cli.arguments import Command, Values, integer, option, positional
from cafleet.cli.bodies import body, body_arguments
from cafleet.cli.escapes import escape
from cafleet.cli.known_agents import AGENT, AGENTS
from cafleet.cli.output import Output, record
from cafleet.cli.roster import member_record, warn_of_start
from cafleet.cli.table import show_table
from cafleet.models import Member
from cafleet.runtime import Runtime


def create(runtime: Runtime, values: Values, out: Output) -> int:
    """`member create`: the new member and its pane; one that needs somebody is a warning (SPEC 7.2)."""
    request = MemberRequest(
        fleet_id=values.integer("fleet_id"),
        name=values.text("name"),
        description=values.text("description"),
        prompt=body(values, "PROMPT"),
        directory=values.optional_text("cwd") or ".",
        coding_agent=values.optional_text("coding_agent"),
        model=values.optional_text("model"),
        effort=values.optional_text("effort"),
        monitor=values.given("role"),
        skills=tuple(values.texts("skill")),
    )
    member, start, _ = create_member(runtime, request)
    warn_of_start(member, start, out)
    show_started(member, out)
    return 0


def show_started(member: Member, out: Output) -> None:
    """A member with a new pane."""
    if out.as_json:
        out.json(member_record(member))
    else:
        name, agent, pane = escape(member.name), agent_of(member), pane_of(member)
        out.write(f"{member.member_id} {name} backend={agent} pane={pane}")


def list_(runtime: Runtime, values: Values, out: Output) -> int:
    """`member list`: active members of a live fleet, with how each pane is."""
    fleet_id = values.integer("fleet_id")
    entries = members.list_members(runtime, fleet_id)
    reports = survey(runtime, fleet_id, [entry.member for entry in entries])
    if out.as_json:
        out.json([_entry_record(entry, reports.get(entry.member.member_id)) for entry in entries])
        return 0
    columns = ("member_id", "name", "kind", "backend", "pane_id", "unread", "idle")
    rows = [_entry_row(entry, reports.get(entry.member.member_id)) for entry in entries]
    show_table(columns, rows, out, cut="name")
    return 0


def _entry_row(entry: RosterEntry, report: PaneReport | None) -> tuple[object, ...]:
    member = entry.member
    return (
        member.member_id,
        member.name,
        member.kind,
        agent_of(member),
        pane_cell(member, report),
        entry.unread,
        entry.activity.idle,
    )


def _entry_record(entry: RosterEntry, report: PaneReport | None) -> dict[str, object]:
    return {
        "member_id": entry.member.member_id,
        "name": entry.member.name,
        "kind": entry.member.kind,
        "unread": entry.unread,
        "idle": entry.activity.idle,
        "last_sent": entry.activity.last_sent,
        "last_recv": entry.activity.last_recv,
        "last_ack": entry.activity.last_ack,
        "placement": _placement_record(entry.member, report),
    }


def _placement_record(member: Member, report: PaneReport | None) -> dict[str, object] | None:
    """Where the member's pane is, and how it is."""
    placement = members.placement_facts(member.placement)
    if placement is not None and report is not None:
        placement |= report_record(report)
    return placement


def report_record(report: PaneReport) -> dict[str, object]:
    """How a member's pane is, and what waits for it."""
    return {
        "pane_state": report.condition,
        "exit_status": report.exit_status,
        "detail": report.detail,
        "held": report.held,
        "why_held": report.why_held,
    }


def pane_cell(member: Member, report: PaneReport | None) -> str | None:
    """A member's pane id and, where there is something to say of it, that: `%5 (gone)`."""
    pane = pane_of(member)
    if report is None:
        return pane
    said = []
    if report.condition is PaneCondition.ALIVE and report.detail:
        said.append(report.detail)
    elif report.condition not in (PaneCondition.ALIVE, PaneCondition.PENDING):
        status = "" if report.exit_status is None else f" {report.exit_status}"
        said.append(f"{report.condition}{status}" + (f": {report.detail}" if report.detail else ""))
    if report.held:
        why = f": {report.why_held}" if report.condition is PaneCondition.ALIVE else ""
        said.append(f"{report.held} held{why}")
    return f"{pane} ({'; '.join(said)})" if said else pane


def show(runtime: Runtime, values: Values, out: Output) -> int:
    """`member show`: one member, deregistered or not, with how its pane is."""
    member = members.get_member(runtime, values.integer("member_id"))
    report = survey(runtime, member.fleet_id, [member]).get(member.member_id)
    fields = member_record(member) | {"placement": _placement_record(member, report)}
    if out.as_json:
        out.json(fields)
        return 0
    fields["skills"] = ", ".join(map(str, members.skills(member))) or None
    fields["placement"] = (
        None if member.placement is None else f"{agent_of(member)} in pane {pane_cell(member, report)}"
    )
    out.write(record(list(fields.items())))
    return 0


def agent_of(member: Member) -> str | None:
    """The coding agent that a member runs; None without a placement."""
    return member.placement.coding_agent if member.placement else None


def pane_of(member: Member) -> str | None:
    """A member's pane id, or that it is still to come."""
    return (member.placement.mux_pane_id or "pending") if member.placement else None


def delete(runtime: Runtime, values: Values, out: Output) -> int:
    """`member delete`: the reply comes first where the caller deletes itself."""
    deletion = delete_member(runtime, values.integer("member_id"))
    if out.as_json:
        out.json(_deletion_record(deletion))
    else:
        out.write(f"{_pane_line(deletion)}\nDeregistered member {deletion.member.member_id}.")
    if deletion.problem is not None:
        out.warn(f"pane {_pane_id(deletion)} is still open: {deletion.problem}.")
    out.flush()  # The reply is with its reader before the caller's own pane goes, and this process with it.
    close_own_pane(runtime, deletion)
    return 0


def _pane_line(deletion: MemberDeletion) -> str:
    pane = _pane_id(deletion)
    match deletion.pane:
        case PaneEnd.CLOSED:
            return f"Closed pane {pane}."
        case PaneEnd.GONE:
            return f"Pane {pane} was already gone."
        case PaneEnd.NONE:
            return "There was no pane."
        case PaneEnd.OWN:
            return f"Closing pane {pane}, the caller's own."
        case PaneEnd.LEFT:
            return f"Pane {pane} was left open."


def _pane_id(deletion: MemberDeletion) -> str | None:
    return deletion.placement.mux_pane_id if deletion.placement else None


def _deletion_record(deletion: MemberDeletion) -> dict[str, object]:
    return {
        **member_record(deletion.member),
        "pane": {"pane_id": _pane_id(deletion), "state": deletion.pane, "problem": deletion.problem},
    }


def _role(text: str) -> str:
    if text != "monitor":
        raise ValueError(f"must be monitor (got '{text}')")
    return text


_MEMBER_ID = positional("member_id", "MEMBER_ID", "the member", integer)

COMMANDS = {
    "member create": Command(
        create,
        *body_arguments("PROMPT", "what its agent is told first"),
        option("--fleet-id", "FLEET_ID", "the fleet that it joins", integer, required=True),
        option("--name", "N", "what people call it", required=True),
        option("--description", "D", "what it is for", required=True),
        option("--coding-agent", "A", f"its program: {AGENTS}; the Director's by default"),
        option("--model", "M", "passed on to the program"),
        option("--effort", "E", "passed on to the program"),
        option("--role", "ROLE", "monitor: it looks after the others", _role),
        option("--skill", "S", "something that it is good at", many=True),
        option("--cwd", "DIR", "where its program starts; the caller's folder by default"),
        description="The prompt may use {fleet_id}, {member_id}, {director_member_id} and {coding_agent}; "
        "{{ and }} stand for braces. Where a step fails, nothing is left behind.",
        examples=(
            "cafleet member create --fleet-id 1 --name ann --description tests 'You are member {member_id}.'",
            f"cafleet member create --fleet-id 1 --name bob --description reviews --coding-agent {AGENT} "
            "--file bob.md",
        ),
    ),
    "member list": Command(
        list_,
        positional("fleet_id", "FLEET_ID", "the fleet", integer),
        description="idle is in seconds since a member last sent, received or acknowledged something. A "
        "pane that is gone, whose agent has exited, or for which notifications are held back, says so.",
        examples=("cafleet member list 1", "cafleet member list 1 --json"),
    ),
    "member show": Command(
        show,
        _MEMBER_ID,
        description="Its pane is looked at, as in 'member list'.",
        examples=("cafleet member show 2", "cafleet member show 2 --json"),
    ),
    "member delete": Command(
        delete,
        _MEMBER_ID,
        description="Its messages stay. The Director goes with its fleet only.",
        examples=("cafleet member delete 2",),
    ),
}
