"""Waiting for something to become true, without sleeping for correctness."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

DEADLINE_SECONDS = 60.0
"""How long a test waits for what must happen before it fails: a guard against waiting for ever, and no
claim about speed. Every wait in the tests ends here, so that a busy machine makes them slow, not red."""
DEADLINE_MILLISECONDS = DEADLINE_SECONDS * 1000


def wait_until(probe: Callable[[], T], *, seconds: float = DEADLINE_SECONDS, what: str = "") -> T:
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
    """Gone, or a zombie: its parent may take note of its end late, and some tmux servers never do."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state in "ZX"
