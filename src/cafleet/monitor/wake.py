"""The loop's second duty: wake the fleet's monitor when it is due (SPEC 9)."""

from collections.abc import Callable

from cafleet.agents import registry
from cafleet.broker.members import RosterEntry, list_members
from cafleet.broker.placements import pane_of
from cafleet.clock import format_timestamp, parse_timestamp
from cafleet.db import members
from cafleet.delivery.drain import type_plain_line
from cafleet.delivery.pane_state import PaneState, classify
from cafleet.errors import CafleetError, DatabaseError, NoPane
from cafleet.models import Member, MemberKind, MonitorRuntime, Notification, NotificationState, Placement
from cafleet.monitor.backoff import Backoff
from cafleet.monitor.journal import Journal
from cafleet.monitor.lease import Lease
from cafleet.monitor.notify import is_failing
from cafleet.monitor.wake_line import wake_line
from cafleet.runtime import Runtime

LOCK_SECONDS = 1.0
"""How long the lock of the monitor's pane is waited for; the next tick tries again."""
_SUBJECT = "wake"
_QUEUED = "it is at work, and the last wake may still wait in its queue"


class Wake:
    """One fleet's wakes.

    Wall time counts from the last wake that the row knows of; beside it the loop keeps count with a clock
    that nobody can set, so that a wall clock that steps back delays no wake by more than the interval.
    """

    def __init__(
        self, runtime: Runtime, lease: Lease, journal: Journal, monotonic: Callable[[], float]
    ) -> None:
        self._runtime, self._lease, self._journal, self._monotonic = runtime, lease, journal, monotonic
        self._backoff: Backoff[str] = Backoff(lease.claimed.tick_seconds)
        self._failed_at: Placement | None = None
        """Where the monitor was when a wake failed; another pane is tried at once."""
        self._tried_request: str | None = None
        self._queued_at: Placement | None = None
        """Where the last wake was typed, if its agent was at work then: it lies in that agent's queue."""
        self._unrecorded: tuple[str, str | None] | None = None
        """When a wake was typed of which the row does not know yet, and the request that it met."""
        self._since = monotonic() - max(0.0, self._wall_seconds(lease.claimed))

    def run_once(self, row: MonitorRuntime) -> None:
        """Wake the monitor if it is due by `row`, as this tick's heartbeat found it.

        Raises:
            DatabaseError: nothing was typed, or what was typed is recorded with a later tick.
        """
        self._backoff.tick()
        if self._unrecorded is not None:
            self._record(*self._unrecorded)
            return
        request = row.wake_requested_at
        if request is None and not self._is_scheduled(row):
            return
        if self._backoff.waiting() and request in (None, self._tried_request):
            if self._placement() == self._failed_at:
                return
            self._backoff.forget(_SUBJECT)
        self._tried_request = request
        try:
            told = self._wake(asked=request is not None)
        except DatabaseError:
            raise
        except CafleetError as error:
            told = Notification(NotificationState.FAILED, str(error))
        if told.state is NotificationState.NOTIFIED:
            self._backoff.forget(_SUBJECT)
            self._since = self._monotonic()
            self._record(format_timestamp(self._runtime.now()), request)
            return
        if is_failing(told):
            self._backoff.failed(_SUBJECT)
            self._failed_at = self._placement()
        self._journal.state(_SUBJECT, f"no wake: {told.reason}")

    def _is_scheduled(self, row: MonitorRuntime) -> bool:
        interval_seconds = row.wake_interval_seconds
        if not interval_seconds:
            return False
        return max(self._wall_seconds(row), self._monotonic() - self._since) >= interval_seconds

    def _wall_seconds(self, row: MonitorRuntime) -> float:
        """Since the last wake, else since the loop's start."""
        since = parse_timestamp(row.last_wake_at) or parse_timestamp(row.started_at)
        return 0.0 if since is None else (self._runtime.now() - since).total_seconds()

    def _wake(self, *, asked: bool) -> Notification:
        roster = list_members(self._runtime, self._lease.fleet_id)
        monitor = next((one.member for one in roster if one.member.kind is MemberKind.MONITOR), None)
        if monitor is None:
            return Notification(NotificationState.SKIPPED, "the fleet has no monitor")
        line = self._line(roster, monitor)
        at_work = self._is_at_work(monitor)
        if at_work and not asked and self._queued_at == monitor.placement:
            return Notification(NotificationState.DEFERRED, _QUEUED)
        told = type_plain_line(self._runtime, monitor, line, lock_seconds=LOCK_SECONDS)
        if told.state is NotificationState.NOTIFIED:
            self._queued_at = monitor.placement if at_work else None
            self._journal.over(_SUBJECT)
            self._journal.say(f"member {monitor.member_id} was woken")
        return told

    def _placement(self) -> Placement | None:
        """The monitor's, as it is now."""
        with self._runtime.database.read() as connection:
            monitor = members.active_monitor(connection, self._lease.fleet_id)
            return None if monitor is None else members.get_placement(connection, monitor)

    def _is_at_work(self, monitor: Member) -> bool:
        """Whether its screen says so. Agents queue what they are told meanwhile: one wake there is enough."""
        try:
            placement, pane = pane_of(monitor)
        except NoPane:
            return False
        agent = registry.get(placement.coding_agent, self._runtime.config)
        view = self._runtime.multiplexer_for(placement.backend).look(pane)
        return classify(view, agent).state is PaneState.WORKING

    def _line(self, roster: list[RosterEntry], monitor: Member) -> str:
        if monitor.placement is None:
            return wake_line(self._lease.fleet_id, roster)
        agent = registry.get(monitor.placement.coding_agent, self._runtime.config)
        return wake_line(self._lease.fleet_id, roster, agent.line_limit)

    def _record(self, at: str, request: str | None) -> None:
        self._unrecorded = at, request
        self._lease.stamp_wake(at, request)
        self._unrecorded = None
