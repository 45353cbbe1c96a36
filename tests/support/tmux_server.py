"""A private tmux server on its own socket, with no configuration of the user's."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tests.support.waiting import DEADLINE_SECONDS, has_ended, wait_until

from cafleet.multiplexer.base import PaneAddress
from cafleet.multiplexer.tmux import Tmux

IDLE = ("sleep", "100000")


class TmuxServer:
    """One server. `stop` ends it and everything in it; fixtures do that."""

    def __init__(self, *, configuration: str = "", environ: Mapping[str, str] | None = None) -> None:
        """`configuration`: text of its tmux.conf. `environ`: replaces the environment it starts with."""
        # Not pytest's tmp_path: a socket's path may have 107 bytes.
        self.directory = Path(tempfile.mkdtemp(prefix="cft-"))
        self.socket = str(self.directory / "sock")
        self._configuration = self.directory / "tmux.conf"
        self._configuration.write_text(configuration)
        self._environ = dict(os.environ if environ is None else environ)

    def start(
        self, *, session: str = "main", width: int = 120, height: int = 40, command: Sequence[str] = IDLE
    ) -> "TmuxServer":
        """Start it with one session of one pane that runs `command`."""
        size = ("-x", str(width), "-y", str(height))
        self.run("new-session", "-d", "-s", session, *size, *command)
        return self

    def run(self, *arguments: str, check: bool = True, text: str | None = None) -> str:
        """One tmux command on this server: its output, without the last newline."""
        done = subprocess.run(
            ["tmux", "-u", "-S", self.socket, "-f", str(self._configuration), *arguments],
            env=self._environ,
            input=text,
            stdin=subprocess.DEVNULL if text is None else None,
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=DEADLINE_SECONDS,
        )
        if check and done.returncode != 0:
            raise AssertionError(f"tmux {shlex.join(arguments)}: {done.stderr.strip()}")
        return done.stdout.removesuffix("\n")

    @property
    def pid(self) -> int:
        """Process id of the server."""
        return int(self.run("display-message", "-p", "#{pid}"))

    @property
    def name(self) -> str:
        """As `placement.mux_server` has it."""
        return f"{os.uname().nodename}|{self.socket}|{self.pid}"

    def panes(self) -> list[str]:
        """The ids of all panes, oldest first."""
        listed = self.run("list-panes", "-a", "-F", "#{pane_id}", check=False).split()
        return sorted(listed, key=lambda pane: int(pane[1:]))

    def show(self, field: str, pane: str) -> str:
        """A format like `#{pane_pid}` of one existing pane."""
        return self.run("display-message", "-p", "-t", pane, field)

    def screen(self, pane: str) -> str:
        """The visible text of a pane."""
        return self.run("capture-pane", "-p", "-t", pane).rstrip("\n")

    def add_pane(self, *command: str, target: str | None = None) -> str:
        """A further pane in a window of its own that runs `command`; returns its id."""
        where = ("-t", target) if target is not None else ()
        return self.run("new-window", "-d", "-P", "-F", "#{pane_id}", *where, *(command or IDLE))

    def address(self, pane: str) -> PaneAddress:
        """The address of an existing pane."""
        session, window = self.show("#{session_name}\t#{window_id}", pane).split("\t")
        return PaneAddress(self.name, session, window, pane)

    def environ(self, pane: str, base: Mapping[str, str] | None = None) -> dict[str, str]:
        """The environment of a process that runs in `pane`."""
        where = {"TMUX": f"{self.socket},{self.pid},0", "TMUX_PANE": pane}
        return {**(os.environ if base is None else base), **where}

    def multiplexer(self, pane: str | None = None) -> Tmux:
        """The backend, as a process in `pane` (or in no pane) would make it, with patience."""
        environ = dict(os.environ) if pane is None else self.environ(pane)
        return Tmux(environ, timeout_seconds=DEADLINE_SECONDS)

    def wait_for_text(self, pane: str, text: str) -> str:
        """The pane's screen once `text` is on it."""
        wait_until(lambda: text in self.screen(pane), what=f"{text!r} in pane {pane}")
        return self.screen(pane)

    def freeze(self) -> None:
        """The server stops answering, until `thaw`."""
        self._frozen = self.pid
        os.kill(self._frozen, signal.SIGSTOP)

    def thaw(self) -> None:
        """Undo `freeze`."""
        os.kill(self._frozen, signal.SIGCONT)

    def kill_server(self) -> None:
        """End the server as `tmux kill-server` does; its socket file stays behind."""
        pid = self.run("display-message", "-p", "#{pid}", check=False)
        self.run("kill-server", check=False)
        # The reply comes before the end. Until then the server may still take the connection of whoever
        # starts a new one on this socket, and drop it: "server exited unexpectedly".
        wait_until(lambda: not pid or has_ended(int(pid)), what="the end of the tmux server")

    def stop(self) -> None:
        """End it and remove its folder."""
        self.kill_server()
        shutil.rmtree(self.directory, ignore_errors=True)


class Recorder:
    """A pane that runs `pane_recorder.py`: what it is sent, byte for byte."""

    def __init__(self, server: TmuxServer, log: Path, *options: str, in_window_of: str | None = None) -> None:
        self.server, self.log = server, log
        script = str(Path(__file__).with_name("pane_recorder.py"))
        command = (sys.executable, "-S", script, str(log), *options)
        if in_window_of is None:
            self.pane = server.add_pane(*command)
        else:
            made = ("split-window", "-d", "-P", "-F", "#{pane_id}", "-t", in_window_of)
            self.pane = server.run(*made, *command)
        server.wait_for_text(self.pane, "ready")

    @property
    def address(self) -> PaneAddress:
        """Where it is."""
        return self.server.address(self.pane)

    def received(self) -> bytes:
        """Everything that arrived so far."""
        with suppress(FileNotFoundError):
            return self.log.read_bytes()
        return b""

    def wait_for(self, data: bytes) -> bytes:
        """Everything that arrived, once it ends with `data`."""
        return wait_until(
            lambda: (r := self.received()) if self.received().endswith(data) else b"", what=repr(data)
        )
