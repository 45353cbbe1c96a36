"""Waiting for something to become true, without sleeping for correctness."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def wait_until(probe: Callable[[], T], *, seconds: float = 15.0, what: str = "") -> T:
    """The first truthy answer of `probe`; AssertionError when none comes in time."""
    deadline = time.monotonic() + seconds
    while True:
        answer = probe()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not true within {seconds:g} s: {what or probe}; last answer: {answer!r}")
        time.sleep(0.01)


def has_ended(pid: int) -> bool:
    """Gone, or a zombie: some tmux servers miss the end of a child and never collect it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True
