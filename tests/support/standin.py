"""The stand-in agent in a pane of a private tmux server, with its faults and its event log."""

import json
import sys
from pathlib import Path
from typing import Any

from tests.support.tmux_server import TmuxServer
from tests.support.waiting import wait_until

from cafleet.demo.standin.configuration import AGENT, agent_configuration
from cafleet.multiplexer.base import PaneAddress

BLIND = "blind"
"""An agent that looks like the stand-in, but of which cafleet knows no cue."""


def configuration_text(*options: str) -> str:
    """A `config.toml` with the stand-in, and the stand-in without cues as `blind`."""
    return f'{agent_configuration(*options)}\n[agents.{BLIND}]\ncommand = ["true"]\nsettle_seconds = 0.05\n'


def write_configuration(home: Path, *options: str) -> None:
    """Make the agents `standin` and `blind` known below `home`."""
    folder = home / ".config" / "cafleet"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(configuration_text(*options), encoding="utf-8")


class StandinPane:
    """One running stand-in."""

    def __init__(
        self, server: TmuxServer, log: Path, *faults: str, prompt: str = "", member_id: int | None = None
    ) -> None:
        """`faults`: as `--fault` takes them. `log`: a file of its own. Without `member_id` it runs no
        commands: it only shows, and notes, what it was told."""
        self.server, self.log = server, log
        command = [sys.executable, "-m", "cafleet.demo.standin", "--log", str(log)]
        command += [f"--fault={fault}" for fault in faults]
        command += [] if member_id is None else ["--member-id", str(member_id)]
        self.pane = server.add_pane(*command, "--", prompt)

    def wait_until_ready(self) -> "StandinPane":
        """Once it has drawn its first screen."""
        wait_until(lambda: "∙" in self.server.screen(self.pane), what="the stand-in's screen")
        return self

    @property
    def address(self) -> PaneAddress:
        """Where it is."""
        return self.server.address(self.pane)

    def events(self) -> list[dict[str, Any]]:
        """All that happened to it, but that it started."""
        if not self.log.exists():
            return []
        lines = self.log.read_text(encoding="utf-8").split("\n")[:-1]  # The last one may be half written.
        return [event for event in map(json.loads, lines) if "ready" not in event]

    def submits(self) -> list[str]:
        """What was submitted to it, as turns."""
        return [event["submit"] for event in self.events() if "submit" in event]

    def wait_for_submits(self, count: int) -> list[str]:
        """The turns, once there are `count`."""
        return wait_until(
            lambda: (s := self.submits()) if len(self.submits()) >= count else [], what=f"{count} turns"
        )

    def type(self, text: str) -> None:
        """As a person does, without Enter."""
        self.server.run("send-keys", "-l", "-t", self.pane, "--", text)

    def press(self, key: str) -> None:
        """One key, by its tmux name."""
        self.server.run("send-keys", "-t", self.pane, key)

    def wait_for_text(self, text: str) -> str:
        """Its screen, once `text` is on it."""
        return self.server.wait_for_text(self.pane, text)


__all__ = ["AGENT", "BLIND", "StandinPane", "configuration_text", "write_configuration"]
