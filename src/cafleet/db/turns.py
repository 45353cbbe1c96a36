"""How one of many writers waits for its turn.

SQLite's own waiting sleeps longer and longer, so that who came first loses to newcomers. And waiters that
all look every moment take the processor from the one that writes: with 120 of them the slowest waited for 20
seconds. Here a waiter looks at once again, for its turn is mostly near; then seldom, and the more often
the longer it has waited. However many there are, the oldest have the best chance.
"""

import sqlite3
import time

from cafleet.db.failures import BUSY_CODES, primary_code

SHORTEST_PAUSE_SECONDS = 0.001
LONGEST_PAUSE_SECONDS = 0.02
EAGER_TRIES = 2
"""After so many short pauses the long ones begin."""
SHRINKING_SECONDS = 2.0
"""In this time the longest pause becomes the shortest."""


def execute_in_turn(connection: sqlite3.Connection, statement: str, patience_seconds: float) -> None:
    """BEGIN IMMEDIATE or COMMIT, waiting for others at most `patience_seconds`. A COMMIT has to wait only
    where the file is not in WAL mode.

    Raises:
        sqlite3.OperationalError: still busy, or anything else that SQLite says.
    """
    started = time.monotonic()
    tries = 0
    while True:
        try:
            connection.execute(statement)
            return
        except sqlite3.OperationalError as error:
            waited = time.monotonic() - started
            if primary_code(error) not in BUSY_CODES or waited >= patience_seconds:
                raise
        tries += 1
        # Uneven: processes that started together do not stay in step.
        time.sleep(pause_seconds(tries, waited) * (0.5 + time.monotonic_ns() % 1000 / 1000))


def pause_seconds(tries: int, waited_seconds: float) -> float:
    """The mean pause after so many tries in vain and so much waiting."""
    if tries <= EAGER_TRIES:
        return SHORTEST_PAUSE_SECONDS
    return max(SHORTEST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS * (1 - waited_seconds / SHRINKING_SECONDS))
