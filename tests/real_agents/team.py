"""A fleet whose Director is this test and whose members are the real programs."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, NamedTuple

from tests.real_agents import homes
from tests.real_agents.mock_model import MockModel
from tests.real_agents.stage import Size, Stage, programs_path, wait_until

from cafleet import config
from cafleet.agents import registry
from cafleet.agents.base import Agent

SIZE = Size(200, 50)
ASKING_PRESET = """\
---
description: Asks before it runs anything but cafleet
mode: primary
permission:
  bash:
    "*": ask
    "cafleet message *": allow
---
You ask first.
"""
ASKING = {
    "claude": ("dontAsk", "manual"),
    "codex": ("never", "on-request"),
    "opencode": ("cafleet", "asking"),
}
"""The argument with which a member is started, and the one with which the program asks its user."""


class Done(NamedTuple):
    """One finished `cafleet` command."""

    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        assert self.code == 0, self.stderr
        return json.loads(self.stdout)


class Team:
    """The fleet, the mock model's log, and the panes."""

    def __init__(self, base: Path, programs: str) -> None:
        """`base`: an empty folder with a short path, since a socket's path may have 107 bytes."""
        self.folder, self.untrusted, home = base / "work", base / "untrusted", base / "home"
        for folder in (self.folder, self.untrusted, home):
            folder.mkdir()
        subprocess.run(["git", "init", "-q", str(self.untrusted)], check=True)
        self._log = base / "model.log"
        self._server = MockModel(str(self._log))
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        environ = homes.make_home(str(home), str(self.folder), int(self._server.server_address[1]))
        own = os.path.dirname(sys.executable)
        self.environ = environ | {"PATH": f"{own}{os.pathsep}{programs_path(programs)}"}
        self._asking_path = self._wrappers(base / "asking", home, programs)
        self.stage = Stage(str(base / "tmux"), self.environ)
        director = self.stage.open("team", ["sleep", "100000"], str(self.folder), SIZE)
        pid = self.stage.tmux("display", "-p", "#{pid}").strip()
        self.environ |= {"TMUX": f"{self.stage.socket},{pid},0", "TMUX_PANE": director}
        self._config = config.load(self.environ)
        assert self.cafleet("setup").code == 0
        made = self.cafleet("fleet", "create", "--name", "real", "--coding-agent", "claude", "--json").json
        self.fleet_id, self.director_id = made["fleet_id"], made["director"]["member_id"]

    def _wrappers(self, folder: Path, home: Path, programs: str) -> str:
        """A PATH on which each program asks its user, as members never do."""
        folder.mkdir()
        for name, (told, asks) in ASKING.items():
            real = os.path.join(programs, "node_modules", ".bin", name)
            script = f'for word; do shift; [ "$word" = {told} ] && word={asks}; set -- "$@" "$word"; done'
            (folder / name).write_text(f'#!/bin/sh\n{script}\nexec {real} "$@"\n')
            (folder / name).chmod(0o755)
        preset = home / ".config" / "opencode" / "agents" / "asking.md"
        preset.parent.mkdir(parents=True, exist_ok=True)
        preset.write_text(ASKING_PRESET)
        return f"{folder}{os.pathsep}{self.environ['PATH']}"

    def cafleet(self, *arguments: str, asking: bool = False) -> Done:
        """Run the real command line, as in the Director's pane."""
        environ = self.environ | ({"PATH": self._asking_path} if asking else {})
        command = [os.path.join(os.path.dirname(sys.executable), "cafleet"), *arguments]
        done = subprocess.run(
            command, env=environ, cwd=self.folder, capture_output=True, text=True, timeout=120, check=False
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def agent(self, name: str) -> Agent:
        return registry.get(name, self._config)

    def turns(self, text: str) -> list[str]:
        """What was submitted to the model, by any member, and holds `text`."""
        found = []
        for line in self._log.read_text(encoding="utf-8").splitlines() if self._log.exists() else []:
            found += [part for part in json.loads(line)["new"] if text in part]
        return found

    def close(self) -> None:
        self.cafleet("fleet", "delete", str(self.fleet_id), "--kill-panes")
        self.stage.close()
        self._server.shutdown()
        self._server.server_close()


class MemberPane:
    """One member, created by `member create`."""

    def __init__(self, team: Team, agent: str, name: str, *flags: str, asking: bool = False) -> None:
        self.team, self.agent = team, team.agent(agent)
        model = homes.MODELS[agent]
        flags += () if model is None else ("--model", model)
        prompt = "order: I am member {member_id}\norder: say ready"
        self.created = team.cafleet(
            "member", "create", "--fleet-id", str(team.fleet_id), "--name", name, "--description", "real",
            "--coding-agent", agent, *flags, "--json", "--", prompt, asking=asking,
        )  # fmt: skip
        record = self.created.json
        self.member_id = int(record["member_id"])
        self.pane = str(record["placement"]["mux_pane_id"])

    def composer(self) -> str | None:
        return self.agent.read(self.team.stage.screen(self.pane)).composer

    def state(self) -> str:
        return self.agent.read(self.team.stage.screen(self.pane)).state.value

    def wait_for_rest(self) -> None:
        """Its first turn is over, and so is whatever came later."""
        wait_until("its prompt", lambda: bool(self.team.turns(f"order: I am member {self.member_id}\n")))
        wait_until(
            f"{self.agent.name} at rest; it shows:\n{self.team.stage.text(self.pane)}",
            lambda: (self.state(), self.composer()) == ("at rest", ""),
        )

    def send(self, text: str) -> tuple[int, dict[str, Any]]:
        """A message from the Director: its id, and what became of its notification."""
        arguments = ("--from", str(self.team.director_id), "--to", str(self.member_id), "--json", "--", text)
        sent = self.team.cafleet("message", "send", *arguments).json
        return int(sent["message"]["message_id"]), sent["notification"]

    def wait_until_acknowledged(self, message_id: int) -> None:
        def is_completed() -> bool:
            shown = self.team.cafleet("message", "show", str(message_id), "--json").json
            return bool(shown["message"]["status_state"] == "completed")

        wait_until(f"message {message_id} acknowledged by {self.agent.name}", is_completed)
