"""The program with a database and a team in it."""

from pathlib import Path

import pytest
from tests.support.program import Program, Team, seed_team


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """The program with a database."""
    made = Program(tmp_path)
    assert made.run("setup").code == 0
    return made


@pytest.fixture
def bare_program(tmp_path: Path) -> Program:
    """The program in an empty home."""
    return Program(tmp_path)


@pytest.fixture
def team(program: Program) -> Team:
    """A fleet with two members that have no pane: 1 is the Director, 2 and 3 are members."""
    return seed_team(program, "ann", "bob")
