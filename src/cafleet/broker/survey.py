"""How the panes of members are: what became of each, and why notifications wait for it (SPEC 4.3, 7.2)."""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from cafleet.agents import registry
from cafleet.broker.placements import address
from cafleet.db import notifications
from cafleet.delivery.attempt import is_left_over
from cafleet.delivery.pane_state import PaneState, classify, why_not
from cafleet.errors import CafleetError, DatabaseError, MultiplexerTimeout
from cafleet.models import Member, MemberKind, Placement
from cafleet.multiplexer.base import PaneAddress, PaneStatus
from cafleet.runtime import Runtime


class PaneCondition(StrEnum):
    """What has become of a member's pane."""

    ALIVE = "alive"
    EXITED = "exited"
    """The pane is there, its agent is not: a dead pane, or a shell at its prompt."""
    GONE = "gone"
    """The pane, or its whole multiplexer server, is no more."""
    PENDING = "pending"
    """It is still to come."""
    UNKNOWN = "unknown"
    """The multiplexer did not answer: see `detail`."""


class PaneReport(NamedTuple):
    """A placed member's pane, and the notifications that wait for it."""

    condition: PaneCondition
    exit_status: int | None
    """Of a dead pane's program, where it is known."""
    detail: str | None
    """One clause for people."""
    held: int
    """Notifications that are still to be typed."""
    why_held: str | None
    """One clause; None where nothing is held."""
    state: PaneState | None = None
    """What the pane shows; None where it was not looked at."""


def survey(
    runtime: Runtime, fleet_id: int, roster: Iterable[Member], *, closely: bool = False
) -> dict[int, PaneReport]:
    """How the panes of `roster`, members of the fleet, are at this moment, by member; those without a
    placement are left out.

    One listing per multiplexer server, and one look at each live pane for which something is held, or
    `closely` at every live pane. Never fails because of a multiplexer.

    Raises:
        DatabaseError.
    """
    with runtime.database.read() as conn:
        held = notifications.pending_count(conn, fleet_id)
    servers = Servers(runtime)
    return {
        member.member_id: _report(
            runtime, servers, member, member.placement, held.get(member.member_id, 0), closely=closely
        )
        for member in roster
        if member.placement is not None
    }


class Servers:
    """What is known of each multiplexer server in one survey: each is asked once, and no more after it
    has been silent once."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._panes: dict[tuple[str, str | None], dict[str, PaneStatus]] = {}
        self._errors: dict[tuple[str, str | None], CafleetError] = {}

    def panes(self, placement: Placement) -> dict[str, PaneStatus]:
        """Every pane of the placement's server. Raises CafleetError."""
        server = _server_of(placement)
        self.expect_answer(placement)
        if server not in self._panes:
            try:
                multiplexer = self._runtime.multiplexer_for(placement.backend)
                self._panes[server] = multiplexer.list_panes(placement.mux_server)
            except CafleetError as error:
                self._errors[server] = error
                raise
        return self._panes[server]

    def expect_answer(self, placement: Placement) -> None:
        """Raises CafleetError: this server could not be asked before."""
        if error := self._errors.get(_server_of(placement)):
            raise error

    def note(self, placement: Placement | None, error: CafleetError) -> None:
        """A call has failed; a server that is silent is not asked again."""
        if placement is not None and isinstance(error, MultiplexerTimeout):
            self._errors[_server_of(placement)] = error


def _server_of(placement: Placement) -> tuple[str, str | None]:
    return placement.backend, placement.mux_server


def _report(
    runtime: Runtime, servers: Servers, member: Member, placement: Placement, held: int, *, closely: bool
) -> PaneReport:
    pane = address(placement)
    if pane is None:
        return PaneReport(PaneCondition.PENDING, None, None, held, None)
    try:
        status = servers.panes(placement).get(pane.pane)
    except CafleetError as error:
        why = str(error) if held else None
        return PaneReport(PaneCondition.UNKNOWN, None, str(error), held, why)
    if status is None:
        return PaneReport(PaneCondition.GONE, None, None, held, "its pane is gone" if held else None)
    detail = "a shell is there" if status.shell else None
    if status.shell and not status.dead and member.kind is MemberKind.DIRECTOR:
        # A person may direct from a shell: nothing need have exited. Nothing is ever typed there.
        return PaneReport(PaneCondition.ALIVE, None, detail, held, None)
    if status.dead or status.shell:
        why = "its agent has exited" if held else None
        return PaneReport(PaneCondition.EXITED, status.exit_status, detail, held, why)
    state, why = None, None
    if held or closely:
        state, why = _look(runtime, servers, member, placement, pane)
    return PaneReport(PaneCondition.ALIVE, None, None, held, why if held else None, state)


def _look(
    runtime: Runtime, servers: Servers, member: Member, placement: Placement, pane: PaneAddress
) -> tuple[PaneState | None, str]:
    """One look, as a drain would take it: what the pane shows, and why something may be held there."""
    try:
        servers.expect_answer(placement)
        agent = registry.get(placement.coding_agent, runtime.config)
        view = runtime.multiplexer_for(placement.backend).look(pane)
    except DatabaseError:
        raise
    except CafleetError as error:
        servers.note(placement, error)
        return None, str(error)
    reading = classify(view, agent)
    if reading.state is PaneState.DRAFT and is_left_over(runtime, placement, reading):
        return reading.state, "a line of cafleet's stands in its composer, not submitted yet"
    reason = why_not(reading, view, member.member_id)
    return reading.state, reason or "nobody has typed it yet; its pane is free"
