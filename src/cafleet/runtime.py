"""What a face builds once and passes down, so that nothing below reads globals."""

from collections.abc import Callable

from cafleet.clock import Now
from cafleet.config import Config
from cafleet.light_typing import TYPE_CHECKING

if TYPE_CHECKING:  # Types only: the foundations import nothing from above.
    from cafleet.db.database import Database
    from cafleet.multiplexer.base import Multiplexer


class Runtime:
    """The three things that a rule may need besides its arguments, and the clock.

    Not a named tuple: one whose types must stay quoted compiles them at start-up, for a whole millisecond.
    """

    __slots__ = ("config", "database", "multiplexer_for", "now")

    def __init__(
        self,
        config: Config,
        database: "Database",
        multiplexer_for: "Callable[[str], Multiplexer]",
        now: Now,
    ) -> None:
        """`multiplexer_for`: backend name (`placement.backend`) to multiplexer; raises MultiplexerError
        when unknown."""
        self.config = config
        self.database = database
        self.multiplexer_for = multiplexer_for
        self.now = now

    def for_another_thread(self, *, busy_timeout_seconds: float | None = None) -> "Runtime":
        """The same with a database object of its own, which belongs to one thread; its user closes that.

        `busy_timeout_seconds`: how long it waits for a locked file; None: as long as this one.
        """
        database = self.database.another(busy_timeout_seconds=busy_timeout_seconds)
        return Runtime(self.config, database, self.multiplexer_for, self.now)
