"""Commands that are called in a folder that was removed meanwhile, as one of a finished work tree is."""

import os
import subprocess

import pytest
from tests.support.program import SCRIPT, Program, Result, Team
from tests.support.waiting import DEADLINE_SECONDS

GONE = "Error: the current folder does not exist any more; change to another one\n"


def in_removed_folder(program: Program, *arguments: str) -> Result:
    folder = program.home / "removed"
    script = 'mkdir "$0" && cd "$0" && rmdir "$0" && exec "$@"'
    done = subprocess.run(
        ["sh", "-c", script, str(folder), SCRIPT, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=program.environ,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.mark.parametrize(
    "arguments",
    [
        ("member", "create", "--fleet-id", "1", "--name", "eve", "--description", "", "hi"),
        ("member", "create", "--fleet-id", "1", "--name", "eve", "--description", "", "--cwd", "x", "hi"),
        ("member", "respawn", "1", "hi"),
        ("backup", "copy.db"),
        ("import", "old.db"),
    ],
)
def test_what_needs_the_folder_says_that_it_is_gone(
    program: Program, team: Team, arguments: tuple[str, ...]
) -> None:
    assert in_removed_folder(program, *arguments) == (1, "", GONE)


def test_a_monitor_cannot_start_there(program: Program, team: Team) -> None:
    prompt = program.home / "monitor.md"
    prompt.write_text("Watch.", encoding="utf-8")
    create = ("fleet", "create", "--name", "two", "--coding-agent", "claude", "--monitor-file", str(prompt))
    assert in_removed_folder(program, *create) == (1, "", GONE)


@pytest.mark.parametrize(
    "arguments",
    [
        ("fleet", "list"),
        ("member", "list", "1"),
        ("message", "poll", "1"),
        ("message", "send", "--from", "1", "--to", "1", "hi"),
        ("message", "broadcast", "--from", "1", "hi"),
        ("message", "wait", "1", "--timeout", "0"),
        ("setup", "--coding-agent", "claude"),
    ],
)
def test_everything_else_works(program: Program, team: Team, arguments: tuple[str, ...]) -> None:
    assert in_removed_folder(program, *arguments).code == 0


def test_an_absolute_path_needs_no_folder(program: Program, team: Team) -> None:
    copy = program.home / "copy.db"
    assert in_removed_folder(program, "backup", str(copy)).code == 0
    assert os.path.getsize(copy) > 0
