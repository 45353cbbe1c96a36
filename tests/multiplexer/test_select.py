"""Which multiplexer is meant, and clear words where that is not clear."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from cafleet import config
from cafleet.errors import MultiplexerError, NotInMultiplexer
from cafleet.multiplexer import select

TMUX, HERDR = {"TMUX": "/tmp/sock,1,0"}, {"HERDR_ENV": "1"}


def settings(environ: Mapping[str, str]) -> config.Config:
    return config.load({"HOME": os.environ["HOME"], "PATH": os.environ["PATH"], **environ})


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        (TMUX, "tmux"),
        (HERDR, "herdr"),
        ({**TMUX, **HERDR, "CAFLEET_MULTIPLEXER": "herdr"}, "herdr"),
        ({**TMUX, **HERDR, "CAFLEET_MULTIPLEXER": "tmux"}, "tmux"),
        ({"CAFLEET_MULTIPLEXER": "tmux"}, "tmux"),
        ({**TMUX, "CAFLEET_MULTIPLEXER": "", "HERDR_ENV": ""}, "tmux"),
    ],
)
def test_the_calling_panes_backend(environ: Mapping[str, str], name: str) -> None:
    assert select.current_backend(settings(environ)) == name


@pytest.mark.parametrize(
    ("environ", "error", "names"),
    [
        ({}, NotInMultiplexer, ["TMUX", "HERDR_ENV", "CAFLEET_MULTIPLEXER"]),
        ({**TMUX, **HERDR}, MultiplexerError, ["TMUX", "HERDR_ENV", "CAFLEET_MULTIPLEXER"]),
        (
            {**TMUX, "CAFLEET_MULTIPLEXER": "screen"},
            MultiplexerError,
            ["CAFLEET_MULTIPLEXER", "'screen'", "tmux"],
        ),
    ],
)
def test_what_is_wrong_is_named(
    environ: Mapping[str, str], error: type[MultiplexerError], names: list[str]
) -> None:
    with pytest.raises(error) as caught:
        select.current_backend(settings(environ))
    assert all(name in str(caught.value) for name in names)


@pytest.mark.parametrize("name", ["tmux", "herdr"])
def test_a_backend_by_name(name: str) -> None:
    assert select.multiplexer(name, settings({})).name == name


def test_an_unknown_backend_lists_the_known() -> None:
    with pytest.raises(select.UnknownMultiplexer, match=r"unknown multiplexer 'zellij'; known: herdr, tmux"):
        select.multiplexer("zellij", settings({}))


PLUGIN = """
class Zell:
    name = "zell"
    def __init__(self, environ):
        self.path = environ["PATH"]
"""
USE = """
from cafleet import config
from cafleet.errors import MultiplexerError
from cafleet.multiplexer import select
settings = config.load()
print(select.current_backend(settings), select.multiplexer("zell", settings).path == settings.environ["PATH"])
try:
    select.multiplexer("broken", settings)
except MultiplexerError as error:
    print(error)
"""


def test_a_registered_backend_is_found(tmp_path: Path) -> None:
    (tmp_path / "zell_plugin.py").write_text(PLUGIN)
    information = tmp_path / "zell_plugin-1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: zell-plugin\nVersion: 1\n")
    (information / "entry_points.txt").write_text(
        "[cafleet.multiplexers]\nzell = zell_plugin:Zell\nbroken = zell_plugin:Absent\n"
    )
    environ = {**os.environ, "PYTHONPATH": str(tmp_path), "CAFLEET_MULTIPLEXER": "zell"}
    printed = subprocess.run(
        [sys.executable, "-c", USE], env=environ, capture_output=True, text=True, check=True
    )
    first, second = printed.stdout.splitlines()
    assert first == "zell True"
    assert second.startswith("multiplexer 'broken' cannot be loaded: ")
