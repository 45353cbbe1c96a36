"""The event stream on a real server: live, resumed, restarted, dropped (field case L5)."""

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.support.shown_panes import ShownPanes
from tests.support.waiting import DEADLINE_SECONDS
from tests.support.web_fleet import WebFleet
from tests.support.web_server import Event, EventReader, WebServer

from cafleet.db.database import Database
from cafleet.web.events import MAX_WAITING_BYTES
from cafleet.web.feeds import REPLAY_LIMIT, parse_standing
from cafleet.web.openapi import DESCRIPTION

OwnServer = Callable[[], tuple[WebServer, Database]]


def _ids(events: list[Event], name: str = "message") -> list[int]:
    return [event.data["message_id"] for event in events if event.name == name]


def _message(message_id: int, name: str = "message") -> Callable[[Event], bool]:
    return lambda event: event.name == name and event.data["message_id"] == message_id


def test_a_stream_begins_with_its_position(server: WebServer, fleet: WebFleet) -> None:
    with server.events(fleet.fleet_id) as stream:
        hello = stream.next()
        assert stream.status == 200
        assert stream.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert stream.headers["cache-control"] == "no-store"
        assert hello is not None
        assert (hello.name, hello.data) == ("hello", {"fleet_id": fleet.fleet_id})
        assert parse_standing(hello.id) is not None


def test_messages_and_acks_are_told_as_rows_of_the_timeline(server: WebServer, fleet: WebFleet) -> None:
    worker = fleet.member("worker")
    with server.events(fleet.fleet_id) as stream:
        stream.until_named("hello")
        message = fleet.send(fleet.director, worker, "line 1\nline 2 \u2028 data: x\r\n\r\n")
        told = stream.until_named("message")[-1]
        assert told.data == server.call("GET", "/api/timeline", fleet=fleet.fleet_id).json()[0]
        fleet.ack(message)
        acked = stream.until_named("ack")[-1]
        assert acked.data == server.call("GET", "/api/timeline", fleet=fleet.fleet_id).json()[0]
        assert (acked.data["message_id"], acked.data["status"]) == (message, "completed")


def test_members_and_the_monitor_are_told_as_rows_of_their_listings(
    server: WebServer, fleet: WebFleet
) -> None:
    with server.events(fleet.fleet_id) as stream:
        stream.until_named("hello")
        worker = fleet.member("worker")
        told = stream.until(lambda event: event.name == "member" and event.data["member_id"] == worker)[-1]
        listed = server.call("GET", "/api/members", fleet=fleet.fleet_id).json()
        assert told.data in listed
        fleet.send(fleet.director, worker, "x")
        stream.until(lambda event: event.name == "member" and event.data["unread"] == 1)
        fleet.claim_monitor(os.getpid())
        monitor = stream.until_named("monitor")[-1]
        assert monitor.data == server.call("GET", "/api/monitor", fleet=fleet.fleet_id).json()
        fleet.deregister(worker)
        left = stream.until(lambda event: event.name == "member" and event.data["member_id"] == worker)[-1]
        assert (left.data["status"], left.data["placement"]) == ("deregistered", None)


def test_what_panes_show_is_told_and_why_lines_are_held(
    server: WebServer, fleet: WebFleet, panes: ShownPanes
) -> None:
    busy = fleet.member("busy", shown=panes.show("claude", "working"))
    question = panes.show("opencode", "permission")
    asking = fleet.member("asking", shown=question)
    gone = fleet.member("gone")
    fleet.send(fleet.director, asking, "answer first", notified=False)
    with server.events(fleet.fleet_id) as stream:
        shown = {
            event.data["member_id"]: event.data
            for event in stream.until(_pane(gone, lambda _: True))
            if event.name == "pane"
        }
        assert (shown[busy]["condition"], shown[busy]["state"]) == ("alive", "working")
        assert (shown[asking]["state"], shown[asking]["held"]) == ("awaiting the user", 1)
        assert shown[asking]["why_held"] == f"member {asking} is at a question"
        assert (shown[gone]["condition"], shown[gone]["state"]) == ("gone", None)
        for row in shown.values():
            Draft202012Validator(
                {"$ref": "#/components/schemas/Pane", "components": DESCRIPTION["components"]}
            ).validate(row)
        panes.change(question, "idle")
        stream.until(_pane(asking, lambda row: row["state"] == "at rest"))
        with server.events(fleet.fleet_id, stream.last_id) as newcomer:
            told = newcomer.until(_pane(asking, lambda _: True))
        assert told[-1].data["state"] == "at rest", "who comes later is told at once"
        panes.close(question)
        stream.until(_pane(asking, lambda row: row["condition"] == "gone"))


def _pane(member: int, wanted: Callable[[dict[str, Any]], bool]) -> Callable[[Event], bool]:
    return lambda event: event.name == "pane" and event.data["member_id"] == member and wanted(event.data)


def test_the_list_of_fleets_is_told_whenever_it_changes(server: WebServer, fleet: WebFleet) -> None:
    with server.events(None) as stream:
        told = stream.until_named("fleets")[-1]
        assert told.data == server.call("GET", "/api/fleets").json()
        other = WebFleet(fleet.database, "brand new")
        stream.until(lambda event: "brand new" in [row["name"] for row in event.data or ()])
        other.delete()
        stream.until(
            lambda event: (
                event.name == "fleets" and other.fleet_id not in [row["fleet_id"] for row in event.data]
            )
        )


def test_a_head_request_for_a_stream_has_an_end(server: WebServer, fleet: WebFleet) -> None:
    for path in ("/api/fleets/events", f"/api/events?fleet_id={fleet.fleet_id}"):
        answer = server.raw(f"HEAD {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert answer.endswith(b"\r\n\r\n")


def test_other_fleets_are_not_heard(server: WebServer, fleet: WebFleet) -> None:
    other = WebFleet(fleet.database, "other")
    there = other.member("worker")
    here = fleet.member("worker")
    with server.events(fleet.fleet_id) as stream:
        stream.until_named("hello")
        other.send(other.director, there, "not for you")
        message = fleet.send(fleet.director, here, "for you")
        events = stream.until(_message(message))
    assert _ids(events) == [message]


def test_what_was_missed_is_told_once_after_a_cut(server: WebServer, fleet: WebFleet) -> None:
    worker = fleet.member("worker")
    acked = fleet.send(fleet.director, worker, "before")
    with server.events(fleet.fleet_id) as stream:
        stream.until_named("hello")
        first = fleet.send(fleet.director, worker, "seen")
        stream.until(_message(first))
        last_id = stream.last_id
    missed = [fleet.send(fleet.director, worker, f"missed {number}") for number in range(5)]
    fleet.ack(acked)
    with server.events(fleet.fleet_id, last_id) as stream:
        last = fleet.send(fleet.director, worker, "after")
        events = stream.until(_message(last))
    assert _ids(events) == [*missed, last]
    assert _ids(events, "ack") == [acked]
    assert "reset" not in [event.name for event in events]


@pytest.mark.parametrize("hard", [False, True])
def test_a_stream_goes_on_after_the_server_was_restarted(own_server: OwnServer, hard: bool) -> None:
    server, database = own_server()
    fleet = WebFleet(database)
    worker = fleet.member("worker")
    earlier = [fleet.send(fleet.director, worker, f"earlier {number}") for number in range(3)]
    server.start()
    with server.events(fleet.fleet_id) as stream:
        stream.until_named("hello")
        first = fleet.send(fleet.director, worker, "seen")
        stream.until(_message(first))
        if hard:
            server.kill()
        else:
            server.stop()
            assert [event.name for event in stream.rest() if event.name in ("message", "ack", "reset")] == []
        last_id = stream.last_id
    missed = fleet.send(fleet.director, worker, "missed")
    fleet.ack(earlier[1])
    fleet.member("newcomer")
    server.start()
    with server.events(fleet.fleet_id, last_id) as stream:
        last = fleet.send(fleet.director, worker, "after")
        events = stream.until(_message(last))
    assert _ids(events) == [missed, last]
    assert _ids(events, "ack") == [earlier[1]]
    assert "newcomer" in [event.data["name"] for event in events if event.name == "member"]
    assert "reset" not in [event.name for event in events]


@pytest.mark.parametrize("writes", [False, True])
def test_a_member_that_leaves_without_a_message_is_told_of(
    server: WebServer, fleet: WebFleet, writes: bool
) -> None:
    """No listing has it any more, so a reader that heard nothing would show it for ever."""
    worker, other = fleet.member("worker"), fleet.member("other")
    if writes:
        fleet.send(worker, fleet.director, "hello")
    with server.events(fleet.fleet_id) as stream:
        stream.until_named("hello")
        last_id = stream.last_id
        fleet.deregister(worker)
        left = stream.until(lambda event: event.name == "member" and event.data["member_id"] == worker)[-1]
        assert left.data["status"] == "deregistered"
    listed = server.call("GET", "/api/members", fleet=fleet.fleet_id).json()
    assert worker not in [row["member_id"] for row in listed]
    fleet.deregister(other)
    with server.events(fleet.fleet_id, last_id) as stream:
        told = stream.until(lambda event: event.name == "member" and event.data["member_id"] == other)
    states = {event.data["member_id"]: event.data["status"] for event in told if event.name == "member"}
    assert states[worker] == states[other] == "deregistered"


@pytest.mark.parametrize("resume", ["header", "query"])
def test_header_and_query_resume_alike(server: WebServer, fleet: WebFleet, resume: str) -> None:
    worker = fleet.member("worker")
    with server.events(fleet.fleet_id) as stream:
        stream.until_named("hello")
        last_id = stream.last_id
    missed = fleet.send(fleet.director, worker, "missed")
    if resume == "header":
        stream = server.events(fleet.fleet_id, last_id)
    else:
        stream = EventReader(server.port, fleet.fleet_id, None, query=last_id)
    with stream:
        assert _ids(stream.until(_message(missed))) == [missed]


def test_an_id_from_the_future_or_from_elsewhere_starts_over(server: WebServer, fleet: WebFleet) -> None:
    worker = fleet.member("worker")
    fleet.send(fleet.director, worker, "x")
    with server.events(fleet.fleet_id) as stream:
        stream.until_named("hello")
        now = stream.last_id
    message_id, mark, rest = now.split(".", 2)
    for strange in (
        f"{int(message_id) + 10**6}.{mark}.{rest}",
        f"{message_id}.{mark}.7{rest}",
        f"{message_id}.{mark[::-1]}.{rest}",
        "17",
        "x" * 500,
    ):
        with server.events(fleet.fleet_id, strange) as stream:
            events = stream.until_named("reset")
            assert [event.name for event in events] == ["hello", "reset"]
            later = fleet.send(fleet.director, worker, "later")
            assert _ids(stream.until(_message(later))) == [later]


def test_a_clock_that_was_set_back_starts_over_and_loses_nothing(server: WebServer, fleet: WebFleet) -> None:
    worker = fleet.member("worker")
    first = fleet.send(fleet.director, worker, "one")
    second = fleet.send(fleet.director, worker, "two")
    fleet.ack(first)
    with server.events(fleet.fleet_id) as stream:
        stream.until_named("hello")
        fleet.pass_time(-7200)
        fleet.ack(second)
        stream.until_named("reset")
        third = fleet.send(fleet.director, worker, "three")
        assert _ids(stream.until(_message(third))) == [third]


def test_too_much_to_replay_starts_over(server: WebServer, fleet: WebFleet) -> None:
    worker = fleet.member("worker")
    with server.events(fleet.fleet_id) as stream:
        stream.until_named("hello")
        last_id = stream.last_id
    fleet.broadcast(fleet.director, [worker] * (REPLAY_LIMIT + 1), "x")
    with server.events(fleet.fleet_id, last_id) as stream:
        assert [event.name for event in stream.until_named("reset")] == ["hello", "reset"]


def test_a_fleet_that_is_deleted_ends_its_streams(server: WebServer, fleet: WebFleet) -> None:
    with server.events(fleet.fleet_id) as stream:
        stream.until_named("hello")
        fleet.delete()
        gone = stream.until_named("gone")[-1]
        assert gone.data == {"detail": f"fleet {fleet.fleet_id} is deleted"}
        assert stream.next() is None
    assert server.call("GET", f"/api/events?fleet_id={fleet.fleet_id}").status == 409


def test_a_stream_needs_a_fleet(server: WebServer) -> None:
    assert server.call("GET", "/api/events").status == 400
    assert server.call("GET", "/api/events?fleet_id=x").status == 400
    assert server.call("GET", "/api/events?fleet_id=999999").status == 404
    assert server.call("GET", "/api/events?fleet_id=1&fleet_id=2").status == 422


def test_many_streams_hear_everything_in_order(server: WebServer, fleet: WebFleet) -> None:
    worker = fleet.member("worker")
    with contextlib.ExitStack() as stack:
        streams = [stack.enter_context(server.events(fleet.fleet_id)) for _ in range(8)]
        for stream in streams:
            stream.until_named("hello")
        sent = [fleet.send(fleet.director, worker, f"message {number}") for number in range(200)]
        for message in sent[::2]:
            fleet.ack(message)
        for stream in streams:
            events: list[Event] = []
            while _told_as_acked(events) != set(sent[::2]) or len(_ids(events)) < len(sent):
                events += stream.until(lambda event: event.name in ("message", "ack"))
            assert _ids(events) == sent
            acknowledged = _ids(events, "ack")
            assert acknowledged == sorted(set(acknowledged))


def _told_as_acked(events: list[Event]) -> set[int]:
    """By an event of its own, or by its status where the ACK came before the stream had told of it."""
    return {event.data["message_id"] for event in events if event.data.get("status") == "completed"}


def test_a_reader_that_does_not_read_is_dropped_and_others_go_on(server: WebServer, fleet: WebFleet) -> None:
    worker = fleet.member("worker")
    text = "x" * 1_000_000
    with (
        server.events(fleet.fleet_id) as healthy,
        socket.create_connection(("127.0.0.1", server.port)) as stuck,
    ):
        healthy.until_named("hello")
        stuck.settimeout(DEADLINE_SECONDS)
        request = f"GET /api/events?fleet_id={fleet.fleet_id} HTTP/1.1\r\nHost: localhost\r\n\r\n"
        stuck.sendall(request.encode())
        assert stuck.recv(100).startswith(b"HTTP/1.1 200")
        sent = []
        for _ in range(2 * MAX_WAITING_BYTES // len(text) + 8):
            sent.append(fleet.send(fleet.director, worker, text))
            healthy.until(_message(sent[-1]))
        received = bytearray()
        while chunk := stuck.recv(1 << 20):
            received += chunk
    assert len(received) < len(sent) * len(text)


def test_a_stream_holds_no_transaction_so_the_log_stays_small(server: WebServer, fleet: WebFleet) -> None:
    worker = fleet.member("worker")
    with server.events(fleet.fleet_id) as stream:
        stream.until_named("hello")
        for number in range(300):
            fleet.send(fleet.director, worker, f"{number} " + "x" * 8000)
        with fleet.database.write() as conn:
            conn.execute("SELECT 1")
        log = fleet.database.path + "-wal"
        deadline = time.monotonic() + DEADLINE_SECONDS
        while os.path.getsize(log) > 6_000_000 and time.monotonic() < deadline:
            fleet.send(fleet.director, worker, "more")
    assert os.path.getsize(log) < 6_000_000


def test_streams_are_told_of_messages_that_arrive_while_they_are_opened(
    server: WebServer, fleet: WebFleet
) -> None:
    """However a send and an opening interleave, listing plus stream have every message."""
    worker = fleet.member("worker")
    sent: list[int] = []
    seen: list[int] = []
    stop = threading.Event()

    def keep_sending() -> None:
        database = Database(fleet.database.path)
        own = WebFleet.__new__(WebFleet)
        own.database, own.moment = database, fleet.moment
        while not stop.is_set():
            if seen and sent[-1] - seen[-1] > REPLAY_LIMIT // 2:  # Beyond the limit a stream starts over.
                stop.wait(0.001)
            else:
                sent.append(own.send(fleet.director, worker, "x"))
        database.close()

    sender = threading.Thread(target=keep_sending)
    sender.start()
    try:
        last_id = ""
        for _ in range(12):
            with server.events(fleet.fleet_id, last_id or None) as stream:
                if not last_id:
                    stream.until_named("hello")
                    known = {
                        row["message_id"]
                        for row in server.call("GET", "/api/timeline", fleet=fleet.fleet_id).json()
                    }
                seen += _ids(stream.until_named("message"))
                last_id = stream.last_id
    finally:
        stop.set()
        sender.join()
    assert seen == sorted(set(seen))
    first = seen[0]
    assert [message for message in sent if first <= message <= seen[-1]] == seen
    oldest = min(known, default=first)  # A listing has 200 at most.
    assert all(message in known for message in sent if oldest <= message < first)
