"""A new pane for a member that lost its own (SPEC 7.2)."""

from functools import partial
from typing import NamedTuple

from cafleet.broker.cleanup import undo
from cafleet.broker.identity import calling_pane
from cafleet.broker.liveness import require_active_member, require_fleet
from cafleet.broker.placements import address, pane_of, place, put_back
from cafleet.broker.spawning import MemberStarted, Wish, opened_pane, plan, watch
from cafleet.db import members
from cafleet.errors import (
    DirectorPaneGone,
    FleetNotLive,
    MultiplexerError,
    NoPane,
    PaneDead,
    PaneGone,
    PaneStillThere,
)
from cafleet.launch import PromptValues, check_prompt, check_survived
from cafleet.models import Member, MemberKind
from cafleet.multiplexer.base import PaneAddress
from cafleet.multiplexer.pane_lock import pane_locks
from cafleet.runtime import Runtime


class RespawnRequest(NamedTuple):
    """A new pane for a member that lost its own."""

    member_id: int
    prompt: str
    directory: str
    model: str | None = None
    effort: str | None = None


def respawn_member(
    runtime: Runtime, request: RespawnRequest, *, start_wait_seconds: float | None = None
) -> MemberStarted:
    """A new pane for an active member whose pane is gone, or whose agent is; id, inbox and history stay.

    It opens beside the Director's pane; where that is gone too, and for the Director itself, beside the
    caller's. The old pane's lock is held meanwhile. A dead pane is closed; one in which a shell waits is
    left to whoever may use that shell.

    Raises:
        MemberNotFound, FleetDeleted, MemberNotActive, NoPane: who cannot be respawned.
        PaneStillThere: its agent lives in its pane; or it is the Director, whose agent can be started in
            the shell that is there.
        PaneBusy, and as for `create_member`.
    """
    check_prompt(request.prompt)
    with runtime.database.read() as conn:
        member = require_active_member(conn, request.member_id)
        director_id = require_fleet(conn, member.fleet_id).director_member_id
        director = None if director_id is None else members.get(conn, director_id)
    placement = member.placement
    if placement is None:
        raise NoPane(member.member_id, pending=False)
    if director is None:
        raise FleetNotLive(member.fleet_id)
    wish = Wish(request.prompt, request.directory, request.model, request.effort)
    monitor = member.kind is MemberKind.MONITOR
    planned = plan(runtime, placement.coding_agent, wish, member.name, monitor=monitor)
    backend, beside = _beside(runtime, director, member)
    multiplexer = runtime.multiplexer_for(backend)

    old = address(placement)
    locked = [] if old is None else [(placement.backend, old)]
    with pane_locks(runtime.config.data_directory, locked):
        left_open = None if old is None else _clear_lost_pane(runtime, member, placement.backend, old)
        values = PromptValues(member.fleet_id, member.member_id, director.member_id, placement.coding_agent)
        with opened_pane(runtime, multiplexer, planned, values, beside) as pane:
            # At once: an agent may ask who it is before it has survived its start.
            placed = place(runtime, member, backend, pane)
            try:
                check_survived(multiplexer, pane, planned.program)
            except BaseException as error:
                undo(
                    error,
                    f"the placement of member {member.member_id}",
                    partial(put_back, runtime, placed, placement),
                )
                raise
    return MemberStarted(placed, watch(multiplexer, pane, planned.program, start_wait_seconds), left_open)


def _beside(runtime: Runtime, director: Member, member: Member) -> tuple[str, PaneAddress]:
    """Where a respawned member's pane opens: beside the Director's, else beside the caller's."""
    reason = "it is the one to be replaced"
    if member.member_id != director.member_id:
        placement, pane = pane_of(director)
        try:
            runtime.multiplexer_for(placement.backend).look(pane)
        except (PaneGone, PaneDead) as error:
            reason = str(error)
        else:
            return placement.backend, pane
    try:
        return calling_pane(runtime)
    except MultiplexerError:
        reason += "; run this in a pane, beside which the new one can open"
        raise DirectorPaneGone(director.fleet_id, director.member_id, reason) from None


def _clear_lost_pane(runtime: Runtime, member: Member, backend: str, pane: PaneAddress) -> str | None:
    """Make sure that a pane, or the agent in it, is lost; a dead pane is closed. The pane's id where it
    stays: only a shell is there, but that shell may be somebody's.

    Raises PaneStillThere, MultiplexerError.
    """
    multiplexer = runtime.multiplexer_for(backend)
    try:
        view = multiplexer.look(pane)
    except PaneGone:
        return None
    except PaneDead:
        multiplexer.kill_pane(pane)
        return None
    if view.shell and member.kind is not MemberKind.DIRECTOR:
        return pane.pane
    raise PaneStillThere(member.member_id, pane.pane)
