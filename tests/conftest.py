"""Fixtures for every test, and the guards of `support/isolation.py` put in place."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.support import isolation
from tests.support.memory_folder import use_memory
from tests.support.program import end_started
from tests.support.tmux_server import TmuxServer
from tests.support.tmux_shim import TmuxShim

isolation.isolate()
use_memory()


def pytest_unconfigure() -> None:
    """Remove the stand-in home."""
    isolation.clean_up()


@pytest.fixture(scope="session", autouse=True)
def no_tmux_server_is_left() -> Iterator[None]:
    """Whoever starts a tmux server ends it, also when the test fails."""
    yield
    left = list(isolation.left_tmux_servers())
    for pid, _ in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if left:
        pytest.fail("tmux servers left running: " + "; ".join(command for _, command in left), pytrace=False)


@pytest.fixture(autouse=True)
def no_program_is_left() -> Iterator[None]:
    """Whoever starts a program ends it, also when the test fails: another one would have to pay for it."""
    yield
    if left := end_started():
        pytest.fail("programs left running: " + "; ".join(left), pytrace=False)


@pytest.fixture
def tmux_servers() -> Iterator[Callable[..., TmuxServer]]:
    """Makes private tmux servers, not started; takes what `TmuxServer` takes."""
    made: list[TmuxServer] = []

    def make(**options: object) -> TmuxServer:
        made.append(TmuxServer(**options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for server in made:
        server.stop()


@pytest.fixture
def tmux_server(tmux_servers: Callable[..., TmuxServer]) -> TmuxServer:
    """A private tmux server with one pane, `%0`, in the session `main`."""
    return tmux_servers().start()


@pytest.fixture
def tmux_shim(tmp_path: Path) -> TmuxShim:
    """A `tmux` that notes its calls and fails on demand; not on PATH by itself."""
    return TmuxShim(tmp_path / "shim")
