"""How far a long work is, on a terminal (SPEC 7.1): whatever takes more than a second."""

import threading
import time
from collections.abc import Callable
from types import TracebackType

from cafleet.cli.output import Output

PATIENCE_SECONDS = 0.5
"""Work that is done by then shows nothing."""
PAUSE_SECONDS = 0.1
"""Between two lines."""
SILENCE_SECONDS = 0.5
"""After so long without news the line before is shown again, with the time."""


class ProgressLine:
    """One line on standard error that is overwritten again and again, and gone at the end of the block.

    Its seconds go on while the work says nothing: SQLite builds an index or writes to disk in one step.
    """

    def __init__(self, out: Output, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock`: seconds."""
        self._out, self._clock = out, clock
        self._started = clock()
        self._due = self._started + PATIENCE_SECONDS
        self._text: str | None = None
        self._shown = False
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._go_on, name="cafleet-progress", daemon=True)

    def __enter__(self) -> "ProgressLine":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        if self._shown:
            self._out.progress("")

    def _go_on(self) -> None:
        while not self._ended.wait(SILENCE_SECONDS):
            with self._lock:
                self._paint(self._due - PAUSE_SECONDS + SILENCE_SECONDS)

    def _paint(self, due: float) -> None:
        """Show the newest text if it is time. With the lock."""
        now = self._clock()
        if self._text is not None and now >= due:
            self._due = now + PAUSE_SECONDS
            self._shown = True
            self._out.progress(f"{self._text}, {int(now - self._started)} s")

    def show(self, text: str) -> None:
        """Show `text`, unless it is too early or the line before is too new."""
        with self._lock:
            self._text = text
            self._paint(self._due)
