"""The loop's first duty: type what could not be typed before (SPEC 4.1, 9)."""

from collections.abc import Callable

from cafleet.db import members
from cafleet.delivery.attempt import Attempt
from cafleet.delivery.drain import Attempted, drain_steps
from cafleet.delivery.pane_channel import NOT_SHOWN
from cafleet.models import Notification, NotificationState, Placement
from cafleet.monitor.backoff import Backoff
from cafleet.monitor.journal import Journal
from cafleet.runtime import Runtime


class Notify:
    """One fleet's pending notifications.

    A deferred one is tried with each tick, since one look tells whether its reason is gone. A pane that
    fails is left alone for longer and longer, until it works or the member has another one.
    """

    def __init__(self, runtime: Runtime, fleet_id: int, tick_seconds: int, journal: Journal) -> None:
        self._runtime, self._fleet_id, self._journal = runtime, fleet_id, journal
        self._attempted = Attempted()
        self._backoff: Backoff[int] = Backoff(tick_seconds)
        self._failed_at: dict[int, Placement | None] = {}
        """Where the pane was that failed, by member."""
        self._held: set[int] = set()
        """Members of whom the journal said last that they were not told."""

    def run_once(self, go_on: Callable[[], bool] = lambda: True) -> None:
        """One drain. `go_on` is asked after each attempt; False ends it early.

        A pane's lock is not waited for: its holder types.

        Raises:
            DatabaseError; and whatever `go_on` raises.
        """
        self._attempted.next_round()
        self._backoff.tick()
        self._forget_replaced_panes()
        left_alone = self._backoff.waiting()
        tried: set[int] = set()
        for outcome in drain_steps(
            self._runtime, self._fleet_id, self._attempted, skip_members=left_alone, lock_seconds=0.0
        ):
            tried.add(outcome.member_id)
            self._note(outcome)
            if not go_on():
                return
        for member_id in self._held - tried - set(left_alone):
            self._settled(member_id)  # By somebody else: a sender typed, or the member has read it.

    def _note(self, outcome: Attempt) -> None:
        member_id, notification = outcome.member_id, outcome.notification
        if notification.state is NotificationState.NOTIFIED:
            self._settled(member_id)
            self._journal.say(f"member {member_id} was told of message {outcome.message_id}")
            return
        if not outcome.touched:
            return
        if is_failing(notification) and outcome.recorded:
            self._backoff.failed(member_id)
            self._failed_at[member_id] = self._placement(member_id)
        else:
            self._backoff.forget(member_id)
        self._held.add(member_id)
        text = f"member {member_id} is not told of message {outcome.message_id}: {notification.reason}"
        self._journal.state(_subject(member_id), text, notification.reason)

    def _settled(self, member_id: int) -> None:
        self._held.discard(member_id)
        self._backoff.forget(member_id)
        self._journal.over(_subject(member_id))

    def _forget_replaced_panes(self) -> None:
        for member_id in self._backoff.failing():
            if self._placement(member_id) != self._failed_at.get(member_id):
                self._backoff.forget(member_id)

    def _placement(self, member_id: int) -> Placement | None:
        with self._runtime.database.read() as connection:
            return members.get_placement(connection, member_id)


def is_failing(notification: Notification) -> bool:
    """Whether a further try costs more than a look: it failed, or the line was pasted in vain."""
    return notification.state is NotificationState.FAILED or notification.reason == NOT_SHOWN


def _subject(member_id: int) -> str:
    return f"member {member_id}"
