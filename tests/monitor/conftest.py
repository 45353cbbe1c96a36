from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.watched_fleet import WatchedFleet


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[WatchedFleet]:
    """A fleet with a monitor and a member, panes in memory, and all clocks in the test's hand."""
    made = WatchedFleet(tmp_path)
    yield made
    made.close()
