from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.memory_multiplexer import MemoryMultiplexer
from tests.support.team import Team
from tests.support.tmux_server import TmuxServer


@pytest.fixture
def memory() -> MemoryMultiplexer:
    return MemoryMultiplexer()


@pytest.fixture
def team(tmp_path: Path, memory: MemoryMultiplexer) -> Iterator[Team]:
    """A fleet whose panes are in memory."""
    made = Team(tmp_path, memory)
    yield made
    made.database.close()


@pytest.fixture
def server() -> Iterator[TmuxServer]:
    made = TmuxServer()
    made.start()
    yield made
    made.stop()


@pytest.fixture
def tmux_team(tmp_path: Path, server: TmuxServer) -> Iterator[Team]:
    """A fleet whose panes are on a private tmux server."""
    made = Team(tmp_path, server.multiplexer())
    yield made
    made.database.close()
