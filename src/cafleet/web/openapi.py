"""The OpenAPI description of the API, served at `/api/openapi.json`; a test holds it against the routes."""

from cafleet import __version__
from cafleet.broker.monitors import MAX_WAKE_INTERVAL_SECONDS
from cafleet.broker.survey import PaneCondition
from cafleet.delivery.pane_state import PaneState
from cafleet.models import MemberKind, MemberStatus, MessageState, MessageType, NotificationState
from cafleet.web.requests import MAX_ID, MAX_LIMIT
from cafleet.web.rows import Json

_ID = {"type": "integer", "minimum": 1, "maximum": MAX_ID}
_COUNT = {"type": "integer", "minimum": 0}
_TIME = {
    "type": "string",
    "description": "UTC, ISO 8601 with microseconds; orders as text",
    "examples": ["2026-11-29T10:00:00.000000+00:00"],
}


def _or_null(schema: Json) -> Json:
    return {"anyOf": [schema, {"type": "null"}]}


def _record(properties: Json, optional: tuple[str, ...] = ()) -> Json:
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


_SCHEMAS: Json = {
    "Fleet": _record(
        {
            "fleet_id": _ID,
            "name": _or_null({"type": "string"}),
            "created_at": _TIME,
            "director_member_id": _ID,
            "member_count": _COUNT,
        }
    ),
    "Placement": _record(
        {
            "mux_session": {"type": "string"},
            "mux_window_id": {"type": "string"},
            "mux_pane_id": _or_null({"type": "string"}),
            "backend": {"type": "string"},
            "coding_agent": {"type": "string"},
            "created_at": _TIME,
            "mux_server": _or_null({"type": "string"}),
        }
    ),
    "Member": _record(
        {
            "member_id": _ID,
            "name": {"type": "string"},
            "description": {"type": "string"},
            "kind": {"enum": [kind.value for kind in MemberKind]},
            "status": {"enum": [status.value for status in MemberStatus]},
            "registered_at": _TIME,
            "deregistered_at": _or_null(_TIME),
            "skills": {"type": "array"},
            "unread": _COUNT,
            "idle": _or_null(_COUNT),
            "last_sent": _or_null(_TIME),
            "last_recv": _or_null(_TIME),
            "last_ack": _or_null(_TIME),
            "placement": _or_null(_ref("Placement")),
        }
    ),
    "Message": _record(
        {
            "message_id": _ID,
            "from_member_id": _ID,
            "from_member_name": _or_null({"type": "string"}),
            "to_member_id": _or_null(_ID),
            "to_member_name": _or_null({"type": "string"}),
            "type": {"enum": [kind.value for kind in MessageType]},
            "status": {"enum": [state.value for state in MessageState]},
            "created_at": _TIME,
            "status_timestamp": _TIME,
            "origin_message_id": _or_null(_ID),
            "body": {"type": "string"},
        }
    ),
    "Notification": _record(
        {
            "state": {"enum": [state.value for state in NotificationState]},
            "reason": _or_null({"type": "string"}),
        }
    ),
    "SendRequest": _record(
        {
            "from_member_id": _ID,
            "to_member_id": {
                "anyOf": [_ID, {"const": "*"}],
                "description": "`*`: everyone else in the fleet",
            },
            "text": {
                "type": "string",
                "minLength": 1,
                "description": "at most 1 MiB as UTF-8, stored exactly",
            },
            "key": {
                "type": "string",
                "minLength": 1,
                "maxLength": 128,
                "description": "the sender's own name for this message: a repeated call stores it only once",
            },
        },
        optional=("key",),
    ),
    "SendAnswer": _record(
        {
            "message_id": {**_ID, "description": "of a broadcast: its summary's"},
            "status": {"enum": [state.value for state in MessageState]},
            "notification": {**_or_null(_ref("Notification")), "description": "null for a broadcast"},
            "recipients": _COUNT,
            "notified": _COUNT,
            "repeated": {"type": "boolean"},
        }
    ),
    "MonitorChange": _record(
        {
            "wake_interval_seconds": {
                "type": "integer",
                "minimum": 0,
                "maximum": MAX_WAKE_INTERVAL_SECONDS,
                "description": "0 disables scheduled wakes",
            }
        }
    ),
    "Monitor": _record(
        {
            "fleet_id": _ID,
            "configured": {"type": "boolean", "description": "a loop has run at some time"},
            "live": {"type": "boolean"},
            "monitor_member_id": _or_null(_ID),
            "pid": _or_null({"type": "integer"}),
            "started_at": _or_null(_TIME),
            "last_tick_at": _or_null(_TIME),
            "tick_seconds": _or_null(_COUNT),
            "wake_interval_seconds": _or_null(_COUNT),
            "last_wake_at": _or_null(_TIME),
            "wake_requested_at": _or_null(_TIME),
            "pending": {
                "type": "array",
                "items": _record({"member_id": _ID, "name": _or_null({"type": "string"}), "pending": _COUNT}),
                "description": "notifications that are still to be typed, by recipient",
            },
        }
    ),
    "Pane": _record(
        {
            "member_id": _ID,
            "condition": {"enum": [condition.value for condition in PaneCondition]},
            "state": {
                **_or_null({"enum": [state.value for state in PaneState]}),
                "description": "what a live pane shows; null where that is not known",
            },
            "detail": _or_null({"type": "string"}),
            "held": {**_COUNT, "description": "notifications that are still to be typed"},
            "why_held": _or_null({"type": "string", "description": "one clause"}),
        }
    ),
    "Error": _record({"detail": {"type": "string"}}),
}

_FLEET = {
    "name": "X-Fleet-Id",
    "in": "header",
    "required": True,
    "schema": {"type": "integer"},
    "description": "The fleet. Being a custom header it also keeps other sites from writing.",
}
_PATH_ID = {"name": "id", "in": "path", "required": True, "schema": _ID}
_LIMIT = {
    "name": "limit",
    "in": "query",
    "schema": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": 100},
}
_REASONS = {
    400: "header or parameter missing, or not an integer",
    403: "a request from another origin",
    404: "unknown",
    408: "the body did not arrive in time",
    409: "the current state does not allow this",
    413: "the request is too large",
    415: "the body is not application/json",
    421: "the Host is not this server's",
    422: "a body or query that is not acceptable",
    500: "the database holds a value that cannot be understood, or cannot be used",
    503: "the database is busy, or too many streams are open",
}
_READ = (400, 403, 404, 413, 421, 422, 500, 503)
_WRITE = (400, 403, 404, 408, 409, 413, 415, 421, 422, 500, 503)


def _operation(
    summary: str,
    answer: Json,
    *parameters: Json,
    body: str | None = None,
    errors: tuple[int, ...] = _READ,
    media_type: str = "application/json",
) -> Json:
    operation: Json = {
        "summary": summary,
        "parameters": list(parameters),
        "responses": {
            "200": {"description": "done", "content": {media_type: {"schema": answer}}},
            **{
                str(status): {
                    "description": _REASONS[status],
                    "content": {"application/json": {"schema": _ref("Error")}},
                }
                for status in errors
            },
        },
    }
    if body is not None:
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": _ref(body)}},
        }
    return operation


def _list(name: str) -> Json:
    return {"type": "array", "items": _ref(name)}


DESCRIPTION: Json = {
    "openapi": "3.1.0",
    "info": {
        "title": "cafleet",
        "version": __version__,
        "description": "Fleets of coding agents on this machine: what they say, live, and a way to join in.",
    },
    "paths": {
        "/api/fleets": {"get": _operation("Live fleets, newest first", _list("Fleet"))},
        "/api/members": {
            "get": _operation(
                "The roster: active members, and deregistered ones that own messages", _list("Member"), _FLEET
            )
        },
        "/api/members/{id}/inbox": {
            "get": _operation(
                "Deliveries to a member, newest status first", _list("Message"), _FLEET, _PATH_ID, _LIMIT
            )
        },
        "/api/members/{id}/sent": {
            "get": _operation(
                "Deliveries from a member, newest status first", _list("Message"), _FLEET, _PATH_ID, _LIMIT
            )
        },
        "/api/timeline": {
            "get": _operation(
                "At most 200 deliveries, newest status first; those of a broadcast share origin_message_id",
                _list("Message"),
                _FLEET,
            )
        },
        "/api/messages/send": {
            "post": _operation(
                "Store a message or a broadcast, and notify",
                _ref("SendAnswer"),
                _FLEET,
                body="SendRequest",
                errors=_WRITE,
            )
        },
        "/api/messages/{id}/ack": {
            "post": _operation("Acknowledge a delivery", _ref("Message"), _FLEET, _PATH_ID, errors=_WRITE)
        },
        "/api/monitor": {
            "get": _operation("The monitor", _ref("Monitor"), _FLEET, errors=(*_READ, 409)),
            "patch": _operation(
                "Change the wake interval", _ref("Monitor"), _FLEET, body="MonitorChange", errors=_WRITE
            ),
        },
        "/api/monitor/wake": {
            "post": _operation("Ask for a wake on the next tick", _ref("Monitor"), _FLEET, errors=_WRITE)
        },
        "/api/fleets/events": {
            "get": _operation(
                "The list of fleets as server-sent events: fleets (data: array of Fleet), at first and "
                "whenever it changes; besides hello and ping",
                {"type": "string"},
                media_type="text/event-stream",
            )
        },
        "/api/events": {
            "get": _operation(
                "Changes of a fleet as server-sent events: message and ack (data: Message), member (Member), "
                "monitor (Monitor), pane (Pane); besides hello, ping, reset (load everything again) and gone",
                {"type": "string"},
                {"name": "fleet_id", "in": "query", "required": True, "schema": {"type": "integer"}},
                {"name": "last_event_id", "in": "query", "schema": {"type": "string"}},
                {"name": "Last-Event-ID", "in": "header", "schema": {"type": "string"}},
                errors=(*_READ, 409),
                media_type="text/event-stream",
            )
        },
    },
    "components": {"schemas": _SCHEMAS},
}
