"""What happened in a fleet, newest first, with broadcasts as one entry each (SPEC 3, 10)."""

from typing import NamedTuple

from cafleet.broker.liveness import require_fleet, require_member
from cafleet.db import messages
from cafleet.db.timeline import lengths, newest
from cafleet.models import Message, MessageState
from cafleet.runtime import Runtime

TIMELINE_LIMIT = 200
"""Deliveries that a timeline looks at, at most."""


class TimelineEntry(NamedTuple):
    """One unicast, or the deliveries of one broadcast as far as the timeline holds them."""

    origin_message_id: int | None
    """The broadcast's summary; None for a unicast."""
    deliveries: tuple[Message, ...]
    """Never empty, in the order of the timeline."""

    @property
    def recipients(self) -> int:
        """How many deliveries are here: of a broadcast that the limit cut, not all."""
        return len(self.deliveries)

    @property
    def acknowledged(self) -> int:
        """How many of them are ACKed."""
        return sum(1 for message in self.deliveries if message.status_state is MessageState.COMPLETED)


def timeline(runtime: Runtime, fleet_id: int, limit: int = TIMELINE_LIMIT) -> list[Message]:
    """Deliveries of the fleet, deleted or not, newest status first, at most 200.

    Raises:
        FleetNotFound: no such fleet.
    """
    with runtime.database.read() as conn:
        require_fleet(conn, fleet_id)
        return newest(conn, fleet_id, min(limit, TIMELINE_LIMIT))


class Previews(NamedTuple):
    """A timeline whose texts are cut."""

    deliveries: list[Message]
    lengths: dict[int, int]
    """By message: how many characters the whole text has."""


def previews(runtime: Runtime, fleet_id: int, characters: int) -> Previews:
    """The same, with so many characters of each text: the whole ones may be 200 MiB.

    Raises:
        FleetNotFound: no such fleet.
    """
    with runtime.database.read() as conn:
        require_fleet(conn, fleet_id)
        found = newest(conn, fleet_id, TIMELINE_LIMIT, characters)
        # Only what may have been cut is looked at again.
        cut = lengths(conn, [m.message_id for m in found if len(m.text) == characters])
    return Previews(found, {m.message_id: cut.get(m.message_id, len(m.text)) for m in found})


def group(deliveries: list[Message]) -> list[TimelineEntry]:
    """Deliveries that share an origin as one entry, at the place of its first; pure."""
    entries: dict[tuple[str, int], list[Message]] = {}
    for message in deliveries:
        if message.origin_message_id is None:
            key = ("message", message.message_id)
        else:
            key = ("broadcast", message.origin_message_id)
        entries.setdefault(key, []).append(message)
    return [TimelineEntry(found[0].origin_message_id, tuple(found)) for found in entries.values()]


def received(runtime: Runtime, member_id: int, limit: int | None = None) -> list[Message]:
    """Deliveries to the member in any state, newest status first.

    Raises:
        MemberNotFound: no such member.
    """
    with runtime.database.read() as conn:
        require_member(conn, member_id)
        return messages.received(conn, member_id, limit)


def sent(runtime: Runtime, member_id: int, limit: int | None = None) -> list[Message]:
    """Deliveries from the member, newest status first.

    Raises:
        MemberNotFound: no such member.
    """
    with runtime.database.read() as conn:
        require_member(conn, member_id)
        return messages.sent(conn, member_id, limit)
