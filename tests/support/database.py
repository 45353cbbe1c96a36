"""Fresh databases for tests, always below `tmp_path`."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cafleet.db.database import Database
from cafleet.db.migrate import setup_database

SETUP_TIME = datetime(2026, 1, 1, tzinfo=UTC)


def fresh_database(directory: Path, name: str = "team.db") -> Database:
    """A database at the head version in `directory`, guarded and ready to use. The caller closes it."""
    path = str(directory / name)
    setup_database(path, SETUP_TIME)
    return Database(path)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A database at the head version. Use it with `from tests.support.database import database`."""
    opened = fresh_database(tmp_path)
    yield opened
    opened.close()
