"""SPEC 2.1 to 2.4: a file is created, upgraded or refused, and never left half-way."""

import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest
from tests.support.database import (
    ADD_MESSAGE,
    ADD_TEAM,
    SETUP_TIME,
    file_at_version,
    folder_state,
    held_by_another_process,
    kill_while_writing,
    rows,
    run_sql,
    run_without_rights,
)

from cafleet.config import DATABASE_FILE_NAME
from cafleet.db.database import Database
from cafleet.db.diagnosis import DatabaseState, diagnose
from cafleet.db.head_schema import APPLICATION_ID, HEAD_SCHEMA, HEAD_VERSION
from cafleet.db.migrate import SetupAction, setup_database
from cafleet.db.steps import steps
from cafleet.errors import (
    DatabaseBusy,
    DatabaseError,
    DatabaseForeign,
    DatabaseLegacy,
    DatabaseNewer,
    DatabaseReadOnly,
    DatabaseUnreadable,
    MonitorDuplicates,
    UpgradeFailed,
)

OTHER_CAFLEET = """
CREATE TABLE refinery_schema_history(
    version INT4 PRIMARY KEY, name VARCHAR(255), applied_on VARCHAR(255), checksum VARCHAR(255));
CREATE TABLE members(fleet_id INTEGER NOT NULL REFERENCES fleets(fleet_id) ON DELETE RESTRICT,
    member_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, name VARCHAR NOT NULL, description VARCHAR NOT NULL,
    status VARCHAR NOT NULL, registered_at VARCHAR NOT NULL, deregistered_at VARCHAR);
CREATE TABLE fleets(fleet_id INTEGER PRIMARY KEY AUTOINCREMENT, name VARCHAR, created_at VARCHAR NOT NULL,
    deleted_at VARCHAR, director_member_id INTEGER REFERENCES members ON DELETE RESTRICT);
CREATE TABLE member_placements(member_id INTEGER PRIMARY KEY REFERENCES members ON DELETE CASCADE,
    mux_session TEXT NOT NULL, mux_window_id TEXT NOT NULL, mux_pane_id TEXT,
    backend TEXT NOT NULL DEFAULT 'tmux', coding_agent TEXT NOT NULL, created_at TEXT NOT NULL);
CREATE TABLE messages(message_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    from_member_id INTEGER NOT NULL, to_member_id INTEGER NOT NULL, created_at TEXT NOT NULL,
    status_state TEXT NOT NULL, status_timestamp TEXT NOT NULL, text TEXT NOT NULL, notified_at TEXT,
    FOREIGN KEY(from_member_id) REFERENCES members(member_id) ON DELETE RESTRICT,
    FOREIGN KEY(to_member_id) REFERENCES members(member_id) ON DELETE RESTRICT);
CREATE TABLE asset_installs(coding_agent TEXT NOT NULL, path TEXT NOT NULL, cafleet_version TEXT NOT NULL,
    installed_at TEXT NOT NULL, PRIMARY KEY(coding_agent, path));
CREATE INDEX idx_members_fleet_status ON members (fleet_id, status);
CREATE INDEX idx_messages_to_member_status_ts ON messages (to_member_id, status_timestamp);
CREATE INDEX idx_messages_from_member_status_ts ON messages (from_member_id, status_timestamp);
CREATE TABLE their_notes(note_id INTEGER PRIMARY KEY, text TEXT);
CREATE INDEX their_index ON messages(text);
CREATE VIEW their_view AS SELECT count(*) AS n FROM messages;
CREATE TRIGGER their_trigger AFTER INSERT ON messages
    BEGIN INSERT INTO their_notes(text) VALUES (new.text); END;
INSERT INTO refinery_schema_history VALUES (1, 'baseline', '2026-01-01T00:00:00Z', '123456789');
PRAGMA application_id = 1128351288;
"""
"""Version 1 as another implementation of this family might write it."""


def team_file(path: Path, version: int, *, journal_mode: str = "wal") -> None:
    """A file at `version` with a fleet, two members and three messages, the last id already used up."""
    file_at_version(path, version, journal_mode=journal_mode)
    add_rows(path)


def add_rows(path: Path) -> None:
    run_sql(
        path,
        *ADD_TEAM,
        "INSERT INTO member_placements"
        " (member_id, mux_session, mux_window_id, mux_pane_id, coding_agent, created_at)"
        " VALUES (1, 's', '@1', '%1', 'one', '2026-01-01'), (2, 's', '@1', NULL, 'two', '2026-01-02')",
        ADD_MESSAGE,
        ADD_MESSAGE.replace("hello", "'' zwölf\n\t🚀"),
        ADD_MESSAGE,
        "INSERT INTO asset_installs VALUES ('one', '/home/x', '0.1', '2026-01-03')",
        "DELETE FROM messages WHERE message_id = 3",
    )


ROWS_OF_VERSION_1 = (
    "SELECT fleet_id, name, created_at, deleted_at, director_member_id FROM fleets",
    "SELECT member_id, fleet_id, name, description, status, registered_at, deregistered_at FROM members",
    "SELECT member_id, mux_session, mux_window_id, mux_pane_id, backend, coding_agent, created_at"
    " FROM member_placements",
    "SELECT message_id, from_member_id, to_member_id, created_at, status_state, status_timestamp, text,"
    " notified_at FROM messages",
    "SELECT coding_agent, path, cafleet_version, installed_at FROM asset_installs",
    "SELECT * FROM sqlite_sequence ORDER BY name",
)


def content(path: Path) -> list[list[tuple[object, ...]]]:
    return [rows(path, query) for query in ROWS_OF_VERSION_1]


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# -- creating ------------------------------------------------------------------------------------


def test_a_new_file_is_current(tmp_path: Path) -> None:
    path = tmp_path / "team.db"
    result = setup_database(str(path), SETUP_TIME)
    assert result == (SetupAction.CREATED, HEAD_VERSION, None, "wal", None, ())
    assert diagnose(str(path)).state is DatabaseState.CURRENT
    assert rows(path, "PRAGMA application_id") == [(APPLICATION_ID,)]
    assert APPLICATION_ID.to_bytes(4, "big") == b"CAF8"
    assert os.listdir(tmp_path) == ["team.db"]


def test_the_migrations_lead_to_the_recorded_schema(tmp_path: Path) -> None:
    path = tmp_path / "team.db"
    setup_database(str(path), SETUP_TIME)
    query = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name <> 'sqlite_sequence'"
    assert set(rows(path, query)) == set(HEAD_SCHEMA.items())


def test_the_ledger_names_each_step_with_its_checksum(tmp_path: Path) -> None:
    setup_database(str(tmp_path / "team.db"), SETUP_TIME)
    found = rows(tmp_path / "team.db", "SELECT * FROM refinery_schema_history ORDER BY version")
    assert [row[0] for row in found] == list(range(1, HEAD_VERSION + 1))
    for step, (version, name, applied_on, checksum) in zip(steps(), found, strict=True):
        assert (version, name, applied_on) == (step.version, step.name, "2026-01-01T00:00:00.000000+00:00")
        assert checksum == sha256(step.sql.encode()).hexdigest()


def test_a_released_step_is_never_edited() -> None:
    """Edit a step and files in the field no longer have the shape that their version promises."""
    found = {step.version: step.checksum for step in steps()}
    assert {version: checksum[:16] for version, checksum in found.items()} == RELEASED


RELEASED = {
    1: "4d99938ec48da7d2",
    2: "4aef63c61cd61102",
    3: "141f2f9486f728f1",
    4: "a419c7bada93b4a7",
    5: "b726ca53a6f8e7d0",
}
"""First digits of each step's checksum."""


def test_a_second_setup_does_nothing(tmp_path: Path) -> None:
    path = tmp_path / "team.db"
    setup_database(str(path), SETUP_TIME)
    before = folder_state(tmp_path)
    result = setup_database(str(path), SETUP_TIME)
    assert result == (SetupAction.UNCHANGED, HEAD_VERSION, HEAD_VERSION, "wal", None, ())
    assert folder_state(tmp_path) == before


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o277])
def test_folders_and_files_are_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    """I11."""
    folder = tmp_path / "a" / "b"
    path = folder / "team.db"
    previous = os.umask(umask)
    try:
        setup_database(str(path), SETUP_TIME)
        database = Database(str(path))
        with database.write() as connection:
            connection.execute("INSERT INTO fleets (created_at) VALUES ('')")
        modes = {name: mode_of(folder / name) for name in os.listdir(folder)}
        database.close()
    finally:
        os.umask(previous)
    assert modes == {"team.db": 0o600, "team.db-wal": 0o600, "team.db-shm": 0o600}
    assert (mode_of(tmp_path / "a"), mode_of(folder)) == (0o700, 0o700)


def test_an_existing_folder_keeps_its_mode(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o755)
    setup_database(str(folder / "team.db"), SETUP_TIME)
    assert mode_of(folder) == 0o755


@pytest.mark.parametrize("statements", [None, (), ("CREATE TABLE t (x)", "DROP TABLE t")])
def test_an_empty_file_is_filled(tmp_path: Path, statements: tuple[str, ...] | None) -> None:
    path = tmp_path / "team.db"
    path.touch()
    run_sql(path, *statements or ())
    assert setup_database(str(path), SETUP_TIME).action is SetupAction.CREATED
    assert diagnose(str(path)).state is DatabaseState.CURRENT


def test_a_link_leads_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "real" / "team.db")
    setup_database(str(tmp_path / "link.db"), SETUP_TIME)
    assert os.listdir(tmp_path / "real") == ["team.db"]
    assert (tmp_path / "link.db").is_symlink()


SETUP = """
import resource, sys
from datetime import UTC, datetime
from cafleet.db.migrate import setup_database
from cafleet.errors import CafleetError
if len(sys.argv) > 2:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
try:
    print(setup_database(sys.argv[1], datetime(2026, 1, 1, tzinfo=UTC)).action)
except CafleetError as error:
    print(error)
"""
"""Arguments: the path, and the most bytes that a file may have."""


def start_setup(path: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SETUP, str(path), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("start", ["missing", "empty", "outdated"])
def test_many_setups_at_once_make_one_database(tmp_path: Path, start: str) -> None:
    path = tmp_path / "team.db"
    if start == "empty":
        path.touch()
    elif start == "outdated":
        team_file(path, 1)
    answers = []
    running = [start_setup(path) for _ in range(24)]
    for process in running:
        output, errors = process.communicate()
        assert errors == ""
        answers.append(output.strip())
    done = "upgraded" if start == "outdated" else "created"
    assert sorted(answers) == sorted([done] + ["unchanged"] * 23)
    assert diagnose(str(path)).state is DatabaseState.CURRENT
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]


KILLED_SETUPS = """
import os, shutil, signal, sys
from datetime import UTC, datetime
from cafleet.db.diagnosis import diagnose
from cafleet.db.migrate import setup_database

template, points = sys.argv[1], int(sys.argv[2])
now = datetime(2026, 1, 1, tzinfo=UTC)
passed = 0

def set_up(folder, fatal):
    def trace(frame, event, argument):
        global passed
        if not frame.f_code.co_filename.endswith(("db/migrate.py", "db/steps.py", "db/backup.py")):
            return None
        passed += event == "line"
        if passed == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        return trace
    sys.settrace(trace)
    setup_database(folder + "/team.db", now)
    sys.settrace(None)

set_up(shutil.copytree(template, f"{template}-whole"), None)
lines, passed = passed, 0
for fatal in sorted({*range(1, lines, lines // points), *range(lines - 12, lines + 1)}):
    folder = shutil.copytree(template, f"{template}-{fatal}")
    child = os.fork()
    if not child:
        set_up(folder, fatal)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    path = folder + "/team.db"
    print(path, diagnose(path).state, setup_database(path, now).action, diagnose(path).state)
"""


@pytest.mark.parametrize("version", [None, 1, 3])
def test_a_setup_that_is_killed_left_the_old_or_the_new(tmp_path: Path, version: int | None) -> None:
    """Killed at its n-th line, for many n, and then set up again."""
    template = tmp_path / "file"
    template.mkdir()
    if version is not None:
        team_file(template / "team.db", version)
    finished = subprocess.run(
        [sys.executable, "-c", KILLED_SETUPS, str(template), "20"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert finished.returncode == 0, finished.stderr
    lines = [line.rsplit(" ", 3) for line in finished.stdout.splitlines()]
    assert len(lines) > 30
    old = {"missing", "empty"} if version is None else {"outdated"}
    done = "created" if version is None else "upgraded"
    assert {line[1] for line in lines} == {*old, "current"}
    for path, state, action, in_the_end in lines:
        assert action == ("unchanged" if state == "current" else done)
        assert in_the_end == "current"
        assert rows(Path(path), "PRAGMA integrity_check") == [("ok",)]
        if version is not None:
            assert content(Path(path)) == content(template / "team.db")
            left = os.listdir(os.path.dirname(path))
            assert {name for name in left if not name.startswith(f"team.db.format{version}.")} == {"team.db"}
            if state == "outdated":
                assert [name for name in left if not name.endswith((".bak", ".db"))] == []


def test_a_setup_that_fails_on_the_disk_leaves_nothing_or_the_old(tmp_path: Path) -> None:
    """For many limits of the size of a file."""
    answers = set()
    for number, limit in enumerate([*range(0, 140_000, 9_000), 400_000]):
        folder = tmp_path / str(number)
        process = start_setup(folder / "team.db", str(limit))
        output, errors = process.communicate()
        assert errors == ""
        answers.add(output.strip().replace(str(folder), ""))
        if output != "created\n":
            assert diagnose(str(folder / "team.db")).state is DatabaseState.MISSING
            assert os.listdir(folder) == []
    assert len(answers) == 2
    assert "created" in answers
    assert any("the disk refused to read or write /team.db" in answer for answer in answers)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o500)
    for path in (folder / "team.db", folder / "deeper" / "team.db"):
        finished = run_without_rights(SETUP, str(path))
        assert finished.stdout == f"cannot open database {path}: Permission denied\n", finished.stderr
    assert os.listdir(folder) == []


def test_a_current_file_in_a_read_only_folder_needs_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    setup_database(str(folder / "team.db"), SETUP_TIME)
    folder.chmod(0o500)
    finished = run_without_rights(SETUP, str(folder / "team.db"))
    assert finished.stdout == "unchanged\n", finished.stderr


def test_a_folder_in_the_place_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnreadable) as caught:
        setup_database(str(tmp_path), SETUP_TIME)
    assert str(caught.value) == f"cannot open database {tmp_path}: it is a directory"
    (tmp_path / "file").touch()
    with pytest.raises(DatabaseUnreadable):
        setup_database(str(tmp_path / "file" / "team.db"), SETUP_TIME)


# -- upgrading -----------------------------------------------------------------------------------


@pytest.mark.parametrize("journal_mode", ["wal", "delete"])
@pytest.mark.parametrize("version", range(1, HEAD_VERSION))
def test_an_upgrade_keeps_every_row_and_a_copy(tmp_path: Path, version: int, journal_mode: str) -> None:
    path = tmp_path / "team.db"
    team_file(path, version, journal_mode=journal_mode)
    before = content(path)
    result = setup_database(str(path), SETUP_TIME)
    backup_path = tmp_path / f"team.db.format{version}.bak"
    assert result == (SetupAction.UPGRADED, HEAD_VERSION, version, "wal", str(backup_path), ())
    assert diagnose(str(path)).state is DatabaseState.CURRENT
    assert content(path) == before
    assert content(backup_path) == before
    assert diagnose(str(backup_path))[:2] == (DatabaseState.OUTDATED, version)
    assert mode_of(backup_path) == 0o600
    assert rows(path, "PRAGMA foreign_key_check") == []
    assert rows(path, "SELECT version FROM refinery_schema_history") == [
        (number,) for number in range(1, HEAD_VERSION + 1)
    ]
    assert sorted(os.listdir(tmp_path)) == ["team.db", backup_path.name]


def test_the_columns_of_later_versions_have_their_defaults(tmp_path: Path) -> None:
    path = tmp_path / "team.db"
    team_file(path, 1)
    setup_database(str(path), SETUP_TIME)
    found = rows(path, "SELECT type, origin_message_id, owner_member_id, client_key FROM messages")
    assert found == [("unicast", None, 2, None)] * 2
    assert rows(path, "SELECT member_card_json FROM members") == [("{}",)] * 2
    assert rows(path, "SELECT mux_server FROM member_placements") == [(None,)] * 2


def test_a_file_of_another_cafleet_upgrades_with_all_its_own(tmp_path: Path) -> None:
    path = tmp_path / "team.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(OTHER_CAFLEET)
    add_rows(path)
    kill_while_writing(path, "INSERT INTO their_notes VALUES (77, 'kept')")
    before = content(path)
    notes = rows(path, "SELECT * FROM their_notes")
    assert len(notes) == 4
    result = setup_database(str(path), SETUP_TIME)
    assert (result.action, result.from_version) == (SetupAction.UPGRADED, 1)
    assert content(path) == before
    assert rows(path, "SELECT * FROM their_notes") == notes
    assert rows(path, "SELECT n FROM their_view") == [(2,)]
    assert rows(path, "SELECT checksum FROM refinery_schema_history WHERE version = 1") == [("123456789",)]
    database = Database(str(path))
    with database.write() as connection:
        connection.execute(ADD_MESSAGE)
        assert connection.execute("SELECT max(message_id) FROM messages").fetchone() == (4,)
        assert connection.execute("SELECT count(*) FROM their_notes").fetchone() == (5,)
    database.close()


def test_the_log_of_a_killed_writer_is_upgraded_too(tmp_path: Path) -> None:
    path = tmp_path / "team.db"
    team_file(path, 1)
    kill_while_writing(path, ADD_MESSAGE.replace("hello", "last words"))
    setup_database(str(path), SETUP_TIME)
    assert ("last words",) in rows(path, "SELECT text FROM messages")
    assert ("last words",) in rows(tmp_path / "team.db.format1.bak", "SELECT text FROM messages")


def test_an_earlier_copy_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "team.db"
    team_file(path, 2)
    first = tmp_path / "team.db.format2.bak"
    first.write_text("mine")
    (tmp_path / "team.db.format2.2.bak").symlink_to("nowhere")
    assert setup_database(str(path), SETUP_TIME).backup_path == f"{path}.format2.3.bak"
    assert first.read_text() == "mine"


def check_failed_upgrade(path: Path, error: type[DatabaseError]) -> str:
    before, listing = content(path), sorted(os.listdir(path.parent))
    schema = rows(path, "SELECT * FROM sqlite_master")
    with pytest.raises(error) as caught:
        setup_database(str(path), SETUP_TIME, busy_timeout_seconds=0.1)
    assert content(path) == before
    assert rows(path, "SELECT * FROM sqlite_master") == schema
    assert sorted(os.listdir(path.parent)) == listing
    return str(caught.value)


@pytest.mark.parametrize(
    ("statement", "difference"),
    [
        ("ALTER TABLE messages ADD COLUMN client_key BLOB", "duplicate column name: client_key"),
        ("CREATE TABLE monitor_runtime (x)", "table monitor_runtime already exists"),
        (
            "CREATE INDEX idx_messages_inbox ON messages(text)",
            "index idx_messages_inbox already exists",
        ),
    ],
)
def test_what_is_in_the_way_stops_an_upgrade_before_anything_changed(
    tmp_path: Path, statement: str, difference: str
) -> None:
    path = tmp_path / "team.db"
    team_file(path, 1)
    run_sql(path, statement)
    message = check_failed_upgrade(path, UpgradeFailed)
    assert message == f"database {path} stays at format 1, unchanged: {difference}"
    assert diagnose(str(path))[:2] == (DatabaseState.OUTDATED, 1)


def test_two_monitors_in_a_fleet_stop_an_upgrade(tmp_path: Path) -> None:
    path = tmp_path / "team.db"
    team_file(path, 3)
    card = '{"skills": [], "cafleet": {"kind": "monitor"}}'
    monitors = [
        *[(12, 2, "active", card), (11, 2, "active", card), (13, 2, "deregistered", card)],
        *[(10, 1, "active", card), (9, 1, "active", card), (8, 1, "active", card)],
        *[(20, 3, "active", card), (21, 3, "deregistered", card), (22, 3, "deregistered", "not a card")],
    ]
    run_sql(path, "INSERT INTO fleets (fleet_id, created_at) VALUES (2, ''), (3, '')")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany(
            "INSERT INTO members"
            " (member_id, fleet_id, name, description, status, registered_at, member_card_json)"
            " VALUES (?, ?, 'm', '', ?, '', ?)",
            monitors,
        )
    message = check_failed_upgrade(path, MonitorDuplicates)
    assert message == (
        "active monitor duplicates prevent migration: fleet 1: members 8, 9, 10; fleet 2: members 11, 12"
    )


def test_a_writer_that_does_not_end_stops_an_upgrade(tmp_path: Path) -> None:
    path = tmp_path / "team.db"
    team_file(path, 1)
    with held_by_another_process(path, "BEGIN IMMEDIATE"):
        check_failed_upgrade(path, DatabaseBusy)


def test_a_disk_that_fails_stops_an_upgrade(tmp_path: Path) -> None:
    answers = []
    for limit in (*range(0, 300_000, 25_000), 2_000_000):
        folder = tmp_path / str(limit)
        folder.mkdir()
        path = folder / "team.db"
        team_file(path, 1)
        before = content(path)
        process = start_setup(path, str(limit))
        output, errors = process.communicate()
        assert errors == ""
        answers.append(output.strip())
        state = diagnose(str(path)).state
        assert content(path) == before
        assert state is (DatabaseState.CURRENT if output == "upgraded\n" else DatabaseState.OUTDATED)
        left = [name for name in os.listdir(folder) if not name.startswith("team.db-")]
        assert len(left) == (2 if output == "upgraded\n" else 1)
    assert answers[0] != "upgraded"
    assert answers[-1] == "upgraded"


def test_an_upgrade_in_a_read_only_folder_says_what_to_do(tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir()
    path = folder / "team.db"
    team_file(path, 1)
    before = folder_state(folder)
    folder.chmod(0o500)
    finished = run_without_rights(SETUP, str(path))
    assert finished.stdout.strip() == str(DatabaseReadOnly(str(path), str(folder))), finished.stderr
    assert folder_state(folder) == before


# -- refusing ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statements", "error"),
    [
        (["CREATE TABLE albums (title)"], DatabaseForeign),
        (["PRAGMA application_id = 7"], DatabaseForeign),
        (
            [f"CREATE TABLE {name} (x)" for name in ("fleets", "members", "member_placements", "messages")],
            DatabaseLegacy,
        ),
    ],
)
def test_what_is_not_ours_is_refused_untouched(
    tmp_path: Path, statements: list[str], error: type[DatabaseError]
) -> None:
    run_sql(tmp_path / "team.db", *statements)
    before = folder_state(tmp_path)
    with pytest.raises(error):
        setup_database(str(tmp_path / "team.db"), SETUP_TIME)
    assert folder_state(tmp_path) == before


def test_a_newer_file_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "team.db"
    file_at_version(path, HEAD_VERSION)
    run_sql(path, "UPDATE refinery_schema_history SET version = 9 WHERE version = 5")
    before = folder_state(tmp_path)
    with pytest.raises(DatabaseNewer):
        setup_database(str(path), SETUP_TIME)
    assert folder_state(tmp_path) == before


# -- notes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cafleet_v6.db", "cafleet.db"])
def test_an_earlier_file_beside_the_default_one_is_mentioned(tmp_path: Path, name: str) -> None:
    earlier = tmp_path / name
    run_sql(
        earlier, *(f"CREATE TABLE {t} (x)" for t in ("fleets", "members", "member_placements", "messages"))
    )
    path = tmp_path / DATABASE_FILE_NAME
    note = f"{earlier} is in an earlier format; 'cafleet import {earlier}' brings it over"
    for _ in range(2):
        assert setup_database(str(path), SETUP_TIME).notes == (note,)
    run_sql(path, *ADD_TEAM)
    assert setup_database(str(path), SETUP_TIME).notes == ()
    assert setup_database(str(tmp_path / "other.db"), SETUP_TIME).notes == ()


def test_a_file_that_cannot_be_brought_over_is_not_mentioned(tmp_path: Path) -> None:
    earliest = tmp_path / "cafleet.db"
    run_sql(earliest, *(f"CREATE TABLE {t} (x)" for t in ("alembic_version", "sessions", "agents", "tasks")))
    assert setup_database(str(tmp_path / DATABASE_FILE_NAME), SETUP_TIME).notes == ()
