from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.fleet_builder import World
from tests.support.web_fleet import WebFleet, new_database, no_multiplexer

from cafleet import config
from cafleet.clock import utc_now
from cafleet.runtime import Runtime


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A runtime over an empty database and a multiplexer in memory."""
    made = World(tmp_path)
    yield made
    made.close()


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[Runtime]:
    """A runtime over an empty database, without any multiplexer."""
    database = new_database(tmp_path)
    yield Runtime(config.load({"HOME": str(tmp_path)}), database, no_multiplexer, utc_now)
    database.close()


@pytest.fixture
def fleet(runtime: Runtime) -> WebFleet:
    """A fleet written straight into that database."""
    return WebFleet(runtime.database)
