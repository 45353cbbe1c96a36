"""A private home with a database and a ready fleet, made without any multiplexer."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from types import TracebackType
from typing import Self

PROGRAM = os.path.join(os.path.dirname(sys.executable), "cafleet")
"""The installed command of the interpreter that runs the benchmark."""

MEMBERS = 20
"""Members of the fleet, the Director (id 1) included."""

_WHEN = "2026-01-01T00:00:00.000000+00:00"


class Place:
    """A temporary folder that is home, data and configuration at once; removed on exit."""

    def __init__(self) -> None:
        self.root = tempfile.mkdtemp(prefix="cafleet-bench-")
        self.database_path = os.path.join(self.root, "team", "cafleet_v8.db")
        self.environ = {
            "HOME": self.root,
            "PATH": os.pathsep.join([os.path.dirname(PROGRAM), os.environ.get("PATH", os.defpath)]),
            "LC_ALL": "C.UTF-8",
            "XDG_CONFIG_HOME": os.path.join(self.root, "config"),
            "CAFLEET_DATABASE_URL": f"sqlite:///{self.database_path}",
        }

    def __enter__(self) -> Self:
        self.command("setup")
        with self.connect() as connection:
            connection.execute("INSERT INTO fleets (name, created_at) VALUES ('bench', ?)", (_WHEN,))
            for number in range(1, MEMBERS + 1):
                connection.execute(
                    "INSERT INTO members (fleet_id, name, description, status, registered_at)"
                    " VALUES (1, ?, 'measures', 'active', ?)",
                    (f"member-{number}", _WHEN),
                )
            connection.execute("UPDATE fleets SET director_member_id = 1")
            # The Director alone is placed, as a live fleet needs; the others have no pane to type into.
            connection.execute(
                "INSERT INTO member_placements (member_id, mux_session, mux_window_id, mux_pane_id, backend,"
                " coding_agent, created_at) VALUES (1, 'bench', '@0', '%0', 'tmux', 'standin', ?)",
                (_WHEN,),
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self.root, ignore_errors=True)

    def connect(self) -> sqlite3.Connection:
        """A plain connection: as a context manager it commits."""
        return sqlite3.connect(self.database_path)

    def command(self, *arguments: str) -> str:
        """Run `cafleet` and return what it prints; raises where it fails."""
        return subprocess.run(
            [PROGRAM, *arguments], env=self.environ, check=True, text=True, stdout=subprocess.PIPE
        ).stdout

    def add_history(self, count: int) -> None:
        """Insert `count` old, acknowledged messages between all members, 100 characters each."""
        with self.connect() as connection:
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute(
                "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :count)"
                " INSERT INTO messages (from_member_id, to_member_id, created_at, status_state,"
                " status_timestamp, text, notified_at)"
                " SELECT 1 + i % :members, 1 + (i / :members + i) % :members, stamp, 'completed', stamp,"
                " printf('%.100c', 'x'), stamp FROM (SELECT i, strftime('%Y-%m-%dT%H:%M:%S', 1735689600 + i,"
                " 'unixepoch') || '.000000+00:00' AS stamp FROM n)",
                {"count": count, "members": MEMBERS},
            )
        with self.connect() as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
