"""Bind a socket, run the application on it, end in order."""

import asyncio
import contextlib
import ipaddress
import signal
import socket
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import uvicorn

from cafleet.errors import CafleetError, UsageError
from cafleet.runtime import Runtime
from cafleet.web.app import build_app
from cafleet.web.connection import Connection
from cafleet.web.events import Hub
from cafleet.web.security import is_loopback

GRACE_SECONDS = 5
"""Calls that are under way when the server is told to stop may take so long."""
STUCK_MILLISECONDS = 30_000
BACKLOG = 128


class CannotListen(CafleetError):
    def __init__(self, host: str, port: int, reason: str) -> None:
        self.host, self.port, self.reason = host, port, reason
        super().__init__(f"cannot listen on {host} port {port}: {reason}")


def bind(
    host: str, port: int, *, allow_remote: bool, stuck_milliseconds: int = STUCK_MILLISECONDS
) -> socket.socket:
    """A listening socket. Port 0: any free one. `stuck_milliseconds`: how long a reader may take nothing.

    Raises:
        UsageError: an address that other machines reach, without `allow_remote`.
        CannotListen: the address is taken, unknown or not this machine's.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise CannotListen(host, port, str(error)) from None
    family, kind, protocol, _, address = found[0]
    if not allow_remote and not _stays_here(host, str(address[0])):
        raise UsageError(
            f"{host} can be reached from other machines, and the server has no login; "
            "add --allow-remote if everyone who can reach it may read and write every fleet"
        )
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            # Connections inherit it: a reader that takes nothing for so long is cut off by the kernel.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, stuck_milliseconds)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise CannotListen(host, port, error.strerror or str(error)) from None
    listener.setblocking(False)
    return listener


def _stays_here(host: str, address: str) -> bool:
    return is_loopback(host) or ipaddress.ip_address(address.partition("%")[0]).is_loopback


def address_of(listener: socket.socket, host: str) -> str:
    """The address for a browser: `http://127.0.0.1:8000/`."""
    port = listener.getsockname()[1]
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}/"


def serve(
    open_runtime: Callable[[], Runtime], listener: socket.socket, host: str, announce: Callable[[], None]
) -> None:
    """Serve until SIGINT or SIGTERM. `announce` is called first: from then on each of them is an order to
    end and no interruption.

    Raises:
        CafleetError: the database cannot be followed any more, for instance after an upgrade.
    """
    with _Signals() as signals:
        announce()
        asyncio.run(_serve(open_runtime, listener, host, signals))


async def _serve(
    open_runtime: Callable[[], Runtime], listener: socket.socket, host: str, signals: "_Signals"
) -> None:
    loop = asyncio.get_running_loop()
    failures: list[Exception] = []

    def fail(error: Exception) -> None:
        failures.append(error)
        loop.call_soon_threadsafe(server.stop)

    app = build_app(open_runtime, bound_host=host, on_failure=fail)
    settings = uvicorn.Config(
        app.asgi,
        log_level="error",
        access_log=False,
        server_header=False,
        lifespan="on",
        ws="none",
        http=Connection,
        loop="asyncio",
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    server = _Server(settings, app.hub, signals)
    await server.serve(sockets=[listener])
    if failures:
        raise failures[0]


class _Signals:
    """SIGINT and SIGTERM while no loop can take them: kept for it at the start, and ignored at the end."""

    NUMBERS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.came = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "_Signals":
        self._before = {number: signal.getsignal(number) for number in self.NUMBERS}
        self.keep()
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def keep(self) -> None:
        """Only note that one came."""
        for number in self.NUMBERS:
            signal.signal(number, self._note)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.came = True


class _Server(uvicorn.Server):
    """Uvicorn's server, which would wait for the event streams to end: they never do by themselves."""

    def __init__(self, settings: uvicorn.Config, hub: Hub, signals: _Signals) -> None:
        super().__init__(settings)
        self._hub, self._signals = hub, signals

    def stop(self) -> None:
        """End the streams, then the server; at the second time the calls, too. From the loop's thread."""
        if self.should_exit:
            for call in self.server_state.tasks:
                call.cancel()
        self.should_exit = True
        self._hub.close()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """SIGINT and SIGTERM stop the server and are not raised again: being stopped is no failure."""
        loop = asyncio.get_running_loop()
        for number in self._signals.NUMBERS:
            loop.add_signal_handler(number, self.stop)
        if self._signals.came:
            self.stop()
        try:
            yield
        finally:
            for number in self._signals.NUMBERS:
                loop.remove_signal_handler(number)
            self._signals.keep()
