"""The stand-in at its terminal: one loop over keys, the running command, time and signals."""

import os
import select
import signal
import time
from collections.abc import Iterable
from types import FrameType

from cafleet.demo.standin.agent import Standin
from cafleet.demo.standin.options import Options
from cafleet.demo.standin.picture import picture
from cafleet.demo.standin.screen import Key, Keys, Terminal

ESCAPE_SECONDS = 0.03
"""How long a lone ESC may still become a sequence."""
_READ_BYTES = 65536


class Session:
    """One run of the agent, from its first picture to its end."""

    def __init__(self, options: Options, terminal: Terminal) -> None:
        self._agent, self._keys, self._terminal = Standin(options), Keys(), terminal
        self._slow_seconds = float(options.faults.get("slow", 0))
        self._size = terminal.size()
        self._draw_at: float | None = 0.0
        self._signals, self._wakeup = os.pipe()
        os.set_blocking(self._wakeup, False)
        self._stopped_by: int | None = None

    def run(self) -> int:
        """Until a key, a directive or a signal ends it; its exit code."""
        signal.set_wakeup_fd(self._wakeup)
        for number in (signal.SIGHUP, signal.SIGTERM):
            signal.signal(number, self._stop)
        signal.signal(signal.SIGWINCH, lambda *_: None)
        self._agent.start()
        self._agent.note(ready=os.getpid())
        try:
            while not self._agent.ended and self._stopped_by is None:
                self._draw()
                self._react(self._wait())
        finally:
            self._agent.stop_tool()
        return 0 if self._stopped_by is None else 128 + self._stopped_by

    def _stop(self, number: int, _frame: FrameType | None) -> None:
        self._stopped_by = number

    def _draw(self) -> None:
        if self._draw_at is not None and time.monotonic() >= self._draw_at:
            self._draw_at = None
            self._terminal.draw(*picture(self._agent.looks(), *self._size))

    def _wait(self) -> list[int]:
        """The files that have something to read, none when a deadline has come."""
        now = time.monotonic()
        waits = [at - now for at in (self._draw_at, self._agent.deadline) if at is not None]
        if self._keys.undecided:
            waits.append(ESCAPE_SECONDS)
        files = [0, self._signals, *([self._agent.tool.reader] if self._agent.tool else [])]
        return select.select(files, [], [], max(0.0, min(waits)) if waits else None)[0]

    def _react(self, ready: list[int]) -> None:
        if self._signals in ready:
            os.read(self._signals, _READ_BYTES)
            if self._terminal.size() != self._size:
                self._size = self._terminal.size()
                self._terminal.forget()
        if self._agent.tool is not None and self._agent.tool.reader in ready:
            self._agent.take_output()
        if 0 in ready:
            data = os.read(0, _READ_BYTES)
            self._agent.ended = self._agent.ended or not data
            self._press(self._keys.feed(data))
        changed = bool(ready) or self._press(self._keys.settle())
        if self._agent.pass_time() or changed:
            self._draw_soon()

    def _press(self, keys: Iterable[Key]) -> bool:
        pressed = list(keys)
        for key in pressed:
            self._agent.press(key)
        return bool(pressed)

    def _draw_soon(self) -> None:
        if self._draw_at is None:  # Else the picture that is on its way will show this, too.
            self._draw_at = time.monotonic() + self._slow_seconds


def run(options: Options) -> int:
    """Be the agent; its exit code."""
    try:
        with Terminal() as terminal:
            if "boot" in options.faults:
                _sleep_through(float(options.faults["boot"]))
            return Session(options, terminal).run()
    except OSError:
        return 1  # The terminal is gone.


def _sleep_through(seconds: float) -> None:
    """Start up: whatever is typed meanwhile is lost."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([0], [], [], left)[0]:
            os.read(0, _READ_BYTES)
