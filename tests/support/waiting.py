"""Waiting for something to become true, without sleeping for correctness."""

import time
from collections.abc import Callable
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
