"""Writers take turns (SPEC 2.5): who waits does not disturb who writes, and is not left behind."""

import sqlite3
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cafleet.db.turns import (
    EAGER_TRIES,
    LONGEST_PAUSE_SECONDS,
    SHORTEST_PAUSE_SECONDS,
    SHRINKING_SECONDS,
    execute_in_turn,
    pause_seconds,
)


class Writer(sqlite3.Connection):
    """A connection that others are in the way of, so many times."""

    busy = 0
    tries = 0

    def execute(self, sql: str, parameters: object = (), /) -> sqlite3.Cursor:
        self.tries += 1
        if self.tries <= self.busy:
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise error
        return super().execute(sql)


@given(st.integers(1, 10_000), st.floats(0, 60), st.floats(0, 60))
def test_the_longer_one_has_waited_the_more_often_one_looks(
    tries: int, waited: float, further: float
) -> None:
    before, after = pause_seconds(tries, waited), pause_seconds(tries + 1, waited + further)
    assert SHORTEST_PAUSE_SECONDS <= before <= LONGEST_PAUSE_SECONDS
    assert after <= before or tries <= EAGER_TRIES


def test_the_oldest_look_as_often_as_one_whose_turn_is_near() -> None:
    pauses = [pause_seconds(EAGER_TRIES + 1, part * SHRINKING_SECONDS) for part in (0, 0.5, 1)]
    assert pauses == [LONGEST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS / 2, SHORTEST_PAUSE_SECONDS]


def test_a_lock_of_a_moment_costs_a_moment() -> None:
    assert [pause_seconds(tries, 0) for tries in range(1, EAGER_TRIES + 1)] == [
        SHORTEST_PAUSE_SECONDS
    ] * EAGER_TRIES


def test_a_crowd_leaves_the_processor_to_the_one_that_writes() -> None:
    """A hundred waiters that have just come look less often than once in a tenth of a millisecond."""
    assert pause_seconds(EAGER_TRIES + 1, 0) / 100 > 0.0001


def test_others_are_waited_for() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None, factory=Writer)
    connection.busy = 5
    execute_in_turn(connection, "BEGIN IMMEDIATE", patience_seconds=60)
    assert connection.in_transaction
    assert connection.tries == 6
    connection.close()


def test_not_for_ever(tmp_path: Path) -> None:
    holder, connection = (
        sqlite3.connect(tmp_path / "x.db", isolation_level=None, timeout=0) for _ in range(2)
    )
    holder.execute("BEGIN IMMEDIATE")
    started = time.monotonic()
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        execute_in_turn(connection, "BEGIN IMMEDIATE", patience_seconds=0.2)
    assert time.monotonic() - started >= 0.2
    holder.close()
    connection.close()


def test_other_errors_are_told_at_once() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None, factory=Writer)
    with pytest.raises(sqlite3.OperationalError, match="no transaction"):
        execute_in_turn(connection, "COMMIT", patience_seconds=60)
    assert connection.tries == 1
    connection.close()
