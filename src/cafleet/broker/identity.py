"""Who is calling: the member whose pane this process runs in (SPEC 7.2, `whoami`)."""

from contextlib import suppress
from typing import NamedTuple

from cafleet.broker.liveness import require_fleet
from cafleet.db import members
from cafleet.errors import DatabaseError, MultiplexerError, NotAMember
from cafleet.models import Member, Placement
from cafleet.multiplexer.base import PaneAddress
from cafleet.multiplexer.select import current_backend
from cafleet.runtime import Runtime


class Identity(NamedTuple):
    """The calling pane's member."""

    member: Member
    director_member_id: int | None


class CallingPane(NamedTuple):
    """The pane that this process runs in."""

    backend: str
    address: PaneAddress


def whoami(runtime: Runtime) -> Identity:
    """The active member that is placed in the calling pane, by server and pane id.

    A pane whose program has created a further fleet is a member of both: the newest one answers. Who
    creates a fleet with its monitor commits only after that one has survived its start (SPEC 3), so nobody
    is told to be nobody before a write that is under way has ended.

    Raises:
        NotInMultiplexer, MultiplexerError: the calling pane cannot be told.
        NotAMember: nobody is placed in it.
    """
    pane = calling_pane(runtime).address
    found = _placed_in(runtime, pane)
    if found is None:
        with suppress(DatabaseError):  # Where nothing can be written, nothing is on its way either.
            runtime.database.prove_writable()
        found = _placed_in(runtime, pane)
    if found is None:
        raise NotAMember
    return found


def _placed_in(runtime: Runtime, pane: PaneAddress) -> Identity | None:
    with runtime.database.read() as conn:
        member = members.by_pane(conn, pane.server, pane.pane)
        if member is None:
            return None
        return Identity(member, require_fleet(conn, member.fleet_id).director_member_id)


def calling_pane(runtime: Runtime) -> CallingPane:
    """The pane that this process runs in. Raises NotInMultiplexer, MultiplexerError."""
    backend = current_backend(runtime.config)
    return CallingPane(backend, runtime.multiplexer_for(backend).current_pane())


def is_calling_pane(runtime: Runtime, placement: Placement) -> bool:
    """Whether the placement names the pane that this process runs in."""
    try:
        backend, pane = calling_pane(runtime)
    except MultiplexerError:  # Outside a multiplexer, or it is gone: then it is not ours.
        return False
    named = (placement.backend, placement.mux_server, placement.mux_pane_id)
    return named == (backend, pane.server, pane.pane)
