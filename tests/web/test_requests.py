"""Strict input: a table of what people and programs send, then whatever Hypothesis finds."""

import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.web_fleet import WebFleet
from tests.support.web_server import WebServer

from cafleet.web.requests import Refused, parse_json

FUZZ = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
ALLOWED = {200, 400, 404, 405, 409, 413, 415, 421, 422}

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**100), 2**100)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
)
JSON_VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"x"',
        b"null",
        b"{} {}",
        b"\xff\xfe{}",
        b'{"from_member_id": 1, "to_member_id": 2}',
        b'{"from_member_id": 1, "to_member_id": 2, "text": "x", "extra": 1}',
        b'{"from_member_id": 1, "from_member_id": 1, "to_member_id": 2, "text": "x"}',
        b'{"from_member_id": "1", "to_member_id": 2, "text": "x"}',
        b'{"from_member_id": 1.0, "to_member_id": 2, "text": "x"}',
        b'{"from_member_id": 1e0, "to_member_id": 2, "text": "x"}',
        b'{"from_member_id": true, "to_member_id": 2, "text": "x"}',
        b'{"from_member_id": null, "to_member_id": 2, "text": "x"}',
        b'{"from_member_id": 0, "to_member_id": 2, "text": "x"}',
        b'{"from_member_id": 99999999999999999999, "to_member_id": 2, "text": "x"}',
        b'{"from_member_id": 1, "to_member_id": "all", "text": "x"}',
        b'{"from_member_id": 1, "to_member_id": ["*"], "text": "x"}',
        b'{"from_member_id": 1, "to_member_id": false, "text": "x"}',
        b'{"from_member_id": 1, "to_member_id": 2, "text": 5}',
        b'{"from_member_id": 1, "to_member_id": 2, "text": NaN}',
        b'{"from_member_id": 1, "to_member_id": 2, "text": "\\ud800"}',
        b'{"from_member_id": 1, "to_member_id": 2, "text": "x", "key": 1}',
        b'{"from_member_id": 1, "to_member_id": 2, "text": "x", "key": "\\udfff"}',
        b"[" * 100_000,
        b'{"from_member_id": ' + b"1" * 5000 + b', "to_member_id": 2, "text": "x"}',
    ],
)
def test_a_body_that_is_not_exactly_right_is_refused(server: WebServer, fleet: WebFleet, body: bytes) -> None:
    answer = server.call(
        "POST",
        "/api/messages/send",
        fleet=fleet.fleet_id,
        body=body,
        headers={"Content-Type": "application/json"},
    )
    assert answer.status == 422
    assert list(answer.json()) == ["detail"]


@pytest.mark.parametrize(
    "headers",
    [
        "Content-Type: application/json\r\nContent-Type: text/plain",
        "Content-Type: application/json\r\nContent-Encoding: gzip",
        "Content-Type: application/json; charset=utf-16",
    ],
)
def test_a_body_that_is_not_plain_json_is_refused(server: WebServer, fleet: WebFleet, headers: str) -> None:
    body = f'{{"from_member_id": {fleet.director}, "to_member_id": {fleet.director}, "text": "x"}}'
    answer = server.raw(
        f"POST /api/messages/send HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n"
        f"X-Fleet-Id: {fleet.fleet_id}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    )
    assert answer.startswith(b"HTTP/1.1 415 ")


@pytest.mark.parametrize("text", ["", " ", "\n\t", "a\0b"])
def test_a_text_that_no_door_takes_is_refused(server: WebServer, fleet: WebFleet, text: str) -> None:
    worker = fleet.member("worker", pane=None)
    body = {"from_member_id": fleet.director, "to_member_id": worker, "text": text}
    assert server.call("POST", "/api/messages/send", fleet=fleet.fleet_id, body=body).status == 422
    assert server.call("GET", "/api/timeline", fleet=fleet.fleet_id).json() == []


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=1001",
        "limit=-1",
        "limit=1.0",
        "limit=",
        "limit=1&limit=1",
        "limit=%D9%A3",
        "size=1",
        "limit=+1",
    ],
)
def test_a_query_that_is_not_exactly_right_is_refused(server: WebServer, fleet: WebFleet, query: str) -> None:
    path = f"/api/members/{fleet.director}/inbox?{query}"
    assert server.call("GET", path, fleet=fleet.fleet_id).status == 422
    assert server.call("GET", "/api/timeline?limit=5", fleet=fleet.fleet_id).status == 422


@pytest.mark.parametrize("seconds", [-1, 1.5, "60", True, None, 10**7, [60]])
def test_an_interval_that_is_no_span_is_refused(server: WebServer, fleet: WebFleet, seconds: object) -> None:
    fleet.claim_monitor(0)
    answer = server.call(
        "PATCH", "/api/monitor", fleet=fleet.fleet_id, body={"wake_interval_seconds": seconds}
    )
    assert answer.status == 422


def test_a_call_without_a_body_takes_none(server: WebServer, fleet: WebFleet) -> None:
    worker = fleet.member("worker", pane=None)
    message = fleet.send(fleet.director, worker, "x")
    path = f"/api/messages/{message}/ack"
    assert server.call("POST", path, fleet=fleet.fleet_id, body={"force": True}).status == 422
    assert server.call("POST", path, fleet=fleet.fleet_id, body={}).status == 200


@given(value=JSON_VALUES)
def test_strict_parsing_agrees_with_json_on_what_is_valid(value: Any) -> None:
    text = json.dumps(value)
    assert parse_json(text.encode()) == value


@pytest.mark.parametrize(
    "text", ['{"a": 1, "a": 2}', '{"b": {"a": 1, "a": 2}}', "NaN", "[-Infinity]", "1" * 41, "\ud800"]
)
def test_json_that_only_python_takes_is_refused(text: str) -> None:
    with pytest.raises(Refused) as refused:
        parse_json(text.encode("utf-8", "surrogatepass"))
    assert refused.value.status == 422


@FUZZ
@given(body=st.binary(max_size=200) | JSON_VALUES.map(lambda value: json.dumps(value).encode()))
def test_no_body_breaks_the_server(server: WebServer, fleet: WebFleet, body: bytes) -> None:
    for method, path in (
        ("POST", "/api/messages/send"),
        ("PATCH", "/api/monitor"),
        ("POST", "/api/monitor/wake"),
    ):
        headers = {"Content-Type": "application/json"}
        answer = server.call(method, path, fleet=fleet.fleet_id, body=body, headers=headers)
        assert answer.status in ALLOWED
        assert isinstance(answer.json(), dict)


WRITES = (("POST", "/api/messages/send"), ("PATCH", "/api/monitor"), ("POST", "/api/monitor/wake"))
SEND = st.fixed_dictionaries(
    {
        "from_member_id": st.integers(-1, 5) | JSON_VALUES,
        "to_member_id": st.integers(-1, 5) | st.just("*") | JSON_VALUES,
        "text": st.text(max_size=30) | JSON_VALUES,
    },
    optional={"key": st.text(max_size=5) | JSON_VALUES, "other": JSON_VALUES},
)


@FUZZ
@given(body=SEND)
def test_a_send_is_stored_exactly_or_refused(
    server: WebServer, fleet: WebFleet, body: dict[str, Any]
) -> None:
    worker = fleet.member("worker", pane=None)
    body = {
        **body,
        "from_member_id": fleet.director if body["from_member_id"] == 1 else body["from_member_id"],
    }
    if body["to_member_id"] == 2:
        body["to_member_id"] = worker
    answer = server.call("POST", "/api/messages/send", fleet=fleet.fleet_id, body=body)
    assert answer.status in ALLOWED
    if answer.status == 200 and body["to_member_id"] != "*":
        rows = server.call("GET", "/api/timeline", fleet=fleet.fleet_id).json()
        assert body["text"] in [row["body"] for row in rows]


PATHS = st.sampled_from(
    ["fleets", "members", "timeline", "monitor", "events", "members/{}/inbox", "members/{}/sent"]
)
WORDS = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=12)


@FUZZ
@given(path=PATHS, word=WORDS, name=WORDS, value=WORDS, header=st.text("0123456789-+. xé", max_size=8))
def test_no_path_query_or_header_breaks_the_server(
    server: WebServer, path: str, word: str, name: str, value: str, header: str
) -> None:
    target = "/api/" + path.format(quote(word, safe=""))
    target += f"?{quote(name, safe='')}={quote(value, safe='')}"
    answer = server.call("GET", target, headers={"X-Fleet-Id": header.strip() or "0"})
    assert answer.status in ALLOWED
    assert answer.headers["content-type"] == "application/json"
