"""Register a member and start its agent in a new pane (SPEC 3, 7.2)."""

from sqlite3 import Connection
from typing import NamedTuple

from cafleet.broker.cleanup import undo
from cafleet.broker.liveness import require_live_fleet, require_member
from cafleet.broker.names import check_description, check_name, check_skill
from cafleet.broker.placements import pane_of, place
from cafleet.broker.spawning import MemberStarted, Wish, card_json, opened_pane, plan
from cafleet.clock import format_timestamp
from cafleet.db import members
from cafleet.errors import DirectorPaneGone, MonitorExists, PaneDead, PaneGone
from cafleet.launch import PromptValues, check_prompt, check_survived, watch_start
from cafleet.models import Member, Placement
from cafleet.multiplexer.base import Multiplexer, PaneAddress
from cafleet.multiplexer.pane_lock import pane_locks
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
    wish = Wish(request.prompt, request.directory, request.model, request.effort)
    planned = plan(runtime, coding_agent, wish, request.name, monitor=request.monitor)
    backend = director.placement.backend
    multiplexer = runtime.multiplexer_for(backend)
    _look_at_director(multiplexer, director, beside)

    pending = Placement(0, beside.session, beside.window, None, backend, coding_agent, "", beside.server)
    member = register_member(runtime, request, pending)
    values = PromptValues(request.fleet_id, member.member_id, director.member_id, coding_agent)
    panes: list[tuple[str, PaneAddress]] = []
    try:
        with opened_pane(runtime, multiplexer, planned, values, beside) as pane:
            panes.append((backend, pane))
            # At once: an agent may ask who it is before it has survived its start.
            placed = place(runtime, member, backend, pane)
            check_survived(multiplexer, pane, planned.program)
            start = watch_start(multiplexer, pane, planned.program, start_wait_seconds)
    except BaseException as error:
        member_id = member.member_id
        undo(error, f"member {member_id}", lambda: _undo_registration(runtime, member_id, panes))
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


def _check_texts(request: MemberRequest) -> None:
    check_name(request.name)
    check_description(request.description)
    for skill in request.skills:
        check_skill(skill)
    check_prompt(request.prompt)


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
        again = f"'cafleet member respawn {director.member_id} PROMPT' opens a new one"
        raise DirectorPaneGone(director.fleet_id, director.member_id, f"{error}; {again}") from error


def _undo_registration(runtime: Runtime, member_id: int, panes: list[tuple[str, PaneAddress]]) -> None:
    """Deregister a member that never came up; whoever deleted it meanwhile did the same."""
    with pane_locks(runtime.config.data_directory, panes), runtime.database.write() as conn:
        members.delete_placement(conn, member_id)
        members.deregister(conn, member_id, format_timestamp(runtime.now()))
