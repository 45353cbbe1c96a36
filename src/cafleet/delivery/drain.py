"""Which pending notification is typed next, and when to stop (SPEC 4.1).

Imported by every `message send`: whatever really types is loaded by `_hands`, when it is needed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from importlib import import_module

from cafleet.db import notifications
from cafleet.delivery.eligibility import verdict
from cafleet.errors import CafleetError
from cafleet.light_typing import TYPE_CHECKING, cast
from cafleet.models import Member, Notification, NotificationState
from cafleet.runtime import Runtime

if TYPE_CHECKING:  # Loads agents and multiplexer.
    from typing import Protocol

    from cafleet.delivery.attempt import Attempt

    class _Hands(Protocol):
        """The part of the module `attempt` that is used here."""

        def attempt(
            self,
            runtime: Runtime,
            message_id: int,
            member_id: int,
            lock_seconds: float,
            silent: dict[str, str],
        ) -> Attempt: ...
        def record_again(self, runtime: Runtime, message_id: int, member_id: int) -> Attempt: ...
        def type_plain_line(
            self, runtime: Runtime, member: Member, line: str, lock_seconds: float
        ) -> Notification: ...


LOCK_SECONDS = 5.0
"""How long an invocation waits for a pane's lock, in total (SPEC 4.2)."""
SEND_SECONDS = 10.0
"""How long after its start a send begins to type one more line: the others' are in its way, and an
agent pays for each call with its turn's time."""
_LOCK_LOOK_SECONDS = 0.25
"""How often a send that waits for the lock looks whether its holder has typed the line meanwhile."""


class Attempted:
    """What one invocation has tried: each message at most once (SPEC 4.1)."""

    def __init__(self) -> None:
        self.message_ids: set[int] = set()
        self.unrecorded: set[int] = set()
        """Typed, but the stamp was refused: never typed again by this process, only stamped."""

    def next_round(self) -> None:
        """For a loop in which each tick is an invocation of its own."""
        self.message_ids.clear()


def _hands() -> _Hands:
    return cast("_Hands", import_module("cafleet.delivery.attempt"))


def drain_for_message(
    runtime: Runtime,
    message_id: int,
    silent: dict[str, str] | None = None,
    *,
    monotonic: Callable[[], float] = time.monotonic,
) -> Notification:
    """What a sender does: type what is pending for this message's recipient, oldest first, until the
    message itself has been attempted, or `SEND_SECONDS` of `monotonic` have passed.

    `silent`: shared by the several deliveries of one invocation, so that a multiplexer server that hangs
    costs its time limit once and not once a recipient.

    Never raises a CafleetError: the message is stored, and what goes wrong now is only the
    notification's failure.
    """
    try:
        return _drain_for_message(runtime, message_id, {} if silent is None else silent, monotonic)
    except CafleetError as error:
        return Notification(NotificationState.FAILED, str(error))


def drain_fleet(
    runtime: Runtime,
    fleet_id: int,
    attempted: Attempted,
    *,
    skip_members: Collection[int] = (),
    lock_seconds: float = LOCK_SECONDS,
) -> list[Attempt]:
    """Attempt all that is pending in the fleet and not in `attempted`, oldest first. A failed attempt
    ends its pane's part."""
    steps = drain_steps(runtime, fleet_id, attempted, skip_members=skip_members, lock_seconds=lock_seconds)
    return list(steps)


def drain_steps(
    runtime: Runtime,
    fleet_id: int,
    attempted: Attempted,
    *,
    skip_members: Collection[int],
    lock_seconds: float,
) -> Iterator[Attempt]:
    """As `drain_fleet`, one attempt at a time, so that whoever drains can do something in between."""
    closed = set(skip_members)
    silent: dict[str, str] = {}
    while True:
        with runtime.database.read() as connection:
            pending = notifications.next_of_fleet(connection, fleet_id, attempted.message_ids, closed)
        if pending is None:
            return
        message_id, member_id = pending
        attempted.message_ids.add(message_id)
        if message_id in attempted.unrecorded:
            outcome = _hands().record_again(runtime, message_id, member_id)
        else:
            outcome = _hands().attempt(runtime, message_id, member_id, lock_seconds, silent)
        if outcome.recorded:
            attempted.unrecorded.discard(message_id)
        else:
            attempted.unrecorded.add(message_id)
        if not outcome.touched:  # Whoever holds the lock may be typing this very line.
            attempted.message_ids.discard(message_id)
        if outcome.notification.state is not NotificationState.NOTIFIED:
            closed.add(member_id)
        yield outcome


def type_plain_line(
    runtime: Runtime, member: Member, line: str, *, lock_seconds: float = LOCK_SECONDS
) -> Notification:
    """Type one line that belongs to no message (a wake, a prompt, a ping) into the member's pane: the
    same states, the same lock, the same checks as a notification (SPEC 4.2, 4.3).

    `skipped`: no pane, or not active any more; `deferred`: a reason to try again later; `failed`.
    """
    return _hands().type_plain_line(runtime, member, line, lock_seconds)


def _drain_for_message(
    runtime: Runtime, message_id: int, silent: dict[str, str], monotonic: Callable[[], float]
) -> Notification:
    started = monotonic()
    attempted: set[int] = set()
    outcome = busy = Notification(NotificationState.DEFERRED, "pane is busy")
    while True:
        with runtime.database.read() as connection:
            delivery = notifications.delivery(connection, message_id)
            # Asked each time: another sender may have typed ours while we waited for the pane.
            settled = verdict(delivery)
            if settled or delivery is None or message_id in attempted:
                return settled or outcome
            pending = notifications.next_of_member(connection, delivery.member_id, attempted)
        if pending is None:
            return outcome
        spent = monotonic() - started
        if spent >= SEND_SECONDS:
            return busy
        lock_seconds = min(max(0.0, LOCK_SECONDS - spent), _LOCK_LOOK_SECONDS)
        tried = _hands().attempt(runtime, pending.message_id, pending.member_id, lock_seconds, silent)
        outcome = tried.notification
        if not tried.touched and lock_seconds > 0:
            continue
        attempted.add(pending.message_id)
        if pending.message_id == message_id and outcome.state is NotificationState.NOTIFIED:
            return outcome  # Stamped: a further look could only fail, and make it look untold.
        if outcome.state is not NotificationState.NOTIFIED:
            attempted.add(message_id)  # The pane's drain has ended, and ours with it.
