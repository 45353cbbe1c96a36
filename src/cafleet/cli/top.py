"""`top`: a live dashboard in the terminal."""

import os

from cafleet.broker import fleets
from cafleet.cli.arguments import Command, Values, integer, positional
from cafleet.cli.output import Output
from cafleet.errors import FleetDeleted, UsageError
from cafleet.runtime import Runtime


def top(runtime: Runtime, values: Values, out: Output) -> int:
    """`top`: until it is left. Raises UsageError without a terminal, FleetDeleted."""
    if not (out.terminal and os.isatty(0) and os.isatty(2)):
        raise UsageError("'cafleet top' needs a terminal; 'cafleet member list' prints a roster")
    if runtime.config.environ.get("TERM") == "dumb":
        raise UsageError(
            "'cafleet top' cannot draw on a terminal with TERM=dumb; 'cafleet member list' prints a roster"
        )
    fleet_id = values.optional_integer("fleet_id")
    if fleet_id is not None and fleets.get_fleet(runtime, fleet_id).deleted_at is not None:
        raise FleetDeleted(fleet_id)
    from cafleet.top import app  # Heavy: only whoever starts the dashboard pays for it.

    app.show(runtime.for_another_thread, fleet_id)
    return 0


COMMANDS = {
    "top": Command(
        top,
        positional(
            "fleet_id",
            "FLEET_ID",
            "the fleet to begin with; the newest by default",
            integer,
            required=False,
        ),
        description="Fleets, members with their panes and unread messages, inboxes, the timeline and what "
        "could not be announced, live. Send, acknowledge, go to a pane or wake the monitor with one key "
        "each; Enter shows a member's inbox, or a whole message. The last line names the keys, and a mouse "
        "works as well; Ctrl-Z suspends.",
        examples=("cafleet top", "cafleet top 1"),
        json=False,
    ),
}
