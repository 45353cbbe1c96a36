"""Create, list, show and delete fleets (SPEC 3)."""

from contextlib import ExitStack
from sqlite3 import Connection
from typing import NamedTuple

from cafleet.agents import registry
from cafleet.broker.identity import CallingPane, calling_pane
from cafleet.broker.liveness import require_fleet, require_member
from cafleet.broker.names import check_name
from cafleet.broker.placements import address
from cafleet.broker.spawning import Plan, Wish, card_json, opened_pane, plan, watch
from cafleet.clock import format_timestamp
from cafleet.db import fleets, members, monitor_runtime
from cafleet.errors import CafleetError, MultiplexerError, NotInMultiplexer, PaneBusy
from cafleet.launch import PromptValues, Start, check_prompt, check_survived
from cafleet.models import Fleet, Member, Placement
from cafleet.multiplexer.base import PaneAddress
from cafleet.multiplexer.pane_lock import pane_locks, sweep_locks
from cafleet.runtime import Runtime

DIRECTOR_NAME = "director"
MONITOR_NAME = "monitor"
MONITOR_DESCRIPTION = "Looks after the other members of the fleet"
_OUTSIDE = "cafleet fleet create must run inside a tmux or herdr pane"
_LOCK_ATTEMPTS = 3


MonitorRequest = Wish
"""The monitor that a new fleet gets at once; its agent is the fleet's."""


class FleetCreated(NamedTuple):
    """A new fleet with its first members."""

    fleet: Fleet
    director: Member
    monitor: Member | None
    start: Start | None
    """How the monitor's agent came up; None without a monitor."""


class FleetOverview(NamedTuple):
    """A fleet in a list."""

    fleet: Fleet
    member_count: int
    """Active members, the Director included."""


class PaneClosing(NamedTuple):
    """What became of one pane that should be closed."""

    member_id: int
    pane: str
    problem: str | None
    """Why it is still open; None: closed, or already gone."""


class FleetDeletion(NamedTuple):
    """A deleted fleet; the second time nothing happens, and `deregistered` is 0."""

    fleet: Fleet
    deregistered: int
    panes: tuple[PaneClosing, ...]
    """Only with `kill_panes`. Never the Director's pane nor the caller's: cafleet did not open them, or
    the reply would be lost with them."""


def create_fleet(
    runtime: Runtime,
    name: str,
    coding_agent: str,
    monitor: MonitorRequest | None = None,
    *,
    start_wait_seconds: float | None = None,
) -> FleetCreated:
    """Fleet, Director (the calling pane) and, if asked for, the monitor with its pane: all or nothing.

    `start_wait_seconds`: how long to watch the monitor's first screens, after the commit; None: as
    long as its agent may take.

    Raises:
        NotInMultiplexer: outside a pane.
        InvalidInput, UsageError, BinaryNotFound: found before anything is done.
        CafleetError: whatever failed half-way, with `cleanup_failures`.
    """
    check_name(name)
    registry.get(coding_agent, runtime.config)
    pane = _calling_pane(runtime)
    if monitor is None:
        with runtime.database.write() as conn:
            fleet, director = _insert_fleet(runtime, conn, name, coding_agent, pane)
        return FleetCreated(fleet, director, None, None)

    check_prompt(monitor.prompt)
    planned = plan(runtime, coding_agent, monitor, MONITOR_NAME, monitor=True)
    return _create_with_monitor(runtime, name, coding_agent, pane, planned, start_wait_seconds)


def list_fleets(runtime: Runtime) -> list[FleetOverview]:
    """Live fleets, newest first."""
    with runtime.database.read() as conn:
        return [
            FleetOverview(fleet, members.count_active(conn, fleet.fleet_id))
            for fleet in fleets.list_live(conn)
        ]


def get_fleet(runtime: Runtime, fleet_id: int) -> Fleet:
    """Any fleet, deleted or not. Raises FleetNotFound."""
    with runtime.database.read() as conn:
        return require_fleet(conn, fleet_id)


def delete_fleet(runtime: Runtime, fleet_id: int, *, kill_panes: bool = False) -> FleetDeletion:
    """Deregister everybody and stamp the fleet, in one transaction; messages stay.

    The locks of all its panes are held meanwhile, so nobody types into a pane of a fleet that is gone.
    Panes are closed before the commit, which forgets where they are: a deletion that is killed is finished
    by the next one. A database that cannot be written is noticed before any pane is closed.

    Raises:
        FleetNotFound: no such fleet.
        PaneBusy: somebody types into one of its panes for longer than the lock is waited for.
    """
    for _ in range(_LOCK_ATTEMPTS):
        with runtime.database.read() as conn:
            fleet = require_fleet(conn, fleet_id)
            placements = members.list_placements(conn, fleet_id)
        panes = _panes(placements)
        with pane_locks(runtime.config.data_directory, panes):
            closings: tuple[PaneClosing, ...] = ()
            if kill_panes:
                # Looked at again under the locks: a member may have moved since.
                with runtime.database.read() as conn:
                    current = members.list_placements(conn, fleet_id)
                if not set(_panes(current)) <= set(panes):
                    continue
                runtime.database.prove_writable()
                closings = _close_panes(runtime, fleet, current)
            with runtime.database.write() as conn:
                if not set(_panes(members.list_placements(conn, fleet_id))) <= set(panes):
                    continue
                deregistered = _delete(runtime, conn, fleet_id)
                fleet = require_fleet(conn, fleet_id)
            # A rare and unhurried moment, so that the locks of panes long gone do not pile up.
            sweep_locks(runtime.config.data_directory, runtime.now().timestamp())
            return FleetDeletion(fleet, deregistered, closings)
    raise PaneBusy(f"panes of fleet {fleet_id} keep changing; try again")


# -- steps -------------------------------------------------------------------------------------


def _calling_pane(runtime: Runtime) -> CallingPane:
    try:
        return calling_pane(runtime)
    except NotInMultiplexer:
        raise NotInMultiplexer(_OUTSIDE) from None


def _insert_fleet(
    runtime: Runtime, conn: Connection, name: str, coding_agent: str, pane: CallingPane
) -> tuple[Fleet, Member]:
    now = format_timestamp(runtime.now())
    fleet_id = fleets.insert(conn, name, now)
    director_id = members.insert(conn, fleet_id, DIRECTOR_NAME, f"Director of {name}", "{}", now)
    members.insert_placement(conn, _placement(director_id, pane.backend, pane.address, coding_agent, now))
    fleets.set_director(conn, fleet_id, director_id)
    return require_fleet(conn, fleet_id), require_member(conn, director_id)


def _create_with_monitor(
    runtime: Runtime,
    name: str,
    coding_agent: str,
    pane: CallingPane,
    planned: Plan,
    start_wait_seconds: float | None,
) -> FleetCreated:
    multiplexer = runtime.multiplexer_for(pane.backend)
    # The pane's block ends after the transaction's: a commit that fails closes the pane, too.
    with ExitStack() as panes, runtime.database.write() as conn:
        fleet, director = _insert_fleet(runtime, conn, name, coding_agent, pane)
        now = format_timestamp(runtime.now())
        card = card_json((), monitor=True)
        monitor_id = members.insert(conn, fleet.fleet_id, MONITOR_NAME, MONITOR_DESCRIPTION, card, now)
        values = PromptValues(fleet.fleet_id, monitor_id, director.member_id, coding_agent)
        # No pane lock: nobody else can see this placement before the commit.
        opened = panes.enter_context(opened_pane(runtime, multiplexer, planned, values, pane.address))
        check_survived(multiplexer, opened, planned.program)
        members.insert_placement(conn, _placement(monitor_id, pane.backend, opened, coding_agent, now))
        monitor = require_member(conn, monitor_id)
    start = watch(multiplexer, opened, planned.program, start_wait_seconds)
    return FleetCreated(fleet, director, monitor, start)


def _placement(
    member_id: int, backend: str, pane: PaneAddress, coding_agent: str, created_at: str
) -> Placement:
    return Placement(
        member_id, pane.session, pane.window, pane.pane, backend, coding_agent, created_at, pane.server
    )


def _delete(runtime: Runtime, conn: Connection, fleet_id: int) -> int:
    now = format_timestamp(runtime.now())
    fleets.mark_deleted(conn, fleet_id, now)
    members.delete_fleet_placements(conn, fleet_id)
    monitor_runtime.delete(conn, fleet_id)
    return members.deregister_fleet(conn, fleet_id, now)


def _panes(placements: list[Placement]) -> list[tuple[str, PaneAddress]]:
    found = ((placement.backend, address(placement)) for placement in placements)
    return [(backend, pane) for backend, pane in found if pane is not None]


def _close_panes(runtime: Runtime, fleet: Fleet, placements: list[Placement]) -> tuple[PaneClosing, ...]:
    spared = {_identity(p) for p in placements if p.member_id == fleet.director_member_id}
    try:
        backend, own = calling_pane(runtime)
        spared.add((backend, own.server, own.pane))
    except MultiplexerError:
        pass  # Called from outside a multiplexer: no pane is the caller's.
    closings = []
    for placement in placements:
        pane = address(placement)
        if pane is not None and _identity(placement) not in spared:
            closings.append(_close(runtime, placement, pane))
    return tuple(closings)


def _identity(placement: Placement) -> tuple[str, str | None, str | None]:
    return placement.backend, placement.mux_server, placement.mux_pane_id


def _close(runtime: Runtime, placement: Placement, pane: PaneAddress) -> PaneClosing:
    try:
        runtime.multiplexer_for(placement.backend).kill_pane(pane)
    except CafleetError as error:  # One pane that cannot be closed does not save the others.
        return PaneClosing(placement.member_id, pane.pane, str(error))
    return PaneClosing(placement.member_id, pane.pane, None)
