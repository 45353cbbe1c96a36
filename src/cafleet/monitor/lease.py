"""The one place of a fleet's loop: who holds it, proof of life, and giving it back (SPEC 9).

The row in the database is the lease. A loop holds it as long as the row has the pid and the start time
that it was claimed with; no file is locked, so there is none that could be deleted or be left behind.
"""

import os
from contextlib import suppress
from typing import NamedTuple

from cafleet import config
from cafleet.broker.liveness import require_live_fleet
from cafleet.broker.monitors import MAX_WAKE_INTERVAL_SECONDS, loop_is_live
from cafleet.clock import format_timestamp
from cafleet.db import fleets, monitor_runtime
from cafleet.errors import (
    DatabaseError,
    FleetDeleted,
    FleetNotFound,
    InvalidInput,
    MonitorAlreadyRunning,
    MonitorDisplaced,
)
from cafleet.models import MonitorRuntime
from cafleet.runtime import Runtime

DEFAULT_TICK_SECONDS = 5
MAX_TICK_SECONDS = 3600
INTERVAL_SETTING = "CAFLEET_MONITOR_WAKE_INTERVAL"


class Cadence(NamedTuple):
    """How often, in seconds."""

    tick_seconds: int = DEFAULT_TICK_SECONDS
    wake_interval_seconds: int | None = None
    """None: as it was, else as the environment says, else ten minutes; 0: no scheduled wakes."""


class Lease:
    """A claimed row. `claim` makes it."""

    def __init__(self, runtime: Runtime, claimed: MonitorRuntime) -> None:
        assert claimed.pid is not None
        assert claimed.started_at is not None
        self._runtime = runtime
        self.claimed = claimed
        """The row as it was claimed."""
        self.fleet_id = claimed.fleet_id
        self.pid, self._started_at = claimed.pid, claimed.started_at

    def beat(self) -> MonitorRuntime:
        """Stamp a heartbeat; the row as it is now, with what others have asked for meanwhile.

        Raises:
            FleetDeleted: and the row with it.
            FleetNotFound: another file is in the place of the one that was claimed.
            MonitorDisplaced: the row is another's now, and is left to it.
            DatabaseError.
        """
        at = format_timestamp(self._runtime.now())
        with self._runtime.database.write() as conn:
            own = monitor_runtime.heartbeat(
                conn, self.fleet_id, pid=self.pid, started_at=self._started_at, at=at
            )
            row = monitor_runtime.get(conn, self.fleet_id)
            fleet = fleets.get(conn, self.fleet_id)
        if fleet is None:
            raise FleetNotFound(self.fleet_id)
        if fleet.deleted_at is not None:
            raise FleetDeleted(self.fleet_id)
        if not own or row is None:
            raise MonitorDisplaced(self.fleet_id, None if row is None else row.pid)
        return row

    def stamp_wake(self, at: str, request: str | None) -> None:
        """Record a delivered wake that met `request`; a later one still stands. Raises DatabaseError."""
        with self._runtime.database.write() as conn:
            monitor_runtime.stamp_wake(
                conn, self.fleet_id, pid=self.pid, started_at=self._started_at, at=at, request=request
            )

    def release(self) -> None:
        """Clear the row where it is still this loop's. Never raises: a row that stays is stale, since
        its process ends."""
        with suppress(DatabaseError), self._runtime.database.write() as conn:
            monitor_runtime.clear(conn, self.fleet_id, pid=self.pid, started_at=self._started_at)


def claim(runtime: Runtime, fleet_id: int, cadence: Cadence, *, pid: int | None = None) -> Lease:
    """Take the fleet's place, new, cleared or stale, in one write transaction.

    `pid`: of the loop; this process by default.

    Raises:
        FleetNotFound, FleetDeleted, FleetNotLive.
        MonitorAlreadyRunning: a live loop holds it.
        InvalidInput: a cadence that cannot be.
        DatabaseError.
    """
    own_pid = os.getpid() if pid is None else pid
    if not 1 <= cadence.tick_seconds <= MAX_TICK_SECONDS:
        raise InvalidInput(f"a tick is from 1 to {MAX_TICK_SECONDS} seconds (got {cadence.tick_seconds})")
    with runtime.database.write() as conn:
        require_live_fleet(conn, fleet_id)
        now = runtime.now()
        row = monitor_runtime.get(conn, fleet_id)
        # Our own number in the row is that of a loop before us: the process it named is no more.
        if row is not None and row.pid is not None and row.pid != own_pid and loop_is_live(row, now):
            raise MonitorAlreadyRunning(fleet_id, row.pid)
        monitor_runtime.claim(
            conn,
            fleet_id,
            pid=own_pid,
            at=format_timestamp(now),
            tick_seconds=cadence.tick_seconds,
            wake_interval_seconds=_wake_interval(runtime, cadence, row),
        )
        claimed = monitor_runtime.get(conn, fleet_id)
    assert claimed is not None
    return Lease(runtime, claimed)


def _wake_interval(runtime: Runtime, cadence: Cadence, row: MonitorRuntime | None) -> int:
    seconds = cadence.wake_interval_seconds
    if seconds is None and row is not None:
        seconds = row.wake_interval_seconds
    if seconds is None:
        default = config.DEFAULT_WAKE_INTERVAL_SECONDS
        seconds = config.integer_setting(runtime.config.environ, INTERVAL_SETTING, default)
    if not 0 <= seconds <= MAX_WAKE_INTERVAL_SECONDS:
        raise InvalidInput(
            f"a wake interval is from 0 to {MAX_WAKE_INTERVAL_SECONDS} seconds (got {seconds})"
        )
    return seconds
