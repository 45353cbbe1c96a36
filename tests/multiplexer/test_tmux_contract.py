"""The tmux backend against real tmux servers, held to the contract."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.multiplexer.contract import MultiplexerContract
from tests.support.tmux_server import Recorder, TmuxServer
from tests.support.waiting import wait_until

from cafleet.multiplexer.base import Multiplexer, PaneAddress

UNUSUAL_SETTINGS = """
set -g base-index 1
set -g pane-base-index 1
set -g renumber-windows on
set -g mode-keys vi
set -g extended-keys always
set -g mouse on
set -g status off
set -g set-titles on
set -g remain-on-exit on
"""
_PASTE = re.compile(rb"\x1b\[200~(.*?)\x1b\[201~", re.DOTALL)


class TmuxStage:
    has_dead_panes = True
    has_modes = True

    def __init__(self, server: TmuxServer, directory: Path) -> None:
        self.server, self.directory = server, directory
        self.multiplexer: Multiplexer = server.multiplexer("%0")
        self.here = server.address("%0")
        self._recorders: dict[str, Recorder] = {}

    def add_pane(self) -> PaneAddress:
        recorder = Recorder(self.server, self.directory / f"log-{len(list(self.directory.iterdir()))}")
        self._recorders[recorder.pane] = recorder
        return recorder.address

    def pasted(self, pane: PaneAddress) -> list[str]:
        return [paste.decode() for paste in _PASTE.findall(self._recorders[pane.pane].received())]

    def enters(self, pane: PaneAddress) -> int:
        return _PASTE.sub(b"", self._recorders[pane.pane].received()).count(b"\r")

    def close(self, pane: PaneAddress) -> None:
        self.server.run("kill-pane", "-t", pane.pane)

    def end_program(self, pane: PaneAddress, exit_status: int) -> None:
        self.server.run("set-option", "-g", "remain-on-exit", "on")
        self.server.run("respawn-pane", "-k", "-t", pane.pane, f"exit {exit_status}")
        wait_until(lambda: self.server.show("#{pane_dead}", pane.pane) == "1")

    def enter_mode(self, pane: PaneAddress) -> None:
        self.server.run("copy-mode", "-t", pane.pane)

    def restart_server(self, pane: PaneAddress) -> PaneAddress:
        self.server.kill_server()
        self.server.start()
        self._recorders.clear()
        stranger = self.add_pane()
        while stranger.pane != pane.pane:
            stranger = self.add_pane()
        return stranger

    def stop_server(self) -> None:
        self.server.kill_server()


class TestTmux(MultiplexerContract):
    @pytest.fixture
    def stage(self, tmux_server: TmuxServer, tmp_path: Path) -> TmuxStage:
        return TmuxStage(tmux_server, tmp_path)


class TestTmuxWithUnusualSettings(MultiplexerContract):
    """The same with settings that break programs which address panes by index or read the mode keys."""

    @pytest.fixture
    def stage(self, tmux_servers: Callable[..., TmuxServer], tmp_path: Path) -> TmuxStage:
        server = tmux_servers(configuration=UNUSUAL_SETTINGS)
        return TmuxStage(server.start(session="api.v2:x; y 'z'"), tmp_path)
