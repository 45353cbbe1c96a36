"""Targets are replaced at one moment (SPEC 8)."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cafleet.assets.replace import replace_file, replace_folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "references").mkdir(parents=True)
    (folder / "SKILL.md").write_text("new")
    (folder / "references" / "page.md").write_text("page")
    return folder


def tree(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


NEW = {"SKILL.md": "new", "references/page.md": "page"}


def test_a_missing_folder_is_made_with_all_above_it(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "a" / "b" / "cafleet"
    replace_folder(str(source), str(target))
    assert tree(target) == NEW
    assert os.listdir(target.parent) == ["cafleet"]


def test_an_old_folder_goes_whole(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "skills" / "cafleet"
    (target / "old").mkdir(parents=True)
    (target / "old" / "left.md").write_text("old")
    other = tmp_path / "skills" / "mine"
    other.mkdir()
    replace_folder(str(source), str(target))
    assert tree(target) == NEW
    assert sorted(os.listdir(target.parent)) == ["cafleet", "mine"]


@pytest.mark.parametrize("dangling", [True, False])
def test_a_symlink_is_replaced_and_not_followed(source: Path, tmp_path: Path, dangling: bool) -> None:
    elsewhere = tmp_path / "elsewhere"
    if not dangling:
        elsewhere.mkdir()
        (elsewhere / "SKILL.md").write_text("mine")
    target = tmp_path / "skills" / "cafleet"
    target.parent.mkdir()
    target.symlink_to(elsewhere)
    replace_folder(str(source), str(target))
    assert not target.is_symlink()
    assert tree(target) == NEW
    assert tree(elsewhere) == ({} if dangling else {"SKILL.md": "mine"})


def test_a_file_in_the_place_of_the_folder_is_replaced(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "cafleet"
    target.write_text("in the way")
    replace_folder(str(source), str(target))
    assert tree(target) == NEW


def test_what_a_killed_setup_left_is_swept(source: Path, tmp_path: Path) -> None:
    skills = tmp_path / "skills"
    (skills / ".cafleet-new-abc" / "new").mkdir(parents=True)
    replace_folder(str(source), str(skills / "cafleet"))
    assert os.listdir(skills) == ["cafleet"]


def test_a_file_is_replaced_and_a_symlink_is_not_followed(source: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("mine")
    target = tmp_path / "rules" / "cafleet.rules"
    target.parent.mkdir()
    target.symlink_to(mine)
    replace_file(str(source / "SKILL.md"), str(target))
    assert not target.is_symlink()
    assert target.read_text() == "new"
    assert mine.read_text() == "mine"
    assert os.listdir(target.parent) == ["cafleet.rules"]


def test_a_folder_is_not_taken_for_a_file(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "cafleet.rules"
    (target / "mine").mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        replace_file(str(source / "SKILL.md"), str(target))
    assert (target / "mine").is_dir()


_LOOP = """
import sys
from cafleet.assets.replace import replace_folder
print("ready", flush=True)
while True:
    replace_folder(sys.argv[1], sys.argv[3])
    replace_folder(sys.argv[2], sys.argv[3])
"""


def test_whoever_is_killed_at_whatever_moment_leaves_one_whole_folder(source: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    second.mkdir()
    for number in range(20):
        (second / f"{number}.md").write_text("second")
    target = tmp_path / "skills" / "cafleet"
    replace_folder(str(source), str(target))
    wholes = (NEW, {f"{number}.md": "second" for number in range(20)})
    for kill in range(12):
        process = subprocess.Popen(
            [sys.executable, "-c", _LOOP, str(source), str(second), str(target)], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        assert process.stdout.readline()
        time.sleep(0.002 * kill)  # Another moment each time; every moment has to do.
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert tree(target) in wholes
    replace_folder(str(source), str(target))
    assert os.listdir(target.parent) == ["cafleet"]
