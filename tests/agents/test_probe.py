"""Asking a program about itself."""

import os
from pathlib import Path

from tests.support.waiting import has_ended, wait_until

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
    hanging = script(tmp_path, f"sleep 600 & echo $! > {marker}; wait")
    for patience_seconds in (1, 5, 25):  # A busy machine may not even have started it in the shortest.
        assert output_of(hanging, os.environ, patience_seconds) is None
        if marker.exists() and marker.read_text():
            break
    child = int(marker.read_text())
    wait_until(lambda: has_ended(child), what="the end of its child")


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    assert output_of([str(tmp_path / "missing")], os.environ, 1) is None
