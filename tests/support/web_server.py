"""`cafleet server` as a process, a plain HTTP client for it, and a reader of its event stream."""

import http.client
import json
import os
import re
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from tests.support.program import SCRIPT
from tests.support.waiting import DEADLINE_SECONDS


class Answer(NamedTuple):
    """One HTTP answer."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class WebServer:
    """The installed program over a database. Whoever starts it stops it."""

    def __init__(self, database_path: str, home: Path) -> None:
        self.database_path = database_path
        self.environ = {
            "HOME": str(home),
            "PATH": os.pathsep.join([os.path.dirname(SCRIPT), "/usr/bin", "/bin"]),
            "LC_ALL": "C.UTF-8",
            "CAFLEET_DATABASE_URL": f"sqlite:///{database_path}",
        }
        self.port = 0
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def start(self, *arguments: str) -> "WebServer":
        """Start on a free port; again on the same one after `stop`."""
        self._process = subprocess.Popen(
            [SCRIPT, "server", "--port", str(self.port), *arguments],
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        match = re.search(r":(\d+)/", line)
        if match is None:
            raise AssertionError(f"the server did not start: {line!r} {self._process.communicate()[1]}")
        self.port = int(match[1])
        return self

    def stop(self) -> tuple[int, str]:
        """Stop it as Ctrl-C would; exit code and standard error."""
        if self._process is None:
            return 0, ""
        process, self._process = self._process, None
        process.terminate()
        _, errors = process.communicate(timeout=DEADLINE_SECONDS)
        return process.returncode, errors

    def kill(self) -> None:
        """End it without a chance to say goodbye."""
        assert self._process is not None
        process, self._process = self._process, None
        process.kill()
        process.communicate()

    def wait(self) -> tuple[int, str]:
        """Wait until it ends by itself."""
        assert self._process is not None
        process, self._process = self._process, None
        _, errors = process.communicate(timeout=DEADLINE_SECONDS)
        return process.returncode, errors

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Another `cafleet` process on the same database."""
        return subprocess.run(
            [SCRIPT, *arguments],
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=DEADLINE_SECONDS,
            check=False,
        )

    # -- requests -------------------------------------------------------------------------------

    def call(
        self,
        method: str,
        path: str,
        *,
        fleet: int | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One API call; `body` is sent as JSON where it is not None (bytes: as they are)."""
        sent = dict(headers or {})
        if fleet is not None:
            sent.setdefault("X-Fleet-Id", str(fleet))
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        if data is not None:
            sent.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_SECONDS)
        try:
            connection.request(method, path, body=data, headers=sent)
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read())
        finally:
            connection.close()

    def raw(self, data: bytes) -> bytes:
        """Send bytes as they are; everything that comes back until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=DEADLINE_SECONDS) as connection:
            connection.sendall(data)
            received = bytearray()
            while chunk := connection.recv(65536):
                received += chunk
        return bytes(received)

    def events(self, fleet: int | None, last_id: str | None = None) -> "EventReader":
        """An open event stream; `fleet` None: that of the list of fleets."""
        return EventReader(self.port, fleet, last_id)


class Event(NamedTuple):
    """One server-sent event."""

    id: str
    name: str
    data: Any


class EventReader:
    """Reads a stream; `last_id` is what a browser would resume with."""

    def __init__(self, port: int, fleet: int | None, last_id: str | None, *, query: str = "") -> None:
        """`last_id` goes into the header, `query` into the address."""
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_SECONDS)
        self._file = self._socket.makefile("rb", 1 << 16)
        parameter = f"&last_event_id={quote(query, safe='')}" if query else ""
        header = f"Last-Event-ID: {last_id}\r\n" if last_id else ""
        # HTTP/1.0: the stream arrives as it is, without chunks around it.
        path = "/api/fleets/events" if fleet is None else f"/api/events?fleet_id={fleet}{parameter}"
        head = f"GET {path} HTTP/1.0\r\nHost: localhost\r\n{header}\r\n"
        self._socket.sendall(head.encode())
        self.status = int(self._file.readline().split()[1])
        self.headers: dict[str, str] = {}
        while (line := self._file.readline().decode().strip()) != "":
            name, _, value = line.partition(": ")
            self.headers[name.lower()] = value
        self.last_id = last_id or ""

    def next(self) -> Event | None:
        """The next event; None at the end of the stream."""
        fields: dict[str, str] = {}
        while line := self._file.readline().decode():
            if line == "\n":
                if fields:
                    self.last_id = fields.get("id", self.last_id)
                    return Event(fields.get("id", ""), fields["event"], json.loads(fields["data"]))
                continue
            name, _, value = line.rstrip("\n").partition(": ")
            fields[name] = value
        return None

    def until(self, wanted: Callable[[Event], bool]) -> list[Event]:
        """Events up to and with the first one that is wanted, pings left out."""
        found: list[Event] = []
        deadline = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < deadline:
            event = self.next()
            if event is None:
                raise AssertionError(f"the stream ended after {found}")
            if event.name != "ping":
                found.append(event)
            if wanted(event):
                return found
        raise AssertionError(f"not seen in {found}")

    def until_named(self, name: str) -> list[Event]:
        return self.until(lambda event: event.name == name)

    def rest(self) -> list[Event]:
        """Everything until the stream ends."""
        found: list[Event] = []
        while (event := self.next()) is not None:
            found.append(event)
        return found

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def __enter__(self) -> "EventReader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
