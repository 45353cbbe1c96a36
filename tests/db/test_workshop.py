"""Nothing that a dead builder left behind stays for long, and nobody's work is taken away."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cafleet.db.workshop import Workshop, sweep

BUILD = """
import os, signal, sys
from cafleet.db.workshop import Workshop
workshop = Workshop(sys.argv[1])
open(workshop.file, "w").close()
open(workshop.file + "-wal", "w").close()
print(workshop.file, flush=True)
sys.stdin.read()
"""


def test_a_folder_lives_as_long_as_its_builder(tmp_path: Path) -> None:
    with Workshop(str(tmp_path / "team.db")) as workshop:
        (folder,) = tmp_path.iterdir()
        assert folder.name.startswith("team.db.")
        assert folder.stat().st_mode & 0o777 == 0o700
        Path(workshop.file).write_text("half")
        sweep(str(tmp_path))
        assert Path(workshop.file).read_text() == "half"
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_builder_left_is_swept(tmp_path: Path) -> None:
    builder = subprocess.Popen(
        [sys.executable, "-c", BUILD, str(tmp_path / "team.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert builder.stdout is not None
    left = Path(builder.stdout.readline().decode().strip())
    sweep(str(tmp_path))
    assert left.exists(), "its builder lives"
    builder.send_signal(signal.SIGKILL)
    builder.communicate()
    sweep(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_whose_builder_died_before_it_had_a_lock(tmp_path: Path) -> None:
    (tmp_path / "team.db.0123abcd.partial").mkdir()
    sweep(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["file", "name", "content", "link"])
def test_what_is_not_of_our_making_stays(tmp_path: Path, kind: str) -> None:
    path = tmp_path / ("team.db.partial" if kind == "name" else "team.db.0123abcd.partial")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    if kind == "file":
        path.write_text("mine")
    elif kind == "link":
        path.symlink_to(elsewhere)
    else:
        path.mkdir()
    folder = elsewhere if kind == "link" else path
    if kind != "file":
        (folder / "lock").write_text("")
        (folder / "copy.db" if kind in ("name", "link") else folder / "mine").write_text("mine")
    before = sorted(str(one) for one in tmp_path.rglob("*") if one.name != "lock")
    sweep(str(tmp_path))
    assert sorted(str(one) for one in tmp_path.rglob("*") if one.name != "lock") == before


def test_a_folder_that_cannot_be_listed_is_nobodys_trouble(tmp_path: Path) -> None:
    sweep(str(tmp_path / "missing"))
    with pytest.raises(FileNotFoundError):
        Workshop(str(tmp_path / "missing" / "team.db"))
    assert os.listdir(tmp_path) == []
