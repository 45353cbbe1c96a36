"""What a loop says: one line per thing that happens, one per change of a state that lasts."""

from collections.abc import Callable

from cafleet.clock import Now


class Journal:
    """Lines with their time, UTC, in whole seconds."""

    def __init__(self, now: Now, write: Callable[[str], None]) -> None:
        self._now, self._write = now, write
        self._states: dict[str, str] = {}

    def say(self, text: str) -> None:
        """Something that happened."""
        self._write(f"{self._now().isoformat(timespec='seconds')} {text}")

    def state(self, subject: str, text: str, reason: str | None = None) -> None:
        """`text`, if the state of `subject` is not the one that was said last. `reason`: the state itself,
        where `text` has details that make no difference."""
        if self._states.get(subject) != (reason or text):
            self._states[subject] = reason or text
            self.say(text)

    def over(self, subject: str, text: str | None = None) -> None:
        """The state of `subject` has ended; `text` says so where there was one."""
        if self._states.pop(subject, None) is not None and text is not None:
            self.say(text)
