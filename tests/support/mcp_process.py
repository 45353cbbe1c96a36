"""`cafleet mcp` as a process: driven by the SDK's own client, or by lines of one's own."""

import asyncio
import json
import queue
import subprocess
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import CallToolResult, TextContent
from tests.support.program import SCRIPT, Program
from tests.support.waiting import DEADLINE_SECONDS

PROTOCOL = "2025-06-18"


def talk(
    program: Program,
    *arguments: str,
    scenario: Callable[[Client], Awaitable[None]],
    mode: str = "legacy",
    errors: Path | None = None,
) -> None:
    """Run a scenario with the SDK's client, which starts the server and ends it.

    `mode`: how the client opens the connection. `errors`: a file for the server's standard error.
    """

    async def run() -> None:
        server = StdioServerParameters(command=SCRIPT, args=["mcp", *arguments], env=program.environ)
        with open(errors or program.home / "mcp-errors", "w", encoding="utf-8") as log:
            async with Client(stdio_client(server, errlog=log), mode=mode) as client:
                await scenario(client)

    asyncio.run(asyncio.wait_for(run(), 90))


def content(result: CallToolResult) -> dict[str, Any]:
    """The structured content of a success; its text says the same."""
    assert not result.is_error, result.content
    (block,) = result.content
    assert isinstance(block, TextContent)
    found = json.loads(block.text)
    assert found == result.structured_content
    assert isinstance(found, dict)
    return found


def failure(result: CallToolResult) -> str:
    """The text of a tool error."""
    assert result.is_error, result.structured_content
    assert result.structured_content is None
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


class McpProcess:
    """A client that writes whatever it wants. Whoever starts it ends it."""

    def __init__(self, program: Program, *arguments: str, **environ: str) -> None:
        self.process = subprocess.Popen(
            [SCRIPT, "mcp", *arguments],
            env={**program.environ, **environ},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.lines: list[bytes] = []
        """Everything that the server wrote to its standard output and was read."""
        self._arrived: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._next_id = 0

    def initialized(self) -> "McpProcess":
        """After the handshake."""
        self.read()
        client = {"name": "test", "version": "0"}
        greeting = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client}
        self.answer(self.request("initialize", greeting))
        self.notify("notifications/initialized")
        return self

    def read(self) -> None:
        """Begin to take what the server writes; `initialized` does it."""
        self._reader.start()

    def send(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def notify(self, method: str, params: object = None) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        self.send(json.dumps(message).encode())

    def request(self, method: str, params: object = None) -> int:
        """Send a request; its id."""
        self._next_id += 1
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": self._next_id, "method": method}
        if params is not None:
            message["params"] = params
        self.send(json.dumps(message).encode())
        return self._next_id

    def call(self, tool: str, **arguments: object) -> int:
        """Call a tool; the request's id."""
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def next(self) -> dict[str, Any]:
        """The next message of the server."""
        line = self._arrived.get(timeout=DEADLINE_SECONDS)
        assert line, f"the server has ended: exit code and errors {self.wait()}"
        found = json.loads(line)
        assert found["jsonrpc"] == "2.0"
        assert isinstance(found, dict)
        return found

    def answer(self, request_id: int) -> dict[str, Any]:
        """The answer to a request; whatever else comes before it is passed over."""
        while True:
            found = self.next()
            if found.get("id") == request_id and "method" not in found:
                return found

    def ask(self, tool: str, **arguments: object) -> dict[str, Any]:
        """Call a tool and take its structured content."""
        result = self.answer(self.call(tool, **arguments))["result"]
        assert not result.get("isError"), result
        structured = result["structuredContent"]
        assert isinstance(structured, dict)
        return structured

    def threads(self) -> int:
        """How many the server has (Linux)."""
        return len(list(Path(f"/proc/{self.process.pid}/task").iterdir()))

    def peak_kilobytes(self) -> int:
        """The most memory that the server has had (Linux)."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(status.partition("VmHWM:")[2].split()[0])

    def close_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def close_output(self) -> None:
        """The client stops reading. Only before the handshake."""
        assert self.process.stdout is not None
        self.process.stdout.close()

    def wait(self) -> tuple[int, str]:
        """Until it has ended: exit code and standard error."""
        assert self.process.stderr is not None
        code = self.process.wait(timeout=DEADLINE_SECONDS)
        errors = self.process.stderr.read().decode()
        self.stop()
        return code, errors

    def stop(self) -> None:
        """End it, whatever it does."""
        self.process.kill()
        self.process.wait()
        if self._reader.ident is not None:
            self._reader.join(DEADLINE_SECONDS)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None and not stream.closed:
                with suppress(BrokenPipeError):
                    stream.close()

    def __enter__(self) -> "McpProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            self._arrived.put(line)
        self._arrived.put(b"")
