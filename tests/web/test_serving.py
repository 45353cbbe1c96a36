"""Starting and stopping `cafleet server` (SPEC 10)."""

import errno
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.program import SCRIPT
from tests.support.waiting import DEADLINE_SECONDS
from tests.support.web_fleet import WebFleet
from tests.support.web_server import WebServer

from cafleet.db.database import Database
from cafleet.errors import UsageError
from cafleet.web.serving import STUCK_MILLISECONDS, CannotListen, address_of, bind

OwnServer = Callable[[], tuple[WebServer, Database]]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.0.0.2", "::1"])
def test_loopback_needs_no_permission(host: str) -> None:
    try:
        listener = bind(host, 0, allow_remote=False)
    except CannotListen:
        if host != "::1":
            raise
        pytest.skip("this machine has no IPv6")
    with listener:
        assert re.fullmatch(r"http://[\[\]\w.:]+:\d+/", address_of(listener, host))


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "0"])
def test_other_machines_are_let_in_only_when_that_is_said(host: str) -> None:
    with pytest.raises(UsageError, match="--allow-remote"):
        bind(host, 0, allow_remote=False)


def test_a_refused_address_is_a_usage_error_and_nothing_is_opened(own_server: OwnServer) -> None:
    server, _ = own_server()
    done = server.run("server", "--host", "0.0.0.0", "--port", "0")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "the server has no login" in done.stderr


def test_a_remote_server_warns_and_answers_for_its_own_addresses_only(own_server: OwnServer) -> None:
    server, database = own_server()
    WebFleet(database)
    server.start("--host", "0.0.0.0", "--allow-remote")
    for host, status in (("127.0.0.1", 200), ("0.0.0.0", 200), ("evil.example", 421), ("192.0.2.9", 421)):
        assert server.call("GET", "/api/fleets", headers={"Host": host}).status == status, host
    code, errors = server.stop()
    assert code == 0
    assert errors.startswith("Warning: other machines may reach this server.")


def test_a_port_that_is_taken_is_said_to_be(own_server: OwnServer) -> None:
    server, _ = own_server()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = server.run("server", "--port", port)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"Error: cannot listen on 127.0.0.1 port {port}: Address already in use\n"


@pytest.mark.parametrize("port", ["65536", "x", "-1"])
def test_a_port_that_is_none_is_a_usage_error(own_server: OwnServer, port: str) -> None:
    server, _ = own_server()
    assert server.run("server", f"--port={port}").returncode == 2


def test_the_environment_is_read_and_flags_win(own_server: OwnServer) -> None:
    server, _ = own_server()
    server.environ |= {"CAFLEET_BROKER_HOST": "0.0.0.0", "CAFLEET_BROKER_PORT": "1"}
    assert "0.0.0.0 can be reached" in server.run("server", "--port", "0").stderr
    server.start("--host", "127.0.0.1")
    assert server.call("GET", "/api/fleets").json() == []
    server.environ["CAFLEET_BROKER_PORT"] = "http"
    assert "CAFLEET_BROKER_PORT" in server.run("server").stderr


def test_a_missing_database_is_refused_and_stays_missing(own_server: OwnServer, tmp_path: Path) -> None:
    server, _ = own_server()
    server.environ["CAFLEET_DATABASE_URL"] = f"sqlite:///{tmp_path}/none.db"
    done = server.run("server", "--port", "0")
    assert done.returncode == 1
    assert done.stderr == f"Error: no cafleet database at {tmp_path}/none.db; run 'cafleet setup'\n"
    assert not (tmp_path / "none.db").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_in_order_while_it_starts(own_server: OwnServer, number: signal.Signals) -> None:
    """From the moment at which the address is known."""
    server, _ = own_server()
    command = [SCRIPT, "server", "--port", "0"]
    with subprocess.Popen(
        command, env=server.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("cafleet is at ")
        process.send_signal(number)
        _, errors = process.communicate(timeout=DEADLINE_SECONDS)
    assert (process.returncode, errors) == (0, "")


def test_a_second_signal_ends_it_although_a_call_is_under_way(own_server: OwnServer) -> None:
    server, _ = own_server()
    command = [SCRIPT, "server", "--port", "0"]
    with subprocess.Popen(
        command, env=server.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        match = re.search(r":(\d+)/", process.stdout.readline())
        assert match is not None
        with socket.create_connection(("127.0.0.1", int(match[1])), timeout=DEADLINE_SECONDS) as client:
            client.sendall(
                b"POST /api/messages/send HTTP/1.1\r\nHost: localhost\r\nX-Fleet-Id: 1\r\n"
                b"Content-Type: application/json\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n"
            )
            assert client.recv(100).startswith(b"HTTP/1.1 100 ")  # Its body is awaited.
            deadline = time.monotonic() + DEADLINE_SECONDS
            while process.poll() is None and time.monotonic() < deadline:
                process.send_signal(signal.SIGINT)
                time.sleep(0.05)
            answer = client.recv(10_000)
        _, errors = process.communicate(timeout=DEADLINE_SECONDS)
    assert (process.returncode, errors) == (0, "")
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"the server ended before this call did" in answer


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_at_once_though_streams_are_open(
    own_server: OwnServer, number: signal.Signals
) -> None:
    server, database = own_server()
    fleet = WebFleet(database)
    process = subprocess.Popen(
        [SCRIPT, "server", "--port", "0"],
        env=server.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    match = re.search(r":(\d+)/", process.stdout.readline())
    assert match is not None
    server.port = int(match[1])
    with server.events(fleet.fleet_id) as stream:
        stream.until_named("hello")
        process.send_signal(number)
        assert {event.name for event in stream.rest()} <= {"pane"}
    _, errors = process.communicate(timeout=DEADLINE_SECONDS)
    assert (process.returncode, errors) == (0, "")


def test_a_file_of_a_newer_format_ends_a_server_that_is_being_watched(own_server: OwnServer) -> None:
    server, database = own_server()
    fleet = WebFleet(database)
    server.start()
    with server.events(fleet.fleet_id) as stream:
        stream.until_named("hello")
        with database.write() as conn:
            conn.execute("INSERT INTO refinery_schema_history VALUES (99, 'later', '2030', 'x')")
            conn.execute("CREATE TABLE later (x)")
        stream.rest()
    code, errors = server.wait()
    assert code == 1
    assert "Error: database format 99 is newer than this cafleet's" in errors
    assert "upgrade cafleet" in errors


def test_a_file_of_a_newer_format_ends_a_server_that_nobody_watches(own_server: OwnServer) -> None:
    server, database = own_server()
    WebFleet(database)
    server.start()
    with database.write() as conn:
        conn.execute("INSERT INTO refinery_schema_history VALUES (99, 'later', '2030', 'x')")
        conn.execute("CREATE TABLE later (x)")
    code, errors = server.wait()
    assert code == 1
    assert errors.startswith("Error: database format 99 is newer than this cafleet's")


def test_a_file_that_is_gone_ends_the_server(own_server: OwnServer) -> None:
    server, database = own_server()
    WebFleet(database)
    server.start()
    assert server.call("GET", "/api/fleets").status == 200
    database.close()
    for ending in ("", "-wal", "-shm"):
        Path(database.path + ending).unlink(missing_ok=True)
    code, errors = server.wait()
    assert (code, errors) == (1, f"Error: no cafleet database at {database.path}; run 'cafleet setup'\n")
    assert not Path(database.path).exists()


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="this system has no such time-out")
def test_a_reader_that_takes_nothing_is_cut_off_by_the_kernel() -> None:
    with (
        bind("127.0.0.1", 0, allow_remote=False, stuck_milliseconds=300) as listener,
        socket.create_connection(listener.getsockname()),
    ):
        listener.setblocking(True)
        served, _ = listener.accept()
        with served:
            served.settimeout(30)
            with pytest.raises(TimeoutError) as cut:
                served.sendall(b"x" * 50_000_000)
    assert cut.value.errno == errno.ETIMEDOUT, "the kernel's time-out, not this test's"


def test_a_reader_has_half_a_minute_to_take_something() -> None:
    with bind("127.0.0.1", 0, allow_remote=False) as listener:
        found = listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
    assert found == STUCK_MILLISECONDS == 30_000


def test_quick_calls_do_not_wait_behind_slow_ones(own_server: OwnServer) -> None:
    """A writer that holds the database lock delays sends, not listings."""
    server, database = own_server()
    fleet = WebFleet(database)
    worker = fleet.member("worker", pane=None)
    server.start()
    body = {"from_member_id": fleet.director, "to_member_id": worker, "text": "x"}
    answers: list[int] = []

    def send() -> None:
        answers.append(server.call("POST", "/api/messages/send", fleet=fleet.fleet_id, body=body).status)

    with database.write():
        senders = [threading.Thread(target=send) for _ in range(10)]
        for sender in senders:
            sender.start()
        for _ in range(20):
            assert server.call("GET", "/api/timeline", fleet=fleet.fleet_id).json() == []
        assert answers == []
    for sender in senders:
        sender.join()
    assert answers == [200] * 10


def test_a_database_that_stays_locked_is_said_to_be_busy(own_server: OwnServer) -> None:
    server, database = own_server()
    fleet = WebFleet(database)
    worker = fleet.member("worker", pane=None)
    server.start()
    body = {"from_member_id": fleet.director, "to_member_id": worker, "text": "x"}
    with database.write():
        answer = server.call("POST", "/api/messages/send", fleet=fleet.fleet_id, body=body)
    assert (answer.status, answer.json()) == (503, {"detail": "the database is busy; try again"})
