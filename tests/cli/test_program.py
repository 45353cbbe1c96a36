"""The program as a process: exit codes, streams, signals, guards (SPEC 2.4, 7.1)."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.program import SCRIPT, Program, Team, seed_messages
from tests.support.waiting import DEADLINE_SECONDS, wait_until

import cafleet
from cafleet.cli import commands

HOT = [
    ("message", "send", "--from", "1", "--to", "1", "hi"),
    ("message", "poll", "1"),
    ("message", "ack", "1"),
]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "a command is needed; 'cafleet --help' lists them"),
        (("mesage", "poll", "1"), "unknown command 'mesage'; did you mean 'message'?"),
        (("zebra",), "unknown command 'zebra'; 'cafleet --help' lists them"),
        (("message",), "'cafleet message' needs a command; 'cafleet message --help' lists them"),
        (("message", "pol", "1"), "unknown command 'message pol'; did you mean 'message poll'?"),
        (
            ("message", "read", "1"),
            "unknown command 'message read'; known: send, broadcast, poll, wait, listen, ack, show\n",
        ),
        (("send", "--to", "1"), "unknown command 'send'; did you mean 'message send'?"),
        (("list",), "unknown command 'list'; did you mean 'fleet list' or 'member list'?"),
        (("--verbose", "message"), "unknown option '--verbose'; options follow the command's name"),
        (("--", "message"), "a command is needed; 'cafleet --help' lists them"),
        (("message", "poll"), "missing MEMBER_ID"),
        (("message", "poll", "x"), "MEMBER_ID must be a whole number (got 'x')"),
        (("message", "poll", "-1"), "unknown option '-1'"),
        (("message", "poll", "1", "--lim", "3"), "unknown option '--lim'"),
        (("message", "poll", "1", "--json=1"), "--json takes no value"),
        (("message", "poll", "1", "--help="), "--help takes no value"),
        (("message", "poll", "1", "--limit", "0"), "--limit must be at least 1 (got '0')"),
        (("message", "poll", "9223372036854775808"), "MEMBER_ID must be at most"),
        (("message", "poll", "٣"), "MEMBER_ID must be a whole number (got '٣')"),
        (("message", "wait", "1", "--timeout", "nan"), "--timeout must be a number of seconds (got 'nan')"),
        (("setup", "--json"), "'cafleet setup' has no --json output"),
        (("fleet", "create", "--name", "x"), "missing --coding-agent"),
        (("member", "create", "--fleet-id", "1", "--role", "boss"), "--role must be monitor (got 'boss')"),
    ],
)
def test_usage_errors_come_first_and_exit_with_2(
    bare_program: Program, arguments: tuple[str, ...], message: str
) -> None:
    result = bare_program.run(*arguments)
    assert (result.code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"Error: {message}")
    assert not bare_program.database_path.exists()


def test_version(bare_program: Program) -> None:
    assert bare_program.run("--version") == (0, f"cafleet {cafleet.__version__}\n", "")


def test_as_a_module(bare_program: Program) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cafleet", "--version"],
        capture_output=True,
        env=bare_program.environ,
        check=True,
    )
    assert done.stdout.decode() == f"cafleet {cafleet.__version__}\n"


@pytest.mark.parametrize("group", sorted(commands.groups()))
def test_a_groups_help_lists_its_commands(bare_program: Program, group: str) -> None:
    result = bare_program.run(group, "--help")
    assert (result.code, result.stderr) == (0, "")
    for verb in commands.groups()[group]:
        assert f"  {group} {verb} " in result.stdout


def test_help_wins_over_whatever_else_is_wrong(bare_program: Program) -> None:
    for arguments in (("--help", "message", "poll"), ("message", "poll", "x", "--nonsense", "-h")):
        assert bare_program.run(*arguments).stdout.startswith("Usage: cafleet message poll")


@pytest.mark.parametrize("arguments", HOT)
def test_without_a_database_nothing_runs_and_nothing_is_made(
    bare_program: Program, arguments: tuple[str, ...]
) -> None:
    result = bare_program.run(*arguments)
    path = bare_program.database_path
    assert result == (1, "", f"Error: no cafleet database at {path}; run 'cafleet setup'\n")
    assert os.listdir(bare_program.home) == []


def test_a_wrong_setting_is_one_line(bare_program: Program) -> None:
    for url in ("sqlite:///relative.db", "postgres://x", "sqlite:///~/x.db"):
        result = bare_program.run("message", "poll", "1", environ={"CAFLEET_DATABASE_URL": url})
        message = f"Error: CAFLEET_DATABASE_URL must be an absolute sqlite:/// URL (got '{url}')\n"
        assert result == (1, "", message)


def test_setup_is_idempotent_and_private(bare_program: Program) -> None:
    first = bare_program.run("setup")
    path = bare_program.database_path
    assert (first.code, first.stderr) == (0, "")
    assert first.stdout.startswith(f"database: created {path} at format 5.\n")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    again = bare_program.run("setup")
    assert again.code == 0
    assert f"database: {path} is at format 5; nothing to do.\n" in again.stdout


def test_setup_refuses_a_foreign_file_and_keeps_it(bare_program: Program) -> None:
    path = bare_program.database_path
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not a database" * 100)
    before = path.read_bytes()
    result = bare_program.run("setup")
    assert result.code == 1
    assert result.stdout.startswith("database: failed\n")
    assert result.stderr.startswith(f"Error: {path} is not a cafleet database\n")
    assert path.read_bytes() == before
    assert bare_program.run("message", "poll", "1").stderr == f"Error: {path} is not a cafleet database\n"


def test_a_bug_is_one_line_unless_debugging(program: Program, team: Team) -> None:
    broken = program.home / "broken"
    broken.mkdir()
    (broken / "sitecustomize.py").write_text(
        "import cafleet.broker.inbox as inbox\n"
        "def poll(*_): raise KeyError('a\\x1b[31m\\nb')\n"
        "inbox.poll = poll\n"
    )
    environ = {"PYTHONPATH": str(broken)}
    result = program.run("message", "poll", "1", environ=environ)
    assert (result.code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: internal error: KeyError")
    assert result.stderr.endswith("(CAFLEET_DEBUG=1 shows where)\n")
    assert result.stderr.count("\n") == 1
    assert "\x1b" not in result.stderr
    debugging = program.run("message", "poll", "1", environ={**environ, "CAFLEET_DEBUG": "1"})
    assert debugging.code == 1
    assert "Traceback (most recent call last)" in debugging.stderr
    assert "Error: internal error: KeyError" in debugging.stderr


def test_an_error_shows_its_traceback_when_debugging(program: Program, team: Team) -> None:
    result = program.run("message", "poll", "99", environ={"CAFLEET_DEBUG": "1"})
    assert "MemberNotFound" in result.stderr
    assert result.stderr.endswith("Error: member 99 not found\n")


def test_a_closed_pipe_keeps_no_message_from_its_ack(program: Program, team: Team) -> None:
    """Unbuffered, as in containers, the first line already finds nobody."""
    seed_messages(program, 3, from_id=1, to_id=2)
    code = _run_without_reader(program, "message", "ack", "1", "2", "3")
    assert (code, program.run("message", "poll", "2").stdout) == (0, "No messages found.\n")


def test_a_closed_pipe_keeps_setup_from_nothing(tmp_path: Path) -> None:
    fresh = Program(tmp_path)
    assert _run_without_reader(fresh, "setup") == 0
    assert fresh.run("fleet", "list") == (0, "No fleets found.\n", "")


def _run_without_reader(program: Program, *arguments: str) -> int:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        environ = {**program.environ, "PYTHONUNBUFFERED": "1"}
        done = subprocess.run([SCRIPT, *arguments], stdout=pipe, env=environ, check=False)
    return done.returncode


def test_a_closed_pipe_is_not_an_error(program: Program, team: Team) -> None:
    text = "x" * 200_000
    program.run("message", "send", "--from", "1", "--to", "1", "--file", "-", stdin=text.encode())
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [SCRIPT, "message", "poll", "1"],
        stdout=writing,
        stderr=subprocess.PIPE,
        env=program.environ,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_behind_standard_output_is_named(program: Program, team: Team) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [SCRIPT, "message", "poll", "1"],
            stdout=full,
            stderr=subprocess.PIPE,
            env=program.environ,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == b"Error: cannot write to standard output: No space left on device\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(
    ("arguments", "stored"),
    [
        (("send", "--to", "1"), "1"),
        (("send", "--to", "1", "--to", "2"), "1, 2"),
        (("broadcast",), "1"),
    ],
)
def test_what_is_stored_is_no_error_where_the_reply_cannot_be_written(
    program: Program, team: Team, arguments: tuple[str, ...], stored: str, as_json: bool
) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [SCRIPT, "message", *arguments, "--from", "1", *["--json"] * as_json, "hi"],
            stdout=full,
            stderr=subprocess.PIPE,
            env=program.environ,
            check=False,
        )
    reason = "cannot write to standard output: No space left on device"
    assert done.returncode == 0
    assert done.stderr.decode() == f"Warning: {reason}. Stored all the same: {stored}; do not send again.\n"
    assert program.run("message", "show", "1").code == 0


def test_closed_standard_streams_do_no_harm(program: Program, team: Team) -> None:
    command = f'"{SCRIPT}" message send --from 1 --to 1 hi >&- 2>&- <&-'
    assert subprocess.run(["/bin/sh", "-c", command], env=program.environ, check=False).returncode == 0
    assert len(json.loads(program.run("message", "poll", "1", "--json").stdout)) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_wait_exits_with_130(program: Program, team: Team, number: signal.Signals) -> None:
    process = program.start("message", "wait", "1")
    _wait_until_it_waits(program)
    process.send_signal(number)
    output, errors = process.communicate(timeout=DEADLINE_SECONDS)
    assert (process.returncode, output, errors) == (130, b"", b"")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_listen_prints_each_message_at_once_and_ends_quietly(
    program: Program, team: Team, number: signal.Signals
) -> None:
    process = program.start("message", "listen", "1")
    assert process.stdout is not None
    for text in ("one", "two"):
        sent = program.run("message", "send", "--from", "2", "--to", "1", text)
        assert sent.code == 0
        line = process.stdout.readline().decode()
        assert re.fullmatch(rf"\[cafleet msg \d+ from 2 \S+\] {text}\n", line)
    process.send_signal(number)
    output, errors = process.communicate(timeout=DEADLINE_SECONDS)
    assert (process.returncode, output, errors) == (0, b"", b"")


def test_listen_gives_one_object_a_line(program: Program, team: Team) -> None:
    for text in ("one", "two\nlines"):
        program.run("message", "send", "--from", "2", "--to", "1", text)
    process = program.start("message", "listen", "1", "--json")
    assert process.stdout is not None
    texts = [json.loads(process.stdout.readline())["text"] for _ in range(2)]
    process.terminate()
    process.communicate(timeout=DEADLINE_SECONDS)
    assert texts == ["one", "two\nlines"]
    assert process.returncode == 0


@pytest.mark.parametrize("verb", ["listen", "wait"])
def test_who_waits_ends_without_an_error_when_its_reader_goes(
    program: Program, team: Team, verb: str
) -> None:
    process = program.start("message", verb, "1")
    _wait_until_it_waits(program)
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(timeout=DEADLINE_SECONDS) == 0
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()


def test_listen_ends_where_nobody_can_ever_read(program: Program, team: Team) -> None:
    command = f'"{SCRIPT}" message listen 2 >&-'
    done = subprocess.run(
        ["sh", "-c", command], env=program.environ, capture_output=True, timeout=DEADLINE_SECONDS, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_listen_ends_when_the_member_goes(program: Program, team: Team) -> None:
    process = program.start("message", "listen", "2")
    _wait_until_it_waits(program)
    program.run("member", "delete", "2")
    output, errors = process.communicate(timeout=DEADLINE_SECONDS)
    assert (process.returncode, output, errors) == (1, b"", b"Error: member 2 is no longer active\n")


def _wait_until_it_waits(program: Program) -> None:
    """A waiter's socket is the last thing that it makes before it sleeps."""
    folder = program.database_path.parent / "wakeups"
    wait_until(lambda: folder.is_dir() and os.listdir(folder), what="a waiter")


def test_a_terminal_gets_a_table_and_colour(program: Program, team: Team) -> None:
    shown = _on_terminal(program, "fleet", "list", environ={"TERM": "xterm"})
    assert "fleet_id  name  director  members  created_at" in shown
    assert "\x1b[1m" in shown
    plain = _on_terminal(program, "fleet", "list", environ={"TERM": "xterm", "NO_COLOR": "1"})
    assert "fleet_id  name  director  members  created_at" in plain
    assert "\x1b" not in plain


def _on_terminal(program: Program, *arguments: str, environ: dict[str, str]) -> str:
    master, slave = os.openpty()
    process = subprocess.Popen(
        [SCRIPT, *arguments], stdin=slave, stdout=slave, stderr=slave, env={**program.environ, **environ}
    )
    os.close(slave)
    chunks = []
    try:
        while chunk := os.read(master, 65536):
            chunks.append(chunk)
    except OSError:
        pass  # The terminal ends with its last user.
    os.close(master)
    assert process.wait(timeout=DEADLINE_SECONDS) == 0
    return b"".join(chunks).decode()
