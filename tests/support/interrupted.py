"""A process that others come in between."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from sqlite3 import Connection

from cafleet.db.database import Database


class Interrupted(Database):
    """The file as a process has it in which others come between two of its steps."""

    def __init__(self, path: str, after: int, action: Callable[[], object]) -> None:
        """`action` is done right after the reading transaction with the number `after`."""
        super().__init__(path)
        self.interrupted = False
        self._reads, self._after, self._action = 0, after, action

    @contextmanager
    def read(self) -> Iterator[Connection]:  # type: ignore[override]
        with super().read() as connection:
            yield connection
        self._reads += 1
        if self._reads == self._after:
            self.interrupted = True
            self._action()
