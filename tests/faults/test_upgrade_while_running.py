"""Long-lived processes of one release meet a file that a newer one has upgraded (field case I7): each says so
and ends, and none writes."""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.database import run_sql
from tests.support.mcp_process import McpProcess
from tests.support.program import SCRIPT, Program, seed_team
from tests.support.running_loop import running_loop
from tests.support.tmux_server import TmuxServer
from tests.support.waiting import DEADLINE_SECONDS, wait_until
from tests.support.web_server import WebServer

from cafleet.db.head_schema import HEAD_VERSION

NEWER = HEAD_VERSION + 1
MESSAGE = f"Error: database format {NEWER} is newer than this cafleet's ({HEAD_VERSION}); upgrade cafleet"

End = Callable[[], tuple[int, str]]
"""Waits for the process's end: exit code and what it said last."""


def upgrade(path: Path) -> None:
    """What a later release's `setup` might do, in one transaction."""
    run_sql(
        path,
        "BEGIN IMMEDIATE",
        "ALTER TABLE messages ADD COLUMN mood TEXT NOT NULL DEFAULT 'calm'",
        f"INSERT INTO refinery_schema_history VALUES ({NEWER}, 'mood', '2027-01-01', 'x')",  # noqa: S608
        "COMMIT",
    )


def dump(path: Path) -> list[str]:
    """Everything in the file."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return list(connection.iterdump())


@contextlib.contextmanager
def monitor(program: Program) -> Iterator[End]:
    with running_loop(program, "--tick", "1") as loop:
        loop.wait_for_ticks(1)
        yield lambda: (loop.process.wait(DEADLINE_SECONDS), loop.said()[-1])


@contextlib.contextmanager
def waiter(program: Program, *command: str) -> Iterator[End]:
    sockets = program.database_path.parent / "wakeups"
    process = program.start(*command)
    wait_until(lambda: sockets.is_dir() and any(sockets.iterdir()), what="the waiter's socket")

    def end() -> tuple[int, str]:
        _, errors = process.communicate(timeout=DEADLINE_SECONDS)
        return process.returncode, errors.decode().strip()

    try:
        yield end
    finally:
        process.kill()
        process.communicate()


@contextlib.contextmanager
def web(program: Program) -> Iterator[End]:
    """Nobody watches and nobody calls: it looks at the file now and then."""
    server = WebServer(str(program.database_path), program.home).start()

    def end() -> tuple[int, str]:
        code, errors = server.wait()
        return code, errors.strip()

    try:
        assert server.call("GET", "/api/timeline", fleet=1).status == 200
        yield end
    finally:
        server.stop()


@contextlib.contextmanager
def mcp(program: Program) -> Iterator[End]:
    with McpProcess(program, "--member-id", "2") as server:
        server.initialized()
        server.ask("poll_inbox")

        def end() -> tuple[int, str]:
            code, errors = server.wait()
            return code, errors.strip()

        yield end


@contextlib.contextmanager
def dashboard(program: Program) -> Iterator[End]:
    """In a pane, since it needs a terminal."""
    server = TmuxServer().start()
    environ = [f"{name}={value}" for name, value in program.environ.items()]
    script = '"$0" top; echo "left: $?."; cat'
    pane = server.add_pane("env", "-i", *environ, "TERM=screen", "/bin/sh", "-c", script, SCRIPT)

    def end() -> tuple[int, str]:
        said, _, code = server.wait_for_text(pane, "left: ").partition("left: ")
        return int(code.partition(".")[0]), said.strip()

    try:
        server.wait_for_text(pane, "q Quit")
        yield end
    finally:
        server.stop()


PROCESSES: dict[str, Callable[[Program], contextlib.AbstractContextManager[End]]] = {
    "monitor": monitor,
    "listen": lambda program: waiter(program, "message", "listen", "2"),
    "wait": lambda program: waiter(program, "message", "wait", "2"),
    "web server": web,
    "MCP server": mcp,
    "dashboard": dashboard,
}


@pytest.mark.parametrize("name", PROCESSES)
def test_an_upgrade_ends_it(tmp_path: Path, name: str) -> None:
    program = Program(tmp_path)
    assert program.run("setup").code == 0
    seed_team(program, "ann")
    with PROCESSES[name](program) as end:
        upgrade(program.database_path)
        upgraded = dump(program.database_path)
        code, said = end()
    assert code == 1
    assert said.splitlines()[-1].endswith(MESSAGE), said
    assert dump(program.database_path) == upgraded
