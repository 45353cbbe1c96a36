"""What a local port meets: foreign hosts, foreign pages, oversized and malformed requests (field case L1)."""

import pytest
from tests.support.web_fleet import WebFleet
from tests.support.web_server import WebServer

from cafleet.web.security import (
    CONTENT_SECURITY_POLICY,
    MAX_BODY_BYTES,
    host_allowed,
    host_name,
    is_loopback,
    origin_allowed,
)

ROUTES = ("/", "/static/main.js", "/api/fleets", "/api/members", "/api/events?fleet_id=1", "/nothing")


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:80",
        "127.0.0.1.evil.example",
        "localhost.evil.example:8000",
        "localhost.",
        "127.0.0.1@evil.example",
        "192.168.0.1",
        "[2001:db8::1]:8000",
        "[::1",
        "localhost:port",
        "2130706433",
        "",
    ],
)
def test_a_foreign_host_is_refused_on_every_route(server: WebServer, host: str) -> None:
    for path in ROUTES:
        answer = server.raw(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 421 "), path
        assert b'{"detail":' in answer


def test_no_host_and_two_hosts_are_refused(server: WebServer) -> None:
    assert server.raw(b"GET /api/fleets HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 421 ")
    assert server.raw(b"GET /api/fleets HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 400 ")
    twice = b"GET /api/fleets HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"
    assert server.raw(twice).startswith(b"HTTP/1.1 4")


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:9", "127.0.0.1", "127.9.9.9:1", "[::1]:8000", "[::1]"]
)
def test_a_loopback_name_is_served_whatever_its_port(server: WebServer, host: str) -> None:
    request = f"GET /api/fleets HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
    assert server.raw(request).startswith(b"HTTP/1.1 200 ")


def test_hosts_of_a_server_that_others_may_reach() -> None:
    assert host_allowed("box.lan:8000", "box.lan", "10.0.0.5")
    assert host_allowed("10.0.0.5:8000", "0.0.0.0", "10.0.0.5")
    assert host_allowed("[fe80::1]", "::", "fe80::1")
    assert not host_allowed("10.0.0.6:8000", "0.0.0.0", "10.0.0.5")
    assert not host_allowed("box.lan", "0.0.0.0", "10.0.0.5")
    assert not host_allowed("evil.example", "box.lan", "10.0.0.5")


def test_names_and_addresses_are_told_apart() -> None:
    assert is_loopback("127.255.0.1")
    assert is_loopback("::1")
    assert not is_loopback("128.0.0.1")
    assert not is_loopback("127.0.0.1.evil.example")
    assert host_name("Box.Lan:80") == "box.lan"
    assert host_name("[::1]:80") == "::1"
    assert host_name("a b") is None
    assert host_name("[evil]") is None


def test_origins_must_be_the_host_itself() -> None:
    assert origin_allowed("http://localhost:8000", "localhost:8000")
    assert origin_allowed("https://LOCALHOST:8000", "localhost:8000")
    for origin in (
        "null",
        "",
        "localhost:8000",
        "http://localhost",
        "http://localhost:80001",
        "file://localhost:8000",
    ):
        assert not origin_allowed(origin, "localhost:8000"), origin


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1"])
def test_another_origin_is_refused(server: WebServer, fleet: WebFleet, origin: str) -> None:
    headers = {"Origin": origin}
    for method, path in (("GET", "/api/fleets"), ("POST", "/api/monitor/wake"), ("GET", "/")):
        assert server.call(method, path, fleet=fleet.fleet_id, headers=headers).status == 403


def test_the_own_origin_is_served(server: WebServer, fleet: WebFleet) -> None:
    worker = fleet.member("worker", pane=None)
    body = {"from_member_id": fleet.director, "to_member_id": worker, "text": "x"}
    headers = {"Origin": server.url.rstrip("/")}
    answer = server.call("POST", "/api/messages/send", fleet=fleet.fleet_id, body=body, headers=headers)
    assert answer.status == 200
    assert "access-control-allow-origin" not in answer.headers


def test_a_write_without_the_custom_header_is_refused(server: WebServer, fleet: WebFleet) -> None:
    worker = fleet.member("worker", pane=None)
    message = fleet.send(fleet.director, worker, "x")
    for method, path in (
        ("POST", "/api/messages/send"),
        ("POST", f"/api/messages/{message}/ack"),
        ("PATCH", "/api/monitor"),
        ("POST", "/api/monitor/wake"),
    ):
        assert server.call(method, path).status == 400
    assert server.call("GET", f"/api/members/{worker}/inbox", fleet=fleet.fleet_id).json()[0]["status"] == (
        "input_required"
    )


def test_a_cross_site_write_is_refused_and_no_preflight_is_granted(
    server: WebServer, fleet: WebFleet
) -> None:
    headers = {"Sec-Fetch-Site": "cross-site"}
    assert server.call("POST", "/api/monitor/wake", fleet=fleet.fleet_id, headers=headers).status == 403
    preflight = server.call(
        "OPTIONS", "/api/messages/send", headers={"Access-Control-Request-Headers": "x-fleet-id"}
    )
    assert preflight.status == 405
    assert not [name for name in preflight.headers if name.startswith("access-control-")]


@pytest.mark.parametrize(
    "kind", ["text/plain", "", "application/x-www-form-urlencoded", "application/json; charset=latin-1"]
)
def test_only_json_is_taken(server: WebServer, fleet: WebFleet, kind: str) -> None:
    answer = server.call(
        "POST",
        "/api/messages/send",
        fleet=fleet.fleet_id,
        body=b'{"from_member_id": 1, "to_member_id": 2, "text": "x"}',
        headers={"Content-Type": kind},
    )
    assert answer.status == 415


def test_every_answer_carries_the_safety_headers(server: WebServer, fleet: WebFleet) -> None:
    answers = [server.call("GET", path) for path in ("/", "/static/main.js", "/static/icon.svg", "/nothing")]
    answers.append(server.call("GET", "/api/members", fleet=fleet.fleet_id))
    answers.append(server.call("GET", "/api/members", headers={"Host": "evil.example"}))
    for answer in answers:
        assert answer.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "server" not in answer.headers
    assert "unsafe" not in CONTENT_SECURITY_POLICY


def test_a_body_that_says_it_is_too_large_is_refused_unread(server: WebServer, fleet: WebFleet) -> None:
    request = (
        f"POST /api/messages/send HTTP/1.1\r\nHost: localhost\r\nX-Fleet-Id: {fleet.fleet_id}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {MAX_BODY_BYTES + 1}\r\n\r\n"
    )
    assert server.raw(request.encode()).startswith(b"HTTP/1.1 413 ")


def test_a_body_that_turns_out_too_large_is_refused(server: WebServer, fleet: WebFleet) -> None:
    head = (
        f"POST /api/messages/send HTTP/1.1\r\nHost: localhost\r\nX-Fleet-Id: {fleet.fleet_id}\r\n"
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    ).encode()
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    answer = server.raw(head + chunk * (MAX_BODY_BYTES // 0x10000 + 1) + b"0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_the_largest_message_fits_however_it_is_escaped(server: WebServer, fleet: WebFleet) -> None:
    worker = fleet.member("worker", pane=None)
    text = "\x01" * (1024 * 1024)
    body = {"from_member_id": fleet.director, "to_member_id": worker, "text": text}
    answer = server.call("POST", "/api/messages/send", fleet=fleet.fleet_id, body=body)
    assert answer.status == 200
    too_long = server.call(
        "POST", "/api/messages/send", fleet=fleet.fleet_id, body={**body, "text": text + "\x01"}
    )
    assert too_long.status == 422


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static/....//app.py",
        "/static//etc/passwd",
        "/static/%2fetc%2fpasswd",
        "/static/views/../../app.py",
        "/static/",
        "/static",
        "/static/index.html/..",
        "/..%5capp.py",
        "/static/main.js%00",
    ],
)
def test_no_path_leaves_the_page(server: WebServer, path: str) -> None:
    answer = server.raw(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 404 ")


def test_the_page_asks_for_nothing_from_elsewhere(server: WebServer) -> None:
    page = server.call("GET", "/").body.decode()
    assert "http" not in page.replace("http-equiv", "")
    assert "<style" not in page
    assert "onload" not in page


def test_files_are_served_with_their_types_and_revalidated(server: WebServer) -> None:
    script = server.call("GET", "/static/views/parts.js")
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"
    again = server.call("GET", "/static/views/parts.js", headers={"If-None-Match": script.headers["etag"]})
    assert (again.status, again.body) == (304, b"")
    assert server.call("HEAD", "/static/styles.css").status == 200
