"""What a face builds once and passes down, so that nothing below reads globals."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from cafleet.clock import Now
from cafleet.config import Config

if TYPE_CHECKING:  # Types only: the foundations import nothing from above.
    from cafleet.db.database import Database
    from cafleet.multiplexer.base import Multiplexer


class Runtime(NamedTuple):
    """The three things that a rule may need besides its arguments, and the clock."""

    config: Config
    database: "Database"
    multiplexer_for: "Callable[[str], Multiplexer]"
    """Backend name (`placement.backend`) to multiplexer; raises MultiplexerError when unknown."""
    now: Now
