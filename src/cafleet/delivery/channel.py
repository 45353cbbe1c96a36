"""How a line reaches a coding agent: one small interface (SPEC 4.5).

The pane is its first implementation; a queue command, an HTTP prompt or a hook can be others.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from cafleet.delivery.line import OwnLine
from cafleet.models import Notification

Recognise = Callable[[str], OwnLine | None]
"""Told what stands in a composer: which of our own lines to this recipient it is, and nothing but
that; None: it is a person's."""


class Told(NamedTuple):
    """What became of one call."""

    notification: Notification
    """`notified`: the line was submitted. Nothing is stamped here."""
    left_over: OwnLine | None = None
    """Instead of the line, this one was dealt with: a killed sender had left it in the composer."""


class Channel(Protocol):
    """The way to one recipient. The caller holds the pane's lock."""

    line_limit: int
    """Longest notification line, in UTF-16 units."""

    def tell(self, line: str, recognise: Recognise) -> Told:
        """Submit `line` as one user turn, once, or say why not.

        Raises MultiplexerError where the pane is dead, gone or cannot be reached.
        """
        ...
