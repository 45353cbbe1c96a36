"""`monitor run`, `status`, `wake`, `scan`."""

from cafleet.broker import members, monitors, panes
from cafleet.broker.members import RosterEntry
from cafleet.broker.monitors import MonitorOverview
from cafleet.broker.panes import DEFAULT_CAPTURE_LINES, Scanned
from cafleet.broker.survey import PaneCondition, PaneReport, survey
from cafleet.cli.arguments import Command, Values, count, integer, option, positional
from cafleet.cli.escapes import escape, escape_lines
from cafleet.cli.member import agent_of, pane_cell, pane_of, report_record
from cafleet.cli.output import DIM, Output, OutputClosed, OutputFailed, record
from cafleet.cli.panes import ANSI, LINES, capture_record
from cafleet.runtime import Runtime


def run(runtime: Runtime, values: Values, out: Output) -> int:
    """`monitor run`: until it is interrupted; each line of its log at once (SPEC 9)."""
    from cafleet.monitor.lease import DEFAULT_TICK_SECONDS, Cadence
    from cafleet.monitor.loop import run_monitor

    cadence = Cadence(
        values.optional_integer("tick") or DEFAULT_TICK_SECONDS, values.optional_integer("interval")
    )
    run_monitor(runtime, values.integer("fleet_id"), cadence, Log(out).write)
    return 0


class Log:
    """Standard output, line by line; the loop goes on where nobody reads it or it cannot be written."""

    def __init__(self, out: Output) -> None:
        self._out, self._read = out, True

    def write(self, line: str) -> None:
        """One line, at once."""
        if not self._read:
            return
        try:
            self._out.write(escape(line))
            self._out.flush()
        except OutputClosed:
            self._read = False
        except OutputFailed:
            pass  # A full disk has room again one day.


def status(runtime: Runtime, values: Values, out: Output) -> int:
    """`monitor status`: the loop, and the members whose pane is lost or has lines held back."""
    fleet_id = values.integer("fleet_id")
    overview = monitors.monitor_overview(runtime, fleet_id)
    roster = members.list_members(runtime, fleet_id)
    reports = survey(runtime, fleet_id, [entry.member for entry in roster])
    if out.as_json:
        out.json(_status_record(overview, roster, reports))
        return 0
    out.write(record(_status_fields(overview)))
    for entry in roster:
        report = reports.get(entry.member.member_id)
        if report is not None and (report.held or report.condition is not PaneCondition.ALIVE):
            name, cell = escape(entry.member.name), pane_cell(entry.member, report)
            out.write(f"member {entry.member.member_id} {name}: {escape(cell or '')}")
    return 0


def _status_fields(overview: MonitorOverview) -> list[tuple[str, object]]:
    row = overview.runtime
    fields: list[tuple[str, object]] = [
        ("fleet", overview.fleet_id),
        ("monitor", overview.monitor_member_id),
        ("loop", _loop_words(overview)),
    ]
    if row is not None:
        fields += [
            ("started_at", row.started_at),
            ("last_tick_at", row.last_tick_at),
            ("tick_seconds", row.tick_seconds),
            ("wake_interval_seconds", row.wake_interval_seconds),
            ("last_wake_at", row.last_wake_at),
            ("wake_requested_at", row.wake_requested_at),
        ]
    fields.append(("held", sum(overview.pending.values())))
    return fields


def _loop_words(overview: MonitorOverview) -> str:
    row = overview.runtime
    if row is None or row.pid is None:
        return "not running"
    if not overview.live:
        return f"not running (it was pid {row.pid}, and did not end in order)"
    if monitors.runs_other_program(row):
        return f"running (pid {row.pid}), but this cafleet was installed after its start; restart it"
    return f"running (pid {row.pid})"


def _status_record(
    overview: MonitorOverview, roster: list[RosterEntry], reports: dict[int, PaneReport]
) -> dict[str, object]:
    row, live = overview.runtime, overview.live
    return {
        "fleet_id": overview.fleet_id,
        "live": live,
        "restart_needed": live and row is not None and monitors.runs_other_program(row),
        "monitor_member_id": overview.monitor_member_id,
        "pid": row.pid if row else None,
        "started_at": row.started_at if row else None,
        "last_tick_at": row.last_tick_at if row else None,
        "tick_seconds": row.tick_seconds if row else None,
        "wake_interval_seconds": row.wake_interval_seconds if row else None,
        "last_wake_at": row.last_wake_at if row else None,
        "wake_requested_at": row.wake_requested_at if row else None,
        "members": [
            {
                "member_id": entry.member.member_id,
                "name": entry.member.name,
                "pane_id": pane_of(entry.member),
                **report_record(reports[entry.member.member_id]),
            }
            for entry in roster
            if entry.member.member_id in reports
        ],
    }


def wake(runtime: Runtime, values: Values, out: Output) -> int:
    """`monitor wake`: the request is kept for the loop's next tick."""
    fleet_id = values.integer("fleet_id")
    overview = monitors.request_wake(runtime, fleet_id)
    if out.as_json:
        row = overview.runtime
        out.json({"fleet_id": fleet_id, "wake_requested_at": row.wake_requested_at if row else None})
    else:
        out.write(f"Fleet {fleet_id}'s monitor is woken with the next tick.")
    if overview.monitor_member_id is None:
        out.warn(f"fleet {fleet_id} has no active monitor; the request waits for one.")
    return 0


def scan(runtime: Runtime, values: Values, out: Output) -> int:
    """`monitor scan`: the end of every pane, one after the other."""
    lines = values.optional_integer("lines") or DEFAULT_CAPTURE_LINES
    ansi = values.flag("ansi")
    found = panes.scan_fleet(runtime, values.integer("fleet_id"), lines, ansi=ansi)
    if out.as_json:
        out.json([_scanned_record(one) for one in found])
        return 0
    for number, one in enumerate(found):
        if number:
            out.write("")
        out.write(out.paint(_scan_header(one), DIM))
        if one.capture is not None and one.capture.content:
            content = one.capture.content if ansi else escape_lines(one.capture.content)
            # Indented, so that nothing on a screen can pass for the header of another one.
            out.write("\n".join(f"  {line}".rstrip() for line in content.split("\n")))
    return 0


def _scan_header(one: Scanned) -> str:
    member = one.member
    words = [f"{member.member_id} {escape(member.name)}", str(member.kind), str(agent_of(member))]
    words.append(f"pane {pane_of(member)}")
    if one.problem is not None:
        words.append(f"no capture: {escape(one.problem)}")
    return f"[{' | '.join(words)}]"


def _scanned_record(one: Scanned) -> dict[str, object]:
    nothing = {"captured_at": None, "content_sha256": None, "content": None}
    return {
        "member_id": one.member.member_id,
        "name": one.member.name,
        "kind": one.member.kind,
        "pane_id": one.member.placement.mux_pane_id if one.member.placement else None,
        "problem": one.problem,
        **(nothing if one.capture is None else capture_record(one.capture)),
    }


_FLEET_ID = positional("fleet_id", "FLEET_ID", "the fleet", integer)

COMMANDS = {
    "monitor run": Command(
        run,
        _FLEET_ID,
        option("--tick", "S", "seconds between two ticks (5)", count),
        option(
            "--interval",
            "S",
            "seconds between two wakes, 0 for none (as before; CAFLEET_MONITOR_WAKE_INTERVAL; 600)",
            integer,
        ),
        description="Runs until it is interrupted or the fleet is deleted; one per fleet. With each tick it "
        "types the notifications that could not be typed before, and wakes the fleet's monitor when that is "
        "due. It prints a line for each thing that happens.",
        examples=("cafleet monitor run 1", "cafleet monitor run 1 --tick 2 --interval 300"),
        json=False,
    ),
    "monitor status": Command(
        status,
        _FLEET_ID,
        description="Whether the loop runs, how often it does what, whose pane is lost, and which "
        "notifications are held back and why.",
        examples=("cafleet monitor status 1", "cafleet monitor status 1 --json"),
    ),
    "monitor wake": Command(
        wake,
        _FLEET_ID,
        description="Also where scheduled wakes are off. Repeated requests are one.",
        examples=("cafleet monitor wake 1",),
    ),
    "monitor scan": Command(
        scan,
        _FLEET_ID,
        LINES,
        ANSI,
        description="The Director's pane comes first. A pane that cannot be read is listed with the reason.",
        examples=("cafleet monitor scan 1", "cafleet monitor scan 1 --lines 20 --json"),
    ),
}
