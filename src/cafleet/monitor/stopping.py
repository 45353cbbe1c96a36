"""A pause that a signal ends at once."""

import os
import select
import signal
from types import FrameType, TracebackType

_DRAIN_BYTES = 4096
_Handler = object


class StopSignals:
    """SIGINT, SIGTERM and SIGHUP as a wish to end in order; a second one interrupts whatever happens.

    A context manager for the main thread; the handlers from before come back at its end.
    """

    def __init__(self) -> None:
        self.stopped_by: str | None = None
        """Name of the signal; None: nobody wants an end."""
        self._before: dict[signal.Signals, object] = {}
        self._wakeup_before = -1
        self._reader = self._writer = -1

    def __enter__(self) -> "StopSignals":
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        # The signal itself is written to the pipe: one that comes right before the pause ends it, too.
        self._wakeup_before = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue  # Started to survive its terminal.
            self._before[number] = signal.signal(number, self._stop)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        signal.set_wakeup_fd(self._wakeup_before)
        os.close(self._reader)
        os.close(self._writer)

    def stopping(self) -> bool:
        """Whether an end is wanted."""
        return self.stopped_by is not None

    def pause(self, seconds: float) -> bool:
        """Wait for so long, or for a signal; whether an end is wanted."""
        if not self.stopping() and select.select([self._reader], [], [], max(0.0, seconds))[0]:
            os.read(self._reader, _DRAIN_BYTES)
        return self.stopping()

    def _stop(self, number: int, _frame: FrameType | None) -> None:
        if self.stopping():
            raise KeyboardInterrupt
        self.stopped_by = signal.Signals(number).name
