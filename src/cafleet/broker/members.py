"""Create, list, show, respawn and delete members (SPEC 3, 7.2)."""

import json
from collections.abc import Iterable
from enum import StrEnum
from sqlite3 import Connection
from typing import Any, NamedTuple

from cafleet.broker.activity import activity_of
from cafleet.broker.cleanup import undo
from cafleet.broker.identity import calling_pane, is_calling_pane
from cafleet.broker.liveness import require_active_member, require_fleet, require_live_fleet, require_member
from cafleet.broker.names import check_description, check_name, check_skill
from cafleet.broker.spawning import Wish, address, card_json, start_request, watch
from cafleet.clock import format_timestamp
from cafleet.db import members, messages
from cafleet.errors import (
    DirectorPaneGone,
    DirectorProtected,
    FleetNotLive,
    MemberChanged,
    MemberNotActive,
    MonitorExists,
    MultiplexerError,
    NoPane,
    PaneDead,
    PaneGone,
    PaneStillThere,
)
from cafleet.launch import (
    PromptValues,
    Start,
    check_directory,
    check_prompt,
    check_survived,
    open_pane,
    prepare,
    watch_start,
)
from cafleet.models import Activity, Member, MemberKind, Placement
from cafleet.multiplexer.base import Multiplexer, PaneAddress
from cafleet.multiplexer.pane_lock import pane_lock, pane_locks
from cafleet.runtime import Runtime


class MemberRequest(NamedTuple):
    """A member to be created."""

    fleet_id: int
    name: str
    description: str
    prompt: str
    """With its placeholders."""
    directory: str
    """Where its agent starts; relative to the caller's."""
    coding_agent: str | None = None
    """None: the Director's."""
    model: str | None = None
    effort: str | None = None
    monitor: bool = False
    skills: tuple[str, ...] = ()


class RespawnRequest(NamedTuple):
    """A new pane for a member that lost its own."""

    member_id: int
    prompt: str
    directory: str
    model: str | None = None
    effort: str | None = None


class MemberStarted(NamedTuple):
    """A member with a new pane."""

    member: Member
    start: Start
    """How its agent came up."""
    left_open: str | None = None
    """A respawned member's old pane, where it still exists: its agent had exited to a shell."""


class RosterEntry(NamedTuple):
    """A member in a list."""

    member: Member
    unread: int
    activity: Activity


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


# -- reading -----------------------------------------------------------------------------------


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
    with runtime.database.read() as conn:
        require_fleet(conn, fleet_id)
        return _roster(runtime, conn, members.list_known(conn, fleet_id), fleet_id, deregistered=True)


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


def pane_of(member: Member) -> tuple[Placement, PaneAddress]:
    """The member's placement and its concrete pane. Raises NoPane."""
    pane = None if member.placement is None else address(member.placement)
    if member.placement is None or pane is None:
        raise NoPane(member.member_id, pending=member.placement is not None)
    return member.placement, pane


# -- creating ----------------------------------------------------------------------------------


def create_member(
    runtime: Runtime, request: MemberRequest, *, start_wait_seconds: float | None = None
) -> MemberStarted:
    """Register a member, open its pane beside the Director's, and watch its agent come up.

    What can be known to be wrong is found before anything is written. A later failure closes the pane
    and deregisters the member again.

    `start_wait_seconds`: how long to watch the first screens; None: as long as the agent may take; 0: only
    whether it survives its start.

    Raises:
        InvalidInput, UsageError, BinaryNotFound, FleetNotFound, FleetDeleted, FleetNotLive,
        MonitorExists, DirectorPaneGone: before anything is written.
        CafleetError: whatever failed half-way, with `cleanup_failures`.
    """
    _check_texts(request)
    director = _director(runtime, request)
    beside = pane_of(director)[1]
    assert director.placement is not None  # pane_of raised otherwise
    coding_agent = request.coding_agent or director.placement.coding_agent
    wish = Wish(request.prompt, check_directory(request.directory), request.model, request.effort)
    rehearsal = start_request(wish, request.name, None, monitor=request.monitor)
    program = prepare(runtime.config, coding_agent, rehearsal)
    backend = director.placement.backend
    multiplexer = runtime.multiplexer_for(backend)
    _look_at_director(multiplexer, director, beside)

    pending = Placement(0, beside.session, beside.window, None, backend, coding_agent, "", beside.server)
    member = register_member(runtime, request, pending)
    opened: PaneAddress | None = None
    try:
        values = PromptValues(request.fleet_id, member.member_id, director.member_id, coding_agent)
        told = start_request(wish, request.name, values, monitor=request.monitor)
        opened = open_pane(runtime, multiplexer, program, told, beside=beside, directory=wish.directory)
        check_survived(multiplexer, opened, program)
        placed = _place(runtime, member, backend, opened)
        start = watch_start(multiplexer, opened, program, start_wait_seconds)
    except BaseException as error:
        if opened is not None:
            leftover = opened
            undo(error, f"pane {leftover.pane}", lambda: multiplexer.kill_pane(leftover))
        locked = [] if opened is None else [(backend, opened)]
        undo(
            error,
            f"member {member.member_id}",
            lambda: _undo_registration(runtime, member.member_id, locked),
        )
        raise
    return MemberStarted(placed, start)


def register_member(runtime: Runtime, request: MemberRequest, placement: Placement) -> Member:
    """Insert a member and its placement, of which id and time are filled in here.

    Raises:
        FleetNotFound, FleetDeleted, FleetNotLive.
        MonitorExists: the fleet's one monitor slot is taken; nothing is written.
    """
    _check_texts(request)
    card = card_json(request.skills, monitor=request.monitor)
    with runtime.database.write() as conn:
        require_live_fleet(conn, request.fleet_id)
        if request.monitor:
            _check_monitor_slot(conn, request.fleet_id)
        now = format_timestamp(runtime.now())
        member_id = members.insert(conn, request.fleet_id, request.name, request.description, card, now)
        members.insert_placement(conn, placement._replace(member_id=member_id, created_at=now))
        return require_member(conn, member_id)


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
    wish = Wish(request.prompt, check_directory(request.directory), request.model, request.effort)
    monitor = member.kind is MemberKind.MONITOR
    program = prepare(
        runtime.config, placement.coding_agent, start_request(wish, member.name, None, monitor=monitor)
    )
    backend, beside = _beside(runtime, director, member)
    multiplexer = runtime.multiplexer_for(backend)

    old = address(placement)
    locked = [] if old is None else [(placement.backend, old)]
    with pane_locks(runtime.config.data_directory, locked):
        left_open = None if old is None else _clear_lost_pane(runtime, member, placement.backend, old)
        values = PromptValues(member.fleet_id, member.member_id, director.member_id, placement.coding_agent)
        told = start_request(wish, member.name, values, monitor=monitor)
        opened = open_pane(runtime, multiplexer, program, told, beside=beside, directory=wish.directory)
        try:
            check_survived(multiplexer, opened, program)
            placed = _place(runtime, member, backend, opened)
        except BaseException as error:
            undo(error, f"pane {opened.pane}", lambda: multiplexer.kill_pane(opened))
            raise
    return MemberStarted(placed, watch(multiplexer, opened, program, start_wait_seconds), left_open)


# -- deleting ----------------------------------------------------------------------------------


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


# -- steps -------------------------------------------------------------------------------------


def _check_texts(request: MemberRequest) -> None:
    check_name(request.name)
    check_description(request.description)
    for skill in request.skills:
        check_skill(skill)
    check_prompt(request.prompt)


def _roster(
    runtime: Runtime, conn: Connection, found: list[Member], fleet_id: int, *, deregistered: bool
) -> list[RosterEntry]:
    now = runtime.now()
    rows = messages.activity(conn, fleet_id, deregistered=deregistered)
    return [
        RosterEntry(member, rows[member.member_id].unread, activity_of(rows[member.member_id], now))
        for member in found
    ]


def _director(runtime: Runtime, request: MemberRequest) -> Member:
    """The Director of the request's live fleet; the monitor slot is looked at early, too."""
    with runtime.database.read() as conn:
        fleet = require_live_fleet(conn, request.fleet_id)
        if request.monitor:
            _check_monitor_slot(conn, request.fleet_id)
        assert fleet.director_member_id is not None  # a live fleet has one
        return require_member(conn, fleet.director_member_id)


def _check_monitor_slot(conn: Connection, fleet_id: int) -> None:
    taken = members.active_monitor(conn, fleet_id)
    if taken is not None:
        raise MonitorExists(fleet_id, taken)


def _look_at_director(multiplexer: Multiplexer, director: Member, pane: PaneAddress) -> None:
    try:
        multiplexer.look(pane)
    except (PaneGone, PaneDead) as error:
        raise DirectorPaneGone(director.fleet_id, director.member_id, str(error)) from error


def _place(runtime: Runtime, member: Member, backend: str, pane: PaneAddress) -> Member:
    """Point the member's placement at its new pane, under that pane's lock, if it is still as it was.

    Raises MemberNotActive, MemberChanged, PaneBusy.
    """
    with (
        pane_lock(runtime.config.data_directory, backend, pane),
        runtime.database.write() as conn,
    ):
        if require_active_member(conn, member.member_id).placement != member.placement:
            raise MemberChanged(member.member_id)
        # The time, too: an agent that has just been started is not typed at before it shows itself.
        now = format_timestamp(runtime.now())
        where = (pane.session, pane.window, pane.pane, pane.server)
        members.set_pane(conn, member.member_id, backend, *where, at=now)
        return require_member(conn, member.member_id)


def _undo_registration(runtime: Runtime, member_id: int, panes: list[tuple[str, PaneAddress]]) -> None:
    """Deregister a member that never came up; whoever deleted it meanwhile did the same."""
    with pane_locks(runtime.config.data_directory, panes), runtime.database.write() as conn:
        members.delete_placement(conn, member_id)
        members.deregister(conn, member_id, format_timestamp(runtime.now()))


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
