"""How the earlier release on PyPI (`cafleet` 0.22.0) is called: it has another file and other flags."""

import glob
import os
import shutil
import sqlite3
import subprocess
import tempfile
from types import TracebackType
from typing import Self

from benchmarks.measure import run_process

VERSION = "0.22.0"
_WHEN = "2026-01-01T00:00:00.000000+00:00"


class Earlier:
    """That release with a fleet of its own in a temporary home; removed on exit."""

    def __init__(self, environment: str) -> None:
        """`environment`: a virtual environment in which that release is installed."""
        self.program = os.path.join(environment, "bin", "cafleet")
        self.root = tempfile.mkdtemp(prefix="cafleet-bench-earlier-")
        self.environ = {"HOME": self.root, "PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"}
        message = [self.program, "message"]
        self.send = [*message, "send", "--fleet-id", "1", "--from-member-id", "1", "--to-member-id", "1"]
        self.send += ["--text", "hello"]
        self.poll = [*message, "poll", "--fleet-id", "1", "--member-id", "1"]

    def __enter__(self) -> Self:
        version = subprocess.run(
            [self.program, "--version"], env=self.environ, text=True, stdout=subprocess.PIPE, check=True
        ).stdout
        if VERSION not in version:
            raise RuntimeError(f"expected cafleet {VERSION}, found {version.strip()}")
        # Its assets half wants the network and may fail; the database half is what is needed.
        subprocess.run([self.program, "setup"], env=self.environ, capture_output=True, check=False)
        self.database_path = glob.glob(os.path.join(self.root, ".local/share/cafleet/*.db"))[0]
        with sqlite3.connect(self.database_path) as connection:
            connection.execute(
                "INSERT OR IGNORE INTO asset_installs VALUES ('claude', ?, ?)", (VERSION, _WHEN)
            )
            connection.execute("INSERT INTO fleets VALUES (1, 'bench', ?, NULL, NULL)", (_WHEN,))
            connection.execute(
                "INSERT INTO members VALUES (1, 1, 'bench', 'measures', 'active', ?, NULL, '{}')", (_WHEN,)
            )
            connection.execute("UPDATE fleets SET director_member_id = 1")
            connection.execute(
                "INSERT INTO member_placements VALUES (1, 'bench', '@0', '%0', 'tmux', 'claude', ?)", (_WHEN,)
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self.root, ignore_errors=True)

    def acknowledge(self) -> float:
        """Seconds that acknowledging the newest open message took."""
        connection = sqlite3.connect(self.database_path)
        newest = connection.execute(
            "SELECT max(message_id) FROM messages WHERE status_state = 'input_required'"
        ).fetchone()[0]
        connection.close()
        argv = [self.program, "message", "ack", "--fleet-id", "1", "--member-id", "1"]
        finished = run_process([*argv, "--message-id", str(newest)], self.environ)
        if finished.status:
            raise RuntimeError(f"the earlier release's ack ended with {finished.status}")
        return finished.seconds
