"""The guards of `support/isolation.py` bite."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support import isolation
from tests.support.tmux_server import TmuxServer

from cafleet import config


def test_the_home_is_not_the_users() -> None:
    settings = config.load()
    for path in (settings.home, settings.database_path, settings.config_path):
        assert not path.startswith(isolation.PROTECTED)
        assert os.path.expanduser("~") != isolation.REAL_HOME


@pytest.mark.parametrize(
    "reach",
    [
        lambda path: Path(path).write_text(""),
        lambda path: os.open(path, os.O_RDWR | os.O_CREAT),
        os.mkdir,
        lambda path: os.symlink("x", path),
        lambda path: os.rename(path, "x"),
        sqlite3.connect,
        lambda path: Path(path).unlink(),
    ],
)
def test_reaching_for_the_real_home_fails(reach: Callable[[str], object]) -> None:
    with pytest.raises(RuntimeError, match="real home"):
        reach(os.path.join(isolation.PROTECTED[0], "guard-test"))


def test_the_users_tmux_server_is_out_of_reach() -> None:
    assert not [name for name in os.environ if name in ("TMUX", "TMUX_PANE", "HERDR_ENV")]
    listed = subprocess.run(["tmux", "list-sessions"], capture_output=True, text=True, check=False)
    assert listed.returncode == 1
    assert os.environ["TMUX_TMPDIR"] in listed.stderr


def test_a_server_that_is_left_running_is_found(tmux_server: TmuxServer) -> None:
    assert tmux_server.pid in dict(isolation.left_tmux_servers())
    tmux_server.stop()
    assert tmux_server.socket not in " ".join(dict(isolation.left_tmux_servers()).values())


def test_what_a_parallel_process_leaves_is_removed_with_its_parents() -> None:
    """Its scratch folder lies inside that of whoever started it."""
    script = "from tests.support import isolation; print(isolation._scratch)"
    root = Path(isolation.__file__).parents[2]
    made = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True
    ).stdout.strip()
    assert Path(made).is_dir()
    assert Path(made).parent == Path(isolation._scratch)
