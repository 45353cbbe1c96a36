"""How long a failing pane is left alone, counted in ticks: no clock can be set back under it."""

from collections.abc import Hashable
from typing import Generic, TypeVar

LONGEST_SECONDS = 60

Key = TypeVar("Key", bound=Hashable)


class Backoff(Generic[Key]):
    """After a first failure the next tick tries again, then every second one, every fourth, …"""

    def __init__(self, tick_seconds: int) -> None:
        self._longest = max(1, LONGEST_SECONDS // tick_seconds)
        self._failures: dict[Key, int] = {}
        self._left: dict[Key, int] = {}

    def tick(self) -> None:
        """A tick begins."""
        self._left = {key: left - 1 for key, left in self._left.items() if left > 1}

    def failed(self, key: Key) -> None:
        """This tick's try failed."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        self._left[key] = min(2 ** min(failures - 1, 16), self._longest)

    def forget(self, key: Key) -> None:
        """It works again, or is another pane now."""
        self._failures.pop(key, None)
        self._left.pop(key, None)

    def failing(self) -> list[Key]:
        """Whatever failed last time."""
        return list(self._failures)

    def waiting(self) -> list[Key]:
        """What is not to be tried in this tick."""
        return list(self._left)
