"""From a member to its pane and back (SPEC 3): the link may change only under the pane's lock."""

from cafleet.broker.liveness import require_active_member, require_member
from cafleet.clock import format_timestamp
from cafleet.db import members
from cafleet.errors import MemberChanged, NoPane
from cafleet.models import Member, Placement
from cafleet.multiplexer.base import PaneAddress
from cafleet.multiplexer.pane_lock import pane_lock
from cafleet.runtime import Runtime


def address(placement: Placement) -> PaneAddress | None:
    """The pane that a placement names; None where it is pending."""
    if placement.mux_pane_id is None:
        return None
    return PaneAddress(
        placement.mux_server, placement.mux_session, placement.mux_window_id, placement.mux_pane_id
    )


def pane_of(member: Member) -> tuple[Placement, PaneAddress]:
    """The member's placement and its concrete pane. Raises NoPane."""
    pane = None if member.placement is None else address(member.placement)
    if member.placement is None or pane is None:
        raise NoPane(member.member_id, pending=member.placement is not None)
    return member.placement, pane


def place(runtime: Runtime, member: Member, backend: str, pane: PaneAddress) -> Member:
    """Point the member's placement at its new pane, under that pane's lock, if it is still as it was.

    Raises MemberNotActive, MemberChanged, PaneBusy.
    """
    with (
        pane_lock(runtime.config.data_directory, backend, pane),
        runtime.database.write() as conn,
    ):
        placement = require_active_member(conn, member.member_id).placement
        if placement is None or placement != member.placement:
            raise MemberChanged(member.member_id)
        moved = placement._replace(
            backend=backend,
            mux_server=pane.server,
            mux_session=pane.session,
            mux_window_id=pane.window,
            mux_pane_id=pane.pane,
            # An agent that has just been started is not typed at before it shows itself.
            created_at=format_timestamp(runtime.now()),
        )
        members.move_placement(conn, moved)
        return require_member(conn, member.member_id)


def put_back(runtime: Runtime, placed: Member, earlier: Placement) -> None:
    """Undo `place`: the member's placement is `earlier` again, unless somebody has changed it since.

    Raises PaneBusy.
    """
    placement, pane = pane_of(placed)
    with (
        pane_lock(runtime.config.data_directory, placement.backend, pane),
        runtime.database.write() as conn,
    ):
        if members.get_placement(conn, placed.member_id) == placement:
            members.move_placement(conn, earlier)
