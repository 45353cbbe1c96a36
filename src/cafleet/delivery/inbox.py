"""Waiting for messages: `wait` and `listen` (SPEC 4.5).

Both ask `wait_for_change` once before they first look, and from then on only between looks: what is
committed after a look makes the next call return at once, so no message is slept over. No
transaction is open meanwhile.
"""

import math
import time
from collections.abc import Callable, Iterator
from sqlite3 import Connection

from cafleet.db import members, messages, notifications
from cafleet.delivery.drain import Attempted, drain_steps
from cafleet.errors import MemberGone, MemberNotFound
from cafleet.models import Message, MessageState
from cafleet.runtime import Runtime

Stopped = Callable[[], bool]
"""Asked now and then by a wait in a thread, which no signal can reach."""

_LONGEST_SLEEP_SECONDS = 3600.0
_RETRY_SECONDS = 1.0
"""How soon a pane whose lock was taken is tried again."""
FIRST_DRAIN_SECONDS = 1.0
"""How long the drain at the start goes on although there is mail, or nothing is waited for."""
_STOP_CHECK_SECONDS = 0.25
"""How soon a caller that wants to stop is heard."""
_WAIT_STOP_CHECK_SECONDS = 0.25


def wait(
    runtime: Runtime,
    member_id: int,
    timeout_seconds: float | None,
    *,
    limit: int | None = None,
    stopped: Callable[[], bool] | None = None,
) -> list[Message]:
    """The member's inbox, newest first, as soon as it is not empty; empty after `timeout_seconds`
    (0: one look; None: no limit), or soon after `stopped()` says that nobody waits any more. `limit`: so
    many messages of it at most; None: all.

    At the start, and whenever the database changed, what is pending for the others of the fleet is
    typed; a waiter never types into its own pane.

    Raises:
        MemberNotFound: no such member.
        MemberGone: it, or its fleet, has ended.
    """
    deadline = math.inf if timeout_seconds is None else time.monotonic() + timeout_seconds
    runtime.database.wait_for_change(0.0)
    waiter = _Waiter(runtime, member_id, deadline, stopped or (lambda: False))
    waiter.drain(patience_seconds=FIRST_DRAIN_SECONDS)
    while True:
        inbox = waiter.inbox(limit)
        left = deadline - time.monotonic()
        if inbox or left <= 0:
            return inbox
        if stopped is not None and stopped():
            return []
        longest = _RETRY_SECONDS if waiter.locked_out else _LONGEST_SLEEP_SECONDS
        if stopped is not None:
            longest = min(longest, _WAIT_STOP_CHECK_SECONDS)
        changed = runtime.database.wait_for_change(min(left, longest))
        if changed or waiter.locked_out:
            waiter.drain(patience_seconds=0.0)


def listen(runtime: Runtime, member_id: int, *, stopped: Stopped | None = None) -> Iterator[Message]:
    """Every waiting delivery, oldest first, then each new one once it is committed; each id once per file:
    after a backup was restored, what waits in it comes again, for its ids may name other messages.

    Read-only. Ends soon after `stopped()` says so, or by an exception in the waiting thread; no
    transaction is open while the caller has a message or while nothing happens.

    Raises:
        MemberNotFound: no such member.
        MemberGone: it, or its fleet, has ended.
    """
    last_id = files_met = 0
    runtime.database.wait_for_change(0.0)
    while True:
        with runtime.database.read() as connection:
            if runtime.database.files_met != files_met:
                last_id, files_met = 0, runtime.database.files_met
            _fleet_of(connection, member_id)
            arrived = notifications.arrived_after(connection, member_id, last_id)
        for last_id in arrived:
            with runtime.database.read() as connection:
                message = messages.get(connection, last_id)
            if message and message.status_state is MessageState.INPUT_REQUIRED:
                yield message
        changed = False
        while not changed:
            if stopped and stopped():
                return
            changed = runtime.database.wait_for_change(
                _STOP_CHECK_SECONDS if stopped else _LONGEST_SLEEP_SECONDS
            )


class _Waiter:
    """One waiting member: its inbox, and its part in typing what others are still to be told."""

    def __init__(
        self, runtime: Runtime, member_id: int, deadline: float, stopped: Callable[[], bool]
    ) -> None:
        self._runtime, self._member_id = runtime, member_id
        self._deadline, self._stopped = deadline, stopped
        self._attempted = Attempted()
        with runtime.database.read() as connection:
            self._fleet_id = _fleet_of(connection, member_id)
        self.locked_out = False
        """A pane could not be reached in the last drain, since its lock was taken."""

    def inbox(self, limit: int | None) -> list[Message]:
        with self._runtime.database.read() as connection:
            _fleet_of(connection, self._member_id)
            return messages.inbox(connection, self._member_id, limit)

    def drain(self, patience_seconds: float) -> None:
        """Type for the fleet, but leave off once `patience_seconds` have passed and there is mail, or the
        wait has lasted as long as it may: whoever waits next goes on."""
        patience = time.monotonic() + patience_seconds
        self.locked_out = False
        # A taken lock is not waited for: its holder types, and mail may come for us meanwhile.
        own = (self._member_id,)
        for outcome in drain_steps(
            self._runtime, self._fleet_id, self._attempted, skip_members=own, lock_seconds=0.0
        ):
            self.locked_out = self.locked_out or not outcome.touched
            now = time.monotonic()
            if self._stopped() or (now >= patience and (now >= self._deadline or self._has_mail())):
                break

    def _has_mail(self) -> bool:
        with self._runtime.database.read() as connection:
            return messages.count_inbox(connection, self._member_id) > 0


def _fleet_of(connection: Connection, member_id: int) -> int:
    fleet_id = notifications.listening_fleet(connection, member_id)
    if fleet_id is not None:
        return fleet_id
    raise MemberGone(member_id) if members.exists(connection, member_id) else MemberNotFound(member_id)
