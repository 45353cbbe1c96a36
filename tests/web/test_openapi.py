"""The description is held against the routes, and the answers against the description."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.support.web_fleet import WebFleet, story
from tests.support.web_server import WebServer

from cafleet.web.app import ENDPOINTS
from cafleet.web.openapi import DESCRIPTION

EXTRA = {("get", "/api/events"), ("get", "/api/fleets/events")}


def _operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in DESCRIPTION["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def _schema(part: dict[str, Any]) -> Draft202012Validator:
    return Draft202012Validator({**part, "components": DESCRIPTION["components"]})


def test_described_and_served_routes_are_the_same() -> None:
    described = {(method, path) for method, path, _ in _operations()}
    assert described == {(e.method.lower(), e.path) for e in ENDPOINTS} | EXTRA


def test_described_and_read_inputs_are_the_same() -> None:
    operations = {(method, path): operation for method, path, operation in _operations()}
    for endpoint in ENDPOINTS:
        operation = operations[endpoint.method.lower(), endpoint.path]
        named = {(p["in"], p["name"]) for p in operation["parameters"]}
        expected = {("query", name) for name in endpoint.query}
        expected |= {("header", "X-Fleet-Id")} if endpoint.fleet else set()
        expected |= {("path", "id")} if "{id}" in endpoint.path else set()
        assert named == expected, endpoint.path
        assert ("requestBody" in operation) == endpoint.body


def test_every_reference_leads_somewhere() -> None:
    for name, schema in DESCRIPTION["components"]["schemas"].items():
        Draft202012Validator.check_schema(schema)
        assert _schema({"$ref": f"#/components/schemas/{name}"}).is_valid({}) is False


@pytest.fixture
def busy(fleet: WebFleet) -> dict[str, int]:
    ids = story(fleet)
    fleet.claim_monitor(os.getpid())
    return ids


def test_answers_are_as_described(server: WebServer, fleet: WebFleet, busy: dict[str, int]) -> None:
    message = fleet.send(busy["boss"], busy["docs"], "x")
    send = {"from_member_id": busy["boss"], "to_member_id": busy["lexer"], "text": "x"}
    calls: list[tuple[str, str, str, object]] = [
        ("get", "/api/fleets", "/api/fleets", None),
        ("get", "/api/members", "/api/members", None),
        ("get", "/api/members/{id}/inbox", f"/api/members/{busy['lexer']}/inbox", None),
        ("get", "/api/members/{id}/sent", f"/api/members/{busy['boss']}/sent?limit=3", None),
        ("get", "/api/timeline", "/api/timeline", None),
        ("post", "/api/messages/send", "/api/messages/send", send),
        ("post", "/api/messages/send", "/api/messages/send", {**send, "to_member_id": "*"}),
        ("post", "/api/messages/{id}/ack", f"/api/messages/{message}/ack", None),
        ("get", "/api/monitor", "/api/monitor", None),
        ("patch", "/api/monitor", "/api/monitor", {"wake_interval_seconds": 5}),
        ("post", "/api/monitor/wake", "/api/monitor/wake", None),
    ]
    assert {(method, path) for method, path, _, _ in calls} | EXTRA == {(m, p) for m, p, _ in _operations()}
    for method, path, target, body in calls:
        answer = server.call(method.upper(), target, fleet=fleet.fleet_id, body=body)
        assert answer.status == 200, (target, answer.body)
        described = DESCRIPTION["paths"][path][method]["responses"]["200"]["content"]["application/json"]
        _schema(described["schema"]).validate(answer.json())


def test_errors_are_as_described(server: WebServer, fleet: WebFleet) -> None:
    for method, path, operation in _operations():
        if path == "/api/fleets/events":  # It needs no fleet: the answer would have no end.
            continue
        target = path.replace("{id}", "999999")
        for headers in ({}, {"X-Fleet-Id": "x"}, {"X-Fleet-Id": "999999"}, {"Host": "evil.example"}):
            answer = server.call(method.upper(), target, headers=headers)
            if answer.status != 200:
                assert str(answer.status) in operation["responses"], (method, path)
                _schema({"$ref": "#/components/schemas/Error"}).validate(answer.json())


def test_the_description_is_served(server: WebServer) -> None:
    assert server.call("GET", "/api/openapi.json").json() == DESCRIPTION
