"""What a request carries, read strictly: nothing is coerced, nothing unknown is let pass (SPEC 10)."""

import asyncio
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from starlette.requests import ClientDisconnect, Request

from cafleet.web.security import FLEET_HEADER, MAX_BODY_BYTES, single

MAX_ID = 2**63 - 1
"""The largest integer that the database holds."""
MAX_LIMIT = 1000
"""Rows that one listing may return."""
BODY_TIMEOUT_SECONDS = 30.0

_INTEGER = re.compile(r"-?[0-9]{1,30}\Z", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,19}\Z", re.ASCII)


class Refused(Exception):
    """A request that no broker rule needs to look at: it becomes `{"detail": …}`."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, headers


class Call(NamedTuple):
    """One API call as a resource function gets it."""

    fleet_id: int
    """From `X-Fleet-Id`; 0 where the route is not fleet-scoped."""
    path_id: int
    """The `{id}` of the path; 0 where there is none."""
    query: Mapping[str, str]
    """Only parameters that the route knows, each given once."""
    body: object
    """The parsed JSON; None where the route takes none."""


async def read_call(request: Request, *, fleet: bool, query: Sequence[str], body: bool) -> Call:
    """The parts of `request` that a route uses.

    Raises:
        Refused: 400, 404, 408, 413, 415 or 422.
    """
    return Call(
        fleet_id=_fleet_id(request) if fleet else 0,
        path_id=path_id(request.path_params["id"]) if "id" in request.path_params else 0,
        query=read_query(request, query),
        body=await _body(request, expected=body),
    )


def path_id(text: str) -> int:
    """An id in a path: 404 for what no id can be, since it names nothing."""
    if not _NUMBER.match(text) or int(text) > MAX_ID:
        raise Refused(404, "not found")
    return int(text)


def integer_parameter(text: str, name: str) -> int:
    """A whole number in a header or query, within what the database holds (400 otherwise)."""
    if not _INTEGER.match(text) or abs(int(text)) > MAX_ID:
        raise Refused(400, f"{name} must be an integer")
    return int(text)


def limit_of(query: Mapping[str, str], default: int) -> int:
    """`?limit=1..1000`."""
    text = query.get("limit")
    if text is None:
        return default
    if not _NUMBER.match(text) or not 1 <= int(text) <= MAX_LIMIT:
        raise Refused(422, f"limit must be an integer from 1 to {MAX_LIMIT}")
    return int(text)


def read_query(request: Request, known: Sequence[str]) -> dict[str, str]:
    """The query as a dictionary; 422 for an unknown or repeated parameter."""
    found: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in known:
            raise Refused(422, f"unknown query parameter {_shown(name)}")
        if name in found:
            raise Refused(422, f"query parameter {name} is given twice")
        found[name] = value
    return found


# -- JSON bodies -------------------------------------------------------------------------------


def json_object(body: object, required: Iterable[str], optional: Iterable[str] = ()) -> dict[str, object]:
    """`body` as an object with exactly the required keys and at most the optional ones (422)."""
    if not isinstance(body, dict):
        raise Refused(422, "the body must be a JSON object")
    required = list(required)
    for key in required:
        if key not in body:
            raise Refused(422, f"{key} is missing")
    known = {*required, *optional}
    for key in body:
        if key not in known:
            raise Refused(422, f"unknown key {_shown(key)}")
    return body


def integer(value: object, name: str, least: int, most: int = MAX_ID) -> int:
    """A JSON integer: no boolean, no float, no string (422)."""
    if type(value) is not int:
        raise Refused(422, f"{name} must be an integer")
    if not least <= value <= most:
        raise Refused(422, f"{name} must be from {least} to {most}")
    return value


def string(value: object, name: str) -> str:
    """A JSON string without half surrogate pairs, which no encoding can store (422)."""
    if not isinstance(value, str):
        raise Refused(422, f"{name} must be a string")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise Refused(422, f"{name} is not valid Unicode: it holds half of a surrogate pair")
    return value


def parse_json(data: bytes) -> object:
    """Strict JSON in UTF-8: no duplicate keys, no `NaN`, no numbers of absurd length (422)."""
    try:
        value: object = json.loads(
            data.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant, parse_int=_short_int
        )
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        raise Refused(422, "the body is not valid JSON in UTF-8") from None
    return value


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Refused(422, "the body has a key twice")
    return found


def _no_constant(text: str) -> object:
    raise Refused(422, f"{text} is not JSON")


def _short_int(text: str) -> int:
    if len(text) > 40:
        raise Refused(422, "the body has a number that is too long")
    return int(text)


async def _body(request: Request, *, expected: bool) -> object:
    data = await _read(request)
    if not expected:
        if data.strip() not in (b"", b"{}"):
            raise Refused(422, "this call takes no body")
        return None
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise Refused(415, "the body must not be compressed")
    media_type, _, parameters = (single(request.headers.getlist("content-type")) or "").partition(";")
    if media_type.strip().lower() != "application/json":
        raise Refused(415, "the body must be application/json")
    if parameters.replace(" ", "").replace('"', "").lower() not in ("", "charset=utf-8"):
        raise Refused(415, "the body must be application/json in UTF-8")
    return parse_json(data)


async def _read(request: Request) -> bytes:
    data = bytearray()
    try:
        async with asyncio.timeout(BODY_TIMEOUT_SECONDS):
            async for chunk in request.stream():
                data += chunk
                if len(data) > MAX_BODY_BYTES:
                    raise Refused(
                        413, f"the request is larger than {MAX_BODY_BYTES} bytes", {"Connection": "close"}
                    )
    except TimeoutError:
        raise Refused(408, "the body did not arrive in time", {"Connection": "close"}) from None
    except ClientDisconnect:
        raise Refused(400, "the request was cut off") from None
    return bytes(data)


def _fleet_id(request: Request) -> int:
    values = request.headers.getlist(FLEET_HEADER)
    if len(values) != 1:
        raise Refused(400, "header X-Fleet-Id is " + ("given twice" if values else "missing"))
    return integer_parameter(values[0], "header X-Fleet-Id")


def _shown(name: str) -> str:
    """A foreign name in an error: short, printable."""
    return ascii(name if len(name) <= 40 else name[:40] + "…")
