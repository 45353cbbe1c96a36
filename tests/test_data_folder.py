"""The folder beside the database, in which processes meet (SPEC 2.1, 4.2; field case J3)."""

from pathlib import Path

import pytest

from cafleet import config
from cafleet.errors import PaneBusy
from cafleet.multiplexer.base import PaneAddress
from cafleet.multiplexer.pane_lock import pane_lock

PANE = PaneAddress("host|/tmp/tmux|7", "s", "@0", "%1")


def settings(path: Path) -> config.Config:
    return config.load({"HOME": "/nonexistent", "CAFLEET_DATABASE_URL": f"sqlite:///{path}"})


@pytest.fixture
def real(tmp_path: Path) -> Path:
    path = tmp_path / "real" / "team.db"
    path.parent.mkdir()
    path.touch()
    return path


def test_it_is_the_file_s_own_folder(real: Path) -> None:
    assert settings(real).data_directory == str(real.parent)


def test_it_is_the_same_by_every_name_of_the_file(real: Path, tmp_path: Path) -> None:
    link, second, folder = tmp_path / "link.db", tmp_path / "second.db", tmp_path / "folder"
    link.symlink_to(real)
    second.symlink_to("link.db")
    folder.symlink_to("real")
    assert settings(link).data_directory == str(real.parent)
    assert settings(second).data_directory == str(real.parent)
    assert Path(settings(folder / "team.db").data_directory).samefile(real.parent)


def test_who_comes_by_another_name_meets_the_same_pane_lock(real: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(real)
    with (
        pane_lock(settings(real).data_directory, "tmux", PANE),
        pytest.raises(PaneBusy),
        pane_lock(settings(link).data_directory, "tmux", PANE, timeout_seconds=0.0),
    ):
        pass
