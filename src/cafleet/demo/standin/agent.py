"""The stand-in agent: what it does with keys, turns and time, and how it goes wrong."""

import json
import os
import time
from collections import deque

from cafleet.demo.standin import turns
from cafleet.demo.standin.options import Options
from cafleet.demo.standin.picture import Looks
from cafleet.demo.standin.screen import Key, Kind
from cafleet.demo.standin.tool import Tool

_BURST_GAP_SECONDS, _BURST_WINDOW_SECONDS = 0.008, 0.12
_LONGEST_TRANSCRIPT = 500
"""Lines."""


class Standin:
    """The agent, apart from its terminal: whoever drives it presses its keys and lets its time pass."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._faults = options.faults
        self._log = (
            os.open(options.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600) if options.log else None
        )
        self.ended = False
        self.composer = self._faults.get("draft", "")
        self.transcript: list[str] = []
        self._queue: deque[str] = deque()
        self._turn: turns.Turn | None = None
        self._prompt = ""
        self.tool: Tool | None = None
        self._wake_at: float | None = None
        """When the pause of a step ends."""
        self._question: str | None = None
        self._turn_asked = False
        """The question belongs to the turn, which goes on with its answer."""
        self._list_open = False
        self._eat_enters = self._number("eat_enter")
        self._drop_pastes = self._number("drop_paste")
        self._pastes = 0
        self._typed_at: list[float] = []
        if "dialog" in self._faults:
            self._question = "Do you trust the files in this folder?"

    def start(self) -> None:
        """The first turn, where there is a prompt."""
        if self._options.prompt:
            self._begin(self._options.prompt)

    def note(self, **event: object) -> None:
        """One line of the event log."""
        if self._log is not None:
            os.write(self._log, (json.dumps(event, ensure_ascii=False) + "\n").encode())

    @property
    def working(self) -> bool:
        """A turn is under way: what is submitted is queued."""
        return self._turn is not None or "busy" in self._faults

    @property
    def deadline(self) -> float | None:
        """When `pass_time` has something to do."""
        return self._wake_at

    # -- keys ------------------------------------------------------------------------------------

    def press(self, key: Key) -> None:
        """One key event."""
        if key.kind is Kind.ESCAPE:
            self.note(esc=1)
        if self._question is not None:
            self._press_at_question(key)
        elif key.kind is Kind.PASTE:
            self._paste(key.text)
        elif key.kind is Kind.TEXT:
            self._type(key.text)
        elif key.kind is Kind.ENTER:
            self._enter()
        else:
            self._edit(key.kind)

    def _press_at_question(self, key: Key) -> None:
        """As the real ones: a paste is ignored as a whole, but a typed character can be an answer."""
        if key.kind in (Kind.PASTE, Kind.OTHER):
            return
        self.note(key=key.text or key.kind.value)
        for character in key.text or key.kind.value[:1]:
            if key.kind is Kind.ENTER or (key.kind is Kind.TEXT and character in "1yY"):
                self.note(approved=1)
                self._answer("yes")
                return
            if key.kind is Kind.ESCAPE or (key.kind is Kind.TEXT and character in "2nN"):
                self._answer("no")
                return

    def _answer(self, answer: str) -> None:
        self._say(f"? {self._question}: {answer}")
        self._question = None
        if self._turn_asked:
            self._turn_asked = False
            self._advance(answer)

    def _paste(self, text: str) -> None:
        self._pastes += 1
        if self._pastes <= self._drop_pastes:
            return
        if self._pastes == 1:
            if "paste_exit" in self._faults:
                self.ended = True
            if "paste_dialog" in self._faults:
                self._question = "Do you want to allow this command?"
                return
            text += self._faults.get("paste_person", "")
        self.composer += text
        self._open_list()

    def _type(self, text: str) -> None:
        now = time.monotonic()
        self._typed_at = [*self._typed_at, *([now] * len(text))][-3:]
        self.composer += text
        self._open_list()

    def _open_list(self) -> None:
        if "slash" in self._faults:
            last = self.composer.split(" ")[-1]
            self._list_open = self.composer[:1] in ("/", "!", "#") or last.startswith("@")

    def _edit(self, kind: Kind) -> None:
        if kind is Kind.NEWLINE:
            self.composer += "\n"
        elif kind is Kind.BACKSPACE:
            self.composer = self.composer[:-1]
        elif kind is Kind.CLEAR:
            self.composer = ""
        elif kind is Kind.END and not self.composer:
            self.ended = True
        elif kind in (Kind.ESCAPE, Kind.INTERRUPT) and self._turn is not None:
            self.composer = self._prompt + self.composer  # As one of the real ones does.
            self._finish("Interrupted.")
        elif kind is Kind.INTERRUPT:
            self.composer = ""

    def _enter(self) -> None:
        if self._eat_enters > 0:
            self._eat_enters -= 1
        elif self._list_open:
            self._list_open = False
        elif "burst" in self._faults and self._in_burst():
            self.composer += "\n"
        elif not self.composer.strip():
            self.note(key="enter")
        else:
            text, self.composer = self.composer, ""
            self.note(submit=text)
            if text.strip() == "/exit":
                self.ended = True
            elif self.working:
                self._queue.append(text)
            else:
                self._begin(text)
            if "enter_dialog" in self._faults:
                self._question = "Do you want to allow this command?"

    def _in_burst(self) -> bool:
        times = self._typed_at
        quick = len(times) == 3 and times[2] - times[0] < 2 * _BURST_GAP_SECONDS
        return quick and time.monotonic() - times[2] < _BURST_WINDOW_SECONDS

    # -- turns -----------------------------------------------------------------------------------

    def _begin(self, prompt: str) -> None:
        self._say(f"» {prompt}")
        self._prompt = prompt
        self._turn = turns.take_turn(prompt, self._options.member_id)
        self._advance(None)

    def _advance(self, result: str | None) -> None:
        """Give the turn the result of its last step, and begin the next one."""
        while self._turn is not None:
            try:
                step = next(self._turn) if result is None else self._turn.send(result)
            except StopIteration:
                self._finish("")
                return
            if not self._carry_out(step):
                return
            result = ""

    def _carry_out(self, step: turns.Step) -> bool:
        """Begin a step; True when it is over at once."""
        match step:
            case turns.Say(text):
                self._say(f"● {text}")
                return True
            case turns.Run(arguments):
                self._say(f"● $ cafleet {' '.join(arguments)}")
                self.tool = Tool(arguments, self._options.environ)
            case turns.Pause(seconds):
                self._wake_at = time.monotonic() + seconds
            case turns.Ask(question):
                self._question, self._turn_asked = question, True
            case turns.Leave():
                self.ended = True
        return False

    def take_output(self) -> None:
        """The running command printed something, or ended."""
        assert self.tool is not None
        if self.tool.read():
            output = self.tool.output.decode("utf-8", "replace")
            self.tool = None
            for line in output.splitlines():
                self._say(f"  {line}")
            self._advance(output)

    def pass_time(self) -> bool:
        """Go on where the pause of a step is over; whether it was."""
        if self._wake_at is None or time.monotonic() < self._wake_at:
            return False
        self._wake_at = None
        self._advance("")
        return True

    def _finish(self, words: str) -> None:
        self.stop_tool()
        self._turn, self._wake_at, self._turn_asked = None, None, False
        if words:
            self._say(f"● {words}")
        if self._queue and "busy" not in self._faults:
            self._begin(self._queue.popleft())

    def stop_tool(self) -> None:
        """End the running command."""
        if self.tool is not None:
            self.tool.stop()
            self.tool = None

    def _say(self, text: str) -> None:
        clean = "".join(character if character.isprintable() else "␦" for character in text)
        self.transcript = [*self.transcript, clean][-_LONGEST_TRANSCRIPT:]

    def _number(self, fault: str) -> int:
        return int(self._faults[fault]) if fault in self._faults else 0

    def looks(self) -> Looks:
        """What there is to show at this moment."""
        return Looks(
            transcript=self.transcript,
            composer=self.composer,
            question=self._question,
            working=self.working,
            queued=len(self._queue),
            list_open=self._list_open,
            ghost="ghost" in self._faults,
            composer_rows=self._number("rows"),
        )
