"""SIGKILL before every SQL statement and file operation of the commands that write (SPEC 14; field case P3).

The file is then whole and in a state that an undisturbed command goes through, and whoever comes next can
go on. Commands that touch panes are in `test_killed_with_panes.py`.
"""

import os
import re
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support.breaking import Breaker
from tests.support.database import ADD_MESSAGE, ADD_TEAM, file_at_version, run_sql
from tests.support.file_content import Content, content
from tests.support.program import Program, seed_messages, seed_team

from cafleet.clock import format_timestamp, utc_now
from cafleet.db import monitor_runtime
from cafleet.db.database import Database
from cafleet.db.diagnosis import DatabaseState, diagnose
from cafleet.db.head_schema import HEAD_VERSION


class Case(NamedTuple):
    """A command, and what may be found after its kill."""

    command: tuple[str, ...]
    states: int
    """How many different contents of the file there are, from before to after."""
    reported: str
    """What it prints once its work is stored."""
    again: str = ""
    """Why the same command may be refused when it is repeated."""
    repeatable: bool = False
    """Repeating it changes nothing more."""


SEND = ("message", "send", "--from", "1", "--to")
CASES = {
    "a message to oneself": Case((*SEND, "1", "hello"), 2, "Message sent."),
    "a message to the Director": Case(
        ("message", "send", "--from", "2", "--to", "1", "hello"), 2, "Message sent."
    ),
    "a message that is safe to repeat": Case(
        (*SEND, "2", "--key", "k", "hello"), 2, "Message sent.", repeatable=True
    ),
    "several recipients": Case((*SEND, "2", "--to", "3", "hello"), 3, "Message sent."),
    "a broadcast": Case(("message", "broadcast", "--from", "1", "hello"), 2, "broadcast id="),
    "acknowledgements": Case(("message", "ack", "1", "2"), 3, "Message ack", "is already acknowledged"),
    "a member's deletion": Case(("member", "delete", "3"), 2, "Deleted", "is not active"),
    "a fleet's deletion": Case(("fleet", "delete", "1"), 2, "Deleted fleet 1.", repeatable=True),
    "a wake's request": Case(("monitor", "wake", "1"), 2, "is woken with the next tick", repeatable=True),
    "assets": Case(("setup", "--coding-agent", "claude"), 2, "claude skill installed", repeatable=True),
}


class Stage:
    """The program with a team and its file, which can be put back to what it was."""

    def __init__(self, directory: Path) -> None:
        self.program = Program(directory / "home")
        self.program.home.mkdir()
        assert self.program.run("setup").code == 0
        seed_team(self.program, "ann", "bob")
        seed_messages(self.program, 2, from_id=2, to_id=3)
        run_sql(self.program.database_path, "DELETE FROM asset_installs WHERE coding_agent = 'claude'")
        self._add_loop()
        self._folder, self._scratch = self.program.database_path.parent, directory / "scratch"
        self._template = shutil.copytree(self._folder, directory / "template")

    def _add_loop(self) -> None:
        """A monitor loop that looks alive for hours: this process."""
        database, now = Database(str(self.program.database_path)), format_timestamp(utc_now())
        with database.write() as connection:
            monitor_runtime.claim(
                connection, 1, pid=os.getpid(), at=now, tick_seconds=3600, wake_interval_seconds=0
            )
        database.close()

    def put_back(self) -> None:
        shutil.rmtree(self._folder)
        shutil.copytree(self._template, self._folder)

    def content(self) -> Content:
        return content(self._folder, self._scratch)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


@pytest.mark.parametrize("name", CASES)
def test_the_file_is_as_before_or_as_after(stage: Stage, name: str) -> None:
    case = CASES[name]
    with Breaker(stage.program) as breaker:
        before = stage.content()
        assert breaker.run(*case.command).code == 0
        after = stage.content()
        found, at, run = [before], 0, None
        while run is None or run.step is not None:
            at += 1
            stage.put_back()
            run = breaker.run(*case.command, at=at)
            state = stage.content()
            if state != found[-1]:
                assert state not in found, f"{run.step}: back to an earlier state"
                found.append(state)
            if case.reported in run.stdout:
                assert state == after, f"{run.step}: reported but not stored"
            again = breaker.run(*case.command)
            assert again.code == 0 or (case.again and case.again in again.stderr), (run.step, again)
            if case.repeatable:
                assert stage.content() == after, run.step
    assert (found[0], found[-1], len(found)) == (before, after, case.states)
    assert at > 10, "there are more steps than that"


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name].states == 2 and name != "assets"])
def test_what_is_stored_is_never_reported_as_an_error_nor_the_reverse(stage: Stage, name: str) -> None:
    """The disk fails at every statement in turn, once."""
    case = CASES[name]
    with Breaker(stage.program, fail=True) as breaker:
        before = stage.content()
        assert breaker.run(*case.command).code == 0
        after = stage.content()
        codes, at, run = set(), 0, None
        while run is None or run.step is not None:
            at += 1
            stage.put_back()
            run = breaker.run(*case.command, at=at, only="^(sql|end)")
            assert stage.content() == (after if run.code == 0 else before), run
            if run.code:
                assert re.fullmatch(r"Error: (?!internal).+\n", run.stderr), run
                assert "does not match format" not in run.stderr, "an error of the disk is no damage"
            codes.add(run.code)
    assert codes == {0, 1}


def bytes_in(folder: Path) -> dict[str, bytes]:
    """Every file below it; the part of a name that differs each time is left out."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {re.sub(r"\.[0-9a-f]{8}\.", ".", str(path)): path.read_bytes() for path in found}


@pytest.mark.parametrize("version", [None, 1])
def test_a_setup_is_done_or_not(tmp_path: Path, version: int | None) -> None:
    """A migration killed half-way, too: the next one finishes, and no row is lost."""
    program = Program(tmp_path / "home")
    folder, template = program.database_path.parent, tmp_path / "template"
    template.mkdir()
    program.home.mkdir()
    if version is not None:
        file_at_version(template / "cafleet_v8.db", version)
        run_sql(template / "cafleet_v8.db", *ADD_TEAM, *[ADD_MESSAGE] * 3)
    states, at = set(), 0
    left: dict[str, bytes] | None = None
    with Breaker(program) as breaker:
        while True:
            at += 1
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(template, folder)
            run = breaker.run("setup", "--coding-agent", "claude", at=at, only=r"^(sql|file .*v8|end)")
            found = diagnose(str(program.database_path))
            states.add((found.state, found.version))
            if run.step is None:
                break
            before, left = left, bytes_in(folder)
            if left == before:
                continue  # To the byte what the kill one step earlier left.
            again = breaker.run("setup", "--coding-agent", "claude")
            assert again.code == 0, (run.step, again)
            assert len([row for row in content(folder, tmp_path / "scratch") if row[0] == "messages"]) == (
                0 if version is None else 3
            ), run.step
            assert not [name for name in folder.iterdir() if ".partial" in name.name], run.step
    old = {DatabaseState.OUTDATED} if version else {DatabaseState.MISSING, DatabaseState.EMPTY}
    assert states == {*((state, version) for state in old), (DatabaseState.CURRENT, HEAD_VERSION)}
