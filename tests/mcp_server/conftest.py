"""A program with a small team, for a server to speak for."""

from pathlib import Path

import pytest
from tests.support.program import Program, Team, seed_team


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """The installed program after `setup`."""
    made = Program(tmp_path)
    assert made.run("setup").code == 0
    return made


@pytest.fixture
def team(program: Program) -> Team:
    """A Director (1) and the members ann (2) and bob (3); nobody has a pane that exists."""
    return seed_team(program, "ann", "bob")
