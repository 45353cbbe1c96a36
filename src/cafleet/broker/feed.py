"""What happened to a fleet's messages since a point in time, exactly or not at all (SPEC 10).

A position is made of stored facts alone, so it outlives the process that gave it out. It stands on
three observations. Message ids grow in the order of commits, since a writer holds the only write
lock while its id is given: "after id M" is exact. A delivery changes state once, so the number of
open ones up to M falls by one for each ACK: the count says *how many* ACKs there were. And an ACK
is stamped with the time: "after timestamp T" finds *which* they were, as long as clocks move on.
Where the count and the list agree, the list is complete; where they do not (the clock was set
back), the caller is told to start over instead of being told something wrong. So it is where the file
was restored from a backup: ids are then given anew, and the position's own one names another message.
"""

from hashlib import blake2b
from sqlite3 import Connection
from typing import NamedTuple

from cafleet.db import feed as statements
from cafleet.models import Message, MessageState
from cafleet.runtime import Runtime

MAX_CHARACTERS = 32 * 1024 * 1024
"""Of message text that one answer may hold."""


class Position(NamedTuple):
    """A point in the history of one fleet's messages."""

    message_id: int
    """Every delivery up to this id is known; ids of other fleets may lie between."""
    mark: str
    """Twelve hexadecimal digits that tell the message with this id from others that may get it."""
    open_deliveries: int
    """How many of them are not ACKed."""
    newest_ack: str
    """The greatest status timestamp among those that are; empty: none is."""


class Change(NamedTuple):
    """A delivery that is new, or that was ACKed."""

    message: Message
    acknowledged: bool
    """False: the delivery is new (and may have been ACKed since)."""
    position: Position
    """Where whoever knows everything up to this change stands."""


class Changes(NamedTuple):
    """The changes between two positions, in order."""

    changes: list[Change]
    position: Position


def check(runtime: Runtime) -> None:
    """Prove that the file can still be followed. Raises DatabaseError, for instance after an upgrade."""
    with runtime.database.read():
        pass


def position(runtime: Runtime, fleet_id: int) -> Position:
    """Where the fleet stands now."""
    with runtime.database.read() as conn:
        newest = statements.newest_id(conn)
        return Position(
            newest,
            _mark_of(conn, newest),
            statements.count_open(conn, fleet_id, newest),
            statements.newest_acknowledgement(conn, fleet_id),
        )


def changes_since(
    runtime: Runtime,
    fleet_id: int,
    since: Position,
    *,
    limit: int,
    verify: bool = True,
    until: Position | None = None,
) -> Changes | None:
    """What happened after `since`, from one snapshot.

    `verify` False leaves out the count of open deliveries, the only part whose cost grows with
    them; whoever follows a fleet without pause does that now and then. `until`: a later position
    at which to end, although more may have happened by now.

    Returns None where that cannot be told: more than `limit` changes of a kind (or more text than
    `MAX_CHARACTERS`), a position that this database never had, or a clock that was set back.
    """
    with runtime.database.read() as conn:
        newest = statements.newest_id(conn)
        if since.message_id > newest or since.mark != _mark_of(conn, since.message_id):
            return None
        end = since._replace(message_id=newest, mark=_mark_of(conn, newest))
        arrived = statements.deliveries_after(conn, fleet_id, since.message_id, limit, MAX_CHARACTERS)
        acknowledged = statements.acknowledged_after(
            conn, fleet_id, since.newest_ack, since.message_id, limit, MAX_CHARACTERS
        )
        if arrived is None or acknowledged is None:
            return None
        if verify:
            still_open = statements.count_open(conn, fleet_id, since.message_id)
            if since.open_deliveries - still_open != len(acknowledged):
                return None
    if until is None:
        return _in_order(since, end, arrived, acknowledged)
    arrived = [message for message in arrived if message.message_id <= until.message_id]
    acknowledged = [message for message in acknowledged if message.status_timestamp <= until.newest_ack]
    found = _in_order(since, until, arrived, acknowledged)
    if found.changes:
        found.changes[-1] = found.changes[-1]._replace(position=until)
    return Changes(found.changes, until)


def _in_order(since: Position, end: Position, arrived: list[Message], acknowledged: list[Message]) -> Changes:
    """`end`: whose id and mark the last position gets."""
    at = since
    changes = []
    for message in arrived:
        at = at._replace(message_id=message.message_id, mark=_mark(message.created_at))
        if message.status_state is MessageState.INPUT_REQUIRED:
            at = at._replace(open_deliveries=at.open_deliveries + 1)
        else:
            at = at._replace(newest_ack=max(at.newest_ack, message.status_timestamp))
        changes.append(Change(message, False, at))
    for message in acknowledged:
        newest_ack = max(at.newest_ack, message.status_timestamp)
        at = at._replace(open_deliveries=at.open_deliveries - 1, newest_ack=newest_ack)
        changes.append(Change(message, True, at))
    return Changes(changes, at._replace(message_id=end.message_id, mark=end.mark))


def _mark_of(conn: Connection, message_id: int) -> str:
    return _mark(statements.creation_of(conn, message_id) or "")


def _mark(created_at: str) -> str:
    return blake2b(created_at.encode(), digest_size=6).hexdigest()
