"""A stand-in for a coding agent: `python -m cafleet.demo.standin [options] [-- PROMPT]`.

It has what cafleet needs of an agent: a composer, a screen that tells rest, work and questions apart,
bracketed paste, a queue for what is submitted while it works, and tool calls: for a notification it
runs `cafleet` (see `turns.py`). Its faults are those that real agents were seen to have.
"""

import argparse
import json
import os
import select
import signal
import sys
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from types import FrameType
from typing import NamedTuple

from cafleet import config
from cafleet.agents.screen import columns
from cafleet.demo import turns
from cafleet.demo.screen import DIM, NORMAL, Key, Keys, Kind, Terminal, wrap
from cafleet.errors import CafleetError

FAULTS = {
    "burst": "characters that come faster than 8 ms apart turn an Enter within 120 ms into a newline",
    "eat_enter": "ignore the first N Enters",
    "dialog": "start with a permission question, which Enter, 1 or y approves",
    "busy": "be at work for ever; what is submitted is queued",
    "draft": "start with TEXT in the composer",
    "ghost": "a dim placeholder in the empty composer",
    "boot": "drop all input, and draw nothing, for the first SECONDS",
    "slash": "text that starts with / ! # or ends in @word opens a list that takes the Enter",
    "slow": "draw everything SECONDS late",
    "rows": "the composer shows only its last N rows",
    "drop_paste": "lose the first N pastes",
    "paste_dialog": "a question opens at the moment of the first paste, which is ignored",
    "paste_person": "a person types TEXT at the moment of the first paste",
    "paste_exit": "end at the moment of the first paste",
    "enter_dialog": "a question opens as soon as a turn has been submitted",
}
"""Name → what goes wrong. `--fault NAME` or `--fault NAME=VALUE`."""

ESCAPE_SECONDS = 0.03
"""How long a lone ESC may still become a sequence."""
_BURST_GAP_SECONDS, _BURST_WINDOW_SECONDS = 0.008, 0.12
_LONGEST_TRANSCRIPT = 500
_READ = 65536
_FOOTER_REST = " ∙ ready"
_FOOTER_WORK = " ∙ esc to interrupt"
_FOOTER_QUESTION = " ∙ Enter to confirm · Esc to cancel"


class Options(NamedTuple):
    """How the stand-in was started."""

    member_id: int | None
    log: str | None
    """A file that gets a JSON line for each thing that happened."""
    faults: Mapping[str, str]
    prompt: str
    environ: Mapping[str, str]


class Tool:
    """A running `cafleet` command."""

    def __init__(self, arguments: Sequence[str], environ: Mapping[str, str]) -> None:
        self.output = b""
        self.reader, writer = os.pipe()
        actions: list[tuple[int, int, str, int, int] | tuple[int, int, int]] = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, writer, 1),
            (os.POSIX_SPAWN_DUP2, writer, 2),
        ]
        program = ("cafleet", *arguments)
        try:
            self._pid = os.posix_spawnp("cafleet", program, environ, file_actions=actions)
        except FileNotFoundError:
            own = (sys.executable, "-m", *program)
            self._pid = os.posix_spawn(sys.executable, own, environ, file_actions=actions)
        finally:
            os.close(writer)

    def read(self) -> bool:
        """Take what it printed; True once it has ended."""
        data = os.read(self.reader, _READ)
        self.output += data
        if not data:
            self._reap()
        return not data

    def stop(self) -> None:
        """End it."""
        os.kill(self._pid, signal.SIGTERM)
        self._reap()

    def _reap(self) -> None:
        os.close(self.reader)
        os.waitpid(self._pid, 0)


class Standin:
    """The agent: what it shows, what it does, and how it goes wrong."""

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

    # -- the picture -----------------------------------------------------------------------------

    def picture(self, width: int, height: int) -> tuple[list[str], int, int]:
        """All rows, and the cursor's row and column."""
        bottom, cursor_row, cursor_column = self._bottom(width, height)
        above = self._above(width, max(0, height - len(bottom)))
        blank = [""] * (height - len(bottom) - len(above))
        rows = [*blank, *above, *bottom][-height:]
        return rows, max(0, len(rows) - len(bottom) + cursor_row), min(cursor_column, width - 1)

    def _above(self, width: int, count: int) -> list[str]:
        """The last `count` rows of the transcript; no more of it is laid out than is shown."""
        rows: list[str] = []
        for line in reversed(self.transcript):
            if len(rows) >= count:
                break
            rows = [*wrap(line, width), *rows]
        return rows[len(rows) - count :] if len(rows) > count else rows

    def _bottom(self, width: int, height: int) -> tuple[list[str], int, int]:
        if self._question is not None:
            rows = ["", *wrap(self._question, width), "  1. Yes", "  2. No", _FOOTER_QUESTION]
            return rows, len(rows) - 3, 0
        rule = "─" * width
        text = "".join(c if c.isprintable() or c == "\n" else "␦" for c in self.composer)
        rows = wrap(text, width - 1, "> ")
        shown = rows[-min(self._number("rows") or len(rows), max(1, height - 4)) :]
        if shown[0] == rows[0] and "ghost" in self._faults and not self.composer:
            shown = [f"> {DIM}Ask the stand-in to do anything{NORMAL}"]
        elif len(shown) < len(rows):
            shown[0] = "> " + shown[0][2:]
        menu = ["  ▸ a completion"] if self._list_open else []
        footer = _FOOTER_WORK if self.working else _FOOTER_REST
        if self._queue:
            footer += f" · {len(self._queue)} queued"
        status = ["", "* Working…"] if self.working else [""]
        bottom = [*status, rule, *shown, rule, *menu, footer]
        column = 2 if "ghost" in self._faults and not self.composer else columns(shown[-1])
        return bottom, len(status) + len(shown), column


class Session:
    """The agent at its terminal: one loop over keys, the running command, time and signals."""

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
            self._terminal.draw(*self._agent.picture(*self._size))

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
            os.read(self._signals, _READ)
            if self._terminal.size() != self._size:
                self._size = self._terminal.size()
                self._terminal.forget()
        if self._agent.tool is not None and self._agent.tool.reader in ready:
            self._agent.take_output()
        if 0 in ready:
            data = os.read(0, _READ)
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
            os.read(0, _READ)


def _fault(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    if name not in FAULTS:
        raise argparse.ArgumentTypeError(f"unknown fault '{name}'; known: {', '.join(FAULTS)}")
    return name, value


def parse(arguments: Sequence[str], environ: Mapping[str, str]) -> Options:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m cafleet.demo.standin", description=__doc__)
    parser.add_argument("--member-id", type=int, help="who it is, for its tool calls")
    parser.add_argument("--log", help="a file for one JSON line per event")
    parser.add_argument("--fault", type=_fault, action="append", default=[], help="; ".join(FAULTS))
    parser.add_argument("prompt", nargs="?", default="")
    values = parser.parse_args(arguments)
    return Options(values.member_id, values.log, dict(values.fault), values.prompt, environ)


def main() -> int:
    """Start from the command line."""
    try:
        environ = config.load().environ
    except CafleetError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    return run(parse(sys.argv[1:], environ))


if __name__ == "__main__":
    sys.exit(main())
