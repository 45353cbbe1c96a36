"""The protocol's lines between two descriptors and the SDK's streams.

Reading and writing happen in threads of their own. Either may be stuck for as long as the client likes
(it sends nothing, it reads nothing), and still this process can end: both are daemons, and nobody waits
for them. The SDK's own transport waits for its reader.
"""

import asyncio
import json
import queue
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager, suppress
from functools import partial
from io import RawIOBase
from typing import BinaryIO, NamedTuple, TypeGuard

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
)
from mcp_types.jsonrpc import jsonrpc_message_adapter

from cafleet.mcp_server.backlog import Backlog, hung_up
from cafleet.mcp_server.channel import Channel

MAX_LINE_BYTES = 16 * 1024 * 1024
"""A body of 1 MiB takes at most six times as much as JSON."""
FLUSH_SECONDS = 2.0
"""What was answered gets so long to reach a client that is going."""

Received = SessionMessage | Exception


class Streams(NamedTuple):
    """What the SDK reads from and writes to."""

    incoming: MemoryObjectReceiveStream[Received]
    outgoing: MemoryObjectSendStream[SessionMessage]
    end: Callable[[], None]
    """Behave from now on as if the client had closed its end. In the loop's thread."""


@asynccontextmanager
async def open_streams(channel: Channel) -> AsyncIterator[Streams]:
    """The client's messages, until it closes its end; and the way back, until it stops reading."""
    to_server, incoming = anyio.create_memory_object_stream[Received](0)
    outgoing, to_client = anyio.create_memory_object_stream[SessionMessage](0)
    writer = _Writer(channel.writer)
    backlog = Backlog()
    reader = _Reader(channel.reader, to_server, writer, backlog)

    async def write() -> None:
        with suppress(OSError, anyio.ClosedResourceError):
            async for message in to_client:
                await writer.write(message.message)
                backlog.note_written(message.message)
        # Nobody reads any more (or there is nothing more to say): the session is over.
        to_client.close()
        to_server.close()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        reader.start()
        try:
            yield Streams(incoming, outgoing, to_server.close)
        finally:
            outgoing.close()
            tasks.cancel_scope.deadline = anyio.current_time() + FLUSH_SECONDS
            tasks.cancel_scope.shield = True


class _Reader:
    """Turns lines into messages, one at a time, as long as the backlog has room."""

    def __init__(
        self,
        descriptor: int,
        to_server: MemoryObjectSendStream[Received],
        writer: "_Writer",
        backlog: Backlog,
    ) -> None:
        self._descriptor, self._to_server = descriptor, to_server
        self._writer, self._backlog = writer, backlog
        self._loop = asyncio.get_running_loop()

    def start(self) -> None:
        threading.Thread(target=self._read, name="cafleet-mcp-read", daemon=True).start()

    def _read(self) -> None:
        try:
            with suppress(OSError), open(self._descriptor, "rb", closefd=False) as file:
                while (line := _next_line(file)) is not None and self._hand_over(line):
                    pass
        finally:  # A server that cannot read any more ends, whatever the reason.
            self._in_loop(self._close)

    def _hand_over(self, line: bytes) -> bool:
        """False where nobody takes messages any more."""
        return all(self._in_loop(partial(self._take, found)) for found in _messages(line))

    async def _take(self, found: "JSONRPCMessage | _Complaint") -> None:
        if isinstance(found, _Complaint):
            await self._writer.write(found.answer)
        else:
            await self._deliver(found)

    async def _deliver(self, message: JSONRPCMessage) -> None:
        if not await self._backlog.room(lambda: hung_up(self._descriptor)):
            raise anyio.BrokenResourceError
        self._backlog.note_read(message)
        await self._to_server.send(SessionMessage(message))

    async def _close(self) -> None:
        self._to_server.close()

    def _in_loop(self, step: Callable[[], Awaitable[None]]) -> bool:
        """Run one step in the loop's thread and wait for it: that is the back-pressure."""

        async def take() -> bool:
            try:
                await step()
            except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
                return False
            return True

        taking = take()
        try:
            return asyncio.run_coroutine_threadsafe(taking, self._loop).result()
        except (RuntimeError, CancelledError):  # The loop has ended.
            taking.close()
            return False


class _Writer:
    """One thread that writes, so that a client which reads nothing holds up nothing else."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._jobs: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]]] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._write, name="cafleet-mcp-write", daemon=True).start()

    async def write(self, message: JSONRPCMessage) -> None:
        """One line. Raises OSError: nobody reads."""
        line = message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        written: asyncio.Future[None] = self._loop.create_future()
        self._jobs.put((line, written))
        await written

    def _write(self) -> None:
        with open(self._descriptor, "wb", buffering=0, closefd=False) as file:
            while True:
                line, written = self._jobs.get()
                error: OSError | None = None
                try:
                    _write_all(file, line)
                except OSError as problem:
                    error = problem
                with suppress(RuntimeError):  # The loop has ended.
                    self._loop.call_soon_threadsafe(_settle, written, error)


def _write_all(file: RawIOBase, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) or 0 :]


def _settle(future: "asyncio.Future[None]", error: OSError | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)


# -- lines -------------------------------------------------------------------------------------


def _next_line(file: BinaryIO) -> bytes | None:
    """The next line; of one that is too long its first `MAX_LINE_BYTES`; None at the end."""
    line = file.readline(MAX_LINE_BYTES)
    rest = line
    while len(rest) == MAX_LINE_BYTES and not rest.endswith(b"\n"):
        rest = file.readline(MAX_LINE_BYTES)
    return line or None


class _Complaint(NamedTuple):
    """What answers a line that is no message. A client's own error is a message, and never sent back."""

    answer: JSONRPCError


def _messages(line: bytes) -> "Iterator[JSONRPCMessage | _Complaint]":
    """What a line holds: a message, or several as protocol 2025-03-26 lets clients send them."""
    if len(line) >= MAX_LINE_BYTES:
        yield _TOO_LONG
    elif line.strip():
        yield from map(_parse, _batch(line) or [line])


def _batch(line: bytes) -> list[bytes]:
    """The parts of a JSON list; empty where it is none."""
    if not line.lstrip().startswith(b"["):
        return []
    try:
        return [json.dumps(part).encode() for part in json.loads(line)]
    except (ValueError, RecursionError):
        return []


def _parse(line: bytes) -> JSONRPCMessage | _Complaint:
    """The message in a line, or what answers it."""
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        return _complaint(line)
    # A request whose id is no id (null, 1.5) passes for a notification, and its caller would wait in vain.
    if isinstance(message, JSONRPCNotification) and b'"id"' in line and _names_an_id(line):
        return _complaint(line)
    return message


def _names_an_id(line: bytes) -> bool:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return True
    return isinstance(found, dict) and "id" in found


def _complaint(line: bytes) -> _Complaint:
    """What is wrong, to whoever can be told by its id: no caller shall wait for an answer in vain.

    The standard parser is more lenient than the SDK's; it lets half a surrogate pair pass, for instance.
    """
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return _error(None, PARSE_ERROR, "this line is not valid JSON in UTF-8")
    request_id = found.get("id") if isinstance(found, dict) else None
    return _error(
        request_id if _is_id(request_id) else None,
        INVALID_REQUEST,
        "this is not a valid JSON-RPC message in UTF-8",
    )


def _is_id(value: object) -> TypeGuard[int | str]:
    """Whether an answer can carry it: half a surrogate pair cannot be written."""
    if type(value) is int:
        return True
    return type(value) is str and not any("\ud800" <= character <= "\udfff" for character in value)


def _error(request_id: int | str | None, code: int, text: str) -> _Complaint:
    return _Complaint(JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=text)))


_TOO_LONG = _error(None, INVALID_REQUEST, f"this line is longer than {MAX_LINE_BYTES >> 20} MiB")
