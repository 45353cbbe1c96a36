"""`/api/members`: the roster, and each member's inbox and sent messages."""

from cafleet.broker import members, timeline
from cafleet.errors import MemberNotFound
from cafleet.runtime import Runtime
from cafleet.web.requests import Call, limit_of
from cafleet.web.rows import Json, member_row, message_rows

DEFAULT_LIMIT = 100


def list_members(runtime: Runtime, call: Call) -> list[Json]:
    """Active members, and deregistered ones that own messages."""
    return [member_row(entry) for entry in members.list_known_members(runtime, call.fleet_id)]


def inbox(runtime: Runtime, call: Call) -> list[Json]:
    """Deliveries to the member in any state, newest status first."""
    limit = limit_of(call.query, DEFAULT_LIMIT)
    require_in_fleet(runtime, call.path_id, call.fleet_id)
    return message_rows(runtime, timeline.received(runtime, call.path_id, limit))


def sent(runtime: Runtime, call: Call) -> list[Json]:
    """Deliveries from the member, newest status first."""
    limit = limit_of(call.query, DEFAULT_LIMIT)
    require_in_fleet(runtime, call.path_id, call.fleet_id)
    return message_rows(runtime, timeline.sent(runtime, call.path_id, limit))


def require_in_fleet(runtime: Runtime, member_id: int, fleet_id: int) -> None:
    """A member of another fleet does not exist as far as this call goes."""
    if members.get_member(runtime, member_id).fleet_id != fleet_id:
        raise MemberNotFound(member_id)
