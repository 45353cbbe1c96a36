"""Asking a program about itself."""

import os
import time
from pathlib import Path

from cafleet.agents.probe import output_of


def script(folder: Path, text: str) -> list[str]:
    path = folder / "script"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return [str(path)]


def test_output(tmp_path: Path) -> None:
    assert output_of(script(tmp_path, "echo one; echo two >&2"), os.environ, 10) == "one\n"


def test_a_program_that_fails_says_what_it_says(tmp_path: Path) -> None:
    assert output_of(script(tmp_path, "echo usage; exit 2"), os.environ, 10) == "usage\n"


def test_a_program_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    marker = tmp_path / "pid"
    assert output_of(script(tmp_path, f"sleep 600 & echo $! > {marker}; wait"), os.environ, 1) is None
    child = int(marker.read_text())
    deadline = time.monotonic() + 10
    while _runs(child):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _runs(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    assert output_of([str(tmp_path / "missing")], os.environ, 1) is None
