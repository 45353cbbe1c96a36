"""The ids that a shell offers while somebody types; asked for at every press of a key, so quickly."""

from collections.abc import Iterator

from cafleet.agents import registry
from cafleet.broker import fleets, members
from cafleet.cli.escapes import escape
from cafleet.errors import Conflict, NotFound
from cafleet.runtime import Runtime

PATIENCE_SECONDS = 0.05
"""How long a locked database is waited for: somebody has pressed a key and sees nothing until then."""


def lines(runtime: Runtime, wanted: str) -> Iterator[str]:
    """Candidates for `fleets`, `members` or `agents`, most with a tab and an explanation.

    Raises:
        DatabaseError: there is nothing that could be offered, or not at once.
    """
    if wanted == "agents":
        yield from registry.known(runtime.config)
        return
    runtime = runtime.for_another_thread(busy_timeout_seconds=PATIENCE_SECONDS)
    try:
        yield from _stored(runtime, wanted)
    finally:
        runtime.database.close()


def _stored(runtime: Runtime, wanted: str) -> Iterator[str]:
    """What the database knows."""
    for overview in fleets.list_fleets(runtime):
        fleet = overview.fleet
        if wanted == "fleets":
            yield f"{fleet.fleet_id}\t{escape(fleet.name or '')}"
            continue
        try:
            roster = members.list_members(runtime, fleet.fleet_id)
        except (NotFound, Conflict):
            continue  # It has ended since it was listed.
        for entry in roster:
            yield f"{entry.member.member_id}\t{escape(entry.member.name)} ({escape(fleet.name or '')})"
