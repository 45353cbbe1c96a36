"""Every route of the API on a real server (SPEC 10)."""

import os

import pytest
from tests.support.web_fleet import WebFleet, story
from tests.support.web_server import WebServer

MESSAGE_KEYS = [
    "message_id",
    "from_member_id",
    "from_member_name",
    "to_member_id",
    "to_member_name",
    "type",
    "status",
    "created_at",
    "status_timestamp",
    "origin_message_id",
    "body",
]


def test_live_fleets_are_listed_newest_first(server: WebServer, fleet: WebFleet) -> None:
    fleet.member("helper")
    newer = WebFleet(fleet.database, "newer")
    deleted = WebFleet(fleet.database, "deleted")
    deleted.delete()
    rows = server.call("GET", "/api/fleets").json()
    ids = [row["fleet_id"] for row in rows]
    assert ids[:2] == [newer.fleet_id, fleet.fleet_id]
    assert deleted.fleet_id not in ids
    assert rows[1] == {
        "fleet_id": fleet.fleet_id,
        "name": "parser-rewrite",
        "created_at": rows[1]["created_at"],
        "director_member_id": fleet.director,
        "member_count": 2,
    }


def test_the_roster_has_active_members_and_those_that_left_with_messages(
    server: WebServer, fleet: WebFleet
) -> None:
    monitor = fleet.member("watch", monitor=True)
    waiting = fleet.member("waiting", "Waits", pane=None, skills='"one", "two"')
    left, silent = fleet.member("left"), fleet.member("silent")
    fleet.send(fleet.director, left, "hello")
    fleet.send(fleet.director, waiting, "hello")
    fleet.deregister(left)
    fleet.deregister(silent)
    rows = {row["member_id"]: row for row in server.call("GET", "/api/members", fleet=fleet.fleet_id).json()}
    assert list(rows) == [fleet.director, monitor, waiting, left]
    assert [row["kind"] for row in rows.values()] == ["director", "monitor", "member", "member"]
    assert rows[left]["status"] == "deregistered"
    assert rows[left]["placement"] is None
    assert rows[waiting]["unread"] == 1
    assert rows[waiting]["skills"] == ["one", "two"]
    assert rows[waiting]["placement"]["mux_pane_id"] is None
    assert rows[fleet.director]["placement"]["mux_pane_id"] == f"%{fleet.director}"
    assert rows[fleet.director]["last_sent"] == rows[waiting]["last_recv"]
    assert rows[monitor]["idle"] is None


def test_inbox_and_sent_are_newest_status_first_and_limited(server: WebServer, fleet: WebFleet) -> None:
    worker = fleet.member("worker")
    first = fleet.send(fleet.director, worker, "first")
    second = fleet.send(fleet.director, worker, "second")
    fleet.ack(first)
    inbox = server.call("GET", f"/api/members/{worker}/inbox", fleet=fleet.fleet_id).json()
    assert [row["message_id"] for row in inbox] == [first, second]
    assert [row["status"] for row in inbox] == ["completed", "input_required"]
    assert list(inbox[0]) == MESSAGE_KEYS
    assert (inbox[0]["from_member_name"], inbox[0]["to_member_name"]) == ("director", "worker")
    sent = server.call("GET", f"/api/members/{fleet.director}/sent?limit=1", fleet=fleet.fleet_id).json()
    assert [row["message_id"] for row in sent] == [first]
    assert server.call("GET", f"/api/members/{worker}/sent", fleet=fleet.fleet_id).json() == []


def test_the_timeline_holds_two_hundred_deliveries_and_no_summary(server: WebServer, fleet: WebFleet) -> None:
    workers = [fleet.member(f"worker {number}") for number in range(3)]
    for number in range(199):
        fleet.send(fleet.director, workers[0], f"message {number}")
    deliveries = fleet.broadcast(fleet.director, workers, "to all", acked=1)
    rows = server.call("GET", "/api/timeline", fleet=fleet.fleet_id).json()
    assert len(rows) == 200
    assert {row["type"] for row in rows} == {"unicast"}
    grouped = [row for row in rows if row["origin_message_id"] is not None]
    assert {row["message_id"] for row in grouped} == set(deliveries)
    assert len({row["origin_message_id"] for row in grouped}) == 1
    assert [row["status"] for row in grouped].count("completed") == 1


def test_a_message_is_stored_as_given_and_acknowledged_once(server: WebServer, fleet: WebFleet) -> None:
    worker = fleet.member("worker", pane=None)
    text = "a\r\n\tb \x1b[31m <b>&amp;</b> \U0001f600 \u202ex"
    answer = server.call(
        "POST",
        "/api/messages/send",
        fleet=fleet.fleet_id,
        body={"from_member_id": fleet.director, "to_member_id": worker, "text": text},
    )
    assert answer.status == 200
    sent = answer.json()
    assert sent == {
        "message_id": sent["message_id"],
        "status": "input_required",
        "notification": {"state": "skipped", "reason": f"member {worker} has no pane yet"},
        "recipients": 1,
        "notified": 0,
        "repeated": False,
    }
    path = f"/api/messages/{sent['message_id']}/ack"
    acked = server.call("POST", path, fleet=fleet.fleet_id).json()
    assert (acked["body"], acked["status"]) == (text, "completed")
    again = server.call("POST", path, fleet=fleet.fleet_id)
    assert again.status == 409
    assert again.json() == {"detail": f"message {sent['message_id']} is already acknowledged"}


def test_a_message_to_a_dead_pane_is_stored_and_said_to_be_untold(server: WebServer, fleet: WebFleet) -> None:
    worker = fleet.member("worker")
    body = {"from_member_id": fleet.director, "to_member_id": worker, "text": "hello"}
    answer = server.call("POST", "/api/messages/send", fleet=fleet.fleet_id, body=body).json()
    assert answer["notification"]["state"] == "failed"
    assert answer["notification"]["reason"]
    monitor = server.call("GET", "/api/monitor", fleet=fleet.fleet_id).json()
    assert monitor["pending"] == [{"member_id": worker, "name": "worker", "pending": 1}]


def test_a_key_makes_a_send_repeatable(server: WebServer, fleet: WebFleet) -> None:
    worker = fleet.member("worker", pane=None)
    body = {"from_member_id": fleet.director, "to_member_id": worker, "text": "once", "key": "k1"}
    first, second = (
        server.call("POST", "/api/messages/send", fleet=fleet.fleet_id, body=body).json() for _ in range(2)
    )
    assert (first["repeated"], second["repeated"]) == (False, True)
    assert first["message_id"] == second["message_id"]
    other = server.call("POST", "/api/messages/send", fleet=fleet.fleet_id, body={**body, "text": "other"})
    assert other.status == 409


def test_a_broadcast_reaches_everyone_but_its_sender(server: WebServer, fleet: WebFleet) -> None:
    workers = [fleet.member(f"worker {number}", pane=None) for number in range(3)]
    body = {"from_member_id": fleet.director, "to_member_id": "*", "text": "to all"}
    answer = server.call("POST", "/api/messages/send", fleet=fleet.fleet_id, body=body).json()
    assert (answer["recipients"], answer["notified"], answer["notification"]) == (3, 0, None)
    rows = server.call("GET", "/api/timeline", fleet=fleet.fleet_id).json()
    assert {row["to_member_id"] for row in rows} == set(workers)
    assert {row["origin_message_id"] for row in rows} == {answer["message_id"]}


def test_the_monitor_is_shown_changed_and_woken(server: WebServer, fleet: WebFleet) -> None:
    path = "/api/monitor"
    before = server.call("GET", path, fleet=fleet.fleet_id).json()
    assert (before["configured"], before["live"], before["wake_interval_seconds"]) == (False, False, None)
    assert server.call("POST", f"{path}/wake", fleet=fleet.fleet_id).status == 409
    change = {"wake_interval_seconds": 30}
    assert server.call("PATCH", path, fleet=fleet.fleet_id, body=change).status == 409
    member = fleet.member("watch", monitor=True)
    fleet.claim_monitor(os.getpid())
    shown = server.call("GET", path, fleet=fleet.fleet_id).json()
    assert (shown["live"], shown["pid"], shown["monitor_member_id"]) == (True, os.getpid(), member)
    changed = server.call("PATCH", path, fleet=fleet.fleet_id, body=change).json()
    assert changed["wake_interval_seconds"] == 30
    woken = server.call("POST", f"{path}/wake", fleet=fleet.fleet_id).json()
    assert woken["wake_requested_at"] is not None


def test_a_stopped_monitor_hides_the_process_and_keeps_what_is_stored(
    server: WebServer, fleet: WebFleet
) -> None:
    fleet.claim_monitor(0, interval_seconds=45)
    shown = server.call("GET", "/api/monitor", fleet=fleet.fleet_id).json()
    assert (shown["configured"], shown["live"], shown["wake_interval_seconds"]) == (True, False, 45)
    assert (shown["pid"], shown["started_at"], shown["last_tick_at"]) == (None, None, None)


@pytest.mark.parametrize("value", ["", "x", "1.0", "1 2", "0x1", "٣", "99999999999999999999"])
def test_a_fleet_header_that_is_no_integer_is_a_bad_request(server: WebServer, value: str) -> None:
    answer = server.call("GET", "/api/members", headers={"X-Fleet-Id": value.encode().decode("latin-1")})
    assert answer.status == 400
    assert answer.json() == {"detail": "header X-Fleet-Id must be an integer"}


def test_a_missing_fleet_header_is_a_bad_request(server: WebServer) -> None:
    for path in ("/api/members", "/api/timeline", "/api/monitor", "/api/members/1/inbox"):
        assert server.call("GET", path).status == 400


def test_what_does_not_exist_is_not_found(server: WebServer, fleet: WebFleet) -> None:
    fleet.member("worker")
    for number in (0, -1, 10**12):
        for path in ("/api/members", "/api/timeline", "/api/monitor"):
            answer = server.call("GET", path, fleet=number)
            assert (answer.status, answer.json()) == (404, {"detail": f"fleet {number} not found"})
    for path in (
        "/api/members/999999/inbox",
        "/api/members/0/sent",
        "/api/members/x/inbox",
        "/api/members/99999999999999999999/inbox",
        "/api/members/1/outbox",
        "/api/",
        "/nothing",
    ):
        assert server.call("GET", path, fleet=fleet.fleet_id).status == 404, path
    assert server.call("POST", "/api/messages/999999/ack", fleet=fleet.fleet_id).status == 404


def test_members_and_messages_of_another_fleet_do_not_exist_here(server: WebServer, fleet: WebFleet) -> None:
    other = WebFleet(fleet.database, "other")
    worker = other.member("worker")
    message = other.send(other.director, worker, "secret")
    assert server.call("GET", f"/api/members/{worker}/inbox", fleet=fleet.fleet_id).status == 404
    assert server.call("POST", f"/api/messages/{message}/ack", fleet=fleet.fleet_id).status == 404
    body = {"from_member_id": worker, "to_member_id": fleet.director, "text": "x"}
    assert server.call("POST", "/api/messages/send", fleet=fleet.fleet_id, body=body).status == 404
    body = {"from_member_id": fleet.director, "to_member_id": worker, "text": "x"}
    assert server.call("POST", "/api/messages/send", fleet=fleet.fleet_id, body=body).status == 409


def test_a_deleted_fleet_takes_no_messages(server: WebServer, fleet: WebFleet) -> None:
    fleet.delete()
    body = {"from_member_id": fleet.director, "to_member_id": "*", "text": "x"}
    answer = server.call("POST", "/api/messages/send", fleet=fleet.fleet_id, body=body)
    assert (answer.status, answer.json()) == (409, {"detail": f"fleet {fleet.fleet_id} is deleted"})


def test_an_unknown_stored_value_is_an_integrity_error(server: WebServer, fleet: WebFleet) -> None:
    worker = fleet.member("worker")
    message = fleet.send(fleet.director, worker, "x")
    with fleet.database.write() as conn:
        conn.execute("UPDATE messages SET status_state = 'lost' WHERE message_id = ?", (message,))
    answer = server.call("GET", f"/api/members/{worker}/inbox", fleet=fleet.fleet_id)
    assert answer.status == 500
    assert "'lost'" in answer.json()["detail"]
    with fleet.database.write() as conn:
        conn.execute("UPDATE messages SET status_state = 'completed' WHERE message_id = ?", (message,))


def test_wrong_methods_are_refused_and_named(server: WebServer, fleet: WebFleet) -> None:
    answer = server.call("DELETE", "/api/monitor", fleet=fleet.fleet_id)
    assert (answer.status, answer.json()) == (405, {"detail": "method not allowed"})
    assert {part.strip() for part in answer.headers["allow"].split(",")} == {"GET", "HEAD", "PATCH"}


def test_the_story_that_pictures_show_is_served(server: WebServer, fleet: WebFleet) -> None:
    ids = story(fleet)
    rows = server.call("GET", "/api/members", fleet=fleet.fleet_id).json()
    assert {row["member_id"] for row in rows} == set(ids.values())
