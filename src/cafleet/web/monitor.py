"""`/api/monitor`: how the monitor loop is doing, its interval, a wake on request."""

from cafleet.broker import monitors
from cafleet.broker.members import names_of
from cafleet.runtime import Runtime
from cafleet.web.requests import Call, integer, json_object
from cafleet.web.rows import Json, monitor_row


def show(runtime: Runtime, call: Call) -> Json:
    """Runtime, liveness, pending notifications per member."""
    return overview(runtime, call.fleet_id)


def change(runtime: Runtime, call: Call) -> Json:
    """Change the wake interval."""
    fields = json_object(call.body, ("wake_interval_seconds",))
    seconds = integer(
        fields["wake_interval_seconds"], "wake_interval_seconds", 0, monitors.MAX_WAKE_INTERVAL_SECONDS
    )
    names = _names(runtime, call.fleet_id)
    return monitor_row(monitors.set_wake_interval(runtime, call.fleet_id, seconds), names)


def wake(runtime: Runtime, call: Call) -> Json:
    """Ask for a wake on the next tick."""
    names = _names(runtime, call.fleet_id)
    return monitor_row(monitors.request_wake(runtime, call.fleet_id), names)


def overview(runtime: Runtime, fleet_id: int) -> Json:
    """The monitor as the API and the event stream show it."""
    found = monitors.monitor_overview(runtime, fleet_id)
    return monitor_row(found, names_of(runtime, found.pending))


def _names(runtime: Runtime, fleet_id: int) -> dict[int, str]:
    """Read before something is stored: afterwards nothing may fail that would make it look unstored."""
    return names_of(runtime, monitors.monitor_overview(runtime, fleet_id).pending)
