"""Waiting until a file may have changed: a hint that costs nothing while all is quiet, and a slow look at the
file as the net under it, since hints may be lost (SPEC 4.5)."""

import time
from collections.abc import Callable

from cafleet.db.wakeups import Receiver

CHECK_SECONDS = 0.25
"""How often the file itself is looked at."""
QUIET_CHECK_SECONDS = 1.0
"""The same after a long quiet time, and how seldom at most."""
QUIET_SHARE = 0.2
"""In between, this share of the quiet time so far: what comes without a hint then is late by a fifth of the
wait for it, at most."""


class ChangeWatch:
    """Remembers what the file looked like, until `close()`."""

    def __init__(self, wakeups: str, look: Callable[[], object]) -> None:
        """`wakeups`: the folder of the waiters' sockets. `look`: a value that differs after each commit; what
        it raises comes through, here and from `wait`."""
        self._look = look
        self._receiver = _receiver(wakeups)  # Before the first look: later commits leave a hint.
        try:
            self._note(look())
        except BaseException:
            self.close()
            raise

    def wait(self, timeout_seconds: float) -> bool:
        """True as soon as the file looks otherwise than after the last call; False: the time is over."""
        deadline = time.monotonic() + timeout_seconds
        while True:
            found = self._look()
            if found != self._seen:
                self._note(found)
                return True
            now = time.monotonic()
            pause = max(CHECK_SECONDS, QUIET_SHARE * (now - self._changed_at))
            pause = min(pause, QUIET_CHECK_SECONDS, deadline - now)
            if pause <= 0:
                return False
            if self._receiver is None:
                time.sleep(pause)
            else:
                self._receiver.wait(pause)

    def close(self) -> None:
        """Remove the socket."""
        if self._receiver is not None:
            self._receiver.close()
            self._receiver = None

    def _note(self, found: object) -> None:
        self._seen = found
        self._changed_at = time.monotonic()


def _receiver(wakeups: str) -> Receiver | None:
    """None where no socket can be made: the looks at the file are enough."""
    try:
        return Receiver(wakeups)
    except OSError:
        return None
