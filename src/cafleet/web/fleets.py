"""`/api/fleets`."""

from cafleet.broker import fleets
from cafleet.runtime import Runtime
from cafleet.web.requests import Call
from cafleet.web.rows import Json, fleet_row


def list_fleets(runtime: Runtime, _call: Call) -> list[Json]:
    """Live fleets, newest first."""
    return [fleet_row(overview) for overview in fleets.list_fleets(runtime)]
