"""The place where the demo plays: a private folder, a private tmux server, and a way to leave no trace."""

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import NamedTuple, Self

from cafleet.demo import janitor
from cafleet.demo.standin.configuration import agent_configuration
from cafleet.errors import CafleetError

COLUMNS, ROWS = 169, 60
"""Size of the private tmux window: three tiled panes of 84 columns each."""
CALL_SECONDS = 30.0
"""Longest that one command may take."""
FOLDER_PREFIX, SOCKET = "cafleet-demo-", "tmux"
LONGEST_SOCKET_BYTES = 103
"""What every system takes as the path of a socket (Linux: 107)."""
SHORT_PARENT = "/tmp"
"""Where the folder goes if the usual place for temporary files has too long a path for a socket."""
TOLERATED = ("TERM", "USER", "LOGNAME", "PYTHONPATH", "LD_LIBRARY_PATH", "TMPDIR", "NO_COLOR")
"""What the stage takes over from the caller's environment, besides `PATH`."""


class DemoFailed(CafleetError):
    """The demo did not see what it should have seen."""


class Reply(NamedTuple):
    """What one command answered."""

    output: str
    """Standard output, then standard error."""
    status: int


class Stage:
    """Everything that the demo makes; `with Stage(…) as stage:` leaves nothing behind unless kept."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        """`environ`: the caller's environment. Nothing is made before `__enter__`."""
        self._caller = environ
        self._kept = False
        self.folder = ""
        self.socket = ""
        self.environ: dict[str, str] = {}
        self.director_pane = ""
        self._janitor: subprocess.Popen[bytes] | None = None

    # -- from nothing to an empty stage and back ----------------------------------------------

    def __enter__(self) -> Self:
        self.folder, self.socket = _free_place()
        # Before there is anything to clean up: a demo that is killed at any moment leaves nothing.
        try:
            self._janitor = subprocess.Popen(
                [sys.executable, "-I", janitor.__file__, self.folder, self.socket],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            raise DemoFailed(f"cannot start {sys.executable}: {error.strerror}") from error
        try:
            self._make_folder()
            self._furnish()
        except BaseException as error:
            self.__exit__(None, None, None)
            if isinstance(error, OSError):
                raise DemoFailed(f"cannot write in {self.folder}: {error.strerror}") from error
            raise
        return self

    def _make_folder(self) -> None:
        try:
            os.mkdir(self.folder, 0o700)
        except OSError as error:
            self._kept = isinstance(error, FileExistsError)  # Somebody else's stays.
            raise DemoFailed(
                f"cannot make a folder in {os.path.dirname(self.folder)}: {error.strerror};"
                " set TMPDIR to a folder with a short path"
            ) from None

    def _furnish(self) -> None:
        home = os.path.join(self.folder, "home")
        configuration = os.path.join(home, ".config", "cafleet")
        os.makedirs(configuration, mode=0o700)
        self.environ = {name: self._caller[name] for name in TOLERATED if name in self._caller}
        self.environ |= {
            "HOME": home,
            "PATH": self._path_with_program(),
            "LC_ALL": "C.UTF-8",
            "CAFLEET_DATABASE_URL": f"sqlite:///{self.folder}/team.db",
        }
        with open(os.path.join(configuration, "config.toml"), "w", encoding="utf-8") as file:
            file.write(agent_configuration())
        self.director_pane = self.tmux(
            *("new-session", "-d", "-P", "-F", "#{pane_id}", "-s", "demo", "-n", "fleet"),
            *("-x", str(COLUMNS), "-y", str(ROWS), "-c", home),
            *(sys.executable, "-m", "cafleet.demo.standin"),
        ).strip()
        # A window that a spectator opens would get the PATH of their terminal.
        shell = f"exec env PATH={shlex.quote(self.environ['PATH'])} sh"
        self.tmux("set-option", "-g", "default-command", shell)
        server = self.tmux("display-message", "-p", "#{pid}").strip()
        self.environ["TMUX"] = f"{self.socket},{server},0"
        self.environ["TMUX_PANE"] = self.director_pane

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._janitor is not None
        assert self._janitor.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._janitor.stdin.write(janitor.KEEP if self._kept else b"")
            self._janitor.stdin.close()
        if self._janitor.wait() and error is None:
            raise DemoFailed(f"the demo could not remove everything: look at {self.folder}")

    def keep(self) -> None:
        """Leave everything running when the demo ends."""
        self._kept = True

    def _path_with_program(self) -> str:
        """A PATH on which `cafleet` is the one that runs this demo."""
        folder = os.path.dirname(sys.executable)
        path = self._caller.get("PATH", os.defpath)
        if not os.access(os.path.join(folder, "cafleet"), os.X_OK):
            folder = os.path.join(self.folder, "bin")
            os.mkdir(folder, 0o700)
            program = os.path.join(folder, "cafleet")
            with open(program, "w", encoding="utf-8") as file:
                file.write(f'#!/bin/sh\nexec "{sys.executable}" -m cafleet "$@"\n')
            os.chmod(program, 0o700)
        return os.pathsep.join([folder, path])

    # -- what happens on it -------------------------------------------------------------------

    def cafleet(self, *arguments: str) -> Reply:
        """Run one `cafleet` command as the Director would in its pane."""
        try:
            done = subprocess.run(
                self._program(arguments),
                env=self.environ,
                cwd=self.environ["HOME"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                encoding="utf-8",
                timeout=CALL_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise DemoFailed(f"cafleet {arguments[0]} did not end within {CALL_SECONDS:g} s") from None
        except OSError as error:
            raise DemoFailed(f"cannot start cafleet: {error.strerror}") from error
        return Reply(done.stdout, done.returncode)

    def _program(self, arguments: Sequence[str]) -> list[str]:
        program = shutil.which("cafleet", path=self.environ["PATH"])
        assert program is not None
        return [program, *arguments]

    def tmux(self, *arguments: str) -> str:
        """One command to the private server."""
        try:
            done = subprocess.run(
                ["tmux", "-u", "-f", os.devnull, "-S", self.socket, *arguments],
                env=self.environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                encoding="utf-8",
                timeout=CALL_SECONDS,
                check=False,
            )
        except FileNotFoundError:
            raise DemoFailed(
                "the demo needs tmux, which is not installed; on Debian or Ubuntu: apt-get install tmux"
            ) from None
        except subprocess.TimeoutExpired:
            raise DemoFailed(f"tmux did not answer within {CALL_SECONDS:g} s") from None
        except OSError as error:
            raise DemoFailed(f"cannot start tmux: {error.strerror}") from error
        if done.returncode:
            raise DemoFailed(f"tmux {arguments[0]}: {done.stderr.strip() or 'failed'}")
        return done.stdout

    def screen(self, pane: str) -> list[str]:
        """A pane's rows as they are shown now, without the empty ones around them."""
        rows = [row.rstrip() for row in self.tmux("capture-pane", "-p", "-t", pane).splitlines()]
        while rows and not rows[-1]:
            rows.pop()
        while rows and not rows[0]:
            rows.pop(0)
        return rows

    def type_as_a_person(self, pane: str, text: str) -> None:
        """Characters without Enter, as someone at the keyboard would leave them."""
        self.tmux("send-keys", "-l", "-t", pane, "--", text)

    def press(self, pane: str, key: str) -> None:
        """One key, by its tmux name."""
        self.tmux("send-keys", "-t", pane, key)

    def until(self, what: str, true: Callable[[], bool], seconds: float = CALL_SECONDS) -> None:
        """Wait until `true()`; looks often, since a spectator waits too.

        Raises:
            DemoFailed: not within `seconds`; it names `what` was waited for.
        """
        deadline = time.monotonic() + seconds
        while not true():
            if time.monotonic() > deadline:
                raise DemoFailed(f"waited {seconds:g} s in vain: {what}")
            time.sleep(0.05)


def _free_place() -> tuple[str, str]:
    """Where a new folder for one demo can be made, and the path of its tmux socket in it."""
    parent, name = tempfile.gettempdir(), FOLDER_PREFIX + os.urandom(4).hex()
    if len(os.fsencode(os.path.join(parent, name, SOCKET))) > LONGEST_SOCKET_BYTES:
        parent = SHORT_PARENT
    folder = os.path.join(parent, name)
    return folder, os.path.join(folder, SOCKET)
