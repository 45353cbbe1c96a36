"""What a client may do to the server, and how the server ends (field cases M, H7)."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.database import run_sql
from tests.support.mcp_process import McpProcess
from tests.support.memory_multiplexer import MemoryMultiplexer
from tests.support.program import SCRIPT, Program, Team, seed_messages, seed_team
from tests.support.waiting import DEADLINE_SECONDS, has_ended, wait_until

from cafleet.clock import utc_now
from cafleet.config import load
from cafleet.db import messages
from cafleet.db.database import Database
from cafleet.errors import CafleetError
from cafleet.mcp_server.answers import MAX_CHARACTERS
from cafleet.mcp_server.backlog import MAX_OPEN
from cafleet.mcp_server.calls import LIMIT
from cafleet.mcp_server.lifetime import Watch
from cafleet.mcp_server.tools import TOOLS
from cafleet.mcp_server.transport import MAX_LINE_BYTES
from cafleet.runtime import Runtime

AT_REST = 4
"""Threads: the loop, one that reads, one that writes, one that watches."""

MANY = 20_000
"""Requests: more than two pipes and the backlog hold."""

NOISE = (
    b"",
    b"not json",
    b"[]",
    b"{}",
    b"null",
    b'{"jsonrpc": "2.0"}',
    b'"' + b"\xff\xfe" * 10 + b'"',
    b"[" * 5000,
    b'{"jsonrpc": "2.0", "id": 900, "method": "nothing/at-all"}',
    b'{"jsonrpc": "2.0", "id": 901, "method": "tools/call", "params": {"name": "rm"}}',
    b'{"jsonrpc": "2.0", "id": 902, "method": "tools/call", "params": {"name": 7}}',
    b'{"jsonrpc": "2.0", "id": 903, "method": "tools/call", "params": {"name": "show_message",'
    b' "arguments": {"message_id": 99}}}',
    b'{"jsonrpc": "2.0", "id": 904, "method": "tools/call", "params": {"name": "send_message",'
    b' "arguments": {"to_member_ids": [2], "text": "half a pair \\ud800"}}}',
    b'{"jsonrpc": "2.0", "id": 905, "method": "resources/read", "params": {"uri": "nonsense"}}',
    b'{"jsonrpc": "2.0", "id": "half a pair \\ud800", "method": "ping"}',
    b'{"jsonrpc": "2.0", "id": null, "method": "ping"}',
    b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "no such"}}',
    b'{"jsonrpc": "2.0", "id": 906, "result": {}}',
)


def _wakeups(program: Program) -> list[str]:
    return os.listdir(program.database_path.parent / "wakeups")


def test_only_the_protocol_is_on_standard_output(program: Program, team: Team) -> None:
    with McpProcess(program, "--member-id", "2", PYTHONWARNINGS="always") as server:
        server.initialized()
        for line in NOISE:
            server.send(line)
        for method in ("ping", "tools/list", "resources/list", "resources/templates/list", "prompts/list"):
            server.answer(server.request(method))
        server.ask("send_message", to_member_ids=[2, 3], text="hi")
        server.ask("broadcast", text="hi")
        for tool in ("poll_inbox", "list_members", "fleet_status", "wait_for_message"):
            server.ask(tool)
        server.ask("show_message", message_id=1)
        server.ask("ack_message", message_ids=[1])
        for uri in ("cafleet://members/2/inbox", "cafleet://fleets/1/timeline"):
            server.answer(server.request("resources/read", {"uri": uri}))
        for known in TOOLS:
            assert server.answer(server.call(known.name, nonsense=1))["result"]["isError"]
        server.close_input()
        code, _ = server.wait()
    assert code == 0
    found = [json.loads(line) for line in server.lines]
    assert {line["jsonrpc"] for line in found} == {"2.0"}
    assert {900, 901, 902, 903, 904, 905} <= {line["id"] for line in found}


NO_IDS = (b"null", b"1.5", b"true", b"{}", b'"\\ud800"', b"9" * 5000)


def test_a_request_without_a_usable_id_gets_an_error(program: Program, team: Team) -> None:
    """Its caller cannot be told by id, but is not left without a word; and the next one is served."""
    with McpProcess(program) as server:
        server.initialized()
        for number in NO_IDS:
            server.send(b'{"jsonrpc": "2.0", "id": %s, "method": "ping"}' % number)
            answer = server.next()
            assert answer["id"] is None
            assert answer["error"]["code"] in (-32600, -32700)
        assert server.answer(server.request("ping"))["result"] == {}


def test_a_clients_own_error_is_not_sent_back(program: Program, team: Team) -> None:
    """It would answer a request that has the same id, and two ends that complain would never stop."""
    with McpProcess(program) as server:
        server.initialized()
        for number in (b"null", b"7"):
            server.send(b'{"jsonrpc": "2.0", "id": %s, "error": {"code": 1, "message": "mine"}}' % number)
        assert server.answer(server.request("ping"))["result"] == {}
    assert not any(b"mine" in line for line in server.lines)


def test_a_batch_is_taken_apart(program: Program, team: Team) -> None:
    with McpProcess(program) as server:
        server.initialized()
        parts = (
            b'{"jsonrpc": "2.0", "id": "a", "method": "ping"}',
            b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "no such"}}',
            b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "ping"}',
            b'{"id": "b"}',
            b"[]",
            b'{"jsonrpc": "2.0", "id": "c", "method": "ping"}',
        )
        server.send(b" [" + b",".join(parts) + b"]")
        found = [server.next() for _ in range(5)]
        assert sorted(one["id"] for one in found if "result" in one) == ["a", "c"]
        assert [one["id"] for one in found if "error" in one] == [None, "b", None]
        server.send(b"[]")
        assert server.next()["error"]["code"] == -32600


def test_cancelled_calls_leave_room_however_their_ids_are_written(program: Program, team: Team) -> None:
    with McpProcess(program, "--member-id", "2") as server:
        server.initialized()
        for _ in range(MAX_OPEN + 10):
            wait = server.call("wait_for_message", timeout_seconds=600)
            server.notify("notifications/cancelled", {"requestId": str(wait)})
        assert server.ask("poll_inbox")["unread"] == 0


def test_a_line_that_is_too_long_says_so(program: Program, team: Team) -> None:
    with McpProcess(program) as server:
        server.initialized()
        server.send(b'{"jsonrpc": "2.0", "id": 5, "method": "' + b"x" * MAX_LINE_BYTES)
        assert server.next()["error"]["message"] == "this line is longer than 16 MiB"
        assert server.answer(server.request("ping"))["result"] == {}


def test_a_cancelled_wait_is_over_at_once_and_takes_nothing(program: Program, team: Team) -> None:
    with McpProcess(program, "--member-id", "2") as server:
        server.initialized()
        assert server.ask("poll_inbox")["unread"] == 0
        wait_until(lambda: server.threads() == AT_REST, what="only the server's own threads")
        waits = [server.call("wait_for_message", timeout_seconds=600) for _ in range(3)]
        wait_until(lambda: server.threads() == AT_REST + 3, what="three waiting threads")
        for wait in waits:
            server.notify("notifications/cancelled", {"requestId": wait})
        assert server.ask("poll_inbox") == {"member_id": 2, "messages": [], "unread": 0}
        wait_until(lambda: server.threads() == AT_REST, what="the end of the waiting threads")
        program.run("message", "send", "--from", "1", "--to", "2", "still there")
        assert server.ask("poll_inbox")["unread"] == 1
        assert server.ask("wait_for_message")["messages"][0]["text"] == "still there"
    answered = {json.loads(line).get("id") for line in server.lines}
    assert answered.isdisjoint(waits)


def test_calls_run_beside_each_other(program: Program, team: Team) -> None:
    with McpProcess(program) as server:
        server.initialized()
        waits = {server.call("wait_for_message", member_id=who): who for who in (1, 2, 3)}
        assert server.ask("poll_inbox", member_id=2)["unread"] == 0
        texts = {}
        sends = [
            server.call("send_message", from_member_id=1, to_member_ids=[who], text=f"for {who}")
            for who in (3, 2, 1)
        ]
        expected = {*waits, *sends}
        while expected:
            answer = server.next()
            expected.discard(answer["id"])
            if answer["id"] in waits:
                (message,) = answer["result"]["structuredContent"]["messages"]
                texts[waits[answer["id"]]] = message["text"]
    assert texts == {1: "for 1", 2: "for 2", 3: "for 3"}


def test_who_reads_does_not_wait_behind_those_who_write(program: Program, team: Team) -> None:
    """As many sends as may run at once, all held up by somebody else's transaction."""
    with McpProcess(program, "--member-id", "2") as server, closing(_other(program)) as other:
        server.initialized()
        with other.write():
            sends = [server.call("send_message", to_member_ids=[3], text="x") for _ in range(LIMIT)]
            wait_until(lambda: server.threads() == AT_REST + LIMIT, what="the sends")
            poll = server.call("poll_inbox")
            assert server.next()["id"] == poll
        assert {server.next()["id"] for _ in sends} == set(sends)


def _other(program: Program) -> Database:
    return Database(str(program.database_path))


def test_too_many_waits_are_refused_and_nothing_else_is_held_up(program: Program, team: Team) -> None:
    with McpProcess(program, "--member-id", "2") as server:
        server.initialized()
        waits = [server.call("wait_for_message") for _ in range(LIMIT + 1)]
        refused = server.answer(waits[-1])["result"]
        assert refused["isError"]
        assert refused["content"][0]["text"] == f"{LIMIT} calls are waiting already; end one of them first"
        assert server.ask("list_members")["fleet_id"] == 1


def test_a_thousand_messages_make_a_small_answer(program: Program, team: Team) -> None:
    body = "x" * 5000
    with closing(Database(str(program.database_path))) as database, database.write() as connection:
        for number in range(1000):
            messages.insert(
                connection,
                from_member_id=1,
                to_member_id=2,
                text=f"{number} {body}",
                created_at=f"2026-01-01T00:00:00.{number:06}+00:00",
            )
    with McpProcess(program, "--member-id", "2") as server:
        server.initialized()
        for tool in ("poll_inbox", "wait_for_message"):
            answer = server.ask(tool, limit=200)
            shown = answer["messages"]
            assert [message["text"][:4] for message in shown] == ["999 ", "998 ", "997 "]
            assert (answer["unread"], answer["more"]) == (1000, 997)
            assert answer["hint"] == "997 more: acknowledge these, then poll again"
        server.ask("ack_message", message_ids=[message["message_id"] for message in shown])
        assert server.ask("poll_inbox")["messages"][0]["text"].startswith("996 ")
        read = server.answer(server.request("resources/read", {"uri": "cafleet://fleets/1/timeline"}))
        timeline = json.loads(read["result"]["contents"][0]["text"])
        assert timeline["more"] == 200 - len(timeline["entries"])
    assert max(map(len, server.lines)) < 3 * MAX_CHARACTERS


def test_long_texts_that_are_not_shown_are_not_read(program: Program, team: Team) -> None:
    """200 unread messages of 1 MiB, of which an answer holds a part of the newest."""
    body = "x" * 2**20
    with closing(Database(str(program.database_path))) as database, database.write() as connection:
        for _ in range(200):
            messages.insert(
                connection,
                from_member_id=1,
                to_member_id=2,
                text=body,
                created_at="2026-01-01T00:00:00.000000+00:00",
            )
    with McpProcess(program, "--member-id", "2") as server:
        server.initialized()
        server.ask("list_members")
        before = server.peak_kilobytes()
        for tool in ("poll_inbox", "wait_for_message"):
            answer = server.ask(tool, limit=200)
            assert (len(answer["messages"]), answer["more"]) == (1, 199)
        server.answer(server.request("resources/read", {"uri": "cafleet://members/2/inbox"}))
        read = server.answer(server.request("resources/read", {"uri": "cafleet://fleets/1/timeline"}))
        assert json.loads(read["result"]["contents"][0]["text"])["entries"][0]["more_characters"] > 2**19
        assert server.peak_kilobytes() - before < 50 * 1024


def test_many_short_messages_are_cut_at_the_limit(program: Program, team: Team) -> None:
    seed_messages(program, 25, from_id=1, to_id=2)
    with McpProcess(program, "--member-id", "2") as server:
        server.initialized()
        answer = server.ask("poll_inbox")
        assert (len(answer["messages"]), answer["unread"], answer["more"]) == (20, 25, 5)
        assert len(server.ask("poll_inbox", limit=200)["messages"]) == 25
        assert "more" not in server.ask("poll_inbox", limit=25)


# -- the end -----------------------------------------------------------------------------------


def test_it_ends_when_its_client_closes_the_pipe(program: Program, team: Team) -> None:
    with McpProcess(program, "--member-id", "2") as server:
        server.initialized()
        waits = [server.call("wait_for_message") for _ in range(2)]
        server.ask("poll_inbox")
        server.close_input()
        assert server.wait() == (0, "")
    assert waits
    assert _wakeups(program) == []


def test_it_ends_before_the_handshake(program: Program, team: Team) -> None:
    with McpProcess(program) as server:
        server.close_input()
        assert server.wait() == (0, "")


def test_it_ends_when_nobody_reads(program: Program, team: Team) -> None:
    with McpProcess(program) as server:
        server.close_output()
        server.request("ping")
        assert server.wait() == (0, "")


def test_it_ends_although_its_client_reads_nothing(program: Program, team: Team) -> None:
    """More answers than a pipe holds, and nobody who takes them."""
    with McpProcess(program) as server:
        for _ in range(40):
            server.request("tools/list")
        server.close_input()
        assert server.wait()[0] == 0


def _ask_until_it_blocks(server: McpProcess) -> int:
    """Pings without reading an answer, until the pipe takes no more; how many."""
    assert server.process.stdin is not None
    pipe = server.process.stdin.fileno()
    os.set_blocking(pipe, False)
    try:
        for number in range(MANY):
            line = b'{"jsonrpc": "2.0", "id": %d, "method": "ping"}\n' % (1000 + number)
            if not select.select([], [pipe], [], 2.0)[1]:
                return number
            assert os.write(pipe, line) == len(line)  # whole, since it is shorter than PIPE_BUF
        return MANY
    finally:
        os.set_blocking(pipe, True)


def test_a_client_that_reads_nothing_is_not_listened_to_for_ever(program: Program, team: Team) -> None:
    with McpProcess(program) as server:
        asked = _ask_until_it_blocks(server)
        assert asked < MANY
        server.read()
        for number in range(asked):
            assert server.next()["id"] == 1000 + number
        server.close_input()
        assert server.wait() == (0, "")


def test_it_ends_although_its_backlog_is_full(program: Program, team: Team) -> None:
    with McpProcess(program) as server:
        _ask_until_it_blocks(server)
        server.close_input()
        assert server.wait()[0] == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_ends_on_a_signal(program: Program, team: Team, number: signal.Signals) -> None:
    with McpProcess(program, "--member-id", "2") as server:
        server.initialized()
        server.call("wait_for_message")
        server.ask("poll_inbox")
        server.process.send_signal(number)
        assert server.wait() == (0, "")
    assert _wakeups(program) == []


START_AND_LEAVE = """
import os, subprocess, sys
reader = os.open(sys.argv[2], os.O_RDONLY)
nothing = subprocess.DEVNULL
child = subprocess.Popen([sys.argv[1], "mcp"], stdin=reader, stdout=nothing, stderr=nothing)
print(child.pid, flush=True)
sys.stdin.read()
os._exit(0)
"""


def test_it_ends_when_its_parent_is_gone(program: Program, team: Team, tmp_path: Path) -> None:
    """Somebody else still holds the other end of its standard input, so there is no end of file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    held = os.open(pipe, os.O_RDWR)
    parent = subprocess.Popen(
        [sys.executable, "-c", START_AND_LEAVE, SCRIPT, str(pipe)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=program.environ,
    )
    try:
        assert parent.stdout is not None
        server = int(parent.stdout.readline())
        wait_until(lambda: _wakeups_exist(program), what="its start")
        parent.communicate(timeout=DEADLINE_SECONDS)
        wait_until(lambda: has_ended(server), what="its end")
    finally:
        os.close(held)
        parent.kill()
        parent.wait()


def test_it_ends_when_its_parent_went_while_it_started(program: Program, team: Team) -> None:
    """The parent is the one from before the libraries were loaded, not whoever inherited this process."""
    ended: list[CafleetError | None] = []
    config = load(program.environ)
    runtime = Runtime(config, Database(config.database_path), lambda _backend: MemoryMultiplexer(), utc_now)
    nobody = 2**22 + 1  # more than any process id (Linux)
    watch = Watch(runtime.for_another_thread, nobody, None, ended.append)
    watch.start()
    wait_until(lambda: ended == [None], what="its end")
    watch.close(DEADLINE_SECONDS)


def _wakeups_exist(program: Program) -> bool:
    folder = program.database_path.parent / "wakeups"
    return folder.is_dir() and bool(os.listdir(folder))


def test_it_ends_when_the_database_is_upgraded(program: Program, team: Team) -> None:
    with McpProcess(program, "--member-id", "2") as server:
        server.initialized()
        server.ask("poll_inbox")
        run_sql(
            program.database_path,
            "BEGIN IMMEDIATE",
            "CREATE TABLE later (a)",
            "INSERT INTO refinery_schema_history VALUES (99, 'later', '2027-01-01', 'x')",
            "COMMIT",
        )
        code, errors = server.wait()
    assert code == 1
    assert errors == "Error: database format 99 is newer than this cafleet's (5); upgrade cafleet\n"


def test_it_ends_when_the_database_is_gone(program: Program, team: Team) -> None:
    with McpProcess(program, "--member-id", "2") as server:
        server.initialized()
        os.rename(program.database_path, program.home / "elsewhere.db")
        code, errors = server.wait()
    assert code == 1
    assert errors == f"Error: no cafleet database at {program.database_path}; run 'cafleet setup'\n"


@pytest.mark.parametrize("names", [("carl", "dora"), ()], ids=["another", "nobody"])
def test_it_ends_when_its_member_is_in_another_file(
    program: Program, team: Team, tmp_path: Path, names: tuple[str, ...]
) -> None:
    """Or it would speak for somebody else who has the same id there."""
    (tmp_path / "other").mkdir()
    other = Program(tmp_path / "other")
    assert other.run("setup").code == 0
    seed_team(other, *names)
    assert other.run("backup", str(tmp_path / "copy.db")).code == 0
    with McpProcess(program, "--member-id", "2") as server:
        server.initialized()
        server.ask("poll_inbox")
        os.replace(tmp_path / "copy.db", program.database_path)
        code, errors = server.wait()
    assert code == 1
    assert errors == (
        "Error: the database was replaced, and member 2 is not in it any more; start the server anew\n"
    )


# -- the start ---------------------------------------------------------------------------------


def test_it_does_not_start_without_a_database(tmp_path: Path) -> None:
    program = Program(tmp_path)
    result = program.run("mcp")
    assert (result.code, result.stdout) == (1, "")
    assert result.stderr == f"Error: no cafleet database at {program.database_path}; run 'cafleet setup'\n"
    assert not program.database_path.exists()


def test_it_does_not_start_for_a_member_that_is_not_there(program: Program, team: Team) -> None:
    result = program.run("mcp", "--member-id", "99")
    assert result == (1, "", "Error: member 99 not found\n")
    run_sql(program.database_path, "UPDATE members SET status = 'deregistered' WHERE member_id = 3")
    result = program.run("mcp", "--member-id", "3")
    assert result == (1, "", "Error: member 3 is no longer active\n")


def test_it_does_not_start_without_standard_output(program: Program, team: Team) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", '"$0" mcp >&-', SCRIPT],
        env=program.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "standard input and output, and one of them is closed" in done.stderr


def test_somebody_at_a_terminal_is_told_what_it_is(program: Program, team: Team) -> None:
    ours, terminal = pty.openpty()
    try:
        process = subprocess.Popen(
            [SCRIPT, "mcp"],
            env=program.environ,
            stdin=terminal,
            stdout=terminal,
            stderr=subprocess.PIPE,
        )
        with process:
            try:
                assert process.stderr is not None
                assert process.stderr.readline().startswith(b"Warning: an MCP client starts this command")
            finally:
                process.kill()
    finally:
        os.close(ours)
        os.close(terminal)
