"""When a fleet's duties are done: a heartbeat, the drain, a wake; then a pause (SPEC 9).

Between two ticks nothing is open but the file itself: no transaction, no lock, no child process.
"""

import time
from collections.abc import Callable

from cafleet.errors import (
    CafleetError,
    DatabaseBusy,
    DatabaseDiskError,
    DatabaseFull,
    DatabaseReadOnly,
    DatabaseUnreadable,
    FleetDeleted,
)
from cafleet.models import MonitorRuntime
from cafleet.monitor.journal import Journal
from cafleet.monitor.lease import Cadence, Lease, claim
from cafleet.monitor.notify import Notify
from cafleet.monitor.preload import preload
from cafleet.monitor.stopping import StopSignals
from cafleet.monitor.wake import Wake
from cafleet.runtime import Runtime

PASSING = (DatabaseBusy, DatabaseFull, DatabaseDiskError, DatabaseReadOnly, DatabaseUnreadable)
"""What a loop outlives. Any other state of the file ends it: it is not the file that was claimed."""
FRESH_SECONDS = 1.0
_MACHINE = "machine"
_DATABASE = "database"


class Loop:
    """One claimed fleet. Time and signals come from outside."""

    def __init__(
        self,
        runtime: Runtime,
        lease: Lease,
        journal: Journal,
        *,
        stopping: Callable[[], bool] = lambda: False,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`stopping`: an end is wanted. `monotonic`: seconds, never set back."""
        self._runtime, self._lease, self._journal = runtime, lease, journal
        self._stopping, self._monotonic = stopping, monotonic
        self._tick_seconds = lease.claimed.tick_seconds
        self._notify = Notify(runtime, lease.fleet_id, self._tick_seconds, journal)
        self._wake = Wake(runtime, lease, journal, monotonic)
        self._beaten_at = monotonic()

    def run(self, pause: Callable[[float], bool]) -> None:
        """Tick until `pause` (seconds; True: an end is wanted) says so. Raises like `tick`."""
        while True:
            began = self._monotonic()
            self.tick()
            if self._stopping() or pause(self._tick_seconds - (self._monotonic() - began)):
                return

    def tick(self) -> None:
        """Every duty once.

        Raises:
            FleetDeleted, FleetNotFound, MonitorDisplaced: the fleet, or its place, is not this loop's.
            DatabaseError: the file was upgraded, replaced, removed or damaged.
        """
        try:
            self._runtime.database.guard()
            row = self._beat()
            self._journal.over(_DATABASE, "the database answers again")
            self._notify.run_once(self._go_on)
            if not self._stopping():
                self._wake.run_once(row if self._is_fresh() else self._beat())
        except PASSING as error:
            self._journal.state(_DATABASE, f"a tick was cut short: {error}", type(error).__name__)
        except OSError as error:  # No descriptors, no memory: that passes, too.
            self._journal.state(_MACHINE, f"a tick was cut short: {error.strerror or error}")
        else:
            self._journal.over(_MACHINE, "ticks are whole again")

    def _beat(self) -> MonitorRuntime:
        row = self._lease.beat()
        self._beaten_at = self._monotonic()
        return row

    def _is_fresh(self) -> bool:
        """Whether the row is as this tick has read it: during a long drain, or while the process was
        suspended, another loop may have taken over, or somebody asked for a wake."""
        return self._monotonic() - self._beaten_at < FRESH_SECONDS

    def _go_on(self) -> bool:
        """Between two attempts: a long drain (a multiplexer that hangs) must not look like a dead loop."""
        if not self._stopping() and self._monotonic() - self._beaten_at >= self._tick_seconds:
            self._beat()
        return not self._stopping()


def run_monitor(runtime: Runtime, fleet_id: int, cadence: Cadence, write: Callable[[str], None]) -> None:
    """Claim the fleet's place and keep it until a signal comes or the fleet is deleted.

    `write` gets what the loop says, line by line.

    Raises:
        FleetNotFound, FleetDeleted, FleetNotLive, MonitorAlreadyRunning, InvalidInput: at the start.
        MonitorDisplaced: another loop took over.
        DatabaseError: the file was upgraded, replaced, removed or damaged.
    """
    journal = Journal(runtime.now, write)
    with StopSignals() as signals:
        lease = claim(runtime, fleet_id, cadence)
        journal.say(_greeting(lease.claimed))
        try:
            preload(runtime, fleet_id)
            loop = Loop(runtime, lease, journal, stopping=signals.stopping)
            loop.run(signals.pause)
            journal.say(f"ended by {signals.stopped_by}")
        except FleetDeleted as error:
            journal.say(f"ended: {error}")
        except CafleetError as error:
            journal.say(f"ended: {error}")
            raise
        finally:
            lease.release()


def _greeting(row: MonitorRuntime) -> str:
    interval = row.wake_interval_seconds
    wakes = f"a wake every {interval} s" if interval else "no scheduled wakes"
    return f"monitor of fleet {row.fleet_id} runs (pid {row.pid}): a tick every {row.tick_seconds} s, {wakes}"
