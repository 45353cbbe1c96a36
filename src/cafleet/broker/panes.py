"""A Director's eyes and hands: look into members' panes, type a line of one's own (SPEC 7.2, 9)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from cafleet.agents.base import utf16_length
from cafleet.broker.liveness import require_active_member, require_live_fleet, require_member
from cafleet.broker.placements import pane_of
from cafleet.broker.survey import Servers
from cafleet.clock import format_timestamp
from cafleet.db import members
from cafleet.delivery.drain import LOCK_SECONDS, type_plain_line
from cafleet.delivery.line import MAX_LINE_UNITS, ping_line, plain_line
from cafleet.errors import CafleetError, DirectorNotTyped, InvalidInput, MemberPaneGone, NoPane, PaneGone
from cafleet.models import Member, MemberKind, Notification, Placement
from cafleet.multiplexer.base import PaneAddress, is_one_line
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
    servers = Servers(runtime)
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
