import pytest
from tests.support.fleet_builder import claude_screen
from tests.support.memory_multiplexer import ComposerProgram
from tests.support.watched_fleet import WatchedFleet

from cafleet.broker import monitors
from cafleet.broker.member_deletion import delete_member
from cafleet.broker.member_respawn import RespawnRequest, respawn_member
from cafleet.clock import parse_timestamp
from cafleet.db.database import Database
from cafleet.errors import DatabaseBusy, MultiplexerError
from cafleet.monitor.lease import Cadence, claim
from cafleet.monitor.wake import Wake


def _woken(watched: WatchedFleet) -> int:
    return len(watched.submitted(watched.watch))


def test_due_at_the_first_tick_after_the_interval(watched: WatchedFleet) -> None:
    loop = watched.loop(Cadence(5, 20))
    watched.ticks(loop, 4)
    assert _woken(watched) == 0
    watched.ticks(loop, 1)
    assert _woken(watched) == 1
    assert watched.submitted(watched.watch)[0].startswith("[cafleet tick] fleet 1: 1 members: 3 ann (claude,")
    row = watched.row()
    assert parse_timestamp(row.last_wake_at) is not None
    watched.ticks(loop, 3)
    assert _woken(watched) == 1
    watched.ticks(loop, 1)
    assert _woken(watched) == 2
    assert watched.row().last_wake_at != row.last_wake_at
    assert watched.said == ["member 2 was woken"] * 2


def test_a_new_loop_counts_from_the_last_wake(watched: WatchedFleet) -> None:
    watched.ticks(watched.loop(Cadence(5, 600)), 121)
    assert _woken(watched) == 1
    watched.pass_time(400)
    loop = watched.loop(Cadence(5, 600))
    watched.ticks(loop, 30)
    assert _woken(watched) == 1
    watched.ticks(loop, 20)
    assert _woken(watched) == 2


def test_zero_is_no_scheduled_wake_but_a_request_is_honoured(watched: WatchedFleet) -> None:
    loop = watched.loop(Cadence(5, 0))
    watched.ticks(loop, 500)
    assert _woken(watched) == 0
    for _ in range(3):
        monitors.request_wake(watched.runtime, watched.fleet_id)
    watched.ticks(loop, 1)
    assert _woken(watched) == 1, "repeated requests are one"
    row = watched.row()
    assert row.wake_requested_at is None
    assert row.last_wake_at is not None
    watched.ticks(loop, 5)
    assert _woken(watched) == 1


def test_a_changed_interval_is_followed_at_once(watched: WatchedFleet) -> None:
    loop = watched.loop(Cadence(5, 3600))
    watched.ticks(loop, 4)
    monitors.set_wake_interval(watched.runtime, watched.fleet_id, 10)
    watched.ticks(loop, 1)
    assert _woken(watched) == 1
    monitors.set_wake_interval(watched.runtime, watched.fleet_id, 0)
    watched.ticks(loop, 10)
    assert _woken(watched) == 1


def test_a_wake_that_cannot_be_typed_changes_nothing_and_is_due_again(watched: WatchedFleet) -> None:
    pane = watched.pane_now(watched.watch)
    pane.mode = "copy-mode"
    loop = watched.loop(Cadence(5, 0))
    monitors.request_wake(watched.runtime, watched.fleet_id)
    requested = watched.row().wake_requested_at
    watched.ticks(loop, 10)
    assert not pane.touched
    assert (watched.row().last_wake_at, watched.row().wake_requested_at) == (None, requested)
    assert watched.said == ["no wake: pane is in copy-mode"]
    pane.mode = ""
    watched.ticks(loop, 1)
    assert _woken(watched) == 1
    assert watched.said[1:] == ["member 2 was woken"]


def test_a_monitor_whose_pane_is_gone(watched: WatchedFleet) -> None:
    pane = watched.pane(watched.watch)
    watched.multiplexer.remove_pane(pane)
    loop = watched.loop(Cadence(5, 5))
    watched.ticks(loop, 52)
    assert watched.row().last_wake_at is None
    assert len(watched.said) == 1
    assert watched.multiplexer.calls.count(("look", pane.pane)) < 15, "a failing pane is left alone"


def test_a_new_request_is_tried_although_the_pane_fails(watched: WatchedFleet) -> None:
    loop = watched.loop(Cadence(5, 5))
    watched.multiplexer.fail("look", MultiplexerError("told to fail"), times=6)
    watched.ticks(loop, 29)
    assert _woken(watched) == 0
    monitors.request_wake(watched.runtime, watched.fleet_id)
    watched.ticks(loop, 1)
    assert _woken(watched) == 1


def test_a_respawned_monitor_is_woken_at_once(watched: WatchedFleet) -> None:
    watched.multiplexer.remove_pane(watched.pane(watched.watch))
    loop = watched.loop(Cadence(5, 5))
    watched.ticks(loop, 42)  # The next try would be ten ticks away.
    assert watched.row().last_wake_at is None
    again = RespawnRequest(watched.watch.member_id, "Again.", str(watched.directory))
    respawn_member(watched.runtime, again, start_wait_seconds=0)
    pane = watched.pane_now(watched.watch)
    pane.program = ComposerProgram(claude_screen)
    pane.program.show(pane)
    watched.ticks(loop, 1)
    assert _woken(watched) == 1


def test_a_fleet_without_a_monitor(watched: WatchedFleet) -> None:
    delete_member(watched.runtime, watched.watch.member_id)
    loop = watched.loop(Cadence(5, 5))
    watched.ticks(loop, 5)
    assert watched.said == ["no wake: the fleet has no monitor"]
    assert watched.row().last_wake_at is None
    watched.watch = watched.member(watched.fleet_id, "second", monitor=True)
    watched.ticks(loop, 1)
    assert _woken(watched) == 1


def test_a_monitor_without_a_pane_yet(watched: WatchedFleet) -> None:
    with watched.database.write() as conn:
        conn.execute("UPDATE member_placements SET mux_pane_id = NULL WHERE member_id = 2")
    watched.ticks(watched.loop(Cadence(5, 5)), 5)
    assert watched.said == ["no wake: member 2 has no pane"]


def test_an_agent_that_cannot_be_read_ends_no_loop(watched: WatchedFleet) -> None:
    with watched.database.write() as conn:
        conn.execute("UPDATE member_placements SET coding_agent = 'nobody' WHERE member_id = 2")
    watched.ticks(watched.loop(Cadence(5, 5)), 5)
    assert len(watched.said) == 1
    assert watched.said[0].startswith("no wake: unknown coding agent 'nobody'")


# -- a monitor that is at work ------------------------------------------------------------------


def _at_work(composer: str) -> list[str]:
    return [*claude_screen(composer)[:-1], "  esc to interrupt"]


def _let_work(watched: WatchedFleet, *, at_work: bool) -> None:
    pane = watched.pane_now(watched.watch)
    assert isinstance(pane.program, ComposerProgram)
    pane.program.draw = _at_work if at_work else claude_screen
    pane.program.show(pane)


def test_wakes_do_not_pile_up_in_the_queue_of_a_busy_monitor(watched: WatchedFleet) -> None:
    """Field case H1: one line waits there, however long it takes."""
    _let_work(watched, at_work=True)
    loop = watched.loop(Cadence(5, 20))
    watched.ticks(loop, 150)
    assert _woken(watched) == 1
    assert watched.said == [
        "member 2 was woken",
        "no wake: it is at work, and the last wake may still wait in its queue",
    ]
    _let_work(watched, at_work=False)
    watched.ticks(loop, 1)
    assert _woken(watched) == 2, "it was due all the time"
    _let_work(watched, at_work=True)
    watched.ticks(loop, 150)
    assert _woken(watched) == 3, "at work again, with an empty queue"


def test_a_request_reaches_a_busy_monitor_all_the_same(watched: WatchedFleet) -> None:
    _let_work(watched, at_work=True)
    loop = watched.loop(Cadence(5, 5))
    watched.ticks(loop, 10)
    assert _woken(watched) == 1
    monitors.request_wake(watched.runtime, watched.fleet_id)
    watched.ticks(loop, 10)
    assert _woken(watched) == 2


def test_a_new_pane_has_an_empty_queue(watched: WatchedFleet) -> None:
    _let_work(watched, at_work=True)
    loop = watched.loop(Cadence(5, 20))
    watched.ticks(loop, 10)
    assert _woken(watched) == 1
    delete_member(watched.runtime, watched.watch.member_id)
    watched.watch = watched.member(watched.fleet_id, "second", monitor=True)
    _let_work(watched, at_work=True)
    watched.ticks(loop, 1)
    assert _woken(watched) == 1


# -- clocks ------------------------------------------------------------------------------------


def test_a_clock_that_steps_back_delays_no_wake(watched: WatchedFleet) -> None:
    loop = watched.loop(Cadence(5, 60))
    watched.ticks(loop, 6)
    watched.clock.advance(-3600)
    watched.ticks(loop, 6)
    assert _woken(watched) == 0
    watched.ticks(loop, 1)
    assert _woken(watched) == 1
    watched.clock.advance(-3600)
    watched.ticks(loop, 11)
    assert _woken(watched) == 1
    watched.ticks(loop, 1)
    assert _woken(watched) == 2
    assert monitors.loop_is_live(watched.row(), watched.clock())


def test_a_last_wake_in_the_future_is_waited_out_for_one_interval(watched: WatchedFleet) -> None:
    claim(watched.runtime, watched.fleet_id, Cadence()).stamp_wake("2026-03-01T18:00:00.000000+00:00", None)
    loop = watched.loop(Cadence(5, 60))
    watched.ticks(loop, 12)
    assert _woken(watched) == 0
    watched.ticks(loop, 1)
    assert _woken(watched) == 1


def test_a_clock_that_steps_forward_wakes_once(watched: WatchedFleet) -> None:
    loop = watched.loop(Cadence(5, 600))
    watched.ticks(loop, 2)
    watched.clock.advance(7200)
    watched.ticks(loop, 5)
    assert _woken(watched) == 1


@pytest.mark.parametrize("last_wake", ["", "soon"])
def test_an_unreadable_last_wake_counts_as_none(watched: WatchedFleet, last_wake: str) -> None:
    claim(watched.runtime, watched.fleet_id, Cadence()).stamp_wake(last_wake, None)
    loop = watched.loop(Cadence(5, 20))
    watched.ticks(loop, 4)
    assert _woken(watched) == 0
    watched.ticks(loop, 1)
    assert _woken(watched) == 1


# -- a row that takes no stamp -----------------------------------------------------------------


def test_a_wake_that_could_not_be_recorded_is_not_typed_again(watched: WatchedFleet) -> None:
    impatient = Database(watched.database.path, busy_timeout_seconds=0.05)
    runtime = watched.runtime_with(impatient)
    lease = claim(runtime, watched.fleet_id, Cadence(5, 0))
    wake = Wake(runtime, lease, watched.journal, lambda: watched.monotonic_seconds)
    monitors.request_wake(watched.runtime, watched.fleet_id)
    row = lease.beat()
    blocker = Database(watched.database.path)
    with blocker.write():
        for _ in range(3):
            with pytest.raises(DatabaseBusy):
                wake.run_once(row)
    assert _woken(watched) == 1
    wake.run_once(lease.beat())
    assert _woken(watched) == 1
    assert watched.row().wake_requested_at is None
    assert watched.row().last_wake_at is not None
    wake.run_once(lease.beat())
    assert _woken(watched) == 1
    impatient.close()
    blocker.close()


def test_a_request_that_came_before_the_wake_could_be_recorded_is_met_too(watched: WatchedFleet) -> None:
    impatient = Database(watched.database.path, busy_timeout_seconds=0.05)
    lease = claim(watched.runtime_with(impatient), watched.fleet_id, Cadence(5, 0))
    wake = Wake(watched.runtime_with(impatient), lease, watched.journal, lambda: watched.monotonic_seconds)
    monitors.request_wake(watched.runtime, watched.fleet_id)
    row = lease.beat()
    blocker = Database(watched.database.path)
    with blocker.write(), pytest.raises(DatabaseBusy):
        wake.run_once(row)
    watched.pass_time(5)
    row = lease.beat()
    monitors.request_wake(watched.runtime, watched.fleet_id)
    wake.run_once(row)
    assert _woken(watched) == 1
    wake.run_once(lease.beat())
    assert _woken(watched) == 2
    assert watched.row().wake_requested_at is None
    impatient.close()
    blocker.close()


def test_a_request_that_comes_while_a_wake_is_typed_is_met_by_a_further_one(watched: WatchedFleet) -> None:
    """What has happened in between may be what the request is about."""
    lease = claim(watched.runtime, watched.fleet_id, Cadence(5, 0))
    wake = Wake(watched.runtime, lease, watched.journal, lambda: watched.monotonic_seconds)
    monitors.request_wake(watched.runtime, watched.fleet_id)
    row = lease.beat()
    watched.pass_time(1)
    monitors.request_wake(watched.runtime, watched.fleet_id)
    for count in (1, 2, 2):
        wake.run_once(row)
        assert _woken(watched) == count
        row = lease.beat()
    assert row.wake_requested_at is None


def test_a_wake_that_was_left_in_the_composer_is_finished_and_not_repeated(watched: WatchedFleet) -> None:
    pane = watched.pane_now(watched.watch)
    pane.program = ComposerProgram(claude_screen, eat_enters=3)
    pane.program.show(pane)
    loop = watched.loop(Cadence(5, 0))
    monitors.request_wake(watched.runtime, watched.fleet_id)
    watched.ticks(loop, 1)
    assert _woken(watched) == 0
    assert watched.row().wake_requested_at is not None
    watched.store(watched.ann)  # The line would be another one now.
    watched.ticks(loop, 3)
    assert _woken(watched) == 1
    assert watched.row().wake_requested_at is None
