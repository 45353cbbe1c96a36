"""`/api/timeline`."""

from cafleet.broker import timeline as broker
from cafleet.runtime import Runtime
from cafleet.web.requests import Call
from cafleet.web.rows import Json, message_rows


def timeline(runtime: Runtime, call: Call) -> list[Json]:
    """At most 200 deliveries, newest status first; those of a broadcast share `origin_message_id`."""
    return message_rows(runtime, broker.timeline(runtime, call.fleet_id))
