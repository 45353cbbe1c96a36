"""SPEC 2.4: nine states, and not one byte changed by looking."""

import os
import socket
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.database import (
    ADD_MESSAGE,
    ADD_TEAM,
    file_at_version,
    folder_state,
    fresh_database,
    held_by_another_process,
    kill_while_writing,
    run_sql,
    run_without_rights,
)

from cafleet.db.database import Database
from cafleet.db.diagnosis import DatabaseState, diagnose, refusal
from cafleet.db.head_schema import APPLICATION_ID, HEAD_SCHEMA, HEAD_VERSION
from cafleet.errors import DatabaseBusy, DatabaseError

CREATE_LEGACY = tuple(
    f"CREATE TABLE {name} (id INTEGER PRIMARY KEY)"
    for name in ("fleets", "members", "member_placements", "messages", "alembic_version")
)
MANY_ROWS = (
    "INSERT INTO filler SELECT randomblob(900) FROM (VALUES (1),(2),(3),(4),(5)), (VALUES (1),(2),(3),(4))"
)


def make_foreign(path: Path) -> None:
    run_sql(path, "CREATE TABLE albums (title TEXT)", "INSERT INTO albums VALUES ('Low')")


def make_identified(path: Path) -> None:
    run_sql(path, "PRAGMA application_id = 7", "CREATE TABLE fleets (fleet_id INTEGER)")


def make_view_only(path: Path) -> None:
    run_sql(path, "CREATE VIEW answers AS SELECT 42 AS answer")


def make_legacy(path: Path) -> None:
    run_sql(path, *CREATE_LEGACY)


def make_earliest(path: Path) -> None:
    run_sql(
        path, *(f"CREATE TABLE {name} (id)" for name in ("alembic_version", "sessions", "agents", "tasks"))
    )


def make_newer(path: Path) -> None:
    file_at_version(path, HEAD_VERSION, journal_mode="delete")
    run_sql(
        path,
        "INSERT INTO refinery_schema_history (version) SELECT max(version) + 1 FROM refinery_schema_history",
        "DROP INDEX idx_messages_inbox",
    )


def make_outdated(path: Path) -> None:
    file_at_version(path, 1, journal_mode="delete")


def make_damaged(path: Path) -> None:
    file_at_version(path, HEAD_VERSION, journal_mode="delete")
    run_sql(path, "DROP INDEX idx_messages_inbox")


REFUSED: dict[str, tuple[Callable[[Path], None], DatabaseState]] = {
    "foreign": (make_foreign, DatabaseState.FOREIGN),
    "identified": (make_identified, DatabaseState.FOREIGN),
    "view only": (make_view_only, DatabaseState.FOREIGN),
    "legacy": (make_legacy, DatabaseState.LEGACY),
    "earliest": (make_earliest, DatabaseState.LEGACY),
    "newer": (make_newer, DatabaseState.NEWER),
    "outdated": (make_outdated, DatabaseState.OUTDATED),
    "damaged": (make_damaged, DatabaseState.DAMAGED),
}


@pytest.fixture(params=REFUSED)
def refused(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, DatabaseState]:
    """A refused file in rollback-journal mode, alone in its folder, and its state."""
    make, state = REFUSED[request.param]
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "team.db"
    make(path)
    return path, state


def check_refused_untouched(path: Path, state: DatabaseState) -> None:
    before = folder_state(path.parent)
    listing = sorted(os.listdir(path.parent))
    changed = [os.stat(place).st_mtime_ns for place in (path.parent, path)]
    assert diagnose(str(path)).state is state
    database = Database(str(path), busy_timeout_seconds=0.1)
    for use in (database.guard, database.read().__enter__, database.write().__enter__):
        with pytest.raises(DatabaseError):
            use()
    assert folder_state(path.parent) == before
    assert sorted(os.listdir(path.parent)) == listing
    # Not even for a moment: files that come and go again change the folder's time.
    assert [os.stat(place).st_mtime_ns for place in (path.parent, path)] == changed


def test_a_refused_file_stays_as_it_is(refused: tuple[Path, DatabaseState]) -> None:
    check_refused_untouched(*refused)


def test_a_refused_file_in_log_mode_stays_as_it_is(refused: tuple[Path, DatabaseState]) -> None:
    run_sql(refused[0], "PRAGMA journal_mode=WAL")
    check_refused_untouched(*refused)


def test_a_refused_file_with_the_log_of_a_killed_writer_stays_as_it_is(
    refused: tuple[Path, DatabaseState],
) -> None:
    path, state = refused
    run_sql(path, "PRAGMA journal_mode=WAL", "CREATE TABLE filler (bytes)")
    kill_while_writing(path, MANY_ROWS)
    assert (path.parent / "team.db-wal").stat().st_size
    check_refused_untouched(path, state)


def test_a_refused_file_with_a_log_but_no_shared_memory_stays_as_it_is(
    refused: tuple[Path, DatabaseState],
) -> None:
    path, state = refused
    run_sql(path, "PRAGMA journal_mode=WAL", "CREATE TABLE filler (bytes)")
    kill_while_writing(path, MANY_ROWS)
    (path.parent / "team.db-shm").unlink()
    check_refused_untouched(path, state)


def test_a_refused_file_that_another_process_writes_stays_as_it_is(
    refused: tuple[Path, DatabaseState],
) -> None:
    path, state = refused
    run_sql(path, "PRAGMA journal_mode=WAL", "CREATE TABLE filler (bytes)")
    with held_by_another_process(path, MANY_ROWS, "BEGIN IMMEDIATE", MANY_ROWS):
        check_refused_untouched(path, state)


def test_a_refused_file_with_a_hot_journal_stays_as_it_is(refused: tuple[Path, DatabaseState]) -> None:
    path, state = refused
    run_sql(path, "CREATE TABLE filler (bytes)", MANY_ROWS)
    kill_while_writing(path, "DROP TABLE filler", "CREATE TABLE filler (bytes)", MANY_ROWS, commit=False)
    assert (path.parent / "team.db-journal").stat().st_size
    check_refused_untouched(path, state)


def test_what_counts_is_in_the_log_already(tmp_path: Path) -> None:
    path = tmp_path / "team.db"
    make_foreign(path)
    run_sql(path, "PRAGMA journal_mode=WAL")
    kill_while_writing(path, "PRAGMA application_id = 7", "DROP TABLE albums")
    assert diagnose(str(path)).state is DatabaseState.FOREIGN
    kill_while_writing(path, "PRAGMA application_id = 0")
    assert diagnose(str(path)).state is DatabaseState.EMPTY


def test_an_upgrade_that_was_killed_half_way_did_not_happen(tmp_path: Path) -> None:
    path = tmp_path / "team.db"
    file_at_version(path, 1, journal_mode="delete")
    run_sql(path, "CREATE TABLE filler (bytes)", MANY_ROWS)
    kill_while_writing(
        path,
        "DELETE FROM filler",
        MANY_ROWS,
        "UPDATE refinery_schema_history SET version = 9",
        "PRAGMA application_id = 7",
        MANY_ROWS,
        commit=False,
    )
    assert diagnose(str(path))[:2] == (DatabaseState.OUTDATED, 1)


@pytest.mark.parametrize(
    "content",
    [b"x", b"\0", b"hello\n", bytes(4096), b"SQLite format 3\0", b"SQLite format 3\0" + bytes(84)],
    ids=["one letter", "one zero", "text", "zeros", "mark only", "header only"],
)
def test_what_is_not_sqlite_is_foreign(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "team.db"
    path.write_bytes(content)
    check_refused_untouched(path, DatabaseState.FOREIGN)


@pytest.mark.parametrize("size", [2048, 4096, 8192])
def test_a_database_cut_short_is_damaged(tmp_path: Path, size: int) -> None:
    path = tmp_path / "team.db"
    file_at_version(path, HEAD_VERSION, journal_mode="delete")
    path.write_bytes(path.read_bytes()[:size])
    check_refused_untouched(path, DatabaseState.DAMAGED)
    assert f"database {path} does not match format {HEAD_VERSION}: " in str(
        refusal(str(path), diagnose(str(path)))
    )


def test_missing_stays_missing(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "team.db"
    assert diagnose(str(path)).state is DatabaseState.MISSING
    with pytest.raises(DatabaseError) as caught:
        Database(str(path)).guard()
    assert str(caught.value) == f"no cafleet database at {path}; run 'cafleet setup'"
    assert not path.parent.exists()


def test_a_link_to_nothing_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "team.db"
    path.symlink_to(tmp_path / "elsewhere.db")
    assert diagnose(str(path)).state is DatabaseState.MISSING
    assert not (tmp_path / "elsewhere.db").exists()


@pytest.mark.parametrize(
    "statements", [(), ("PRAGMA user_version = 3",), ("CREATE TABLE t (x)", "DROP TABLE t")]
)
def test_no_identity_and_no_tables_is_empty(tmp_path: Path, statements: tuple[str, ...]) -> None:
    path = tmp_path / "team.db"
    path.touch()
    run_sql(path, *statements)
    check_refused_untouched(path, DatabaseState.EMPTY)


def test_a_folder_is_unreadable(tmp_path: Path) -> None:
    found = diagnose(str(tmp_path))
    assert (found.state, found.detail) == (DatabaseState.UNREADABLE, "it is a directory")


def test_a_pipe_or_a_socket_is_unreadable(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert diagnose(str(tmp_path / "pipe")).state is DatabaseState.UNREADABLE
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(tmp_path / "socket"))
        assert diagnose(str(tmp_path / "socket")).detail == "it is not a regular file"


def test_views_of_the_earlier_names_are_no_earlier_file(tmp_path: Path) -> None:
    path = tmp_path / "team.db"
    make_legacy(path)
    run_sql(path, "ALTER TABLE messages RENAME TO kept", "CREATE VIEW messages AS SELECT * FROM kept")
    assert diagnose(str(path)).state is DatabaseState.FOREIGN


def test_a_path_through_a_file_is_unreadable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found = diagnose(str(tmp_path / "file" / "team.db"))
    assert (found.state, found.detail) == (DatabaseState.UNREADABLE, "not a directory")


@pytest.mark.parametrize("closed", ["file", "folder"])
def test_no_permission_is_unreadable(tmp_path: Path, closed: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "team.db"
    fresh_database(folder).close()
    path.chmod(0)
    folder.chmod(0o755 if closed == "file" else 0o600)
    finished = run_without_rights(
        "from cafleet.db.diagnosis import diagnose; print(*diagnose(sys.argv[1])[::2])", str(path)
    )
    folder.chmod(0o700)
    assert finished.stdout == "unreadable permission denied\n", finished.stderr


def test_a_file_that_is_locked_for_good_is_busy(tmp_path: Path) -> None:
    path = tmp_path / "team.db"
    file_at_version(path, HEAD_VERSION, journal_mode="delete")
    database = Database(str(path), busy_timeout_seconds=0.05)
    with database.read():
        pass
    with held_by_another_process(path, "BEGIN EXCLUSIVE"), pytest.raises(DatabaseBusy) as caught:
        database.guard()
    assert str(caught.value) == "the database is busy; try again"
    database.close()


def test_current(tmp_path: Path) -> None:
    database = fresh_database(tmp_path)
    database.guard()
    found = diagnose(database.path)
    assert (found.state, found.version) == (DatabaseState.CURRENT, HEAD_VERSION)
    assert refusal(database.path, found) is None
    assert os.listdir(tmp_path) == ["team.db"]


def test_a_path_with_every_awkward_character(tmp_path: Path) -> None:
    folder = tmp_path / "a?b#c%20d &ü 'q' \"x\""
    folder.mkdir()
    database = fresh_database(folder, "t?e#a%6d.db")
    with database.read() as connection:
        assert connection.execute("SELECT count(*) FROM fleets").fetchone() == (0,)
    database.close()


def test_a_link_is_followed_to_its_log(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    path = tmp_path / "real" / "team.db"
    make_foreign(path)
    run_sql(path, "PRAGMA journal_mode=WAL", "DROP TABLE albums", "PRAGMA application_id = 0")
    kill_while_writing(path, "CREATE TABLE films (title)")
    (tmp_path / "link.db").symlink_to(path)
    assert diagnose(str(tmp_path / "link.db")).state is DatabaseState.FOREIGN


def test_extra_tables_indexes_triggers_and_optional_columns_are_fine(tmp_path: Path) -> None:
    database = fresh_database(tmp_path)
    run_sql(
        Path(database.path),
        "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL)",
        "CREATE INDEX notes_of_messages ON messages(text)",
        "CREATE TRIGGER remember AFTER INSERT ON messages BEGIN"
        " INSERT INTO notes (text) VALUES (new.text); END",
        "ALTER TABLE messages ADD COLUMN mood TEXT",
        "ALTER TABLE messages ADD COLUMN weight INTEGER NOT NULL DEFAULT 1",
        "ALTER TABLE messages ADD COLUMN length INTEGER NOT NULL AS (length(text))",
    )
    database.guard()


DIFFERENCES = {
    "DROP TABLE monitor_runtime": "table monitor_runtime is missing",
    "DROP TABLE refinery_schema_history": "table refinery_schema_history is missing",
    "DELETE FROM refinery_schema_history": "refinery_schema_history holds no version",
    "INSERT INTO refinery_schema_history (version) VALUES ('x')": "refinery_schema_history holds no version",
    "ALTER TABLE refinery_schema_history DROP COLUMN checksum": (
        "column refinery_schema_history.checksum is missing"
    ),
    "ALTER TABLE member_placements DROP COLUMN mux_server": "column member_placements.mux_server is missing",
    "ALTER TABLE members RENAME COLUMN description TO about": "column members.description is missing",
    "ALTER TABLE members ADD COLUMN shoe_size": None,
    "DROP INDEX idx_members_one_active_monitor_per_fleet": (
        "index idx_members_one_active_monitor_per_fleet is missing"
    ),
}


@pytest.mark.parametrize("statement", DIFFERENCES)
def test_the_first_difference_is_named(tmp_path: Path, statement: str) -> None:
    database = fresh_database(tmp_path)
    run_sql(Path(database.path), statement)
    assert diagnose(database.path).detail == DIFFERENCES[statement]


@pytest.mark.parametrize(
    ("table", "old", "new", "difference"),
    [
        ("messages", "text TEXT NOT NULL", "text TEXT", "column messages.text differs"),
        ("messages", "text TEXT NOT NULL", "text BLOB NOT NULL", "column messages.text differs"),
        ("messages", " AUTOINCREMENT", "", "table messages does not keep its ids from being used again"),
        (
            "messages",
            "from_member_id INTEGER NOT NULL REFERENCES members(member_id) ON DELETE RESTRICT",
            "from_member_id INTEGER NOT NULL",
            "foreign key messages.from_member_id is missing",
        ),
        (
            "members",
            "REFERENCES fleets(fleet_id) ON DELETE RESTRICT",
            "REFERENCES fleets(fleet_id) ON DELETE CASCADE",
            "foreign key members.fleet_id differs",
        ),
        (
            "member_placements",
            "DEFAULT 'tmux'",
            "DEFAULT 'screen'",
            "column member_placements.backend differs",
        ),
        ("messages", " VIRTUAL", " STORED", "column messages.owner_member_id differs"),
        (
            "asset_installs",
            "PRIMARY KEY (coding_agent, path)",
            "PRIMARY KEY (path, coding_agent)",
            "column asset_installs.coding_agent differs",
        ),
        (
            "messages",
            "text TEXT NOT NULL",
            "text TEXT NOT NULL, lock TEXT NOT NULL",
            "column messages.lock is unknown and must be filled",
        ),
        (
            "idx_members_one_active_monitor_per_fleet",
            "= 'monitor'",
            "= 'Monitor'",
            "index idx_members_one_active_monitor_per_fleet differs",
        ),
        ("idx_messages_client_key", "UNIQUE ", "", "index idx_messages_client_key differs"),
        (
            "idx_messages_inbox",
            "status_timestamp)",
            "status_timestamp DESC)",
            "index idx_messages_inbox differs",
        ),
    ],
)
def test_a_changed_definition_is_named(
    tmp_path: Path, table: str, old: str, new: str, difference: str
) -> None:
    path = tmp_path / "team.db"
    build_with(path, table, HEAD_SCHEMA[table].replace(old, new))
    found = diagnose(str(path))
    assert (found.state, found.version, found.detail) == (DatabaseState.DAMAGED, HEAD_VERSION, difference)
    error = refusal(str(path), found)
    assert str(error) == f"database {path} does not match format {HEAD_VERSION}: {difference}"


@pytest.mark.parametrize(
    ("table", "old", "new"),
    [
        ("messages", "text TEXT NOT NULL", "text VARCHAR(10) NOT NULL"),
        ("messages", "message_id INTEGER NOT NULL PRIMARY KEY", "message_id INTEGER PRIMARY KEY"),
        ("messages", "REFERENCES members(member_id)", "REFERENCES members"),
        (
            "idx_messages_unnotified",
            "WHERE status_state = 'input_required' AND notified_at IS NULL",
            "where \"status_state\"='input_required'  and notified_at is null",
        ),
    ],
)
def test_another_spelling_is_the_same(tmp_path: Path, table: str, old: str, new: str) -> None:
    path = tmp_path / "team.db"
    changed = HEAD_SCHEMA[table].replace(old, new)
    assert changed != HEAD_SCHEMA[table]
    build_with(path, table, changed)
    assert diagnose(str(path)).state is DatabaseState.CURRENT


def build_with(path: Path, changed: str, sql: str) -> None:
    """A head version file in which the object `changed` was made by `sql`."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        for name, text in HEAD_SCHEMA.items():
            connection.execute(sql if name == changed else text)
        connection.execute(
            "INSERT INTO refinery_schema_history (version, name) VALUES (?, 'by hand')", (HEAD_VERSION,)
        )


@pytest.mark.parametrize("version", range(1, HEAD_VERSION))
def test_every_older_version_is_known_by_its_own_shape(tmp_path: Path, version: int) -> None:
    path = tmp_path / "team.db"
    file_at_version(path, version)
    found = diagnose(str(path))
    assert found[:2] == (DatabaseState.OUTDATED, version)
    assert str(refusal(str(path), found)) == (
        f"database format {version} is older than this cafleet's ({HEAD_VERSION}); run 'cafleet setup'"
    )
    run_sql(path, "DROP INDEX idx_messages_to_member_status_ts")
    assert diagnose(str(path))[:3] == (
        DatabaseState.DAMAGED,
        version,
        "index idx_messages_to_member_status_ts is missing",
    )


def test_the_texts_of_the_table(tmp_path: Path) -> None:
    path = tmp_path / "team.db"
    expected = {
        make_newer: "database format 6 is newer than this cafleet's (5); upgrade cafleet",
        make_legacy: f"{path} is in an earlier cafleet format; bring it over with 'cafleet import {path}'",
        make_earliest: f"{path} was written by a cafleet before 0.11, which nothing later can read or"
        " upgrade; keep it for the release that wrote it, and start afresh in another file with"
        " 'cafleet setup'",
        make_foreign: f"{path} is not a cafleet database",
    }
    for make, text in expected.items():
        make(path)
        with pytest.raises(DatabaseError) as caught:
            Database(str(path)).guard()
        assert str(caught.value) == text
        path.unlink()
    with pytest.raises(DatabaseError) as caught:
        Database(str(tmp_path)).guard()
    assert str(caught.value) == f"cannot open database {tmp_path}: it is a directory"


def test_a_diagnosis_leaves_the_locks_of_its_own_process_alone(tmp_path: Path) -> None:
    """POSIX locks are dropped when any descriptor of the file is closed in the process."""
    database = fresh_database(tmp_path)
    run_sql(Path(database.path), *ADD_TEAM)
    with database.write() as connection:
        connection.execute(ADD_MESSAGE)
        diagnose(database.path)
        other = Database(database.path, busy_timeout_seconds=0)
        with other.read() as reader:
            assert reader.execute("SELECT count(*) FROM messages").fetchone() == (0,)
        with pytest.raises(DatabaseBusy), other.write():
            pass
        other.close()
        # A process that sees no lock on the file takes itself for the only one and removes the log.
        run_without_rights_free = held_by_another_process(
            Path(database.path), "SELECT count(*) FROM messages"
        )
        with run_without_rights_free:
            pass
        assert os.path.exists(database.path + "-wal")
    with database.read() as reader:
        assert reader.execute("SELECT count(*) FROM messages").fetchone() == (1,)
    database.close()
