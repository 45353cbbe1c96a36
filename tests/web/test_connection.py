"""Connections that send nothing, half of a request, or no HTTP."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from tests.support.waiting import DEADLINE_SECONDS
from tests.support.web_server import WebServer
from uvicorn.server import ServerState

from cafleet.web.connection import HEAD_SECONDS, Connection
from cafleet.web.security import HEADERS

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
CLOSED = b""


def converse(talk: Talk, *, head_seconds: float) -> None:
    """Talk to a server over one connection."""

    class Impatient(Connection):
        pass

    Impatient.head_seconds = head_seconds

    async def run() -> None:
        settings = uvicorn.Config(PlainTextResponse("hello"), log_level="error", timeout_keep_alive=3600)
        state = ServerState()
        server = await asyncio.get_running_loop().create_server(
            lambda: Impatient(settings, state, {}), "127.0.0.1", 0
        )
        async with server, asyncio.timeout(DEADLINE_SECONDS):
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            await talk(reader, writer)
            writer.close()
            await writer.wait_closed()

    asyncio.run(run())


async def answer(reader: asyncio.StreamReader) -> None:
    """Read one answer of the server's."""
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
    assert await reader.readexactly(5) == b"hello"


@pytest.mark.parametrize("sent", [b"", b"G", HEAD], ids=["nothing", "a byte", "no end of the head"])
def test_a_half_open_connection_is_cut_off(sent: bytes) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(sent)
        assert await reader.read() == CLOSED

    converse(talk, head_seconds=0.05)


def test_a_head_that_trickles_in_wins_no_time() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD)
        ended = asyncio.ensure_future(reader.read())
        while not ended.done():
            writer.write(b"A: b\r\n")
            await asyncio.sleep(0.01)
        with suppress(ConnectionResetError):  # What it was sent meanwhile is answered by a reset.
            assert await ended == CLOSED

    converse(talk, head_seconds=0.1)


def test_the_second_request_of_a_connection_has_the_same_limit() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + b"\r\n")
        await answer(reader)
        writer.write(b"G")
        assert await reader.read() == CLOSED

    converse(talk, head_seconds=0.3)


def test_a_whole_head_lifts_the_limit() -> None:
    """However often, and also while a body is on its way or nothing is asked."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\na")
        await answer(reader)
        await asyncio.sleep(1.0)
        writer.write(b"b")
        for _ in range(2):
            writer.write(HEAD + b"\r\n")
            await answer(reader)
        await asyncio.sleep(1.0)
        writer.write(HEAD + b"\r\n")
        await answer(reader)

    converse(talk, head_seconds=0.8)


def test_a_head_has_half_a_minute() -> None:
    assert HEAD_SECONDS == 30


@pytest.mark.parametrize(
    "request_",
    [
        b"\x16\x03\x01\x02\x00\x01\r\n\r\n",
        b"GET /\r\n\r\n",
        HEAD + b"A B: c\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nno size\r\n",
    ],
    ids=["TLS", "HTTP/0.9", "a name with a blank", "a chunk without a size"],
)
def test_what_is_no_http_is_an_error_like_any_other(server: WebServer, request_: bytes) -> None:
    head, _, body = server.raw(request_).decode().partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 400 ")
    assert json.loads(body) == {"detail": "this is not a valid HTTP request"}
    headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:])
    assert headers == {
        **HEADERS,
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "Connection": "close",
    }
