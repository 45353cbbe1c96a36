from pathlib import Path

from tests.support.database import fresh_database

from cafleet.db import fleets, monitor_runtime
from cafleet.models import MonitorRuntime


def test_a_row_is_claimed_beaten_woken_cleared_and_reclaimed(tmp_path: Path) -> None:
    database = fresh_database(tmp_path)
    with database.write() as conn:
        fleet = fleets.insert(conn, "team", "t")
        assert monitor_runtime.get(conn, fleet) is None
        assert not monitor_runtime.request_wake(conn, fleet, "t0")
        assert not monitor_runtime.set_wake_interval(conn, fleet, 5)

        monitor_runtime.claim(conn, fleet, pid=7, at="t1", tick_seconds=5, wake_interval_seconds=600)
        claimed = MonitorRuntime(fleet, 7, "t1", "t1", None, None, 5, 600)
        assert monitor_runtime.get(conn, fleet) == claimed

        assert monitor_runtime.heartbeat(conn, fleet, pid=7, started_at="t1", at="t2")
        assert monitor_runtime.request_wake(conn, fleet, "t2")
        assert monitor_runtime.request_wake(conn, fleet, "t3")
        assert monitor_runtime.get(conn, fleet) == claimed._replace(last_tick_at="t2", wake_requested_at="t3")
        woken = claimed._replace(last_tick_at="t2", last_wake_at="t4")
        assert monitor_runtime.stamp_wake(conn, fleet, pid=7, started_at="t1", at="t4", request="t2")
        assert monitor_runtime.get(conn, fleet) == woken._replace(wake_requested_at="t3")
        assert monitor_runtime.stamp_wake(conn, fleet, pid=7, started_at="t1", at="t4", request="t3")
        assert monitor_runtime.get(conn, fleet) == woken

        assert monitor_runtime.set_wake_interval(conn, fleet, 0)
        assert monitor_runtime.request_wake(conn, fleet, "t5")
        assert monitor_runtime.clear(conn, fleet, pid=7, started_at="t1")
        cleared = MonitorRuntime(fleet, None, None, None, "t4", "t5", 5, 0)
        assert monitor_runtime.get(conn, fleet) == cleared

        monitor_runtime.claim(conn, fleet, pid=8, at="t6", tick_seconds=2, wake_interval_seconds=30)
        assert monitor_runtime.get(conn, fleet) == MonitorRuntime(fleet, 8, "t6", "t6", "t4", None, 2, 30)
        assert monitor_runtime.delete(conn, fleet)
        assert not monitor_runtime.delete(conn, fleet)
    database.close()


def test_a_loop_that_was_displaced_changes_nothing(tmp_path: Path) -> None:
    database = fresh_database(tmp_path)
    with database.write() as conn:
        fleet = fleets.insert(conn, "team", "t")
        # The same pid again: only the start time tells the two apart.
        monitor_runtime.claim(conn, fleet, pid=7, at="t1", tick_seconds=5, wake_interval_seconds=600)
        monitor_runtime.claim(conn, fleet, pid=7, at="t2", tick_seconds=5, wake_interval_seconds=600)
        now = monitor_runtime.get(conn, fleet)
        assert not monitor_runtime.heartbeat(conn, fleet, pid=7, started_at="t1", at="t3")
        assert not monitor_runtime.stamp_wake(conn, fleet, pid=7, started_at="t1", at="t3", request=None)
        assert not monitor_runtime.clear(conn, fleet, pid=7, started_at="t1")
        assert not monitor_runtime.clear(conn, fleet, pid=8, started_at="t2")
        assert monitor_runtime.get(conn, fleet) == now
    database.close()
