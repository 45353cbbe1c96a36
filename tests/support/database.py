"""Databases for tests, always below `tmp_path`: fresh, old, half-written, held by another process."""

import hashlib
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cafleet.db.database import Database
from cafleet.db.migrate import setup_database
from cafleet.db.steps import apply_steps

SETUP_TIME = datetime(2026, 1, 1, tzinfo=UTC)


def fresh_database(directory: Path, name: str = "team.db") -> Database:
    """A database at the head version in `directory`, ready to use. The caller closes it."""
    path = str(directory / name)
    setup_database(path, SETUP_TIME)
    return Database(path)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A database at the head version. Use it with `from tests.support.database import database`."""
    opened = fresh_database(tmp_path)
    yield opened
    opened.close()


def file_at_version(path: Path, version: int, *, journal_mode: str = "wal") -> None:
    """A file as this family's release `version` would have written it, without rows."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA journal_mode={journal_mode}")
        connection.execute("BEGIN")
        apply_steps(connection, SETUP_TIME, target=version)
        connection.execute("COMMIT")


def run_sql(path: Path, *statements: str) -> None:
    """Run and commit `statements`, from outside cafleet."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    """What `query` finds, from outside cafleet."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


ADD_TEAM = (
    "INSERT INTO fleets (fleet_id, name, created_at) VALUES (1, 'red', '2026-01-01T00:00:00.000000+00:00')",
    "INSERT INTO members (member_id, fleet_id, name, description, status, registered_at)"
    " VALUES (1, 1, 'Director', 'leads', 'active', '2026-01-01T00:00:00.000000+00:00'),"
    " (2, 1, 'ann', 'writes', 'active', '2026-01-01T00:00:01.000000+00:00')",
    "UPDATE fleets SET director_member_id = 1",
)
"""One fleet with a Director (1) and a member (2)."""

ADD_MESSAGE = (
    "INSERT INTO messages (from_member_id, to_member_id, created_at, status_state, status_timestamp, text)"
    " VALUES (1, 2, '2026-01-01T00:00:02.000000+00:00', 'input_required',"
    " '2026-01-01T00:00:02.000000+00:00', 'hello')"
)
"""A pending message from 1 to 2; needs the team."""


def folder_state(directory: Path) -> dict[str, tuple[int, str]]:
    """Mode and SHA-256 of every file below `directory`.

    Read by another process: closing a file here would drop this process's own locks on it.
    """
    script = (
        "import hashlib, os, sys\n"
        "for folder, _, names in os.walk(sys.argv[1]):\n"
        "    for name in names:\n"
        "        path = os.path.join(folder, name)\n"
        "        if os.path.isfile(path):\n"
        "            digest = hashlib.sha256(open(path, 'rb').read()).hexdigest()\n"
        "            print(os.stat(path).st_mode, digest, path)\n"
    )
    output = subprocess.run(
        [sys.executable, "-I", "-c", script, str(directory)], check=True, capture_output=True, text=True
    ).stdout
    found = {}
    for line in output.splitlines():
        mode, digest, path = line.split(" ", 2)
        found[path] = (int(mode), digest)
    return found


def kill_while_writing(path: Path, *statements: str, commit: bool = True) -> None:
    """A process that runs `statements` and is killed at once: its log or journal stays behind."""
    script = (
        "import os, signal, sqlite3, sys\n"
        "connection = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "connection.execute('PRAGMA cache_size=1')\n"
        "connection.execute('BEGIN IMMEDIATE')\n"
        "for statement in sys.argv[3:]:\n"
        "    connection.execute(statement)\n"
        "if sys.argv[2] == 'commit':\n"
        "    connection.execute('COMMIT')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    arguments = [sys.executable, "-I", "-c", script, str(path), "commit" if commit else "open", *statements]
    finished = subprocess.run(arguments, check=False, capture_output=True, text=True)
    assert finished.returncode == -signal.SIGKILL, finished.stderr


@contextmanager
def held_by_another_process(path: Path, *statements: str) -> Iterator[None]:
    """Another process has run `statements` on one connection and keeps it open."""
    script = (
        "import sqlite3, sys\n"
        "connection = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "for statement in sys.argv[2:]:\n"
        "    connection.execute(statement).fetchall()\n"
        "print('ready', flush=True)\n"
        "sys.stdin.read()\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-I", "-c", script, str(path), *statements],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdin is not None
    try:
        assert holder.stdout.readline() == "ready\n"
        yield
    finally:
        holder.stdin.close()
        holder.wait()
        holder.stdout.close()


DROP_PRIVILEGES = """
import ctypes, os, sys
if os.geteuid() == 0:
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    assert ctypes.CDLL(None, use_errno=True).capset(header, (ctypes.c_uint32 * 6)()) == 0
"""
"""Root stays the owner of its files but no longer passes over their modes."""


def run_without_rights(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python code to which file modes apply, also when the tests run as root."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", DROP_PRIVILEGES + script, *arguments],
        check=False,
        capture_output=True,
        text=True,
    )


def sha256_of(path: Path) -> str:
    """Of a file that no connection of this process has open."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
