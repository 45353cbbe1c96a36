"""The program on a machine whose coding agents are scripts."""

from pathlib import Path

import pytest
from tests.support.machine import Machine


@pytest.fixture
def bare_machine(tmp_path: Path) -> Machine:
    """Nothing is installed, nothing is set up."""
    (tmp_path / "home").mkdir()
    (tmp_path / "programs").mkdir()
    return Machine(tmp_path / "home", tmp_path / "programs")


@pytest.fixture
def machine(bare_machine: Machine) -> Machine:
    """Two agents are installed, and set up."""
    bare_machine.install("claude")
    bare_machine.install("opencode")
    assert bare_machine.program.run("setup").code == 0
    return bare_machine
