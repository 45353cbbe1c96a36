"""A locked database, many first opens at once, lock files that vanish, a tmux that hangs (SPEC 14; field
cases I1, J3, D), met by the installed program."""

import fcntl
import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.faults.conftest import Team, expected_lines
from tests.support.database import ADD_MESSAGE, held_by_another_process, kill_while_writing, rows
from tests.support.program import Program, seed_messages, seed_team
from tests.support.waiting import DEADLINE_SECONDS, wait_until

from cafleet.db import messages
from cafleet.db.database import Database

AT = "2026-01-01T00:00:02.000000+00:00"

WRITES = (
    ("message", "send", "--from", "1", "--to", "1", "hello"),
    ("message", "broadcast", "--from", "1", "hello"),
    ("message", "ack", "1"),
    ("member", "delete", "3"),
)


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """With a team of three and one message."""
    made = Program(tmp_path)
    assert made.run("setup").code == 0
    seed_team(made, "ann", "bob")
    seed_messages(made, 1, from_id=1, to_id=2)
    return made


def all_at_once(program: Program, commands: tuple[tuple[str, ...], ...]) -> list[tuple[int, str, str]]:
    running = [program.start(*command) for command in commands]
    ended = []
    for process in running:
        output, errors = process.communicate(timeout=DEADLINE_SECONDS)
        ended.append((process.returncode, output.decode(), errors.decode()))
    return ended


def test_a_database_that_stays_locked(program: Program) -> None:
    """Readers go on; writers wait as long as they should, store nothing and say what it is."""
    with held_by_another_process(program.database_path, "BEGIN IMMEDIATE"):
        started = time.monotonic()
        assert program.run("message", "poll", "2").code == 0
        ended = all_at_once(program, WRITES)
        assert time.monotonic() - started >= 5, "they gave up too early"
    assert ended == [(1, "", "Error: the database is busy; try again\n")] * len(WRITES)
    assert rows(program.database_path, "SELECT count(*) FROM messages") == [(1,)]
    assert rows(program.database_path, "SELECT count(*) FROM messages WHERE status_state = 'completed'") == [
        (0,)
    ]


def test_a_reader_that_stands_still_holds_nobody_up(program: Program) -> None:
    """I9: a stopped listener keeps no transaction open, so senders go on and the log stays small."""
    listener = program.start("message", "listen", "2")
    assert listener.stdout is not None
    assert listener.stdout.readline().startswith(b"[cafleet msg 1 ")
    listener.send_signal(signal.SIGSTOP)
    try:
        path = program.database_path
        database = Database(str(path))
        for number in range(300):
            send(database, f"{number} " + "x" * 8000)
        log = Path(f"{path}-wal").stat().st_size
        database.close()
        assert log < 6_000_000
    finally:
        listener.send_signal(signal.SIGCONT)
    told = [listener.stdout.readline().split()[2] for _ in range(300)]
    listener.terminate()
    assert listener.wait(DEADLINE_SECONDS) == 0
    listener.communicate()
    assert told == [str(number).encode() for number in range(2, 302)]


def send(database: Database, text: str) -> None:
    with database.write() as connection:
        messages.insert(connection, from_member_id=1, to_member_id=2, text=text, created_at=AT)


def test_a_database_that_is_locked_for_a_moment(program: Program) -> None:
    with held_by_another_process(program.database_path, "BEGIN IMMEDIATE"):
        running = [program.start(*command) for command in WRITES]
        time.sleep(0.5)  # So that most of them meet the lock; correct whether they do or not.
    for process in running:
        assert process.communicate(timeout=DEADLINE_SECONDS)[1] == b""
        assert process.returncode == 0


def test_24_first_opens_at_once(program: Program) -> None:
    """Every one of them is the first to open a file whose log a killed writer left."""
    kill_while_writing(program.database_path, ADD_MESSAGE)
    ended = all_at_once(program, (WRITES[0],) * 24)
    assert [(code, errors) for code, _, errors in ended] == [(0, "")] * 24
    assert rows(program.database_path, "SELECT count(*) FROM messages") == [(26,)]
    assert rows(program.database_path, "PRAGMA integrity_check") == [("ok",)]


def test_24_first_setups_at_once(tmp_path: Path) -> None:
    program = Program(tmp_path)
    ended = all_at_once(program, (("setup", "--coding-agent", "claude"),) * 24)
    assert [(code, errors) for code, _, errors in ended] == [(0, "")] * 24
    created = f"database: created {program.database_path} at format 5.\n"
    assert sum(output.count(created) for _, output, _ in ended) == 1
    assert program.run("fleet", "list").code == 0


@contextmanager
def constantly(action: Callable[[], object]) -> Iterator[None]:
    """`action` again and again, in a thread."""
    over = threading.Event()

    def repeat() -> None:
        while not over.wait(0.002):
            action()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_lock_files_that_are_deleted_while_held(team: Team) -> None:
    """A vandal: nobody can be kept out of a pane then, but no line is joined with another or submitted twice
    by one sender, no message is lost, and what two of them left in the composer waits for a person."""
    locks = team.program.database_path.parent / "locks"

    def delete() -> None:
        for path in locks.glob("*"):
            path.unlink(missing_ok=True)

    with constantly(delete):
        senders = [team.program.start(*team.send_words(f"message {number}")) for number in range(12)]
        ended = [(process.communicate()[1], process.returncode) for process in senders]
    assert all(code == 0 and b"Error" not in errors for errors, code in ended), ended
    wanted = expected_lines(team)
    assert len(wanted) == 12
    assert set(team.lines()) <= set(wanted), "a line was mangled or joined with another"
    (member_pane,) = set(team.server.panes()) - {team.program.environ["TMUX_PANE"]}
    team.server.run("send-keys", "-t", member_pane, "C-u")
    team.drain()
    typed = [
        event["submit"] for event in map(json.loads, team.log.read_text().splitlines()) if "submit" in event
    ]
    assert set(typed) == set(wanted)


def test_a_lock_file_that_is_deleted_between_two_senders(team: Team) -> None:
    """Whoever waited for a file that has gone meanwhile takes the lock of the new one: one at a time."""
    locks = team.program.database_path.parent / "locks"
    team.cafleet(*team.send_words("first"))
    (lock,) = locks.glob("*")
    with lock.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        waiting = [team.program.start(*team.send_words(f"waiting {number}")) for number in range(6)]
        wait_until(lambda: team.query("SELECT count(*) FROM messages") == [(7,)], what="the senders")
        lock.unlink()
    for process in waiting:
        assert process.communicate()[1] == b""
        assert process.returncode == 0
    assert sorted(team.lines()) == sorted(expected_lines(team).elements())


def test_a_tmux_server_that_hangs(team: Team) -> None:
    """What is sent is stored and told as such; after the server's return each line comes once."""
    team.server.freeze()
    try:
        sender = team.program.start(*team.send_words("while it hangs"))
        creator = team.program.start(
            *("member", "create", "--fleet-id", "1", "--name", "late", "--description", "d", "Go")
        )
        output, errors = sender.communicate(timeout=DEADLINE_SECONDS)
        assert sender.returncode == 0
        assert output.startswith(b"Message sent.\n")
        assert errors.startswith(b"Warning: message 1 not notified: ")
        _, complaint = creator.communicate(timeout=DEADLINE_SECONDS)
        assert creator.returncode == 1
        assert complaint.startswith(b"Error: tmux did not answer within ")
        assert team.query("SELECT count(*) FROM members WHERE status = 'active'") == [(2,)]
    finally:
        team.server.thaw()
    team.drain()
    wait_until(team.lines, what="the line")
    assert team.lines() == list(expected_lines(team))
    assert len(team.server.panes()) == 2
