"""The demo's story: a small team at work, every step checked while it is shown (SPEC 12)."""

import json
import shlex
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any, NamedTuple

from cafleet.demo.stage import DemoFailed, Stage
from cafleet.demo.standin.configuration import AGENT
from cafleet.demo.transcript import Paint, Transcript, Write

PROMPT = "Do what member {director_member_id} asks"
TURN_MARK, REST_MARK, COMPOSER_ROWS = "» ", "ready", 4
"""Of the stand-in's screen: how a turn starts, what its last row says at rest, and its lowest part."""
STOPPED_STATUS = 143
"""Exit code of a program that was asked to end by a signal, as shells report it."""


class Stopped(Exception):
    """The demo was asked to end by a signal."""


def run(environ: Mapping[str, str], *, keep: bool, web: bool, write: Write, paint: Paint) -> int:
    """Play the demo and return the exit code.

    `keep`: leave everything running and say how to look at it; `web`: this cafleet has a web page to
    point to. Nothing that the demo made outlives it otherwise, however it ends.

    Raises:
        DemoFailed: something was not as it should be; it says what.
    """
    started = time.monotonic()
    transcript = Transcript(write, paint)
    try:
        with _ending_on_signals(), Stage(environ) as stage:
            transcript.title(
                "cafleet demo",
                "A Director and two members work together: real commands, real tmux panes, a real database.\n"
                "Only the members' coding agent is a small stand-in: no model, no account is needed.\n"
                f"Everything lives in {stage.folder}.",
            )
            Story(stage, transcript).play()
            if keep:
                stage.keep()
    except Stopped:
        write("stopped; everything that the demo made is gone")
        return STOPPED_STATUS
    seconds = time.monotonic() - started
    if keep:
        transcript.step(f"Done in {seconds:.0f} s; everything is still there")
        for line in _how_to_go_on(stage, web=web):
            transcript.note(line)
    else:
        transcript.step(f"Done in {seconds:.0f} s; the tmux server, the members and the folder are gone")
    return 0


def _how_to_go_on(stage: Stage, *, web: bool) -> Iterator[str]:
    socket, folder = shlex.quote(stage.socket), shlex.quote(stage.folder)
    settings = " ".join(
        f"{name}={shlex.quote(stage.environ[name])}" for name in ("HOME", "CAFLEET_DATABASE_URL")
    )
    yield f"watch the team:     tmux -S {socket} attach    (Ctrl-b d leaves; Ctrl-b c opens a shell)"
    if web:
        yield f"open the web page:  {settings} cafleet server"
    yield f"end it:             tmux -S {socket} kill-server; rm -r {folder}"


@contextmanager
def _ending_on_signals() -> Iterator[None]:
    """A polite request to end becomes an exception, so that the stage is cleared."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise Stopped

    previous = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


class Teammate(NamedTuple):
    """A member as the story knows it."""

    member_id: int
    name: str
    pane: str


class Story:
    """The steps, in order. Each runs real commands, shows them, and checks what came of them."""

    def __init__(self, stage: Stage, transcript: Transcript) -> None:
        self._stage, self._transcript = stage, transcript
        self.fleet_id = self.director_id = 0

    def play(self) -> None:
        """All of it."""
        self._found()
        ada = self._hire("ada", "writes the code")
        ben = self._hire("ben", "reviews it")
        self._show("member", "list", str(self.fleet_id))
        self._ask(ada)
        self._tell_everyone(ada, ben)
        self._respect_a_draft(ben)

    # -- the steps ----------------------------------------------------------------------------

    def _found(self) -> None:
        self._transcript.step("Make a database, and a fleet whose Director is this tmux pane")
        self._show("setup")
        answer = self._show("fleet", "create", "--name", "demo", "--coding-agent", AGENT)
        fleet, _, director = answer.strip().partition(" director=")
        self._expect(fleet.isdigit() and director.isdigit(), f"fleet create answered {answer!r}")
        self.fleet_id, self.director_id = int(fleet), int(director)

    def _hire(self, name: str, description: str) -> Teammate:
        if name == "ada":
            self._transcript.step("Start two members, each in a pane of its own")
        answer = self._show(
            *("member", "create", "--fleet-id", str(self.fleet_id), "--name", name),
            *("--description", description, PROMPT),
        )
        words = answer.split()
        self._expect(len(words) == 4 and words[3].startswith("pane="), f"member create answered {answer!r}")
        member = Teammate(int(words[0]), name, words[3].removeprefix("pane="))
        self._stage.until(f"{name}'s agent starts", lambda: self._rests(member))
        return member

    def _ask(self, member: Teammate) -> None:
        self._transcript.step(f"Send {member.name} a message")
        self._transcript.note("It is stored first; then one line that tells of it is typed into the pane.")
        self._send(member, "Run the tests", deferred=False)
        self._await_answers(1)
        self._transcript.note(f"{member.name}'s agent polled, acknowledged and answered, all with cafleet:")
        self._picture(member)
        self._transcript.step("The Director waits for the answer, and acknowledges it")
        self._take_answers()

    def _tell_everyone(self, *members: Teammate) -> None:
        self._transcript.step("Tell everybody at once")
        answer = self._show("message", "broadcast", "--from", str(self.director_id), "Commit your work")
        reached = f"recipients={len(members)} notified={len(members)}"
        self._expect(reached in answer, f"broadcast answered {answer!r}")
        self._await_answers(len(members))
        self._take_answers()

    def _respect_a_draft(self, member: Teammate) -> None:
        draft = "Before you go on, could you"
        self._transcript.step(
            f"A message must never be joined to a person's words: {member.name} has a draft"
        )
        self._stage.type_as_a_person(member.pane, draft)
        self._stage.until("the draft is shown", lambda: self._on_screen(member, draft))
        self._send(member, "Review the change", deferred=True)
        self._picture(member, composer_only=True)
        self._transcript.note("The pane was left as it is. The message is stored and stays due.")
        self._transcript.step("The draft is gone; whoever waits next delivers what is due")
        self._stage.press(member.pane, "C-u")
        self._stage.until("the draft is cleared", lambda: not self._on_screen(member, draft))
        self._take_answers()
        self._picture(member)
        self._show("member", "list", str(self.fleet_id))

    # -- what they are made of ----------------------------------------------------------------

    def _send(self, member: Teammate, text: str, *, deferred: bool) -> None:
        """Send as the Director; `deferred`: the line cannot be typed now, and the sender is told so."""
        arguments = ("message", "send", "--from", str(self.director_id), "--to", str(member.member_id), text)
        answer = self._show(*arguments)
        self._expect(answer.startswith("Message sent."), f"message send answered {answer!r}")
        self._expect(("not notified" in answer) == deferred, f"deferred should be {deferred}: {answer!r}")

    def _await_answers(self, count: int) -> None:
        """Until the Director's inbox holds `count` messages, without showing the looking."""
        self._stage.until(f"{count} answers", lambda: len(self._inbox()) >= count)

    def _take_answers(self) -> None:
        """Wait for messages as the Director, and acknowledge each."""
        self._show("message", "wait", str(self.director_id), "--timeout", "20")
        ids = [str(message["message_id"]) for message in reversed(self._inbox())]
        self._expect(bool(ids), "no answer came")
        self._show("message", "ack", *ids, brief=True)

    def _inbox(self) -> list[dict[str, Any]]:
        reply = self._stage.cafleet("message", "poll", str(self.director_id), "--json")
        self._expect(reply.status == 0, reply.output)
        messages: list[dict[str, Any]] = json.loads(reply.output)
        return messages

    def _show(self, *arguments: str, brief: bool = False) -> str:
        """Run a command, show it and what it says (`brief`: the first line); it must succeed."""
        self._transcript.command(["cafleet", *arguments])
        reply = self._stage.cafleet(*arguments)
        self._transcript.answer(reply.output.partition("\n")[0] if brief else reply.output)
        self._expect(reply.status == 0, f"'cafleet {arguments[0]}' ended with exit code {reply.status}")
        return reply.output

    def _picture(self, member: Teammate, *, composer_only: bool = False) -> None:
        """The pane once its agent rests: its last turn, or only what stands in its composer."""
        self._stage.until(f"{member.name}'s agent comes to rest", lambda: self._rests(member))
        rows = self._stage.screen(member.pane)
        turns = [at for at, row in enumerate(rows) if row.startswith(TURN_MARK)]
        rows = rows[-COMPOSER_ROWS:] if composer_only or not turns else rows[turns[-1] :]
        self._transcript.picture(f"{member.name}'s pane", rows)

    def _rests(self, member: Teammate) -> bool:
        rows = self._stage.screen(member.pane)
        return bool(rows) and REST_MARK in rows[-1]

    def _on_screen(self, member: Teammate, text: str) -> bool:
        return any(text in row for row in self._stage.screen(member.pane))

    def _expect(self, true: bool, otherwise: str) -> None:
        if not true:
            raise DemoFailed(f"the demo went wrong: {otherwise}")
