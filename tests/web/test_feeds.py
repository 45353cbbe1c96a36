"""What a feed tells, and that a read which fails costs no event (field case I9)."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.waiting import DEADLINE_SECONDS
from tests.support.web_fleet import WebFleet, new_database, no_multiplexer

from cafleet import config
from cafleet.clock import utc_now
from cafleet.db.database import Database, Reading
from cafleet.errors import DatabaseBusy
from cafleet.runtime import Runtime
from cafleet.web.feeds import FleetFeed


class BusyAt(Database):
    """Refuses one read, as a database does that somebody else holds for too long."""

    refused: int | None = None
    """Which of the reads from now on; None: none."""

    def read(self) -> Reading:
        if self.refused is not None:
            self.refused -= 1
            if self.refused < 0:
                self.refused = None
                raise DatabaseBusy
        return super().read()


@pytest.fixture
def fleet(tmp_path: Path) -> WebFleet:
    return WebFleet(new_database(tmp_path))


@pytest.fixture
def reader(fleet: WebFleet) -> Iterator[BusyAt]:
    database = BusyAt(fleet.database.path)
    yield database
    database.close()


def names(chunk: bytes) -> list[str]:
    return [line[7:] for line in chunk.decode().split("\n") if line.startswith("event: ")]


@pytest.mark.parametrize("refused", range(8))
@pytest.mark.parametrize("thorough", [True, False])
def test_a_read_that_fails_costs_no_event_and_doubles_none(
    fleet: WebFleet, reader: BusyAt, refused: int, thorough: bool
) -> None:
    worker = fleet.member("worker")
    runtime = Runtime(config.load({"HOME": "/nowhere"}), reader, no_multiplexer, utc_now)
    feed = FleetFeed(runtime, fleet.fleet_id)
    told = []
    for number in range(3):
        message_id = fleet.send(fleet.director, worker, f"message {number}")
        fleet.ack(message_id)
        fleet.member(f"late {number}")
        reader.refused = refused if number == 1 else None
        changed = True
        deadline = time.monotonic() + DEADLINE_SECONDS
        while changed and time.monotonic() < deadline:  # As the hub does: what was refused is tried again.
            try:
                told += names(feed.advance(runtime, changed=True, thorough=thorough or number == 2))
                changed = False
            except DatabaseBusy:
                pass
    told += names(feed.advance(runtime, changed=True, thorough=True))
    assert told.count("message") == 3
    assert "reset" not in told
    known = [name for name in told if name == "member"]
    assert len(known) >= 3
