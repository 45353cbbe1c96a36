"""What the stand-in does in one turn: it reads its inbox when told to, and obeys simple directives.

A turn is a generator of steps; whoever drives it carries a step out and sends back its result. A body
(or a typed prompt) may hold, one a line:

    reply: TEXT      answer the sender
    tell ID: TEXT    send TEXT to another member
    work: SECONDS    be busy for so long
    question: TEXT   ask the person at the terminal, and wait for the answer
    exit:            end the agent

A message without any of these is answered with a short confirmation, unless it is one itself.
"""

import re
from collections.abc import Generator
from typing import NamedTuple

CONFIRMATION = "Done: "

_NOTIFICATION = re.compile(r"\[cafleet msg (?P<id>\d+) from (?P<sender>\d+)[^\]]*\] ?(?P<body>.*)", re.DOTALL)
_PING = re.compile(r"\[cafleet (?:ping|tick)\]")
_DIRECTIVE = re.compile(r"(?P<name>reply|tell \d+|work|question|exit):[ \t]*(?P<value>.*)")
_ENVELOPE = re.compile(r"\[(\d+) \| from:(\d+) \| [^\]]*\]")
_LONGEST_WORK_SECONDS = 3600.0


class Run(NamedTuple):
    """Run `cafleet` with these arguments; the result is what it printed."""

    arguments: tuple[str, ...]


class Pause(NamedTuple):
    """Do nothing for a while, at work."""

    seconds: float


class Ask(NamedTuple):
    """Ask the person; the result is `yes` or `no`."""

    question: str


class Say(NamedTuple):
    """Show a line."""

    text: str


class Leave(NamedTuple):
    """End the agent."""


Step = Run | Pause | Ask | Say | Leave
Turn = Generator[Step, str, None]


class Letter(NamedTuple):
    """One message of an inbox listing."""

    message_id: int
    sender: int
    body: str


def take_turn(prompt: str, member_id: int | None) -> Turn:
    """The steps of one turn. `member_id`: who the stand-in is; None: it has no inbox and runs nothing."""
    notification = _NOTIFICATION.match(prompt)
    if member_id is None:
        yield from _obey(notification["body"] if notification else prompt, None, None)
    elif notification or _PING.match(prompt):
        listing = yield Run(("message", "poll", str(member_id)))
        wanted = int(notification["id"]) if notification else None
        for letter in letters(listing):
            if wanted in (None, letter.message_id):
                yield Run(("message", "ack", str(letter.message_id)))
                yield from _obey(letter.body, member_id, letter.sender)
    else:
        yield from _obey(prompt, member_id, None)
        yield Say("Ready.")


def letters(listing: str) -> list[Letter]:
    """The messages of a text listing, oldest first: a header each, its body indented by two blanks."""
    found: list[Letter] = []
    for line in listing.splitlines():
        header = _ENVELOPE.match(line)
        if header:
            found.append(Letter(int(header[1]), int(header[2]), ""))
        elif found and line.startswith("  "):
            last = found[-1]
            found[-1] = last._replace(body=f"{last.body}\n{line[2:]}" if last.body else line[2:])
    return found[::-1]


def _obey(body: str, member_id: int | None, sender: int | None) -> Turn:
    obeyed = False
    for line in body.splitlines():
        directive = _DIRECTIVE.fullmatch(line.strip())
        if directive:
            obeyed = True
            yield from _do(directive["name"], directive["value"], member_id, sender)
    if not obeyed and member_id and sender and sender != member_id and not body.startswith(CONFIRMATION):
        yield _send(member_id, sender, f"{CONFIRMATION}{body[:60]}")


def _do(name: str, value: str, member_id: int | None, sender: int | None) -> Turn:
    if name == "work":
        yield Pause(min(_seconds(value), _LONGEST_WORK_SECONDS))
    elif name == "question":
        answer = yield Ask(value or "Go on?")
        yield Say(f"The person said {answer}.")
    elif name == "exit":
        yield Leave()
    elif member_id is not None and value:
        to = sender if name == "reply" else int(name.split()[1])
        if to is not None:
            yield _send(member_id, to, value)


def _send(member_id: int, to: int, text: str) -> Run:
    return Run(("message", "send", "--from", str(member_id), "--to", str(to), "--", text))


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        return 0.0
    return seconds if seconds >= 0 else 0.0
