"""A backup is put in the place of the file while long-lived processes have it open (SPEC 2.6): each goes on
with the restored file, whose ids are given out anew, and writes nothing that is lost."""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.database import rows
from tests.support.mcp_process import McpProcess
from tests.support.program import Program, seed_team
from tests.support.running_loop import running_loop
from tests.support.waiting import DEADLINE_SECONDS, wait_until
from tests.support.web_server import WebServer

from cafleet.web.app import READERS, WRITERS

Meets = Callable[[str], None]
"""Waits until the process has met the one message, whose text this is."""


@contextlib.contextmanager
def monitor(program: Program) -> Iterator[Meets]:
    with running_loop(program, "--tick", "1") as loop:

        def meets(text: str) -> None:
            loop.wait_for_ticks(2)
            assert loop.row()["pid"] == loop.process.pid

        yield meets
        assert loop.end() == 0
        assert loop.row()["pid"] is None, "given back in the restored file"


@contextlib.contextmanager
def listener(program: Program) -> Iterator[Meets]:
    process = program.start("message", "listen", "2")
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    shown = bytearray()

    def meets(text: str) -> None:
        def is_shown() -> bool:
            assert process.stdout is not None
            shown.extend(process.stdout.read() or b"")
            return shown.endswith(f"] {text}\n".encode())

        wait_until(is_shown, what=f"{text!r} from the listener")

    try:
        yield meets
    finally:
        process.kill()
        process.communicate()


@contextlib.contextmanager
def web(program: Program) -> Iterator[Meets]:
    server = WebServer(str(program.database_path), program.home).start()

    def meets(text: str) -> None:
        # So often that each of its threads, which take turns, has the file open.
        for _ in range(2 * READERS):
            timeline = server.call("GET", "/api/timeline", fleet=1).body.decode()
            assert [word for word in ("before", "after") if f'"{word}"' in timeline] == [text]
        done = [server.call("POST", "/api/messages/1/ack", fleet=1).status for _ in range(2 * WRITERS)]
        assert done == [200] + [409] * (len(done) - 1)

    try:
        yield meets
    finally:
        assert server.stop() == (0, "")


@contextlib.contextmanager
def mcp(program: Program) -> Iterator[Meets]:
    with McpProcess(program, "--member-id", "2") as server:
        server.initialized()

        def meets(text: str) -> None:
            assert [one["text"] for one in server.ask("poll_inbox")["messages"]] == [text]
            server.ask("ack_message", message_ids=[1])

        yield meets


PROCESSES: dict[str, Callable[[Program], contextlib.AbstractContextManager[Meets]]] = {
    "monitor": monitor,
    "listener": listener,
    "web server": web,
    "MCP server": mcp,
}


def restore(program: Program, copy: Path) -> None:
    """As docs/file-format.md says, but that somebody uses the file."""
    path = program.database_path
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()
    shutil.copy(copy, path)


@pytest.mark.parametrize("name", PROCESSES)
def test_it_goes_on_with_a_restored_file(tmp_path: Path, name: str) -> None:
    program = Program(tmp_path)
    assert program.run("setup").code == 0
    seed_team(program, "ann")
    send = ("message", "send", "--from", "1", "--to", "2")
    with PROCESSES[name](program) as meets:
        assert program.run("backup", "kept.db").code == 0
        assert program.run(*send, "before").code == 0
        meets("before")
        restore(program, program.home / "kept.db")
        assert program.run(*send, "after").code == 0
        meets("after")
    ((state, text),) = rows(program.database_path, "SELECT status_state, text FROM messages")
    assert text == "after"
    acked = name in ("web server", "MCP server")
    assert state == ("completed" if acked else "input_required")


def test_a_loop_that_the_restored_file_does_not_know_says_so(tmp_path: Path) -> None:
    """Whether another one runs there, it cannot know: it ends, and writes nothing."""
    program = Program(tmp_path)
    assert program.run("setup").code == 0
    seed_team(program, "ann")
    assert program.run("backup", "kept.db").code == 0
    with running_loop(program, "--tick", "1") as loop:
        restore(program, program.home / "kept.db")
        assert loop.process.wait(DEADLINE_SECONDS) == 1
        assert loop.said()[-1].endswith("not the monitor of fleet 1 any more: somebody cleared its row")
        assert loop.row() == {}
