"""The installed `cafleet` program, run in a home of its own."""

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.support.waiting import DEADLINE_SECONDS

from cafleet.clock import format_timestamp, utc_now
from cafleet.db import fleets, members, messages
from cafleet.db.database import Database
from cafleet.models import Placement
from cafleet.multiplexer.server_name import server_name

SCRIPT = os.path.join(os.path.dirname(sys.executable), "cafleet")


_started: "list[subprocess.Popen[bytes]]" = []


def end_started() -> list[str]:
    """End what `Program.start` started and nobody has ended; their command lines."""
    left = []
    while _started:
        process = _started.pop()
        if process.poll() is None:
            left.append(shlex.join(map(str, process.args)))  # type: ignore[arg-type]
            process.kill()
            process.communicate()
    return left


class Result(NamedTuple):
    """What one run of the program left behind."""

    code: int
    stdout: str
    stderr: str


class Program:
    """`cafleet` as a user has it: installed, with a home folder and nothing else around it."""

    def __init__(self, home: Path, **environ: str) -> None:
        """`environ`: variables besides `HOME`, `PATH` and a UTF-8 locale."""
        self.home = home
        path = os.pathsep.join([os.path.dirname(SCRIPT), "/usr/local/bin", "/usr/bin", "/bin"])
        self.environ: dict[str, str] = {"HOME": str(home), "PATH": path, "LC_ALL": "C.UTF-8", **environ}

    @property
    def database_path(self) -> Path:
        """Where it keeps its file by default."""
        return self.home / ".local" / "share" / "cafleet" / "cafleet_v8.db"

    def run(
        self,
        *arguments: str | bytes,
        stdin: bytes = b"",
        environ: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> Result:
        """One command, to its end. `environ`: on top of the program's own."""
        done = subprocess.run(
            [SCRIPT, *arguments],
            input=stdin,
            capture_output=True,
            env={**self.environ, **(environ or {})},
            cwd=cwd or self.home,
            timeout=DEADLINE_SECONDS,
            check=False,
        )
        return Result(done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))

    def start(self, *arguments: str, environ: Mapping[str, str] | None = None) -> "subprocess.Popen[bytes]":
        """One command that goes on; the caller ends it, `end_started` sees to that."""
        process = subprocess.Popen(
            [SCRIPT, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**self.environ, **(environ or {})},
            cwd=self.home,
        )
        _started.append(process)
        return process

    def pane_environ(self, socket: str, server_pid: int, pane: str) -> dict[str, str]:
        """What tmux sets in a pane."""
        return {"TMUX": f"{socket},{server_pid},0", "TMUX_PANE": pane}


class Team(NamedTuple):
    """A fleet that was written straight into the database: nobody has a pane that exists."""

    fleet_id: int
    director_id: int
    member_ids: tuple[int, ...]


SERVER_PID = 4_000_000
"""Of a tmux server that never ran."""
SOCKET = "/nonexistent/cafleet/tmux"


def seed_team(program: Program, *names: str, fleet: str = "team") -> Team:
    """A fleet whose Director, and whose members by `names`, are active; only the Director is placed,
    in pane `%<fleet id>` of a server that never ran."""
    database = Database(str(program.database_path))
    at = format_timestamp(utc_now())
    server = server_name(SOCKET, SERVER_PID)
    with database.write() as connection:
        fleet_id = fleets.insert(connection, fleet, at)
        director_id = members.insert(connection, fleet_id, "director", "", "{}", at)
        placement = Placement(director_id, "s", "@0", f"%{fleet_id}", "tmux", "claude", at, server)
        members.insert_placement(connection, placement)
        fleets.set_director(connection, fleet_id, director_id)
        ids = tuple(members.insert(connection, fleet_id, name, "", "{}", at) for name in names)
    database.close()
    return Team(fleet_id, director_id, ids)


def seed_messages(program: Program, count: int, *, from_id: int, to_id: int) -> None:
    """`count` deliveries that wait for their recipient."""
    database = Database(str(program.database_path))
    with database.write() as connection:
        for number in range(count):
            messages.insert(
                connection,
                from_member_id=from_id,
                to_member_id=to_id,
                text=f"message {number}",
                created_at=format_timestamp(utc_now()),
            )
    database.close()
