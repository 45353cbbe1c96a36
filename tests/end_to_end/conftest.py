"""The installed program, a private tmux server, and the stand-in for a coding agent."""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.program import Program, Result
from tests.support.tmux_server import TmuxServer
from tests.support.waiting import wait_until

from cafleet.demo.standin.configuration import agent_table


class World:
    """A home, a tmux server whose pane `%0` is the Director's, and agents that note what happens to them."""

    def __init__(self, home: Path, server: TmuxServer, program: Program) -> None:
        self.home, self.server, self.program = home, server, program
        self._agents: list[str] = []
        self._inside: dict[str, dict[str, str]] = {}

    def run(
        self,
        *arguments: str,
        pane: str | None = "%0",
        stdin: bytes = b"",
        environ: Mapping[str, str] | None = None,
    ) -> Result:
        """One command as a process in `pane` would run it; None: outside tmux."""
        inside = {} if pane is None else self.inside(pane)
        return self.program.run(*arguments, stdin=stdin, environ={**inside, **(environ or {})})

    def inside(self, pane: str) -> dict[str, str]:
        """What a process in `pane` has in its environment, also after the server's end."""
        if pane not in self._inside:
            self._inside[pane] = self.server.environ(pane, {})
        return self._inside[pane]

    def done(self, *arguments: str, pane: str | None = "%0") -> str:
        """The output of a command that must work without a warning."""
        result = self.run(*arguments, pane=pane)
        assert (result.code, result.stderr) == (0, ""), result
        return result.stdout

    def agent(self, name: str, *options: str, works: bool = False) -> str:
        """Define a stand-in called `name`. `works`: it reads its inbox when told to."""
        log = str(self.home / f"{name}.log")
        table = agent_table([sys.executable, "-m", "cafleet.demo.standin", "--log", log, *options], name)
        return self.define(table if works else table.replace('"--member-id", "{member_id}", ', ""), name)

    def script_agent(self, name: str, script: str) -> str:
        """Define an agent that is a shell script; `$1` is its member's id."""
        path = self.home / f"{name}.sh"
        path.write_text(script)
        command = f'command = ["/bin/sh", "{path}", "{{member_id}}", "{{prompt}}"]'
        return self.define(f"[agents.{name}]\n{command}\nstart_seconds = 0.2\n", name)

    def define(self, table: str, name: str) -> str:
        """Add a table to config.toml."""
        self._agents.append(table)
        config = self.home / ".config" / "cafleet" / "config.toml"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text("\n".join(self._agents))
        return name

    def member(self, name: str, *options: str, works: bool = False) -> tuple[int, str]:
        """A member whose agent, named like it, has come up; its id and its pane."""
        self.agent(name, *options, works=works)
        created = self.run(*self.creation(name))
        assert created.code == 0, created
        member_id, _, _, pane = created.stdout.split()
        return int(member_id), pane.removeprefix("pane=")

    @staticmethod
    def creation(name: str, prompt: str = "") -> tuple[str, ...]:
        """The command that creates a member with the agent of its name."""
        text = prompt or f"You are {name}, member {{member_id}} of fleet {{fleet_id}}."
        return (
            *("member", "create", "--fleet-id", "1", "--name", name, "--description", "a test"),
            *("--coding-agent", name, text),
        )

    def events(self, name: str) -> list[dict[str, Any]]:
        """What the agent `name` noted."""
        log = self.home / f"{name}.log"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def submitted(self, name: str) -> list[str]:
        """The lines that were submitted to the agent `name`, in order."""
        return [event["submit"] for event in self.events(name) if "submit" in event]

    def wait_for_submits(self, name: str, count: int) -> list[str]:
        """All of them, once there are `count`."""
        wait_until(lambda: len(self.submitted(name)) >= count, what=f"{count} lines submitted to {name}")
        return self.submitted(name)

    def inbox(self, member_id: int) -> list[dict[str, Any]]:
        """A member's waiting messages, oldest first."""
        found = json.loads(self.done("message", "poll", str(member_id), "--json"))
        assert isinstance(found, list)
        return found[::-1]


@pytest.fixture
def world(tmp_path: Path, tmux_servers: Callable[..., TmuxServer]) -> World:
    """A database and a running tmux server; no fleet yet."""
    program = Program(tmp_path)
    server = tmux_servers(environ=program.environ).start(width=160, height=50)
    made = World(tmp_path, server, program)
    assert program.run("setup").code == 0
    return made


@pytest.fixture
def fleet(world: World) -> World:
    """The same with fleet 1, whose Director is member 1 in pane `%0`."""
    created = world.done("fleet", "create", "--name", "team", "--coding-agent", world.agent("director"))
    assert created == "1 director=1\n"
    return world
