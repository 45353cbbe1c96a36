"""SPEC 2.5: transactions, what they cost other processes, and what a user is told when they fail."""

import os
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.support.database import (
    ADD_MESSAGE,
    ADD_TEAM,
    database,
    file_at_version,
    folder_state,
    fresh_database,
    held_by_another_process,
    kill_while_writing,
    rows,
    run_sql,
    run_without_rights,
)

from cafleet.db.database import Database
from cafleet.db.head_schema import HEAD_VERSION
from cafleet.errors import (
    CafleetError,
    ConstraintViolated,
    DatabaseBusy,
    DatabaseCorrupt,
    DatabaseDiskError,
    DatabaseFull,
    DatabaseMismatch,
    DatabaseMissing,
    DatabaseNewer,
    DatabaseReadOnly,
)

__all__ = ["database"]

ADD_FLEET = "INSERT INTO fleets (name, created_at) VALUES ('red', '2026-01-01T00:00:00.000000+00:00')"
NEWER = "INSERT INTO refinery_schema_history (version) SELECT max(version) + 1 FROM refinery_schema_history"


def count(database: Database, table: str = "fleets") -> int:
    with database.read() as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608


def test_what_is_written_can_be_read(database: Database) -> None:
    with database.write() as connection:
        connection.execute(ADD_FLEET)
    assert count(database) == 1


def test_an_exception_takes_everything_back(database: Database) -> None:
    def fail_half_way() -> None:
        with database.write() as connection:
            connection.execute(ADD_FLEET)
            raise KeyError

    with pytest.raises(KeyError):
        fail_half_way()
    assert count(database) == 0
    with database.write() as connection:
        connection.execute(ADD_FLEET)
    assert count(database) == 1


def test_the_settings_of_a_connection(database: Database) -> None:
    names = ("foreign_keys", "journal_mode", "synchronous", "busy_timeout")
    with database.read() as reader, database.write() as writer:
        # A writer waits as long, but in turns that are fairer than those of SQLite.
        for connection, busy_timeout in ((reader, 5000), (writer, 0)):
            found = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]
            assert found == [1, "wal", 2, busy_timeout]
            assert connection.in_transaction


def test_reading_cannot_write(database: Database) -> None:
    with pytest.raises(DatabaseReadOnly), database.read() as connection:
        connection.execute(ADD_FLEET)


def test_one_read_sees_one_moment(database: Database) -> None:
    with database.read() as connection:
        run_sql(Path(database.path), ADD_FLEET)
        assert connection.execute("SELECT count(*) FROM fleets").fetchone() == (0,)
    assert count(database) == 1


def test_a_write_inside_a_write_is_a_mistake(database: Database) -> None:
    with database.write(), pytest.raises(AssertionError), database.write():
        pass


def test_a_closed_database_can_be_used_again(database: Database) -> None:
    assert count(database) == 0
    database.close()
    database.close()
    assert count(database) == 0


def test_nothing_is_left_beside_the_file(database: Database) -> None:
    with database.write() as connection:
        connection.execute(ADD_FLEET)
    database.close()
    assert os.listdir(os.path.dirname(database.path)) == [os.path.basename(database.path)]


def test_a_refused_constraint_is_told_and_takes_everything_back(database: Database) -> None:
    run_sql(Path(database.path), *ADD_TEAM)

    def write_to_nobody() -> None:
        with database.write() as connection:
            connection.execute(ADD_FLEET)
            connection.execute(ADD_MESSAGE.replace("(1, 2,", "(1, 99,"))

    with pytest.raises(ConstraintViolated) as caught:
        write_to_nobody()
    assert str(caught.value) == "the database refused the change: FOREIGN KEY constraint failed"
    assert count(database) == 1


def test_a_mistake_in_a_statement_is_not_dressed_up(database: Database) -> None:
    with pytest.raises(sqlite3.ProgrammingError), database.read() as connection:
        connection.execute("SELECT ?", ())


# -- other processes -----------------------------------------------------------------------------


def test_a_locked_database_is_busy(database: Database) -> None:
    impatient = Database(database.path, busy_timeout_seconds=0.05)
    with held_by_another_process(Path(database.path), "BEGIN IMMEDIATE"):
        assert count(impatient) == 0
        with pytest.raises(DatabaseBusy) as caught, impatient.write():
            pass
    assert str(caught.value) == "the database is busy; try again"
    with impatient.write() as connection:
        connection.execute(ADD_FLEET)
    impatient.close()


def test_without_a_log_a_writer_waits_for_readers_before_it_commits(database: Database) -> None:
    """A file system may refuse WAL mode; then the commit, too, needs the file for itself."""
    run_sql(Path(database.path), "PRAGMA journal_mode=DELETE")
    impatient = Database(database.path, busy_timeout_seconds=0.05)
    with closing(sqlite3.connect(database.path, isolation_level=None, check_same_thread=False)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM fleets").fetchone()
        with pytest.raises(DatabaseBusy), impatient.write() as connection:
            connection.execute(ADD_FLEET)
        assert count(database) == 0
        leave = threading.Timer(0.1, reader.execute, ["ROLLBACK"])
        with database.write() as connection:
            connection.execute(ADD_FLEET)
            leave.start()
        leave.join()
    assert count(database) == 1
    impatient.close()


def test_a_writer_waits_for_its_turn(database: Database) -> None:
    """I1: a transaction that only turns into a writing one half-way could not wait."""
    path = Path(database.path)
    holder = held_by_another_process(path, "BEGIN IMMEDIATE", ADD_FLEET)
    holder.__enter__()
    release = threading.Timer(0.3, lambda: holder.__exit__(None, None, None))
    release.start()
    with database.write() as connection:  # The holder ends without a commit.
        assert connection.execute("SELECT count(*) FROM fleets").fetchone() == (0,)
        connection.execute(ADD_FLEET)
    release.join()
    assert count(database) == 1


def test_many_processes_lose_nothing(database: Database) -> None:
    run_sql(Path(database.path), *ADD_TEAM)
    script = (
        "import sys\n"
        "from cafleet.db.database import Database\n"
        "for number in range(20):\n"
        "    database = Database(sys.argv[1])\n"
        "    with database.write() as connection:\n"
        "        connection.execute(sys.argv[2])\n"
        "    database.close()\n"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", script, database.path, ADD_MESSAGE], stderr=subprocess.PIPE)
        for _ in range(12)
    ]
    for writer in writers:
        assert writer.communicate()[1] == b""
        assert writer.returncode == 0
    assert count(database, "messages") == 240
    assert rows(Path(database.path), "PRAGMA integrity_check") == [("ok",)]


def test_threads_each_have_their_own(database: Database) -> None:
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(20):
                own = Database(database.path)
                with own.write() as connection:
                    connection.execute(ADD_FLEET)
                assert count(own)
                own.close()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert count(database) == 120


def test_what_was_committed_survives_a_kill(database: Database) -> None:
    script = (
        "import os, signal, sys\n"
        "from cafleet.db.database import Database\n"
        "database = Database(sys.argv[1])\n"
        "while True:\n"
        "    with database.write() as connection:\n"
        "        connection.execute(sys.argv[2])\n"
        "    print('stored', flush=True)\n"
    )
    for _ in range(5):
        before = count(database)
        database.close()
        writer = subprocess.Popen(
            [sys.executable, "-c", script, database.path, ADD_FLEET], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        reported = [writer.stdout.readline() for _ in range(7)]
        writer.kill()
        reported += writer.stdout.readlines()
        writer.wait()
        writer.stdout.close()
        assert before + reported.count("stored\n") <= count(database) <= before + len(reported) + 1
        assert rows(Path(database.path), "PRAGMA integrity_check") == [("ok",)]


# -- a file that changes under a long-lived process ------------------------------------------------


@pytest.mark.parametrize("opened", [False, True])
def test_an_upgrade_meanwhile_ends_reading_writing_and_waiting(database: Database, opened: bool) -> None:
    database.guard()
    if opened:
        assert count(database) == 0
        with database.write():
            pass
        assert database.wait_for_change(0)
    run_sql(Path(database.path), NEWER, "ALTER TABLE messages ADD COLUMN colour TEXT NOT NULL DEFAULT ''")
    with pytest.raises(DatabaseNewer), database.write() as connection:
        connection.execute(ADD_FLEET)
    with pytest.raises(DatabaseNewer), database.read():
        pass
    with pytest.raises(DatabaseNewer):
        database.guard()
    with pytest.raises(DatabaseNewer):
        database.wait_for_change(5)
    database.close()
    assert rows(Path(database.path), "SELECT count(*) FROM fleets") == [(0,)]


def test_a_harmless_change_of_the_schema_is_taken_note_of(database: Database) -> None:
    assert count(database) == 0
    run_sql(Path(database.path), "CREATE TABLE notes (text)")
    assert count(database) == 0
    with database.write() as connection:
        connection.execute(ADD_FLEET)
    assert count(database) == 1


def test_a_harmful_change_of_the_schema_is_refused(database: Database) -> None:
    assert count(database) == 0
    run_sql(Path(database.path), "DROP TABLE monitor_runtime")
    with pytest.raises(DatabaseMismatch), database.write():
        pass


@pytest.mark.parametrize("code", ["SQLITE_IOERR_FSTAT", "SQLITE_CANTOPEN", "SQLITE_READONLY_DBMOVED"])
def test_a_file_that_is_taken_away_while_it_is_used_is_missing(database: Database, code: str) -> None:
    # Which of SQLite's codes it is depends on the very moment.
    error = sqlite3.OperationalError(code)
    error.sqlite_errorcode, error.sqlite_errorname = getattr(sqlite3, code), code
    with pytest.raises(CafleetError) as there, database.read():
        raise error
    assert not isinstance(there.value, DatabaseMissing)
    writing = database.write()
    writing.__enter__()
    os.unlink(database.path)
    with pytest.raises(DatabaseMissing):
        writing.__exit__(type(error), error, None)


def test_a_removed_file_is_missing_and_stays_missing(database: Database) -> None:
    assert database.wait_for_change(0)
    os.unlink(database.path)
    with pytest.raises(DatabaseMissing):
        database.wait_for_change(5)
    with pytest.raises(DatabaseMissing), database.write():
        pass
    assert not os.path.exists(database.path)


def test_another_file_in_its_place_is_opened_instead(database: Database, tmp_path: Path) -> None:
    assert count(database) == 0
    assert database.wait_for_change(0)
    other = fresh_database(tmp_path, "other.db")
    with other.write() as connection:
        connection.execute(ADD_FLEET)
    other.close()
    os.replace(other.path, database.path)
    assert database.wait_for_change(5)
    assert count(database) == 1


# -- full, read-only, broken ---------------------------------------------------------------------


def put_backup_in_place(database: Database, backup: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        os.unlink(database.path + suffix)
    os.rename(backup, database.path)


@pytest.mark.parametrize("through_link", [False, True])
def test_nothing_is_stored_in_a_file_that_was_replaced(
    database: Database, tmp_path: Path, through_link: bool
) -> None:
    """Whoever goes on while a backup is restored: what it reports as stored is in the restored file."""
    path = Path(database.path)
    if through_link:
        (tmp_path / "link.db").symlink_to(path)
    used = Database(str(tmp_path / "link.db" if through_link else path))
    with used.write() as connection:
        connection.execute(ADD_FLEET)
    assert count(used) == 1
    backup = fresh_database(tmp_path / "backup")
    put_backup_in_place(database, Path(backup.path))
    with used.write() as connection:
        connection.execute(ADD_FLEET)
        connection.execute(ADD_FLEET)
    assert count(used) == 2
    used.close()
    assert rows(path, "SELECT count(*) FROM fleets") == [(2,)]


def test_a_link_that_points_elsewhere_now_is_followed(database: Database, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(database.path)
    used = Database(str(link))
    with used.write() as connection:
        connection.execute(ADD_FLEET)
    other = fresh_database(tmp_path / "other")
    link.unlink()
    link.symlink_to(other.path)
    with used.write() as connection:
        connection.execute(ADD_FLEET)
    used.close()
    assert rows(Path(other.path), "SELECT count(*) FROM fleets") == [(1,)]


def test_nothing_is_stored_in_a_file_that_was_removed(database: Database) -> None:
    with database.write() as connection:
        connection.execute(ADD_FLEET)
    for suffix in ("", "-wal", "-shm"):
        os.unlink(database.path + suffix)
    for attempt in (database.write, database.read):
        with pytest.raises(DatabaseMissing), attempt():
            pass
    assert not os.path.exists(database.path)


def test_a_full_disk_stores_nothing_and_says_what_to_do(database: Database) -> None:
    def fill() -> None:
        with database.write() as connection:
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count = {pages + 2}")
            for _ in range(20):
                connection.execute(ADD_FLEET.replace("red", "x" * 4000))

    with pytest.raises(DatabaseFull) as caught:
        fill()
    assert str(caught.value) == (
        f"the disk is full: {database.path} cannot grow; free some space and try again"
    )
    assert count(database) == 0


def test_a_file_that_may_not_grow_stores_nothing(database: Database) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (120_000, 120_000))

    script = (
        "import sys\n"
        "from cafleet.db.database import Database\n"
        "from cafleet.errors import DatabaseError\n"
        "database = Database(sys.argv[1])\n"
        "for number in range(1000):\n"
        "    try:\n"
        "        with database.write() as connection:\n"
        "            connection.execute(sys.argv[2])\n"
        "    except DatabaseError as error:\n"
        "        print(number, type(error).__name__)\n"
        "        break\n"
    )
    finished = subprocess.run(
        [sys.executable, "-c", script, database.path, ADD_FLEET.replace("red", "x" * 4000)],
        check=True,
        capture_output=True,
        text=True,
        preexec_fn=limit,
    )
    stored, error = finished.stdout.split()
    assert error == DatabaseDiskError.__name__
    assert count(database) == int(stored) > 0
    assert rows(Path(database.path), "PRAGMA integrity_check") == [("ok",)]


READ_AND_WRITE = """
from cafleet.db.database import Database
from cafleet.errors import DatabaseError
database = Database(sys.argv[1], busy_timeout_seconds=0.2)
for number in range(2):
    with database.read() as connection:
        print(connection.execute("SELECT count(*) FROM fleets").fetchone()[0])
try:
    with database.write() as connection:
        connection.execute("DELETE FROM fleets")
except DatabaseError as error:
    print(error)
print(database.wait_for_change(0.1), database.wait_for_change(0.1))
database.close()
"""


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)
    try:
        yield
    finally:
        folder.chmod(0o700)
        for path in folder.iterdir():
            path.chmod(0o600)


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A file with one fleet, alone in its folder."""
    folder = tmp_path / "folder"
    folder.mkdir()
    fresh_database(folder).close()
    run_sql(folder / "team.db", ADD_FLEET)
    return folder / "team.db"


def expected_on_read_only(path: Path, fleets: int) -> list[str]:
    refusal = (
        f"the database {path} is read-only; allow writing to the folder {path.parent} and the files in it"
        " (in a sandbox, 'cafleet doctor' names the setting that grants it) and try again"
    )
    return [str(fleets), str(fleets), refusal, "True False"]


def test_a_read_only_folder_can_be_read(filled: Path) -> None:
    """I3: a sandboxed agent reads, and learns what it needs in order to write."""
    with read_only(filled.parent):
        before = folder_state(filled.parent)
        finished = run_without_rights(READ_AND_WRITE, str(filled))
        assert folder_state(filled.parent) == before
    assert finished.stdout.splitlines() == expected_on_read_only(filled, 1), finished.stderr


def test_a_read_only_folder_with_a_killed_writers_log_can_be_read(filled: Path) -> None:
    kill_while_writing(filled, ADD_FLEET)
    with read_only(filled.parent):
        finished = run_without_rights(READ_AND_WRITE, str(filled))
    assert finished.stdout.splitlines() == expected_on_read_only(filled, 2), finished.stderr
    (filled.parent / "team.db-shm").unlink()
    with read_only(filled.parent):
        before = folder_state(filled.parent)
        finished = run_without_rights(READ_AND_WRITE, str(filled))
        assert folder_state(filled.parent) == before
    assert finished.stdout.splitlines() == expected_on_read_only(filled, 2), finished.stderr


def test_a_read_only_folder_that_another_process_writes_can_be_read(filled: Path) -> None:
    with held_by_another_process(filled, ADD_FLEET), read_only(filled.parent):
        finished = run_without_rights(READ_AND_WRITE, str(filled))
    assert finished.stdout.splitlines() == expected_on_read_only(filled, 2), finished.stderr


def test_a_read_only_file_in_a_writable_folder(filled: Path) -> None:
    filled.chmod(0o444)
    finished = run_without_rights(READ_AND_WRITE, str(filled))
    assert finished.stdout.splitlines() == expected_on_read_only(filled, 1), finished.stderr


def test_a_mixture_of_old_and_new_is_never_handed_out(filled: Path) -> None:
    """Without shared memory a reader cannot lock; it must notice a writer who can."""
    script = """
from cafleet.db.database import Database
from cafleet.errors import DatabaseBusy
database = Database(sys.argv[1])
try:
    with database.read() as connection:
        connection.execute("SELECT * FROM fleets").fetchall()
        print("reading", flush=True)
        open(sys.argv[2]).read()
except DatabaseBusy as error:
    print(error)
"""
    gate = filled.parent.parent / "gate"
    os.mkfifo(gate)
    finished: list[subprocess.CompletedProcess[str]] = []
    reader = threading.Thread(
        target=lambda: finished.append(run_without_rights(script, str(filled), str(gate)))
    )
    with read_only(filled.parent):
        reader.start()
        with gate.open("w"):  # Blocks until the reader is inside its transaction.
            filled.parent.chmod(0o700)
            filled.chmod(0o600)
            run_sql(filled, ADD_FLEET)
    reader.join()
    assert finished[0].stdout == "reading\nthe database is busy; try again\n", finished[0].stderr


def test_pages_that_are_broken_are_reported_as_damage(database: Database) -> None:
    with database.write() as connection:
        for _ in range(400):
            connection.execute(ADD_FLEET)
    database.close()
    with open(database.path, "r+b") as file:
        page = rows(Path(database.path), "SELECT rootpage FROM sqlite_master WHERE name = 'fleets'")[0][0]
        assert isinstance(page, int)
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 4096)
    with pytest.raises(DatabaseCorrupt) as caught, database.read() as connection:
        connection.execute("SELECT * FROM fleets").fetchall()
    assert "restore a backup" in str(caught.value)


# -- waiting -------------------------------------------------------------------------------------


def test_the_first_wait_answers_at_once_and_the_next_waits(database: Database) -> None:
    assert database.wait_for_change(60)
    assert not database.wait_for_change(0.05)
    assert not database.wait_for_change(0)


def test_a_commit_between_reading_and_waiting_is_not_missed(database: Database) -> None:
    assert database.wait_for_change(60)
    assert count(database) == 0
    run_sql(Path(database.path), ADD_FLEET)
    assert database.wait_for_change(60)
    assert count(database) == 1
    assert not database.wait_for_change(0.05)


def test_a_connection_that_was_opened_anew_is_not_taken_for_the_old_one(database: Database) -> None:
    """SQLite counts changes per connection, from the same number on."""
    database.wait_for_change(0)
    for _ in range(5):  # Memory that was just freed is given out again: most of them look alike.
        database._close_connections()
        run_sql(Path(database.path), ADD_FLEET)
        assert database.wait_for_change(0)


def test_an_own_commit_counts_as_a_change(database: Database) -> None:
    assert database.wait_for_change(60)
    with database.write() as connection:
        connection.execute(ADD_FLEET)
    assert database.wait_for_change(60)


@pytest.mark.parametrize("hints", ["hints", "no hints"])
def test_a_waiter_sees_every_commit(database: Database, hints: str) -> None:
    """H9: commits at every moment around the start of a wait."""
    if hints == "no hints":
        Path(database.path).with_name("wakeups").touch()  # No folder of that name can be made.
    rounds = 60 if hints == "hints" else 8
    seen = threading.Semaphore(0)

    def write() -> None:
        writer = Database(database.path)
        for number in range(rounds):
            seen.acquire()
            threading.Event().wait(0.0007 * (number % 11))
            with writer.write() as connection:
                connection.execute(ADD_FLEET)
        writer.close()

    thread = threading.Thread(target=write)
    thread.start()
    for expected in range(1, rounds + 1):
        seen.release()
        while count(database) < expected:
            assert database.wait_for_change(30)
    thread.join()


def test_waiting_holds_nothing_up(database: Database) -> None:
    """I9: a process that waits keeps no old state of the file alive."""
    assert database.wait_for_change(60)
    assert count(database) == 0
    with database.write() as connection:
        connection.execute(ADD_FLEET)
    assert not (database.wait_for_change(60) and database.wait_for_change(0.01))
    assert rows(Path(database.path), "PRAGMA wal_checkpoint(TRUNCATE)") == [(0, 0, 0)]
    assert os.path.getsize(database.path + "-wal") == 0


def test_a_signal_ends_a_wait(database: Database) -> None:
    class Stopped(Exception):
        """What the handler raises."""

    def stop(*_: object) -> None:
        raise Stopped

    assert database.wait_for_change(60)
    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(Stopped):
            database.wait_for_change(60)
    finally:
        signal.signal(signal.SIGALRM, previous)
    assert count(database) == 0


def test_a_waiter_leaves_nothing_behind(database: Database) -> None:
    folder = Path(database.path).with_name("wakeups")
    database.wait_for_change(0)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert len(list(folder.iterdir())) == 1
    database.close()
    assert list(folder.iterdir()) == []


def test_a_hot_command_loads_little(database: Database) -> None:
    """SPEC 13: what a command that neither waits nor repairs has to pay for."""
    script = (
        "import sys\n"
        "from cafleet.db.database import Database\n"
        "database = Database(sys.argv[1])\n"
        "with database.write() as connection: connection.execute(sys.argv[2])\n"
        "with database.read() as connection: connection.execute('SELECT 1')\n"
        "database.close()\n"
        "print(*sys.modules)\n"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", script, database.path, ADD_FLEET], check=True, capture_output=True, text=True
    ).stdout.split()
    banned = {"asyncio", "dataclasses", "hashlib", "json", "logging", "pathlib", "shutil", "socket"}
    banned |= {"subprocess", "tempfile", "urllib", "_socket", "cafleet.db.steps", "cafleet.db.migrate"}
    started_with = subprocess.run(
        [sys.executable, "-c", "import sys; print(*sys.modules)"], check=True, capture_output=True, text=True
    ).stdout.split()
    assert banned & (set(loaded) - set(started_with)) == set()


def test_an_older_file_is_refused_before_anything_is_opened(tmp_path: Path) -> None:
    file_at_version(tmp_path / "team.db", HEAD_VERSION - 1)
    database = Database(str(tmp_path / "team.db"))
    with pytest.raises(CafleetError), database.write():
        pass
    assert os.listdir(tmp_path) == ["team.db"]


def test_rows_from_a_log_are_seen_by_whoever_comes_next(database: Database) -> None:
    kill_while_writing(Path(database.path), ADD_FLEET)
    assert count(database) == 1
    with closing(sqlite3.connect(database.path)) as outside:
        assert outside.execute("SELECT count(*) FROM fleets").fetchone() == (1,)
