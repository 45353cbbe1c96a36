"""One server per test process over one database; each test makes a fleet of its own in it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.browser import browser, page, phone, problems
from tests.support.shown_panes import ShownPanes
from tests.support.tmux_server import TmuxServer
from tests.support.web_fleet import WebFleet, new_database
from tests.support.web_server import WebServer

from cafleet.db.database import Database

__all__ = ["browser", "page", "phone", "problems"]


@pytest.fixture(scope="session")
def shared_database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    database = new_database(tmp_path_factory.mktemp("web"))
    yield database
    database.close()


@pytest.fixture(scope="session")
def server(shared_database: Database) -> Iterator[WebServer]:
    """A running server. Tests that stop it, or count what it holds, start their own."""
    started = WebServer(shared_database.path, Path(shared_database.path).parent).start()
    yield started
    code, errors = started.stop()
    assert (code, errors) == (0, "")


@pytest.fixture
def fleet(shared_database: Database) -> WebFleet:
    """A live fleet with a Director, in the shared server's database."""
    return WebFleet(shared_database)


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Callable[[], tuple[WebServer, Database]]]:
    """Makes a server with a database of its own, not started yet."""
    made: list[tuple[WebServer, Database]] = []

    def make() -> tuple[WebServer, Database]:
        folder = tmp_path / f"server-{len(made)}"
        folder.mkdir()
        database = new_database(folder)
        made.append((WebServer(database.path, folder), database))
        return made[-1]

    yield make
    for started, database in made:
        started.stop()
        database.close()


@pytest.fixture
def panes(tmux_servers: Callable[..., TmuxServer], tmp_path: Path) -> ShownPanes:
    """Real panes that show what agent programs once showed."""
    return ShownPanes(tmux_servers(), tmp_path)
