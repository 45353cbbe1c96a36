"""Contention: many processes that send to one inbox at the same time."""

import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from benchmarks.place import PROGRAM, Place
from benchmarks.table import Row

PROCESSES = 32
MESSAGES = 25


def rows() -> Iterator[Row]:
    """One row: what was lost, what was doubled, what failed."""
    with Place() as place:
        started = time.perf_counter()
        with ThreadPoolExecutor(PROCESSES) as crowd:
            errors = [
                error
                for failed in crowd.map(lambda who: _sender(place, who), range(PROCESSES))
                for error in failed
            ]
        seconds = time.perf_counter() - started
        with place.connect() as connection:
            stored = Counter(text for (text,) in connection.execute("SELECT text FROM messages"))
    expected = {body(who, number) for who in range(PROCESSES) for number in range(MESSAGES)}
    lost = len(expected - stored.keys())
    doubled = sum(count - 1 for count in stored.values())
    yield Row(
        f"{PROCESSES} processes at once, {MESSAGES} sends each, one inbox",
        "none lost, none doubled, no error",
        f"{lost} lost, {doubled} doubled, {len(errors)} errors, {len(expected) / seconds:.0f} sends/s",
        "",
        not (lost or doubled or errors),
    )


def body(who: int, number: int) -> str:
    """A text that occurs once."""
    return f"sender {who} message {number}"


def _sender(place: Place, who: int) -> list[str]:
    errors = []
    for number in range(MESSAGES):
        done = subprocess.run(
            [PROGRAM, "message", "send", "--from", "2", "--to", "1", body(who, number)],
            env=place.environ,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        if done.returncode or "Error" in done.stderr:
            errors.append(done.stderr)
    return errors
