import errno
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.database import fresh_database, run_sql
from tests.support.watched_fleet import WatchedFleet

from cafleet.broker import fleets
from cafleet.broker.monitors import FRESH_SECONDS
from cafleet.clock import parse_timestamp
from cafleet.db.database import Database
from cafleet.errors import (
    DatabaseForeign,
    DatabaseMissing,
    DatabaseNewer,
    FleetDeleted,
    FleetNotFound,
    MonitorDisplaced,
    MultiplexerTimeout,
)
from cafleet.monitor.lease import Cadence, Lease, claim
from cafleet.monitor.loop import Loop


def test_a_tick_is_a_heartbeat(watched: WatchedFleet) -> None:
    loop = watched.loop()
    before = watched.row()
    watched.pass_time(5)
    loop.tick()
    after = watched.row()
    assert after == before._replace(last_tick_at=after.last_tick_at)
    assert (after.last_tick_at or "") > (before.last_tick_at or "")


def test_the_pause_makes_up_for_the_ticks_own_length(watched: WatchedFleet) -> None:
    loop = watched.loop(Cadence(5, 0))
    watched.store(watched.ann)
    watched.multiplexer.before = lambda method, _pane: watched.pass_time(2 if method == "look" else 0)
    pauses: list[float] = []

    def pause(seconds: float) -> bool:
        pauses.append(seconds)
        return len(pauses) == 2

    loop.run(pause)
    assert pauses == [3, 5]


def test_no_transaction_is_open_between_ticks(watched: WatchedFleet) -> None:
    watched.store(watched.ann)

    def pause(_seconds: float) -> bool:
        with closing(sqlite3.connect(watched.database.path, timeout=0, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            other.execute("ROLLBACK")
            checkpoint = other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        assert checkpoint[0] == 0, "no reader keeps the log from being emptied"
        return True

    watched.loop().run(pause)


def test_a_wish_to_stop_ends_the_drain_and_the_loop(watched: WatchedFleet) -> None:
    for _ in range(3):
        watched.store(watched.ann)
    lease = claim(watched.runtime, watched.fleet_id, Cadence(5, 0))
    loop = Loop(
        watched.runtime, lease, watched.journal, stopping=lambda: bool(watched.submitted(watched.ann))
    )
    loop.run(lambda _seconds: pytest.fail("there is nothing to pause for"))
    assert len(watched.submitted(watched.ann)) == 1


def test_a_multiplexer_that_hangs_does_not_make_the_loop_look_dead(watched: WatchedFleet) -> None:
    for number in range(20):
        watched.store(watched.member(watched.fleet_id, f"member-{number}"))
    with watched.database.write() as connection:  # A server that hangs is asked once a tick; here are many.
        connection.execute("UPDATE member_placements SET mux_server = mux_server || member_id")
    watched.multiplexer.fail("look", MultiplexerTimeout("tmux", 5), times=None)
    loop = watched.loop()
    ages: list[float] = []

    def hang(method: str, _pane: str) -> None:
        heartbeat = parse_timestamp(watched.row().last_tick_at)
        assert heartbeat is not None
        ages.append((watched.clock() - heartbeat).total_seconds())
        watched.pass_time(5)

    watched.multiplexer.before = hang
    loop.tick()
    assert len(ages) == 20
    assert max(ages) < FRESH_SECONDS / 2


def test_a_busy_database_is_outlived_and_mentioned_once(watched: WatchedFleet) -> None:
    impatient = Database(watched.database.path, busy_timeout_seconds=0.05)
    runtime = watched.runtime_with(impatient)
    lease = claim(runtime, watched.fleet_id, Cadence(5, 0))
    loop = Loop(runtime, lease, watched.journal, monotonic=lambda: watched.monotonic_seconds)
    watched.store(watched.ann)
    blocker = Database(watched.database.path)
    with blocker.write():
        watched.ticks(loop, 3)
    assert not watched.pane_now(watched.ann).touched, "nothing is typed that could not be recorded"
    watched.ticks(loop, 2)
    assert len(watched.submitted(watched.ann)) == 1
    assert watched.said == [
        "a tick was cut short: the database is busy; try again",
        "the database answers again",
        "member 3 was told of message 1",
    ]
    impatient.close()
    blocker.close()


def test_a_machine_at_its_limits_is_outlived_and_mentioned_once(watched: WatchedFleet) -> None:
    watched.store(watched.ann)
    loop = watched.loop()

    def no_descriptors(_method: str, _pane: str) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    watched.multiplexer.before = no_descriptors
    watched.ticks(loop, 3)
    watched.multiplexer.before = lambda _method, _pane: None
    watched.ticks(loop, 2)
    assert watched.said == [
        "a tick was cut short: Too many open files",
        "member 3 was told of message 1",
        "ticks are whole again",
    ]


def test_an_upgrade_of_the_file_ends_the_loop(watched: WatchedFleet) -> None:
    loop = watched.loop()
    watched.ticks(loop, 1)
    run_sql(
        Path(watched.database.path),
        "ALTER TABLE monitor_runtime ADD COLUMN mood TEXT",
        "INSERT INTO refinery_schema_history VALUES (6, 'mood', '2027-01-01', 'x')",
    )
    with pytest.raises(DatabaseNewer, match="format 6 is newer"):
        loop.tick()


def test_a_file_that_was_removed_or_replaced_ends_the_loop(watched: WatchedFleet) -> None:
    loop = watched.loop()
    watched.ticks(loop, 1)
    path = Path(watched.database.path)
    path.rename(path.with_name("elsewhere.db"))
    with pytest.raises(DatabaseMissing):
        loop.tick()
    path.write_text("something else")
    with pytest.raises(DatabaseForeign):
        loop.tick()


def test_another_file_of_ours_in_its_place_ends_the_loop(watched: WatchedFleet, tmp_path: Path) -> None:
    """Nobody has deleted the fleet: that would be an ordinary end."""
    loop = watched.loop()
    watched.ticks(loop, 1)
    (tmp_path / "other").mkdir()
    other = fresh_database(tmp_path / "other")
    other.close()
    for log in ("-wal", "-shm"):
        os.remove(watched.database.path + log)
    os.replace(other.path, watched.database.path)
    with pytest.raises(FleetNotFound):
        loop.tick()


def test_a_deleted_fleet_ends_the_loop(watched: WatchedFleet) -> None:
    loop = watched.loop()
    fleets.delete_fleet(watched.runtime, watched.fleet_id, kill_panes=False)
    with pytest.raises(FleetDeleted):
        loop.tick()


def test_a_displaced_loop_types_nothing(watched: WatchedFleet) -> None:
    loop = watched.loop()
    claim(watched.runtime, watched.fleet_id, Cadence())
    watched.store(watched.ann)
    with pytest.raises(MonitorDisplaced):
        loop.tick()
    assert not watched.pane_now(watched.ann).touched


def test_a_loop_that_was_displaced_within_a_tick_wakes_nobody(watched: WatchedFleet) -> None:
    """As after a suspension: the new loop wakes the monitor, too."""
    loop = watched.loop(Cadence(5, 10))
    watched.pass_time(20)
    watched.store(watched.ann)
    claimed: list[Lease] = []

    def displace(method: str, _pane: str) -> None:
        if method == "look" and not claimed:
            watched.pass_time(3)
            claimed.append(claim(watched.runtime, watched.fleet_id, Cadence(5, 10)))

    watched.multiplexer.before = displace
    with pytest.raises(MonitorDisplaced):
        loop.tick()
    assert watched.submitted(watched.watch) == []
