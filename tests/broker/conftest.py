from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.fleet_builder import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A runtime over an empty database and a multiplexer in memory."""
    made = World(tmp_path)
    yield made
    made.close()
