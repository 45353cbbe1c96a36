"""How far a long work is, on a terminal (SPEC 7.1; issue 6: whatever takes more than a second)."""

import time
from collections.abc import Callable
from types import TracebackType

from cafleet.cli.output import Output

PATIENCE_SECONDS = 0.5
"""Work that is done by then shows nothing."""
PAUSE_SECONDS = 0.1
"""Between two lines."""


class ProgressLine:
    """One line on standard error that is overwritten again and again, and gone at the end of the block."""

    def __init__(self, out: Output, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock`: seconds."""
        self._out, self._clock = out, clock
        self._started = clock()
        self._due = self._started + PATIENCE_SECONDS
        self._shown = False

    def __enter__(self) -> "ProgressLine":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            self._out.progress("")

    def show(self, text: str) -> None:
        """Show `text`, unless it is too early or the line before is too new."""
        now = self._clock()
        if now >= self._due:
            self._due = now + PAUSE_SECONDS
            self._shown = True
            self._out.progress(f"{text}, {int(now - self._started)} s")
