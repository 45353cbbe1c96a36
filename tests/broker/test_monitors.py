"""The monitor's state as others see it, and what they may ask of it (SPEC 9)."""

import os
from datetime import UTC, datetime, timedelta

import pytest
from tests.support.web_fleet import WebFleet

from cafleet.broker import monitors
from cafleet.clock import format_timestamp
from cafleet.errors import FleetDeleted, FleetNotFound, InvalidInput, MonitorNotRunning
from cafleet.models import MonitorRuntime
from cafleet.runtime import Runtime

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)


def _row(pid: int | None, age_seconds: float | None, tick_seconds: int = 5) -> MonitorRuntime:
    heartbeat = None if age_seconds is None else format_timestamp(NOW - timedelta(seconds=age_seconds))
    return MonitorRuntime(1, pid, heartbeat, heartbeat, None, None, tick_seconds, 600)


@pytest.mark.parametrize(
    ("row", "live"),
    [
        (None, False),
        (_row(os.getpid(), 0), True),
        (_row(os.getpid(), 14.9), True),
        (_row(os.getpid(), 15), False),
        (_row(os.getpid(), 29, tick_seconds=10), True),
        (_row(os.getpid(), 30, tick_seconds=10), False),
        (_row(os.getpid(), None), False),
        (_row(os.getpid(), 0)._replace(last_tick_at="soon"), False),
        (_row(None, 0), False),
        (_row(0, 0), False),
        (_row(-1, 0), False),
        (_row(2**40, 0), False),
        (_row(1, 0), True),
    ],
)
def test_live_is_a_fresh_heartbeat_and_an_existing_process(row: MonitorRuntime | None, live: bool) -> None:
    assert monitors.loop_is_live(row, NOW) is live


def test_the_overview_names_the_monitor_and_what_is_pending(runtime: Runtime, fleet: WebFleet) -> None:
    empty = monitors.monitor_overview(runtime, fleet.fleet_id)
    assert (empty.live, empty.runtime, empty.monitor_member_id, empty.pending) == (False, None, None, {})
    watch = fleet.member("watch", monitor=True)
    fleet.claim_monitor(os.getpid())
    with runtime.database.write() as conn:
        conn.execute(
            "INSERT INTO messages (from_member_id, to_member_id, created_at, status_state, status_timestamp,"
            " text) VALUES (?, ?, '2026', 'input_required', '2026', 'x')",
            (fleet.director, watch),
        )
    found = monitors.monitor_overview(runtime, fleet.fleet_id)
    assert (found.live, found.monitor_member_id, found.pending) == (True, watch, {watch: 1})


def test_the_interval_is_stored_whether_a_loop_runs_or_not(runtime: Runtime, fleet: WebFleet) -> None:
    with pytest.raises(MonitorNotRunning):
        monitors.set_wake_interval(runtime, fleet.fleet_id, 5)
    fleet.claim_monitor(0)
    monitors.set_wake_interval(runtime, fleet.fleet_id, 0)
    row = monitors.monitor_overview(runtime, fleet.fleet_id).runtime
    assert row is not None
    assert row.wake_interval_seconds == 0
    for seconds in (-1, monitors.MAX_WAKE_INTERVAL_SECONDS + 1):
        with pytest.raises(InvalidInput):
            monitors.set_wake_interval(runtime, fleet.fleet_id, seconds)


def test_a_wake_is_asked_of_a_running_loop_only(runtime: Runtime, fleet: WebFleet) -> None:
    fleet.claim_monitor(0)
    with pytest.raises(MonitorNotRunning):
        monitors.request_wake(runtime, fleet.fleet_id)
    fleet.claim_monitor(os.getpid())
    monitors.request_wake(runtime, fleet.fleet_id)
    row = monitors.monitor_overview(runtime, fleet.fleet_id).runtime
    assert row is not None
    assert row.wake_requested_at is not None


def test_a_fleet_that_is_gone_has_no_monitor(runtime: Runtime, fleet: WebFleet) -> None:
    with pytest.raises(FleetNotFound):
        monitors.monitor_overview(runtime, 99)
    fleet.delete()
    for ask in (monitors.monitor_overview, monitors.request_wake):
        with pytest.raises(FleetDeleted):
            ask(runtime, fleet.fleet_id)
