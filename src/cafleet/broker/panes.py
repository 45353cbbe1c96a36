"""A Director's eyes and hands: look into members' panes, type a line of one's own (SPEC 7.2, 9)."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import NamedTuple

from cafleet.agents import registry
from cafleet.agents.base import utf16_length
from cafleet.broker.liveness import require_active_member, require_live_fleet, require_member
from cafleet.broker.placements import address, pane_of
from cafleet.clock import format_timestamp
from cafleet.db import members, notifications
from cafleet.delivery.attempt import is_left_over
from cafleet.delivery.drain import LOCK_SECONDS, type_plain_line
from cafleet.delivery.line import MAX_LINE_UNITS, ping_line, plain_line
from cafleet.delivery.pane_state import PaneState, classify, why_not
from cafleet.errors import (
    CafleetError,
    DatabaseError,
    DirectorNotTyped,
    InvalidInput,
    MemberPaneGone,
    MultiplexerTimeout,
    NoPane,
    PaneGone,
)
from cafleet.models import Member, MemberKind, Notification, Placement
from cafleet.multiplexer.base import PaneAddress, PaneStatus, is_one_line
from cafleet.runtime import Runtime

DEFAULT_CAPTURE_LINES = 40

# -- typing ------------------------------------------------------------------------------------


class Typed(NamedTuple):
    """A line for a member, and what became of it."""

    member: Member
    line: str
    notification: Notification
    """`notified`: submitted as a turn of its own."""


def prompt_member(
    runtime: Runtime, member_id: int, text: str, *, lock_seconds: float = LOCK_SECONDS
) -> Typed:
    """Type one line into the member's pane as a user's turn, as safely as a notification.

    `lock_seconds`: how long the pane's lock is waited for.

    Raises:
        InvalidInput: not one line, blank, or too long to be typed.
        MemberNotFound, FleetDeleted, MemberNotActive, NoPane.
        DirectorNotTyped: the member is the Director.
    """
    line = plain_line(text)
    if not is_one_line(text) or not line.strip():
        raise InvalidInput("a prompt is one line without control characters; send anything else as a message")
    length = utf16_length(line)
    if length > MAX_LINE_UNITS:
        limit = f"at most {MAX_LINE_UNITS} can be typed"
        raise InvalidInput(f"the prompt has {length} characters; {limit}, so send it as a message")
    return _type(runtime, member_id, line, lock_seconds)


def ping_member(runtime: Runtime, member_id: int) -> Typed:
    """Type the fixed line that asks the member to poll its inbox. Raises like `prompt_member`."""
    return _type(runtime, member_id, ping_line(member_id), LOCK_SECONDS)


def _type(runtime: Runtime, member_id: int, line: str, lock_seconds: float) -> Typed:
    with runtime.database.read() as conn:
        member = require_active_member(conn, member_id)
    if member.kind is MemberKind.DIRECTOR:
        raise DirectorNotTyped(member_id)
    pane_of(member)
    return Typed(member, line, type_plain_line(runtime, member, line, lock_seconds=lock_seconds))


# -- looking -----------------------------------------------------------------------------------


class Capture(NamedTuple):
    """The end of what a pane shows."""

    captured_at: str
    content: str
    """Wrapped lines joined, without blanks at line ends and blank lines at the end; with colours only
    where they were asked for."""


class Scanned(NamedTuple):
    """One member's pane in a scan."""

    member: Member
    capture: Capture | None
    problem: str | None
    """Why there is no capture."""


def capture_member(runtime: Runtime, member_id: int, lines: int, *, ansi: bool = False) -> Capture:
    """The last `lines` lines of a member's pane, history included.

    Raises:
        MemberNotFound, NoPane.
        MultiplexerError: the pane is gone, or cannot be reached.
    """
    member, placement, pane = _placed(runtime, member_id)
    with _naming(member):
        return _capture(runtime, placement.backend, pane, lines, ansi=ansi)


def scan_fleet(runtime: Runtime, fleet_id: int, lines: int, *, ansi: bool = False) -> list[Scanned]:
    """One capture of every placed member, the Director's first; what has none says why.

    Raises:
        FleetNotFound, FleetDeleted, FleetNotLive.
    """
    with runtime.database.read() as conn:
        require_live_fleet(conn, fleet_id)
        placed = [member for member in members.list_active(conn, fleet_id) if member.placement]
    placed.sort(key=lambda member: (member.kind is not MemberKind.DIRECTOR, member.member_id))
    servers = _Servers(runtime)
    found = []
    for member in placed:
        try:
            placement, pane = pane_of(member)
            servers.expect_answer(placement)
            captured = _capture(runtime, placement.backend, pane, lines, ansi=ansi)
            found.append(Scanned(member, captured, None))
        except CafleetError as error:
            servers.note(member.placement, error)
            found.append(Scanned(member, None, _clause(error)))
    return found


def focus_member(runtime: Runtime, member_id: int) -> Member:
    """Show the member's pane to whoever is attached to its multiplexer.

    Raises:
        MemberNotFound, NoPane.
        MultiplexerError: the pane is gone, or cannot be reached.
    """
    member, placement, pane = _placed(runtime, member_id)
    with _naming(member):
        runtime.multiplexer_for(placement.backend).focus(pane)
    return member


@contextmanager
def _naming(member: Member) -> Iterator[None]:
    """A pane that turns out to be gone is this member's: the error says how it gets another one."""
    try:
        yield
    except PaneGone as error:
        raise MemberPaneGone(member.member_id, error.reason) from error


def _placed(runtime: Runtime, member_id: int) -> tuple[Member, Placement, PaneAddress]:
    with runtime.database.read() as conn:
        member = require_member(conn, member_id)
    return member, *pane_of(member)


def _capture(runtime: Runtime, backend: str, pane: PaneAddress, lines: int, *, ansi: bool) -> Capture:
    content = runtime.multiplexer_for(backend).capture(pane, lines=lines, ansi=ansi)
    return Capture(format_timestamp(runtime.now()), content)


def _clause(error: CafleetError) -> str:
    return "it has no pane yet" if isinstance(error, NoPane) else str(error)


# -- how they are ------------------------------------------------------------------------------


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
    servers = _Servers(runtime)
    return {
        member.member_id: _report(
            runtime, servers, member, member.placement, held.get(member.member_id, 0), closely=closely
        )
        for member in roster
        if member.placement is not None
    }


class _Servers:
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
    runtime: Runtime, servers: _Servers, member: Member, placement: Placement, held: int, *, closely: bool
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
    runtime: Runtime, servers: _Servers, member: Member, placement: Placement, pane: PaneAddress
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
