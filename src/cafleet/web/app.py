"""The routes of the server and how errors become answers (SPEC 10)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from cafleet.errors import (
    CafleetError,
    Conflict,
    DatabaseBusy,
    DatabaseNewer,
    InvalidInput,
    NotFound,
    UsageError,
)
from cafleet.runtime import Runtime
from cafleet.web import fleets, members, messages, monitor, openapi, pages, timeline
from cafleet.web.events import ALL_FLEETS, EventStream, Hub, Subject, Subscriber
from cafleet.web.requests import Call, Refused, integer_parameter, read_call, read_query
from cafleet.web.rows import Json
from cafleet.web.security import Fence
from cafleet.web.workers import Workers

STATUSES: tuple[tuple[type[CafleetError], int], ...] = (
    (NotFound, 404),
    (Conflict, 409),
    (InvalidInput, 422),
    (UsageError, 422),
    (DatabaseBusy, 503),
    (CafleetError, 500),
)
"""The first class that fits decides."""

READERS, WRITERS = 4, 8
"""Threads. A send may wait seconds for a pane: such calls must not keep the quick ones waiting."""

Handler = Callable[[Runtime, Call], Json | list[Json]]


class Endpoint(NamedTuple):
    """One route of the API."""

    method: str
    path: str
    handler: Handler
    fleet: bool = True
    """Needs `X-Fleet-Id`."""
    query: Sequence[str] = ()
    body: bool = False


ENDPOINTS = (
    Endpoint("GET", "/api/fleets", fleets.list_fleets, fleet=False),
    Endpoint("GET", "/api/members", members.list_members),
    Endpoint("GET", "/api/members/{id}/inbox", members.inbox, query=("limit",)),
    Endpoint("GET", "/api/members/{id}/sent", members.sent, query=("limit",)),
    Endpoint("GET", "/api/timeline", timeline.timeline),
    Endpoint("POST", "/api/messages/send", messages.send, body=True),
    Endpoint("POST", "/api/messages/{id}/ack", messages.acknowledge),
    Endpoint("GET", "/api/monitor", monitor.show),
    Endpoint("PATCH", "/api/monitor", monitor.change, body=True),
    Endpoint("POST", "/api/monitor/wake", monitor.wake),
)
"""Everything but the event stream and the description, which answer in their own way."""


class WebApp(NamedTuple):
    """The application and the part of it that a server must end before it stops."""

    asgi: ASGIApp
    hub: Hub


def build_app(
    open_runtime: Callable[[], Runtime], *, bound_host: str, on_failure: Callable[[Exception], None]
) -> WebApp:
    """The ASGI application.

    `open_runtime` makes a runtime for the thread that calls it. `on_failure` is told, in any thread,
    when the database cannot be used any more.
    """
    readers = Workers(open_runtime, READERS, "cafleet-read")
    writers = Workers(open_runtime, WRITERS, "cafleet-write")
    hub = Hub(open_runtime, on_failure)

    async def failed(request: Request, error: Exception) -> Response:
        if isinstance(error, DatabaseNewer):
            on_failure(error)  # Nothing that is asked of this server would work any more.
        return await _failed(request, error)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        hub.start()
        yield
        hub.close()
        readers.close()
        writers.close()
        hub.join(2.0)

    app = Starlette(
        routes=[
            *_api_routes(readers, writers),
            Route("/api/events", _fleet_events(hub, readers), methods=["GET"]),
            Route("/api/fleets/events", _fleets_events(hub, readers), methods=["GET"]),
            Route("/api/openapi.json", _description, methods=["GET"]),
            *pages.routes(),
        ],
        lifespan=lifespan,
        exception_handlers={
            Refused: _refused,
            CafleetError: failed,
            HTTPException: _http_failed,
            Exception: _crashed,
        },
    )
    app.router.redirect_slashes = False
    return WebApp(Fence(app, bound_host=bound_host), hub)


# -- routes ------------------------------------------------------------------------------------


def _api_routes(readers: Workers, writers: Workers) -> list[Route]:
    by_path: dict[str, dict[str, Endpoint]] = {}
    for endpoint in ENDPOINTS:
        by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint
    return [
        Route(path, _dispatch(methods, readers, writers), methods=list(methods))
        for path, methods in by_path.items()
    ]


def _dispatch(
    methods: dict[str, Endpoint], readers: Workers, writers: Workers
) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        endpoint = methods["GET" if request.method == "HEAD" else request.method]
        workers = readers if endpoint.method == "GET" else writers
        try:
            call = await read_call(request, fleet=endpoint.fleet, query=endpoint.query, body=endpoint.body)
            # Encoding is the worker's job too: a listing can be large.
            return await workers.run(lambda runtime: _json(endpoint.handler(runtime, call)))
        except asyncio.CancelledError:  # The server ends, and will not wait for this call any more.
            return _detail(503, "the server ended before this call did", {"Connection": "close"})

    return handle


def _fleet_events(hub: Hub, readers: Workers) -> Callable[[Request], Awaitable[EventStream]]:
    async def handle(request: Request) -> EventStream:
        query = read_query(request, ("fleet_id", "last_event_id"))
        if "fleet_id" not in query:
            raise Refused(400, "query parameter fleet_id is missing")
        fleet_id = integer_parameter(query["fleet_id"], "query parameter fleet_id")
        # A browser's own reconnection sends the header; a page that starts anew can only set the query.
        last_id = request.headers.get("last-event-id") or query.get("last_event_id", "")
        return await _stream(request, hub, readers, fleet_id, last_id)

    return handle


def _fleets_events(hub: Hub, readers: Workers) -> Callable[[Request], Awaitable[EventStream]]:
    async def handle(request: Request) -> EventStream:
        read_query(request, ())
        return await _stream(request, hub, readers, ALL_FLEETS, "")

    return handle


async def _stream(
    request: Request, hub: Hub, readers: Workers, subject: Subject, last_id: str
) -> EventStream:
    if not hub.reserve(subject):
        raise Refused(503, "too many event streams are open")
    subscriber = Subscriber()
    try:
        await readers.run(lambda runtime: hub.subscribe(runtime, subject, last_id, subscriber))
    except BaseException:
        hub.release(subject, subscriber)
        raise
    if request.method == "HEAD":  # An answer without a body has an end.
        subscriber.end()
    return EventStream(hub, subject, subscriber)


async def _description(_request: Request) -> Response:
    return _json(openapi.DESCRIPTION)


def _json(value: Json | list[Json]) -> Response:
    return JSONResponse(value, headers={"Cache-Control": "no-store"})


# -- errors ------------------------------------------------------------------------------------


def _detail(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse({"detail": detail}, status, headers={"Cache-Control": "no-store", **(headers or {})})


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return _detail(error.status, error.detail, error.headers)


async def _failed(_request: Request, error: Exception) -> Response:
    status = next(status for kind, status in STATUSES if isinstance(error, kind))
    return _detail(status, str(error))


async def _http_failed(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _detail(error.status_code, error.detail.lower(), error.headers)


async def _crashed(_request: Request, _error: Exception) -> Response:
    # The server raises the error again and writes the traceback to its standard error.
    return _detail(500, "internal error")
