"""Field case I5: a file system on which processes share no memory, so that SQLite's log cannot be used.

What SQLite meets there, a shared-memory file that it cannot map, is made with a device in its place.
"""

import os
import stat
from pathlib import Path

import pytest
from tests.support.database import ADD_TEAM, SETUP_TIME, file_at_version, rows, run_sql

from cafleet.db.database import Database
from cafleet.db.head_schema import HEAD_VERSION
from cafleet.db.migrate import SetupAction, SetupResult, setup_database
from cafleet.errors import DatabaseNeedsOtherLog

NOTE = (
    "this file system has no write-ahead logging (journal mode delete):"
    " readers and writers wait for each other"
)


def share_no_memory(path: Path) -> None:
    """From here on the database at `path` can have no shared memory."""
    try:
        os.mknod(f"{path}-shm", stat.S_IFCHR | 0o600, os.makedev(1, 3))
        os.close(os.open(f"{path}-shm", os.O_RDWR))
    except OSError:
        pytest.skip("may not make devices")


def assert_usable(path: Path) -> None:
    database = Database(str(path))
    try:
        with database.write() as connection:
            connection.execute("INSERT INTO fleets (name, created_at) VALUES ('late', '2026-01-01')")
        with database.read() as connection:
            assert connection.execute("SELECT count(*) FROM fleets WHERE name = 'late'").fetchone() == (1,)
    finally:
        database.close()
    assert rows(path, "PRAGMA journal_mode") == [("delete",)]


def test_a_new_file_does_without_a_log(tmp_path: Path) -> None:
    path = tmp_path / "team.db"
    share_no_memory(path)
    result = setup_database(str(path), SETUP_TIME)
    assert result == SetupResult(SetupAction.CREATED, HEAD_VERSION, None, "delete", None, (NOTE,))
    assert_usable(path)


def test_a_file_that_was_brought_here_says_what_to_do_and_is_mended_by_it(tmp_path: Path) -> None:
    path = tmp_path / "team.db"
    file_at_version(path, HEAD_VERSION)
    share_no_memory(path)
    database = Database(str(path))
    with (
        pytest.raises(DatabaseNeedsOtherLog, match="run 'cafleet setup', which does without"),
        database.read(),
    ):
        pass
    database.close()
    result = setup_database(str(path), SETUP_TIME)
    assert (result.action, result.journal_mode, result.notes) == (SetupAction.UNCHANGED, "delete", (NOTE,))
    assert_usable(path)


def test_an_older_file_that_was_brought_here_is_upgraded(tmp_path: Path) -> None:
    path = tmp_path / "team.db"
    file_at_version(path, 1)
    run_sql(path, *ADD_TEAM)
    share_no_memory(path)
    result = setup_database(str(path), SETUP_TIME)
    assert (result.action, result.journal_mode, result.notes) == (SetupAction.UPGRADED, "delete", (NOTE,))
    assert_usable(path)
    assert rows(path, "SELECT count(*) FROM members") == [(2,)]
