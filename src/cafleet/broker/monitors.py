"""The state of a fleet's monitor loop, and what others may ask of it (SPEC 9)."""

import os
from datetime import datetime
from sqlite3 import Connection
from typing import NamedTuple

import cafleet
from cafleet.broker.liveness import require_live_fleet
from cafleet.clock import format_timestamp, parse_timestamp
from cafleet.db import members, monitor_runtime, notifications
from cafleet.errors import InvalidInput, MonitorNotRunning
from cafleet.models import MonitorRuntime
from cafleet.runtime import Runtime

FRESH_SECONDS = 15
"""A heartbeat counts as fresh for so long, or for three ticks where that is longer."""
MAX_WAKE_INTERVAL_SECONDS = 7 * 24 * 3600


class MonitorOverview(NamedTuple):
    """A fleet's monitor as a face shows it."""

    fleet_id: int
    live: bool
    runtime: MonitorRuntime | None
    """None: no loop ever ran."""
    monitor_member_id: int | None
    """The active member that is woken; None: there is none."""
    pending: dict[int, int]
    """Notifications that are still to be typed, by recipient; members with none are left out."""


def monitor_overview(runtime: Runtime, fleet_id: int) -> MonitorOverview:
    """Loop, monitor member and pending notifications of a live fleet.

    Raises:
        FleetNotFound, FleetDeleted, FleetNotLive.
    """
    with runtime.database.read() as conn:
        require_live_fleet(conn, fleet_id)
        return _overview(conn, fleet_id, runtime.now())


def _overview(conn: Connection, fleet_id: int, now: datetime) -> MonitorOverview:
    row = monitor_runtime.get(conn, fleet_id)
    monitor = members.active_monitor(conn, fleet_id)
    pending = notifications.pending_count(conn, fleet_id)
    return MonitorOverview(fleet_id, loop_is_live(row, now), row, monitor, pending)


def set_wake_interval(runtime: Runtime, fleet_id: int, seconds: int) -> MonitorOverview:
    """Change how often the monitor is woken; 0 disables scheduled wakes. A running loop follows.

    Returns how things are then, read in the same transaction: a reader that failed after it would make
    what is stored look as if it were not.

    Raises:
        InvalidInput: less than 0 or more than a week.
        FleetNotFound, FleetDeleted, FleetNotLive.
        MonitorNotRunning: no loop ever ran, so there is nothing to change.
    """
    if not 0 <= seconds <= MAX_WAKE_INTERVAL_SECONDS:
        raise InvalidInput(f"a wake interval is from 0 to {MAX_WAKE_INTERVAL_SECONDS} seconds")
    with runtime.database.write() as conn:
        require_live_fleet(conn, fleet_id)
        if not monitor_runtime.set_wake_interval(conn, fleet_id, seconds):
            raise MonitorNotRunning(fleet_id)
        return _overview(conn, fleet_id, runtime.now())


def request_wake(runtime: Runtime, fleet_id: int) -> MonitorOverview:
    """Ask the running loop to wake the monitor on its next tick; repeated requests are one.

    Returns like `set_wake_interval`.

    Raises:
        FleetNotFound, FleetDeleted, FleetNotLive.
        MonitorNotRunning: nobody would honour the request; the next loop clears it when it starts.
    """
    with runtime.database.write() as conn:
        require_live_fleet(conn, fleet_id)
        now = runtime.now()
        if not loop_is_live(monitor_runtime.get(conn, fleet_id), now):
            raise MonitorNotRunning(fleet_id)
        monitor_runtime.request_wake(conn, fleet_id, format_timestamp(now))
        return _overview(conn, fleet_id, now)


def loop_is_live(row: MonitorRuntime | None, now: datetime) -> bool:
    """A fresh heartbeat *and* an existing process; an absent or unreadable heartbeat is not fresh.

    Neither is one from the future beyond the same span: the clock was set back, and either the loop
    corrects it with its next tick or nobody ever will."""
    if row is None or row.pid is None:
        return False
    heartbeat = parse_timestamp(row.last_tick_at)
    if heartbeat is None:
        return False
    limit = max(FRESH_SECONDS, 3 * row.tick_seconds)
    return abs((now - heartbeat).total_seconds()) < limit and process_exists(row.pid)


def runs_other_program(row: MonitorRuntime) -> bool:
    """Whether this cafleet was installed after the loop's start: the loop runs what was there before."""
    started = parse_timestamp(row.started_at)
    try:
        installed = os.stat(cafleet.__file__).st_ctime
    except OSError:
        return False
    return started is not None and started.timestamp() < installed


def process_exists(pid: int) -> bool:
    """Whether a process has this id; 0 and below never do, nor one that has ended and was not reaped."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError) as error:
        return isinstance(error, PermissionError)
    return not _has_ended(pid)


def _has_ended(pid: int) -> bool:
    """A zombie; False where the system does not tell."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[:1] in ([b"Z"], [b"X"])
    except OSError:
        return False
