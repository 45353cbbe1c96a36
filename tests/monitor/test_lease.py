import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.support.waiting import wait_until
from tests.support.watched_fleet import WatchedFleet

from cafleet.broker import fleets, monitors
from cafleet.clock import format_timestamp
from cafleet.db import members, monitor_runtime
from cafleet.db.database import Database
from cafleet.errors import (
    FleetDeleted,
    FleetNotFound,
    FleetNotLive,
    InvalidInput,
    MonitorAlreadyRunning,
    MonitorDisplaced,
)
from cafleet.models import MonitorRuntime
from cafleet.monitor.lease import INTERVAL_SETTING, Cadence, claim
from cafleet.runtime import Runtime


@pytest.fixture
def other_pid() -> Iterator[int]:
    """A living process that is not this one."""
    process = subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE)
    yield process.pid
    process.kill()
    process.communicate()


def test_the_first_claim_makes_the_row(watched: WatchedFleet) -> None:
    lease = claim(watched.runtime, watched.fleet_id, Cadence(7, 60))
    row = watched.row()
    assert row == lease.claimed
    assert (row.pid, row.tick_seconds, row.wake_interval_seconds) == (os.getpid(), 7, 60)
    assert row.started_at == row.last_tick_at
    assert (row.last_wake_at, row.wake_requested_at) == (None, None)
    assert monitors.loop_is_live(row, watched.clock())


def test_a_live_loop_keeps_others_out(watched: WatchedFleet, other_pid: int) -> None:
    claim(watched.runtime, watched.fleet_id, Cadence(), pid=other_pid)
    before = watched.row()
    with pytest.raises(
        MonitorAlreadyRunning, match=rf"^a monitor is already running for fleet 1 \(pid {other_pid}\)$"
    ):
        claim(watched.runtime, watched.fleet_id, Cadence(1, 1))
    assert watched.row() == before


@pytest.mark.parametrize(
    ("age_seconds", "tick_seconds", "live"),
    [
        (0, 5, True),
        (14.9, 5, True),
        (15.1, 5, False),
        (29.9, 10, True),
        (30.1, 10, False),
        (-14, 5, True),
        (-3600, 5, False),
        (3600, 5, False),
    ],
)
def test_a_heartbeat_is_fresh_for_fifteen_seconds_or_three_ticks(
    watched: WatchedFleet, other_pid: int, age_seconds: float, tick_seconds: int, live: bool
) -> None:
    claim(watched.runtime, watched.fleet_id, Cadence(tick_seconds), pid=other_pid)
    watched.clock.advance(age_seconds)
    if live:
        with pytest.raises(MonitorAlreadyRunning):
            claim(watched.runtime, watched.fleet_id, Cadence())
    else:
        assert claim(watched.runtime, watched.fleet_id, Cadence()).pid == os.getpid()


def test_a_file_that_is_reached_by_a_link_is_the_same_one(
    watched: WatchedFleet, other_pid: int, tmp_path: Path
) -> None:
    """J3."""
    claim(watched.runtime, watched.fleet_id, Cadence(), pid=other_pid)
    link = tmp_path / "link.db"
    link.symlink_to(watched.database.path)
    database = Database(str(link))
    through_link = Runtime(watched.runtime.config, database, watched.runtime.multiplexer_for, watched.clock)
    try:
        with pytest.raises(MonitorAlreadyRunning):
            claim(through_link, watched.fleet_id, Cadence())
    finally:
        database.close()


def _ended_pid() -> int:
    process = subprocess.Popen([sys.executable, "-S", "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.parametrize("heartbeat", [None, "", "yesterday", "9999-99-99T00:00:00.000000+00:00"])
def test_an_unreadable_heartbeat_is_not_fresh(
    watched: WatchedFleet, other_pid: int, heartbeat: str | None
) -> None:
    claim(watched.runtime, watched.fleet_id, Cadence(), pid=other_pid)
    with watched.database.write() as conn:
        conn.execute("UPDATE monitor_runtime SET last_tick_at = ?", (heartbeat,))
    assert claim(watched.runtime, watched.fleet_id, Cadence()).pid == os.getpid()


@pytest.mark.parametrize("pid", [0, -1, 2**62])
def test_numbers_that_name_no_process(watched: WatchedFleet, pid: int) -> None:
    claim(watched.runtime, watched.fleet_id, Cadence(), pid=pid)
    assert not monitors.loop_is_live(watched.row(), watched.clock())
    assert claim(watched.runtime, watched.fleet_id, Cadence()).pid == os.getpid()


def test_a_process_that_has_ended_holds_nothing(watched: WatchedFleet) -> None:
    claim(watched.runtime, watched.fleet_id, Cadence(), pid=_ended_pid())
    assert claim(watched.runtime, watched.fleet_id, Cadence()).pid == os.getpid()


def test_a_killed_process_that_nobody_has_reaped_holds_nothing(watched: WatchedFleet) -> None:
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as process:
        claim(watched.runtime, watched.fleet_id, Cadence(), pid=process.pid)
        assert monitors.loop_is_live(watched.row(), watched.clock())
        os.kill(process.pid, signal.SIGKILL)
        wait_until(
            lambda: not monitors.loop_is_live(watched.row(), watched.clock()), what="the end to be noticed"
        )
        assert claim(watched.runtime, watched.fleet_id, Cadence()).pid == os.getpid()


def test_a_row_with_our_own_number_is_of_a_loop_before_us(watched: WatchedFleet) -> None:
    """As after a container's restart, where the first process always has the same number."""
    claim(watched.runtime, watched.fleet_id, Cadence())
    assert claim(watched.runtime, watched.fleet_id, Cadence(9)).claimed.tick_seconds == 9


def test_a_stale_row_is_reclaimed(watched: WatchedFleet, other_pid: int) -> None:
    first = claim(watched.runtime, watched.fleet_id, Cadence(5, 60), pid=other_pid)
    first.stamp_wake("2026-03-01T12:00:00.000000+00:00", None)
    monitors.request_wake(watched.runtime, watched.fleet_id)
    watched.clock.advance(20)
    lease = claim(watched.runtime, watched.fleet_id, Cadence(6))
    row = watched.row()
    assert row == MonitorRuntime(
        fleet_id=watched.fleet_id,
        pid=os.getpid(),
        started_at=lease.claimed.started_at,
        last_tick_at=lease.claimed.started_at,
        last_wake_at="2026-03-01T12:00:00.000000+00:00",
        wake_requested_at=None,
        tick_seconds=6,
        wake_interval_seconds=60,
    )


def test_an_ordinary_end_keeps_cadence_wake_and_request(watched: WatchedFleet) -> None:
    lease = claim(watched.runtime, watched.fleet_id, Cadence(7, 60))
    lease.stamp_wake("2026-03-01T12:00:00.000000+00:00", None)
    monitors.request_wake(watched.runtime, watched.fleet_id)
    before = watched.row()
    lease.release()
    assert watched.row() == before._replace(pid=None, started_at=None, last_tick_at=None)


def test_a_displaced_loop_leaves_the_row_to_the_new_owner(watched: WatchedFleet, other_pid: int) -> None:
    old = claim(watched.runtime, watched.fleet_id, Cadence())
    watched.clock.advance(60)
    claim(watched.runtime, watched.fleet_id, Cadence(), pid=other_pid)
    theirs = watched.row()
    with pytest.raises(MonitorDisplaced, match=f"pid {other_pid} took its place"):
        old.beat()
    old.stamp_wake("2026-03-01T12:00:00.000000+00:00", None)
    old.release()
    assert watched.row() == theirs


def test_the_same_number_again_is_still_another_loop(watched: WatchedFleet) -> None:
    old = claim(watched.runtime, watched.fleet_id, Cadence())
    new = claim(watched.runtime, watched.fleet_id, Cadence())
    with pytest.raises(MonitorDisplaced):
        old.beat()
    assert new.beat().pid == os.getpid()


def test_a_row_that_somebody_removed(watched: WatchedFleet) -> None:
    lease = claim(watched.runtime, watched.fleet_id, Cadence())
    with watched.database.write() as conn:
        monitor_runtime.delete(conn, watched.fleet_id)
    with pytest.raises(MonitorDisplaced, match="somebody cleared its row"):
        lease.beat()


def test_a_deleted_fleet_ends_the_lease(watched: WatchedFleet) -> None:
    lease = claim(watched.runtime, watched.fleet_id, Cadence())
    fleets.delete_fleet(watched.runtime, watched.fleet_id, kill_panes=False)
    with pytest.raises(FleetDeleted):
        lease.beat()
    lease.release()
    with watched.database.read() as conn:
        assert monitor_runtime.get(conn, watched.fleet_id) is None
    with pytest.raises(FleetDeleted):
        claim(watched.runtime, watched.fleet_id, Cadence())


def test_who_can_be_claimed(watched: WatchedFleet) -> None:
    with pytest.raises(FleetNotFound):
        claim(watched.runtime, 99, Cadence())
    with watched.database.write() as conn:
        members.delete_placement(conn, watched.director.member_id)
    with pytest.raises(FleetNotLive):
        claim(watched.runtime, watched.fleet_id, Cadence())


def test_a_heartbeat_is_stamped_and_brings_what_others_asked_for(watched: WatchedFleet) -> None:
    lease = claim(watched.runtime, watched.fleet_id, Cadence())
    watched.clock.step = timedelta(0)
    monitors.request_wake(watched.runtime, watched.fleet_id)
    monitors.set_wake_interval(watched.runtime, watched.fleet_id, 42)
    watched.clock.advance(5)
    row = lease.beat()
    now = format_timestamp(watched.clock())
    assert row.last_tick_at == now
    assert row.wake_interval_seconds == 42
    assert row.wake_requested_at is not None
    assert row == watched.row()


# -- the interval ------------------------------------------------------------------------------


def _with_setting(watched: WatchedFleet, value: str) -> Runtime:
    watched.environ[INTERVAL_SETTING] = value
    return watched.runtime


def test_the_interval_is_ten_minutes_where_nobody_says_otherwise(watched: WatchedFleet) -> None:
    assert claim(watched.runtime, watched.fleet_id, Cadence()).claimed.wake_interval_seconds == 600


def test_flag_then_stored_then_environment(watched: WatchedFleet) -> None:
    runtime = _with_setting(watched, "77")
    assert claim(runtime, watched.fleet_id, Cadence()).claimed.wake_interval_seconds == 77
    assert claim(runtime, watched.fleet_id, Cadence(5, 88)).claimed.wake_interval_seconds == 88
    assert claim(runtime, watched.fleet_id, Cadence()).claimed.wake_interval_seconds == 88
    assert claim(runtime, watched.fleet_id, Cadence(5, 0)).claimed.wake_interval_seconds == 0
    assert claim(runtime, watched.fleet_id, Cadence()).claimed.wake_interval_seconds == 0


@pytest.mark.parametrize("cadence", [Cadence(0), Cadence(3601), Cadence(5, -1), Cadence(5, 604801)])
def test_a_cadence_that_cannot_be(watched: WatchedFleet, cadence: Cadence) -> None:
    with pytest.raises(InvalidInput):
        claim(watched.runtime, watched.fleet_id, cadence)
    with watched.database.read() as conn:
        assert monitor_runtime.get(conn, watched.fleet_id) is None


@pytest.mark.parametrize("value", ["ten", "-1", "999999999"])
def test_a_setting_that_cannot_be(watched: WatchedFleet, value: str) -> None:
    with pytest.raises(InvalidInput):
        claim(_with_setting(watched, value), watched.fleet_id, Cadence())
