"""A stand-in for herdr that answers its documented commands with its documented JSON.

Made from herdr's published documentation, not recorded from the program itself.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support import fake_herdr_cli, fake_herdr_server
from tests.support.waiting import DEADLINE_SECONDS


class FakeHerdr:
    """One server on its own socket, with the workspace `w1` of one pane, `w1:p1`."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="cfh-"))
        self.socket = str(self.directory / "herdr.sock")
        program = self.directory / "bin" / "herdr"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "{fake_herdr_cli.__file__}" "$@"\n')
        program.chmod(0o700)
        self._server: subprocess.Popen[str] | None = None

    def start(self) -> "FakeHerdr":
        """Start the server, and wait until it answers."""
        command = [sys.executable, "-S", fake_herdr_server.__file__, self.socket]
        self._server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._server.stdout is not None
        assert self._server.stdout.readline() == "ready\n"
        return self

    @property
    def pid(self) -> int:
        """Process id of the server."""
        assert self._server is not None
        return self._server.pid

    def environ(self, pane: str = "w1:p1") -> dict[str, str]:
        """The environment of a process that runs in `pane`."""
        path = f"{self.directory / 'bin'}{os.pathsep}{os.environ['PATH']}"
        where = {"HERDR_ENV": "1", "HERDR_SOCKET_PATH": self.socket, "HERDR_PANE_ID": pane}
        return {**os.environ, **where, "PATH": path}

    def request(self, method: str, **parameters: object) -> dict[str, Any]:
        """One request on the socket; `fake.*` methods exist here only."""
        return fake_herdr_cli.request(self.socket, method, parameters)

    def stop(self) -> None:
        """End the server and everything in its panes."""
        if self._server is not None:
            self._server.terminate()
            self._server.communicate(timeout=DEADLINE_SECONDS)
            self._server = None
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.socket)

    def remove(self) -> None:
        """End it and remove its folder."""
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)


@contextlib.contextmanager
def listening_here() -> Iterator[str]:
    """The path of a socket at which this very process listens, and never answers."""
    with tempfile.TemporaryDirectory(prefix="cfh-") as folder, socket.socket(socket.AF_UNIX) as server:
        path = str(Path(folder) / "herdr.sock")
        server.bind(path)
        server.listen()
        yield path
