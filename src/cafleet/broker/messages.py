"""Send, fan-out and broadcast: store first, then knock on the recipient's door (SPEC 3, 4)."""

from collections.abc import Sequence
from sqlite3 import Connection

from cafleet.broker.liveness import require_active_member, require_live_fleet
from cafleet.broker.text import check_body, check_key
from cafleet.clock import format_timestamp
from cafleet.db import members, messages
from cafleet.db.members import Side
from cafleet.delivery.drain import drain_for_message
from cafleet.errors import (
    CafleetError,
    DifferentFleets,
    FleetDeleted,
    FleetNotLive,
    KeyReused,
    MemberNotActive,
    MemberNotFound,
)
from cafleet.light_typing import NamedTuple
from cafleet.models import (
    MemberStatus,
    Message,
    MessageState,
    MessageType,
    Notification,
    NotificationState,
)
from cafleet.runtime import Runtime

_TO_ONESELF = Notification(NotificationState.SKIPPED, "a message to oneself is not typed")


class Sent(NamedTuple):
    """One stored delivery and what became of its notification."""

    message: Message
    notification: Notification
    repeated: bool
    """The key named a message that was already stored; nothing was stored now."""


class SendResult(NamedTuple):
    """One recipient's part of a fan-out: exactly one of `sent` and `error` is set."""

    to_member_id: int
    sent: Sent | None
    error: CafleetError | None


class RecipientResult(NamedTuple):
    """One recipient's part of a broadcast."""

    message_id: int
    member_id: int
    notification: Notification


class Broadcast(NamedTuple):
    """A stored broadcast and what became of its notifications."""

    summary: Message
    results: tuple[RecipientResult, ...]
    """By recipient id. Empty where the sender is alone in its fleet."""
    repeated: bool

    @property
    def recipients(self) -> int:
        """How many deliveries were stored."""
        return len(self.results)

    @property
    def notified(self) -> int:
        """How many recipients have been told."""
        return sum(1 for result in self.results if result.notification.state is NotificationState.NOTIFIED)


def untold(message_id: int, notification: Notification) -> str | None:
    """The warning that belongs to a stored message that could not be announced (SPEC 4.4), or None."""
    if notification.state not in (NotificationState.DEFERRED, NotificationState.FAILED):
        return None
    reason = notification.reason or notification.state
    return f"message {message_id} not notified: {reason}. It is stored; do not send it again."


def send(
    runtime: Runtime,
    from_member_id: int,
    to_member_id: int,
    text: str,
    key: str | None = None,
    *,
    silent: dict[str, str] | None = None,
) -> Sent:
    """Store one delivery, then notify its recipient. What is stored is never reported as an error.

    With a `key` a send may be repeated after a time-out or a kill: the stored message comes back,
    even where a side has been deregistered meanwhile, and its line is typed only if it never was.
    `silent`: see `drain_for_message`.

    Raises:
        InvalidInput: the body or the key.
        MemberNotFound, FleetDeleted, MemberNotActive, DifferentFleets, FleetNotLive: the two sides.
        KeyReused: the key names a message with another body, or a broadcast.
    """
    check_body(text)
    if key is not None:
        check_key(key)
    with runtime.database.write() as conn:
        stored = None if key is None else _stored_under(conn, from_member_id, to_member_id, key, text)
        message = stored or _store(runtime, conn, from_member_id, to_member_id, text, key)
    return Sent(message, _notify(runtime, message, silent), stored is not None)


def send_each(
    runtime: Runtime, from_member_id: int, to_member_ids: Sequence[int], text: str, key: str | None = None
) -> list[SendResult]:
    """Several sends, each committed on its own, in the order given, a recipient named twice once.

    Raises:
        InvalidInput: the body or the key; then nothing is stored.
    """
    check_body(text)
    if key is not None:
        check_key(key)
    results = []
    silent: dict[str, str] = {}
    for to_member_id in dict.fromkeys(to_member_ids):
        try:
            sent = send(runtime, from_member_id, to_member_id, text, key, silent=silent)
            results.append(SendResult(to_member_id, sent, None))
        except CafleetError as error:  # One recipient's failure is its own; the others stand.
            results.append(SendResult(to_member_id, None, error))
    return results


def broadcast(runtime: Runtime, from_member_id: int, text: str, key: str | None = None) -> Broadcast:
    """Store a summary and one delivery per other active member, all or nothing; then notify each.

    A member that is alone in its fleet stores a summary of 0 recipients.

    Raises:
        InvalidInput, MemberNotFound, FleetDeleted, MemberNotActive, FleetNotLive, KeyReused: as for `send`.
    """
    check_body(text)
    if key is not None:
        check_key(key)
    with runtime.database.write() as conn:
        stored = None if key is None else _broadcast_under(conn, from_member_id, key, text)
        if stored is None:
            summary, deliveries = _store_broadcast(runtime, conn, from_member_id, text, key)
        else:
            summary, deliveries = stored, messages.deliveries_of(conn, stored)
    silent: dict[str, str] = {}
    results = tuple(
        RecipientResult(message.message_id, message.owner_member_id, _notify(runtime, message, silent))
        for message in deliveries
    )
    return Broadcast(summary, results, stored is not None)


# -- rules -------------------------------------------------------------------------------------


def _store(
    runtime: Runtime, conn: Connection, from_member_id: int, to_member_id: int, text: str, key: str | None
) -> Message:
    _check_sides(members.sides(conn, from_member_id, to_member_id), from_member_id, to_member_id)
    now = format_timestamp(runtime.now())
    message_id = messages.insert(
        conn,
        from_member_id=from_member_id,
        to_member_id=to_member_id,
        text=text,
        created_at=now,
        notified_at=now if from_member_id == to_member_id else None,
        client_key=key,
    )
    return Message(
        message_id=message_id,
        owner_member_id=to_member_id,
        from_member_id=from_member_id,
        to_member_id=to_member_id,
        type=MessageType.UNICAST,
        created_at=now,
        status_state=MessageState.INPUT_REQUIRED,
        status_timestamp=now,
        origin_message_id=None,
        text=text,
    )


def _check_sides(sides: dict[int, Side], from_member_id: int, to_member_id: int) -> None:
    """Both must be active members of one live fleet. The order of the checks is that of SPEC 7.3."""
    pair = []
    for member_id in (from_member_id, to_member_id):
        side = sides.get(member_id)
        if side is None:
            raise MemberNotFound(member_id)
        pair.append(side)
    for side in pair:
        if side.fleet_deleted:
            raise FleetDeleted(side.fleet_id)
    for side in pair:
        if side.status is not MemberStatus.ACTIVE:
            raise MemberNotActive(side.member_id)
    sender, recipient = pair
    if sender.fleet_id != recipient.fleet_id:
        raise DifferentFleets(from_member_id, to_member_id)
    if not sender.fleet_live:
        raise FleetNotLive(sender.fleet_id)


def _stored_under(
    conn: Connection, from_member_id: int, to_member_id: int, key: str, text: str
) -> Message | None:
    stored = messages.find_key(conn, from_member_id, to_member_id, key)
    # A summary's row names its sender as recipient, so a broadcast's key meets those of self-sends.
    if stored is not None and (stored.type is not MessageType.UNICAST or stored.text != text):
        raise KeyReused(key, stored.message_id)
    return stored


def _broadcast_under(conn: Connection, from_member_id: int, key: str, text: str) -> Message | None:
    stored = messages.find_key(conn, from_member_id, from_member_id, key)
    if stored is None:
        return None
    if stored.type is not MessageType.BROADCAST_SUMMARY:
        raise KeyReused(key, stored.message_id)
    # The body is in the deliveries, not in the summary. Without a recipient nothing tells them apart.
    if any(delivery.text != text for delivery in messages.deliveries_of(conn, stored)):
        raise KeyReused(key, stored.message_id)
    return stored


def _store_broadcast(
    runtime: Runtime, conn: Connection, from_member_id: int, text: str, key: str | None
) -> tuple[Message, list[Message]]:
    sender = require_active_member(conn, from_member_id)
    require_live_fleet(conn, sender.fleet_id)
    recipients = [
        m.member_id for m in members.list_active(conn, sender.fleet_id) if m.member_id != from_member_id
    ]
    now = format_timestamp(runtime.now())
    summary_id = messages.insert_summary(
        conn,
        from_member_id=from_member_id,
        text=f"Broadcast sent to {len(recipients)} recipients",
        created_at=now,
        client_key=key,
    )
    messages.link_summary(conn, summary_id)
    for member_id in recipients:
        messages.insert(
            conn,
            from_member_id=from_member_id,
            to_member_id=member_id,
            text=text,
            created_at=now,
            origin_message_id=summary_id,
        )
    summary = messages.get(conn, summary_id)
    assert summary is not None  # inserted above, in this transaction
    return summary, messages.deliveries_of(conn, summary)


# -- notification ------------------------------------------------------------------------------


def _notify(runtime: Runtime, message: Message, silent: dict[str, str] | None) -> Notification:
    """Knock on the recipient's door, unless it is the sender's own."""
    if message.from_member_id == message.to_member_id:
        return _TO_ONESELF
    return drain_for_message(runtime, message.message_id, silent)
