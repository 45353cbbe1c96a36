"""Handing a launch over, and what happens when nobody or the wrong one takes it."""

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cafleet.errors import MultiplexerError, MultiplexerTimeout
from cafleet.multiplexer import launcher
from cafleet.multiplexer.base import LaunchSpec
from cafleet.multiplexer.launch_file import LaunchFile


def files(launch: LaunchSpec) -> list[Path]:
    return list(Path(launch.private_directory).iterdir())


def test_what_is_handed_over_is_what_arrives(launch: LaunchSpec) -> None:
    launch = launch._replace(
        argv=["/bin/x", "", "a\nb", "é", "\udcff", "5"],
        environ={"A": "", "B": "x=y"},
        scrub=["P_*"],
        title="t\x07t",
    )
    with LaunchFile(launch):
        (file,) = files(launch)
        assert file.stat().st_mode & 0o777 == 0o600
        directory, title, argv, scrub, environ = launcher.read(file.read_bytes())
    assert directory == [os.fsencode(launch.directory)]
    assert title == [b"tt"]
    assert argv == [b"/bin/x", b"", b"a\nb", "é".encode(), b"\xff", b"5"]
    assert scrub == [b"P_*"]
    assert environ == [b"A=", b"B=x=y"]


def test_a_launch_that_nobody_takes_is_taken_back(launch: LaunchSpec) -> None:
    with LaunchFile(launch) as handed_over:
        assert len(files(launch)) == 1
        with pytest.raises(MultiplexerTimeout):
            handed_over.wait_until_started(lambda: True, timeout_seconds=0.1)
    assert files(launch) == []


def test_what_a_killed_process_left_goes_with_the_next_launch(launch: LaunchSpec) -> None:
    folder = Path(launch.private_directory)
    folder.mkdir(parents=True, mode=0o700)
    now = time.time()
    for name, age_seconds in {"launch-7-old": 4000.0, "launch-7-new": 60.0, "of-the-user": 4000.0}.items():
        (folder / name).write_text("a prompt")
        os.utime(folder / name, (now - age_seconds, now - age_seconds))
    with LaunchFile(launch):
        assert len(files(launch)) == 3
    assert sorted(file.name for file in files(launch)) == ["launch-7-new", "of-the-user"]


def test_a_pane_that_ends_early_is_noticed_before_the_timeout(launch: LaunchSpec) -> None:
    with pytest.raises(MultiplexerError, match="ended before"), LaunchFile(launch) as handed_over:
        handed_over.wait_until_started(lambda: False, timeout_seconds=100.0)


def test_a_launcher_that_hangs_after_taking_it_is_a_timeout(launch: LaunchSpec) -> None:
    with LaunchFile(launch) as handed_over:
        (file,) = files(launch)
        taken = os.open(file, os.O_RDWR)
        fcntl.flock(taken, fcntl.LOCK_EX)
        file.unlink()
        with pytest.raises(MultiplexerTimeout):
            handed_over.wait_until_started(lambda: True, timeout_seconds=0.1)
        os.close(taken)


@pytest.mark.parametrize("argv", [["/bin/x", "a\0b"], ["/bin/x", "\ud800"]])
def test_what_cannot_be_handed_over(launch: LaunchSpec, argv: list[str]) -> None:
    with (
        pytest.raises(MultiplexerError, match="arguments and environment"),
        LaunchFile(launch._replace(argv=argv)),
    ):
        pass
    assert files(launch) == []


def test_a_folder_that_cannot_be_made(launch: LaunchSpec, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file in its place")
    with pytest.raises(MultiplexerError, match="cannot write a launch file"), LaunchFile(launch):
        pass


@pytest.mark.parametrize(
    ("names", "left"),
    [
        ([], {"A": "1", "AB": "2", "B": "3"}),
        (["A"], {"AB": "2", "B": "3"}),
        (["A*"], {"B": "3"}),
        (["*"], {}),
        (["B*", "X"], {"A": "1", "AB": "2"}),
    ],
)
def test_scrubbing(names: list[str], left: dict[str, str]) -> None:
    environ = {b"A": b"1", b"AB": b"2", b"B": b"3"}
    expected = {name.encode(): value.encode() for name, value in left.items()}
    assert launcher.scrubbed(environ, [name.encode() for name in names]) == expected


def run_launcher(path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "-S", launcher.__file__, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def touching(launch: LaunchSpec, file: Path) -> LaunchSpec:
    """A launch that leaves `file`."""
    return launch._replace(argv=["/bin/sh", "-c", f"touch {file}"])


def test_the_launcher_follows_no_symlink(launch: LaunchSpec, tmp_path: Path) -> None:
    ran, link = tmp_path / "ran", tmp_path / "link"
    with LaunchFile(touching(launch, ran)):
        (file,) = files(launch)
        link.symlink_to(file)
        assert run_launcher(link).returncode != 0
        assert link.is_symlink()
        assert not ran.exists()
        assert run_launcher(file).returncode == 0
        assert ran.exists(), "it was a launch that works"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_the_launcher_runs_nobody_elses_file(launch: LaunchSpec, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    with LaunchFile(touching(launch, ran)):
        (file,) = files(launch)
        os.chown(file, 65534, -1)
        assert run_launcher(file).returncode == launcher.FAILED
        assert not ran.exists()


def test_a_planted_file_is_not_taken_over(launch: LaunchSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", bytes)  # Else its name cannot be guessed.
    with LaunchFile(launch):
        (file,) = files(launch)
    file.write_text("planted")
    with pytest.raises(MultiplexerError, match="cannot write a launch file"), LaunchFile(launch):
        pass
    assert file.read_text() == "planted"


def test_the_launcher_reads_no_rubbish(tmp_path: Path) -> None:
    rubbish = tmp_path / "rubbish"
    rubbish.write_bytes(b"rubbish\0")
    assert run_launcher(rubbish).returncode == launcher.FAILED
    assert run_launcher(tmp_path / "absent").returncode != 0
