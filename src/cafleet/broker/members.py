"""Who is in a fleet: list and show members (SPEC 3, 7.2)."""

import json
from collections.abc import Callable, Iterable
from sqlite3 import Connection
from typing import Any, NamedTuple

from cafleet.broker.activity import activity_of
from cafleet.broker.liveness import require_fleet, require_live_fleet, require_member
from cafleet.db import members, messages
from cafleet.models import Activity, Member, Placement
from cafleet.runtime import Runtime


class RosterEntry(NamedTuple):
    """A member in a list."""

    member: Member
    unread: int
    activity: Activity


def get_member(runtime: Runtime, member_id: int) -> Member:
    """Any member, active or not. Raises MemberNotFound."""
    with runtime.database.read() as conn:
        return require_member(conn, member_id)


def list_members(runtime: Runtime, fleet_id: int) -> list[RosterEntry]:
    """Active members of a live fleet, by id.

    Raises:
        FleetNotFound, FleetDeleted, FleetNotLive.
    """
    with runtime.database.read() as conn:
        require_live_fleet(conn, fleet_id)
        return _roster(runtime, conn, members.list_active(conn, fleet_id), fleet_id, deregistered=False)


def list_known_members(runtime: Runtime, fleet_id: int) -> list[RosterEntry]:
    """Active members of any fleet, and deregistered ones that own messages, by id.

    Raises:
        FleetNotFound: no such fleet.
    """
    return _of_any_fleet(runtime, fleet_id, members.list_known)


def list_everyone(runtime: Runtime, fleet_id: int) -> list[RosterEntry]:
    """Whoever was ever a member of the fleet, by id: a member that leaves changes, and never just vanishes.

    Raises:
        FleetNotFound: no such fleet.
    """
    return _of_any_fleet(runtime, fleet_id, members.list_all)


def names_of(runtime: Runtime, member_ids: Iterable[int]) -> dict[int, str]:
    """Names by id, active or not, in id order; unknown ids are missing."""
    wanted = sorted(set(member_ids))
    found: dict[int, str] = {}
    with runtime.database.read() as conn:
        for start in range(0, len(wanted), members.NAMES_PER_QUERY):
            found |= members.names(conn, wanted[start : start + members.NAMES_PER_QUERY])
    return found


def skills(member: Member) -> list[Any]:
    """The skills of the member's card, in whatever JSON form they were stored."""
    try:
        card = json.loads(member.card_json)
    except ValueError:
        return []
    found = card.get("skills") if isinstance(card, dict) else None
    return found if isinstance(found, list) else []


def member_facts(member: Member) -> dict[str, object]:
    """What every face shows of a member beside its ids; the stored card stays inside."""
    return {
        "name": member.name,
        "description": member.description,
        "kind": member.kind,
        "status": member.status,
        "registered_at": member.registered_at,
        "deregistered_at": member.deregistered_at,
        "skills": skills(member),
    }


def placement_facts(placement: Placement | None) -> dict[str, object] | None:
    """The whole placement without the member's id, which stands beside it."""
    if placement is None:
        return None
    facts = placement._asdict()
    del facts["member_id"]
    return facts


def _of_any_fleet(
    runtime: Runtime, fleet_id: int, select: Callable[[Connection, int], list[Member]]
) -> list[RosterEntry]:
    with runtime.database.read() as conn:
        require_fleet(conn, fleet_id)
        return _roster(runtime, conn, select(conn, fleet_id), fleet_id, deregistered=True)


def _roster(
    runtime: Runtime, conn: Connection, found: list[Member], fleet_id: int, *, deregistered: bool
) -> list[RosterEntry]:
    now = runtime.now()
    rows = messages.activity(conn, fleet_id, deregistered=deregistered)
    return [
        RosterEntry(member, rows[member.member_id].unread, activity_of(rows[member.member_id], now))
        for member in found
    ]
