"""Close a member's pane and deregister it (SPEC 3, 7.2)."""

from enum import StrEnum
from typing import NamedTuple

from cafleet.broker.identity import is_calling_pane
from cafleet.broker.liveness import require_active_member, require_fleet, require_member
from cafleet.broker.placements import address
from cafleet.clock import format_timestamp
from cafleet.db import members
from cafleet.errors import DirectorProtected, MemberChanged, MemberNotActive, MultiplexerError, PaneGone
from cafleet.models import Member, Placement
from cafleet.multiplexer.base import PaneAddress
from cafleet.multiplexer.pane_lock import pane_lock
from cafleet.runtime import Runtime


class PaneEnd(StrEnum):
    """What became of a deleted member's pane."""

    CLOSED = "closed"
    GONE = "gone"
    """It had been closed before."""
    NONE = "none"
    """The member never got one."""
    OWN = "own"
    """The caller's: closed by `close_own_pane`, once the reply has been given."""
    LEFT = "left"
    """It could not be closed: see `problem`."""


class MemberDeletion(NamedTuple):
    """A deregistered member and its pane."""

    member: Member
    """As it is now: deregistered, without placement."""
    placement: Placement | None
    """The one that was removed."""
    pane: PaneEnd
    problem: str | None


def delete_member(runtime: Runtime, member_id: int) -> MemberDeletion:
    """Close the member's pane and deregister it, under the pane's lock.

    A pane that cannot be closed is left and reported: the member goes all the same. The caller's own
    pane is left to `close_own_pane`.

    Raises:
        MemberNotFound, FleetDeleted, MemberNotActive.
        DirectorProtected: the Director goes with its fleet only.
        PaneBusy: somebody types into the pane for longer than the lock is waited for.
        MemberChanged: the member got another pane in this moment.
    """
    placement = _deletable(runtime, member_id).placement
    pane = None if placement is None else address(placement)
    if placement is None or pane is None:
        return MemberDeletion(_deregister(runtime, member_id, placement), placement, PaneEnd.NONE, None)
    with pane_lock(runtime.config.data_directory, placement.backend, pane):
        if _deletable(runtime, member_id).placement != placement:
            raise MemberChanged(member_id)
        if is_calling_pane(runtime, placement):
            end, problem = PaneEnd.OWN, None
        else:
            runtime.database.prove_writable()  # Else the pane would be gone, and the member still there.
            end, problem = _close(runtime, placement, pane)
        member = _deregister(runtime, member_id, placement)
    return MemberDeletion(member, placement, end, problem)


def close_own_pane(runtime: Runtime, deletion: MemberDeletion) -> None:
    """After a member has deleted itself and said so: close its pane, and this process with it.

    Does nothing for any other deletion. Raises MultiplexerError.
    """
    if deletion.pane is PaneEnd.OWN and deletion.placement is not None:
        pane = address(deletion.placement)
        if pane is not None:
            runtime.multiplexer_for(deletion.placement.backend).kill_pane(pane)


def _deletable(runtime: Runtime, member_id: int) -> Member:
    with runtime.database.read() as conn:
        member = require_member(conn, member_id)
        fleet = require_fleet(conn, member.fleet_id)
        if fleet.deleted_at is None and fleet.director_member_id == member_id:
            raise DirectorProtected(member_id, member.fleet_id)
        return require_active_member(conn, member_id)


def _close(runtime: Runtime, placement: Placement, pane: PaneAddress) -> tuple[PaneEnd, str | None]:
    try:
        closed = runtime.multiplexer_for(placement.backend).kill_pane(pane)
    except PaneGone:
        return PaneEnd.GONE, None
    except MultiplexerError as error:
        return PaneEnd.LEFT, str(error)
    return (PaneEnd.CLOSED if closed else PaneEnd.GONE), None


def _deregister(runtime: Runtime, member_id: int, placement: Placement | None) -> Member:
    """Deregister a member that still has this placement. Raises MemberNotActive, MemberChanged."""
    with runtime.database.write() as conn:
        if members.get_placement(conn, member_id) != placement:
            raise MemberChanged(member_id)
        if not members.deregister(conn, member_id, format_timestamp(runtime.now())):
            raise MemberNotActive(member_id)
        members.delete_placement(conn, member_id)
        return require_member(conn, member_id)
