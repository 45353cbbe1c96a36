"""A fleet of one member whose stand-in agent only notes what is submitted to it."""

import json
import os
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.breaking import Breaker
from tests.support.program import Program
from tests.support.tmux_server import TmuxServer
from tests.support.waiting import wait_until

from cafleet.demo.standin.configuration import agent_table

DIRECTOR, MEMBER = 1, 2


class Team:
    """The Director (member 1) in the server's first pane, and member 2, who never answers."""

    def __init__(self, home: Path, server: TmuxServer) -> None:
        self.program = Program(home)
        self.server = server
        self.log = home / "events"
        configuration = home / ".config" / "cafleet" / "config.toml"
        configuration.parent.mkdir(parents=True)
        # Without a member id the stand-in has no inbox: it submits nothing of its own.
        table = agent_table([sys.executable, "-m", "cafleet.demo.standin", "--log", str(self.log)])
        configuration.write_text(table.replace('"--member-id", "{member_id}", ', ""))
        (first,) = server.panes()
        self.program.environ |= {name: server.environ(first)[name] for name in ("TMUX", "TMUX_PANE")}
        self.cafleet("setup")
        self.cafleet("fleet", "create", "--name", "team", "--coding-agent", "standin")
        self.cafleet("member", "create", "--fleet-id", "1", "--name", "worker", "--description", "d", "Start")
        wait_until(lambda: self.log.exists() and "ready" in self.log.read_text(), what="the stand-in's start")

    def cafleet(self, *arguments: str) -> str:
        """A command that must succeed."""
        done = self.program.run(*arguments)
        assert done.code == 0, f"{arguments}: {done.stderr}"
        return done.stdout

    def send_words(self, text: str) -> list[str]:
        """The arguments of a send to the member."""
        return ["message", "send", "--from", str(DIRECTOR), "--to", str(MEMBER), text]

    def query(self, statement: str) -> list[tuple[object, ...]]:
        """Rows straight from the file."""
        connection = sqlite3.connect(f"file:{self.program.database_path}?mode=ro", uri=True)
        try:
            return connection.execute(statement).fetchall()
        finally:
            connection.close()

    def pending(self) -> int:
        """Messages of which no line was typed yet."""
        (row,) = self.query("SELECT count(*) FROM messages WHERE notified_at IS NULL")
        assert isinstance(row[0], int)
        return row[0]

    def drain(self, breaker: Breaker | None = None) -> None:
        """What anybody who waits does: type what is due. With a `breaker` no new program need start."""
        words = ("message", "wait", str(DIRECTOR), "--timeout", "0")

        def fewer() -> bool:
            done = breaker.run(*words) if breaker else self.program.run(*words)
            assert done.code == 0, done
            return self.pending() < left

        while left := self.pending():
            wait_until(fewer, what=f"fewer than {left} pending notifications")

    def lines(self) -> list[str]:
        """Everything that was submitted to the member's agent, in order."""
        events = [json.loads(line) for line in self.log.read_text().splitlines()]
        odd = [event for event in events if not {"submit", "ready"} & event.keys()]
        assert odd == [], "nothing but submitted lines may reach the pane"
        return [event["submit"] for event in events if "submit" in event]

    def check_file(self) -> None:
        """The file is whole."""
        assert self.query("PRAGMA integrity_check") == [("ok",)]
        assert self.query("PRAGMA foreign_key_check") == []


def expected_lines(team: Team) -> Counter[str]:
    """The line that each stored message should have led to, once."""
    stored = team.query("SELECT message_id, from_member_id, created_at, text FROM messages")
    return Counter(f"[cafleet msg {number} from {sender} {at}] {text}" for number, sender, at, text in stored)


@pytest.fixture
def team(tmp_path: Path, tmux_servers: Callable[..., TmuxServer]) -> Team:
    """A fresh team on a private tmux server."""
    return Team(tmp_path, tmux_servers(environ=dict(os.environ)).start())
