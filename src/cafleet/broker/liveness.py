"""Who exists and who lives: the checks that most rules begin with (SPEC 3, 7.3)."""

from sqlite3 import Connection

from cafleet.db import fleets, members
from cafleet.errors import FleetDeleted, FleetNotFound, FleetNotLive, MemberNotActive, MemberNotFound
from cafleet.models import Fleet, Member, MemberStatus


def require_fleet(conn: Connection, fleet_id: int) -> Fleet:
    """The fleet, deleted or not. Raises FleetNotFound."""
    fleet = fleets.get(conn, fleet_id)
    if fleet is None:
        raise FleetNotFound(fleet_id)
    return fleet


def require_live_fleet(conn: Connection, fleet_id: int) -> Fleet:
    """A fleet whose Director is active and placed. Raises FleetNotFound, FleetDeleted, FleetNotLive."""
    fleet = require_fleet(conn, fleet_id)
    if fleet.deleted_at is not None:
        raise FleetDeleted(fleet_id)
    if not fleets.is_live(conn, fleet_id):
        raise FleetNotLive(fleet_id)
    return fleet


def require_member(conn: Connection, member_id: int) -> Member:
    """The member, active or not. Raises MemberNotFound."""
    member = members.get(conn, member_id)
    if member is None:
        raise MemberNotFound(member_id)
    return member


def require_active_member(conn: Connection, member_id: int) -> Member:
    """An active member of a fleet that is not deleted.

    Raises MemberNotFound, FleetDeleted, MemberNotActive, in this order."""
    member = require_member(conn, member_id)
    if require_fleet(conn, member.fleet_id).deleted_at is not None:
        raise FleetDeleted(member.fleet_id)
    if member.status is not MemberStatus.ACTIVE:
        raise MemberNotActive(member_id)
    return member
