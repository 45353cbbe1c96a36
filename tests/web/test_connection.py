"""Connections that send nothing, half of a request, or no HTTP."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple, cast

import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from tests.support.waiting import DEADLINE_SECONDS
from tests.support.web_server import WebServer
from uvicorn.server import ServerState

from cafleet.web.connection import HEAD_SECONDS, Connection
from cafleet.web.security import HEADERS

HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
CLOSED = b""


class Peer(NamedTuple):
    """One connection, seen from both sides."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    limits: list[asyncio.TimerHandle]
    """Of heads, in the order in which they began to run."""

    def set_limit(self, seconds: float) -> None:
        """For the heads to come."""
        Limited.head_seconds = seconds

    def running(self) -> int:
        """Limits that run."""
        return sum(not limit.cancelled() for limit in self.limits)


class Limited(Connection):
    """Whose limit a test sets."""


class NotingLoop:
    """An event loop that notes the limits of heads."""

    def __init__(self, limits: list[asyncio.TimerHandle]) -> None:
        self._loop, self._limits = asyncio.get_running_loop(), limits

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    def call_later(self, delay: float, callback: Callable[..., object]) -> asyncio.TimerHandle:
        handle = self._loop.call_later(delay, callback)
        if delay == Limited.head_seconds:
            self._limits.append(handle)
        return handle


def converse(talk: Callable[[Peer], Awaitable[None]], *, head_seconds: float = HEAD_SECONDS) -> None:
    """Talk to a server over one connection."""
    Limited.head_seconds = head_seconds

    async def run() -> None:
        settings = uvicorn.Config(PlainTextResponse("hello"), log_level="error", timeout_keep_alive=3600)
        state, limits = ServerState(), list[asyncio.TimerHandle]()
        loop = cast(asyncio.AbstractEventLoop, NotingLoop(limits))
        server = await asyncio.get_running_loop().create_server(
            lambda: Limited(settings, state, {}, loop), "127.0.0.1", 0
        )
        async with server, asyncio.timeout(DEADLINE_SECONDS):
            peer = Peer(*await asyncio.open_connection(*server.sockets[0].getsockname()), limits)
            await talk(peer)
            peer.writer.close()
            with suppress(ConnectionResetError):  # The server may have closed it before, with words unread.
                await peer.writer.wait_closed()

    asyncio.run(run())


async def answer(reader: asyncio.StreamReader) -> None:
    """Read one answer of the server's."""
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
    assert await reader.readexactly(5) == b"hello"


@pytest.mark.parametrize("sent", [b"", b"G", HEAD], ids=["nothing", "a byte", "no end of the head"])
def test_a_half_open_connection_is_cut_off(sent: bytes) -> None:
    async def talk(peer: Peer) -> None:
        peer.writer.write(sent)
        assert await peer.reader.read() == CLOSED

    converse(talk, head_seconds=0.05)


def test_a_head_that_trickles_in_wins_no_time() -> None:
    async def talk(peer: Peer) -> None:
        peer.writer.write(HEAD)
        ended = asyncio.ensure_future(peer.reader.read())
        while not ended.done():
            peer.writer.write(b"A: b\r\n")
            await asyncio.sleep(0.01)
        with suppress(ConnectionResetError):  # What it was sent meanwhile is answered by a reset.
            assert await ended == CLOSED
        assert len(peer.limits) == 1

    converse(talk, head_seconds=0.1)


def test_the_second_request_of_a_connection_has_the_same_limit() -> None:
    async def talk(peer: Peer) -> None:
        peer.writer.write(HEAD + b"\r\n")
        await answer(peer.reader)
        peer.set_limit(0.05)
        peer.writer.write(b"G")
        assert await peer.reader.read() == CLOSED

    converse(talk)


def test_a_whole_head_lifts_the_limit() -> None:
    """Also while a body is on its way, and while nothing is asked."""

    async def talk(peer: Peer) -> None:
        peer.writer.write(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\na")
        await answer(peer.reader)
        assert (len(peer.limits), peer.running()) == (1, 0)
        peer.writer.write(b"b")
        for _ in range(2):
            peer.writer.write(HEAD + b"\r\n")
            await answer(peer.reader)
            assert peer.running() == 0

    converse(talk)


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
