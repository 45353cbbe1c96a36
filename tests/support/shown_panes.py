"""Panes that show what the real agent programs once showed, in a private tmux server."""

from pathlib import Path
from typing import NamedTuple

from tests.support import agent_screens
from tests.support.tmux_server import TmuxServer

from cafleet.multiplexer.base import PaneAddress

SIZE = (80, 24)


class Shown(NamedTuple):
    """Where a picture hangs."""

    address: PaneAddress
    agent: str


class ShownPanes:
    """Pictures of screens, each in a pane of its own; a program that does nothing holds it up."""

    def __init__(self, server: TmuxServer, folder: Path) -> None:
        """`server`: not started; whoever made it stops it. `folder`: for the screens' bytes."""
        self._server, self._folder = server, folder
        self._screens = agent_screens.load()
        server.start(width=SIZE[0], height=SIZE[1])

    def show(self, agent: str, scene: str) -> Shown:
        """A new pane with the agent's screen of that scene: `idle`, `working`, `permission`, `draft`, …"""
        pane = self._server.add_pane(
            "sh", "-c", 'cat "$0"; exec sleep 100000', str(self._picture(agent, scene))
        )
        return Shown(self._server.address(pane), agent)

    def change(self, shown: Shown, scene: str) -> None:
        """Another screen of the same agent in the same pane."""
        picture = str(self._picture(shown.agent, scene))
        command = ("sh", "-c", 'cat "$0"; exec sleep 100000', picture)
        self._server.run("respawn-pane", "-k", "-t", shown.address.pane, *command)

    def close(self, shown: Shown) -> None:
        """The pane is gone."""
        self._server.run("kill-pane", "-t", shown.address.pane)

    def _picture(self, agent: str, scene: str) -> Path:
        taken = self._screens[f"{agent}-{scene}-{SIZE[0]}x{SIZE[1]}"]
        rows = "\r\n".join(taken.rows)
        path = self._folder / f"{agent}-{scene}.screen"
        path.write_text(f"\x1b]2;{taken.title}\x07\x1b[H\x1b[2J{rows}\x1b[{taken.cursor_y + 1};1H")
        return path
