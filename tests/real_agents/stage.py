"""A private tmux server in which the real programs run, and what a test does with their panes."""

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from cafleet.agents import screen
from cafleet.agents.base import Agent, Screen


class Size(NamedTuple):
    columns: int
    rows: int


class Stage:
    """One tmux server on a socket of its own; ended by `close`."""

    def __init__(self, socket: str, environ: Mapping[str, str]) -> None:
        self.socket = socket
        self._environ = dict(environ)

    def tmux(self, *arguments: str, stdin: str = "") -> str:
        done = subprocess.run(
            ["tmux", "-u", "-S", self.socket, "-f", "/dev/null", *arguments],
            input=stdin,
            env=self._environ,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if done.returncode:
            raise AssertionError(f"tmux {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def open(self, session: str, argv: Sequence[str], folder: str, size: Size) -> str:
        """A pane of its own session that runs `argv`; its id."""
        arguments = ["new-session", "-d", "-P", "-F", "#{pane_id}", "-s", session, "-c", folder]
        arguments += ["-x", str(size.columns), "-y", str(size.rows), "--", *argv]
        return self.tmux(*arguments).strip()

    def rows(self, pane: str) -> list[str]:
        """The screen with its escape sequences."""
        return self.tmux("capture-pane", "-p", "-e", "-t", pane).removesuffix("\n").split("\n")

    def screen(self, pane: str) -> Screen:
        values = self.tmux("display", "-p", "-t", pane, "#{pane_width}|#{cursor_y}|#{pane_title}")
        width, cursor_y, title = values.removesuffix("\n").split("|", 2)
        return screen.parse(self.rows(pane), title=title, cursor_y=int(cursor_y), width=int(width))

    def text(self, pane: str) -> str:
        return "\n".join(self.screen(pane).rows)

    def type(self, pane: str, text: str) -> None:
        """Keys, one by one: what a person does."""
        for character in text:
            self.tmux("send-keys", "-t", pane, "-l", "--", character)
            time.sleep(0.01)

    def paste(self, pane: str, text: str) -> None:
        self.tmux("load-buffer", "-b", "text", "-", stdin=text)
        self.tmux("paste-buffer", "-p", "-r", "-d", "-b", "text", "-t", pane)

    def key(self, pane: str, name: str) -> None:
        self.tmux("send-keys", "-t", pane, name)

    def submit(self, pane: str, agent: Agent, text: str) -> None:
        """Paste a line and press Enter, with the pause that the agent module asks for."""
        self.paste(pane, text)
        time.sleep(agent.settle_seconds)
        self.key(pane, "Enter")

    def close(self) -> None:
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True, check=False)


def wait_until(what: str, condition: Callable[[], bool], timeout_seconds: float = 120.0) -> None:
    """Poll until `condition` holds. Raises AssertionError after the timeout."""
    deadline = time.monotonic() + timeout_seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_seconds:g} s: {what}")
        time.sleep(0.1)


def programs_path(programs: str) -> str:
    """The PATH on which the real programs stand first."""
    return os.pathsep.join([os.path.join(programs, "node_modules", ".bin"), os.environ["PATH"]])
