"""`fleet create`, `list`, `show`, `delete`."""

import os

from cafleet.broker import fleets
from cafleet.broker.fleets import FleetDeletion, MonitorRequest
from cafleet.cli.arguments import Command, Values, flag, integer, option, positional
from cafleet.cli.bodies import read_text
from cafleet.cli.known_agents import AGENT, AGENTS
from cafleet.cli.output import Output, record
from cafleet.cli.roster import fleet_record, member_record, warn_of_start
from cafleet.cli.table import show_table
from cafleet.errors import UsageError
from cafleet.folders import absolute_path
from cafleet.runtime import Runtime


def create(runtime: Runtime, values: Values, out: Output) -> int:
    """`fleet create`: the new ids; a monitor that needs somebody is a warning (SPEC 7.2)."""
    monitor = _monitor_request(values)
    created = fleets.create_fleet(runtime, values.text("name"), values.text("coding_agent"), monitor)
    if created.monitor is not None:
        warn_of_start(created.monitor, created.start, out)
    if out.as_json:
        out.json(
            {
                **fleet_record(created.fleet),
                "director": member_record(created.director),
                "monitor": None if created.monitor is None else member_record(created.monitor),
            }
        )
    else:
        monitor_part = "" if created.monitor is None else f" monitor={created.monitor.member_id}"
        out.write(f"{created.fleet.fleet_id} director={created.director.member_id}{monitor_part}")
    return 0


def _monitor_request(values: Values) -> MonitorRequest | None:
    model, effort = values.optional_text("monitor_model"), values.optional_text("monitor_effort")
    if not values.given("monitor_file"):
        if model is not None or effort is not None:
            raise UsageError("--monitor-model and --monitor-effort need --monitor-file")
        return None
    return MonitorRequest(read_text(values.text("monitor_file")), absolute_path(os.curdir), model, effort)


def list_(runtime: Runtime, _values: Values, out: Output) -> int:
    """`fleet list`: live fleets, newest first."""
    found = fleets.list_fleets(runtime)
    if out.as_json:
        out.json([{**fleet_record(fleet), "member_count": count} for fleet, count in found])
    elif not found:
        out.write("No fleets found.")
    else:
        rows = [(f.fleet_id, f.name, f.director_member_id, count, f.created_at) for f, count in found]
        show_table(("fleet_id", "name", "director", "members", "created_at"), rows, out, cut="name")
    return 0


def show(runtime: Runtime, values: Values, out: Output) -> int:
    """`fleet show`: any fleet, deleted or not."""
    fleet = fleets.get_fleet(runtime, values.integer("fleet_id"))
    if out.as_json:
        out.json(fleet_record(fleet))
    else:
        out.write(record(list(fleet_record(fleet).items())))
    return 0


def delete(runtime: Runtime, values: Values, out: Output) -> int:
    """`fleet delete`: what was deregistered; a pane that stays open is a warning."""
    deletion = fleets.delete_fleet(runtime, values.integer("fleet_id"), kill_panes=values.flag("kill_panes"))
    if out.as_json:
        out.json(_deletion_record(deletion))
    else:
        out.write(f"Deleted fleet {deletion.fleet.fleet_id}. Deregistered {deletion.deregistered} members.")
    for closing in deletion.panes:
        if closing.problem is not None:
            out.warn(f"pane {closing.pane} of member {closing.member_id} is still open: {closing.problem}.")
    return 0


def _deletion_record(deletion: FleetDeletion) -> dict[str, object]:
    return {
        **fleet_record(deletion.fleet),
        "deregistered": deletion.deregistered,
        "panes": [closing._asdict() for closing in deletion.panes],
    }


_FLEET_ID = positional("fleet_id", "FLEET_ID", "the fleet", integer)

COMMANDS = {
    "fleet create": Command(
        create,
        option("--name", "N", "what people call it", required=True),
        option("--coding-agent", "A", f"the program in this pane: {AGENTS}", required=True),
        option("--monitor-file", "PATH", "start a monitor, too, with this prompt; - reads standard input"),
        option("--monitor-model", "M", "the monitor's model"),
        option("--monitor-effort", "E", "the monitor's effort"),
        description="Runs inside a tmux or herdr pane, which becomes the pane of the fleet's Director. Where "
        "a step fails nothing is left behind.",
        examples=(
            f"cafleet fleet create --name parser --coding-agent {AGENT}",
            f"cafleet fleet create --name parser --coding-agent {AGENT} --monitor-file monitor.md",
        ),
    ),
    "fleet list": Command(list_, examples=("cafleet fleet list", "cafleet fleet list --json")),
    "fleet show": Command(show, _FLEET_ID, examples=("cafleet fleet show 1", "cafleet fleet show 1 --json")),
    "fleet delete": Command(
        delete,
        _FLEET_ID,
        flag("--kill-panes", "also close the members' panes; never the Director's nor the caller's"),
        description="May be repeated. A deleted fleet stays readable: only its members' panes are forgotten.",
        examples=("cafleet fleet delete 1", "cafleet fleet delete 1 --kill-panes"),
    ),
}
