"""A backup is complete, consistent and private, or it is not there."""

import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.database import (
    ADD_MESSAGE,
    ADD_TEAM,
    database,
    file_at_version,
    fresh_database,
    kill_while_writing,
    rows,
    run_sql,
    run_without_rights,
)

from cafleet.db.backup import backup
from cafleet.db.database import Database
from cafleet.errors import BackupFailed, DatabaseOutdated, TargetExists

__all__ = ["database"]


def test_a_backup_is_a_database(database: Database, tmp_path: Path) -> None:
    run_sql(Path(database.path), *ADD_TEAM)
    kill_while_writing(Path(database.path), ADD_MESSAGE)  # This row is in the log alone.
    target = tmp_path / "copies" / "copy.db"
    target.parent.mkdir()
    result = backup(database, str(target))
    assert (result.path, result.size) == (str(target), target.stat().st_size)
    assert os.listdir(target.parent) == ["copy.db"]
    copy = Database(str(target))
    with copy.write() as connection:
        assert connection.execute("SELECT count(*) FROM messages").fetchone() == (1,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    copy.close()


def test_a_backup_is_private_whatever_the_umask(database: Database, tmp_path: Path) -> None:
    previous = os.umask(0)
    try:
        backup(database, str(tmp_path / "copy.db"))
    finally:
        os.umask(previous)
    assert stat.S_IMODE((tmp_path / "copy.db").stat().st_mode) == 0o600


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
@pytest.mark.parametrize("through_link", [False, True])
def test_names_that_sqlite_uses_itself_are_refused(tmp_path: Path, suffix: str, through_link: bool) -> None:
    real = fresh_database(tmp_path)
    real.close()
    link = tmp_path / "link.db"
    link.symlink_to(real.path)
    used = Database(str(link) if through_link else real.path)
    with pytest.raises(BackupFailed, match="SQLite would take a file of that name for its own"):
        backup(used, real.path + suffix)
    used.close()
    assert not os.path.exists(real.path + suffix)


def test_a_folder_that_is_missing_is_named(database: Database, tmp_path: Path) -> None:
    target = tmp_path / "no" / "such" / "copy.db"
    with pytest.raises(BackupFailed) as caught:
        backup(database, str(target))
    assert str(caught.value) == f"no backup was written to {target}: there is no folder {target.parent}"


@pytest.mark.parametrize("kind", ["file", "folder", "dangling link", "the database"])
def test_nothing_is_overwritten(database: Database, tmp_path: Path, kind: str) -> None:
    target = tmp_path / "copy.db"
    if kind == "file":
        target.write_text("mine")
    elif kind == "folder":
        target.mkdir()
    elif kind == "dangling link":
        target.symlink_to("nowhere")
    else:
        target = Path(database.path)
    listing = sorted(os.listdir(tmp_path))
    with pytest.raises(TargetExists) as caught:
        backup(database, str(target))
    assert str(caught.value) == f"{target} already exists; nothing was overwritten"
    database.close()
    assert sorted(os.listdir(tmp_path)) == listing


def test_a_folder_that_is_closed(database: Database, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    script = (
        "from cafleet.db.backup import backup\n"
        "from cafleet.db.database import Database\n"
        "from cafleet.errors import BackupFailed\n"
        "try: backup(Database(sys.argv[1]), sys.argv[2])\n"
        "except BackupFailed as error: print(error)\n"
    )
    finished = run_without_rights(script, database.path, str(closed / "copy.db"))
    assert finished.stdout == f"no backup was written to {closed / 'copy.db'}: permission denied\n"


ADD_MANY = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000)"
    " INSERT INTO messages (from_member_id, to_member_id, created_at, status_state, status_timestamp, text)"
    " SELECT 1, 2, '2026-01-01T00:00:02.000000+00:00', 'completed', '2026-01-01T00:00:02.000000+00:00',"
    " hex(zeroblob(1000)) FROM n"
)
"""Twelve megabytes of messages from 1 to 2: more than one step of a copy."""


def test_progress_counts_bytes_of_one_state(database: Database, tmp_path: Path) -> None:
    path, target = Path(database.path), tmp_path / "copy.db"
    run_sql(path, *ADD_TEAM, ADD_MANY)
    stored = rows(path, "SELECT count(*) FROM messages")
    seen: list[tuple[int, int]] = []

    def progress(copied: int, total: int) -> None:
        if copied < total:
            run_sql(path, ADD_MESSAGE)  # Somebody else goes on.
        seen.append((copied, total))

    done = backup(database, str(target), progress)
    assert rows(target, "SELECT count(*) FROM messages") == stored
    steps = [copied for copied, _ in seen]
    assert steps == sorted(steps)
    assert 0 < steps[0] < done.size
    assert {total for _, total in seen} == {done.size}
    assert seen[-1] == (done.size, done.size)


def test_an_interrupt_during_the_check_is_one(database: Database, tmp_path: Path) -> None:
    run_sql(Path(database.path), *ADD_TEAM, ADD_MANY)

    def progress(copied: int, total: int) -> None:
        if checking:
            raise KeyboardInterrupt
        if copied == total:
            checking.append(True)

    checking: list[bool] = []
    with pytest.raises(KeyboardInterrupt):
        backup(database, str(tmp_path / "copy.db"), progress)
    database.close()
    assert [name for name in os.listdir(tmp_path) if "copy" in name] == []


@pytest.mark.parametrize(
    ("offset", "damage"), [(0, b"\xff" * 4096), (3, b"\0\0")], ids=["garbage", "no rows"]
)
def test_a_damaged_database_gives_no_backup(
    database: Database, tmp_path: Path, offset: int, damage: bytes
) -> None:
    """Garbage is met by whoever reads it; that an index lacks rows is seen by the check alone."""
    run_sql(Path(database.path), *ADD_TEAM, *[ADD_MESSAGE] * 300)
    ((root,),) = rows(
        Path(database.path), "SELECT rootpage FROM sqlite_master WHERE name = 'idx_messages_sent'"
    )
    assert isinstance(root, int)
    with open(database.path, "r+b") as file:
        file.seek((root - 1) * 4096 + offset)
        file.write(damage)
    with pytest.raises(BackupFailed):
        backup(database, str(tmp_path / "copy.db"))
    database.close()
    assert [name for name in os.listdir(tmp_path) if "copy" in name] == []


def test_an_older_file_is_refused(tmp_path: Path) -> None:
    file_at_version(tmp_path / "old.db", 1)
    with pytest.raises(DatabaseOutdated):
        backup(Database(str(tmp_path / "old.db")), str(tmp_path / "copy.db"))


def test_a_read_only_folder_can_be_backed_up(database: Database, tmp_path: Path) -> None:
    run_sql(Path(database.path), *ADD_TEAM)
    target = tmp_path / "copies"
    target.mkdir()
    script = (
        "from cafleet.db.backup import backup\n"
        "from cafleet.db.database import Database\n"
        "print(backup(Database(sys.argv[1]), sys.argv[2]).path)\n"
    )
    tmp_path.chmod(0o500)
    finished = run_without_rights(script, database.path, str(target / "copy.db"))
    tmp_path.chmod(0o700)
    assert finished.stdout == f"{target / 'copy.db'}\n", finished.stderr
    assert rows(target / "copy.db", "SELECT count(*) FROM members") == [(2,)]


def test_a_backup_of_a_database_in_use_is_of_one_moment(database: Database, tmp_path: Path) -> None:
    """Each transaction of the writer adds one fleet and one member: no copy may split it."""
    script = """
import sys
from cafleet.db.database import Database
database = Database(sys.argv[1])
print("ready", flush=True)
while True:
    with database.write() as connection:
        fleet = connection.execute("INSERT INTO fleets (created_at) VALUES ('')").lastrowid
        connection.execute(
            "INSERT INTO members (fleet_id, name, description, status, registered_at)"
            " VALUES (?, hex(randomblob(2000)), '', 'active', '')",
            (fleet,),
        )
"""
    writer = subprocess.Popen([sys.executable, "-c", script, database.path], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    writer.stdout.readline()
    try:
        for number in range(8):
            target = str(tmp_path / f"copy{number}.db")
            backup(database, target)
            with closing(sqlite3.connect(target)) as copy:
                fleets, members = copy.execute(
                    "SELECT (SELECT count(*) FROM fleets), (SELECT count(*) FROM members)"
                ).fetchone()
            assert fleets == members
    finally:
        writer.kill()
        writer.wait()
        writer.stdout.close()
