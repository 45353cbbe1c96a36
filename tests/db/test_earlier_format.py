"""SPEC 2.6: an import keeps every row and id, and never a half of them."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
from tests.support.database import (
    ADD_TEAM,
    file_at_version,
    folder_state,
    fresh_database,
    held_by_another_process,
    kill_while_writing,
    rows,
    run_sql,
    run_without_rights,
)
from tests.support.earlier_files import BINARY_VERSIONS, write_binary_line, write_python_line

from cafleet.db import earlier_rows
from cafleet.db.database import Database
from cafleet.db.diagnosis import DatabaseState, diagnose
from cafleet.db.earlier_format import ImportReport, Mending, TableCount, import_earlier
from cafleet.db.earlier_rows import Progress
from cafleet.db.head_schema import HEAD_SCHEMA, HEAD_VERSION
from cafleet.db.migrate import setup_database
from cafleet.errors import (
    CafleetError,
    DatabaseForeign,
    DatabaseUnreadable,
    ImportFailed,
    ImportTargetInUse,
    IntegrityError,
    MonitorDuplicates,
    NotAnActiveMonitor,
    NothingToImport,
    TooEarly,
    WrongKind,
)

AS_IT_IS = Mending(str, str)

NOW = datetime(2026, 6, 1, tzinfo=UTC)
NOW_TEXT = "2026-06-01T00:00:00.000000+00:00"

WRITERS: dict[str, Callable[[Path], None]] = {
    "python": write_python_line,
    **{f"binary {version}": partial(write_binary_line, version=version) for version in BINARY_VERSIONS},
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A file of the binary line's last version, alone in its folder."""
    folder = tmp_path / "old"
    folder.mkdir()
    write_binary_line(folder / "old.db", 9)
    return folder / "old.db"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Where nothing is yet, not even the folder."""
    return tmp_path / "new" / "team.db"


def bring_over(
    source: Path,
    target: Path,
    *,
    keep_placements: bool = False,
    monitors: Mapping[int, int] | None = None,
    mending: Mending = AS_IT_IS,
    progress: Progress = lambda copied, total: None,
) -> ImportReport:
    return import_earlier(
        str(source),
        str(target),
        keep_placements=keep_placements,
        monitors=monitors or {},
        mending=mending,
        now=NOW,
        progress=progress,
    )


@pytest.mark.parametrize("keep_placements", [False, True])
@pytest.mark.parametrize("line", WRITERS)
def test_every_line_and_version_comes_over_whole(
    tmp_path: Path, target: Path, line: str, keep_placements: bool
) -> None:
    source = tmp_path / "old" / "old.db"
    source.parent.mkdir()
    WRITERS[line](source)
    before = folder_state(source.parent)
    report = bring_over(source, target, keep_placements=keep_placements)
    assert folder_state(source.parent) == before
    assert os.listdir(target.parent) == ["team.db"]
    assert target.stat().st_mode & 0o777 == 0o600
    assert diagnose(str(target)).state is DatabaseState.CURRENT
    assert rows(target, "PRAGMA integrity_check") == [("ok",)]
    assert rows(target, "PRAGMA foreign_key_check") == []
    assert rows(target, "PRAGMA journal_mode") == [("wal",)]

    placements = 2 if keep_placements else 0
    assert report.tables == (
        TableCount("fleets", 2, 2, 0, 0),
        TableCount("members", 4, 5, 1, 0),
        TableCount("member_placements", 2, placements, 0, 2 - placements),
        TableCount("messages", 5, 5, 0, 0),
        TableCount("monitor_runtime", 1, 1, 0, 0),
    )
    assert report.stand_in_members == (55,)
    assert report.canceled_messages == (1 if line == "python" else 0)
    query = "SELECT member_id, mux_session, mux_window_id, mux_pane_id, backend, coding_agent, mux_server"
    assert (
        rows(target, query + " FROM member_placements")
        == [
            (1, "s", "@1", "%1", "tmux", "one", None),
            (2, "s", "@1", None, "tmux", "two", None),
        ][:placements]
    )
    check_fleets_and_members(target)
    check_messages(target, noted=line == "binary 9")
    version = 1 if line == "python" else int(line.split()[1])
    assert rows(
        target, "SELECT fleet_id, pid, last_tick_at, last_wake_at, tick_seconds FROM monitor_runtime"
    ) == [(3, 77, "2026-01-02", "2026-01-07" if version >= 4 else None, 5)]
    not_kept = {"asset_installs": 1}
    if line == "python" or version < 4:
        not_kept["monitor_config"] = 1
    if version >= 9:
        not_kept["member_execs"] = 1
    assert report.not_kept == not_kept
    assert report.line == (
        "Python line, revision 0006" if line == "python" else f"binary line, version {version}"
    )


def check_fleets_and_members(target: Path) -> None:
    assert rows(target, "SELECT * FROM fleets") == [
        (3, "red", "2026-01-01T00:00:00.000000+00:00", None, 1),
        (5, None, "2026-01-02T00:00:00.000000+00:00", "2026-01-03T00:00:00.000000+00:00", 4),
    ]
    query = "SELECT member_id, fleet_id, name, status, registered_at, deregistered_at FROM members"
    assert rows(target, query) == [
        (1, 3, "Director", "active", "2026-01-01T00:00:00.000000+00:00", None),
        (2, 3, "watcher", "active", "2026-01-01T00:00:01.000000+00:00", None),
        (4, 5, "Director", "deregistered", "2026-01-02", "2026-01-03"),
        (7, 3, "zoë", "deregistered", "2026-01-01T00:00:02.000000+00:00", "2026-01-04"),
        (55, 3, "unknown-55", "deregistered", "2026-01-01T00:00:09.000000+00:00", NOW_TEXT),
    ]
    cards = rows(target, "SELECT member_id, member_card_json FROM members WHERE member_id < 50")
    monitor = {"skills": ["watch"], "cafleet": {"kind": "monitor"}}
    assert {member: json.loads(str(card)) for member, card in cards} == {
        1: {"skills": []},
        2: monitor,
        4: {"skills": []},
        7: {"skills": []},
    }


def check_messages(target: Path, *, noted: bool) -> None:
    query = (
        "SELECT message_id, owner_member_id, from_member_id, to_member_id, type, status_state, created_at,"
        " status_timestamp, origin_message_id, text, notified_at FROM messages"
    )
    moments = {second: f"2026-01-01T00:00:0{second}.000000+00:00" for second in range(5, 10)}
    first = "2026-01-09" if noted else moments[5]
    summary = "Broadcast sent to 1 recipients"
    gone = "from somebody long gone"
    assert rows(target, query) == [
        (1, 2, 1, 2, "unicast", "input_required", moments[5], moments[5], None, "look there", first),
        (2, 1, 2, 1, "unicast", "completed", moments[6], moments[7], None, "done", None),
        (3, 1, 1, 1, "broadcast_summary", "completed", moments[8], moments[8], 3, summary, None),
        (4, 2, 1, 2, "unicast", "input_required", moments[8], moments[8], 3, "all\nof you 🚀", moments[8]),
        (9, 1, 55, 1, "unicast", "input_required", moments[9], moments[9], None, gone, moments[9]),
    ]


def test_no_id_is_given_out_again(source: Path, target: Path) -> None:
    bring_over(source, target)
    database = Database(str(target))
    with database.write() as connection:
        connection.execute("INSERT INTO fleets (created_at) VALUES ('')")
        connection.execute(
            "INSERT INTO members (fleet_id, name, description, status, registered_at)"
            " VALUES (3, 'new', '', 'active', '')"
        )
        connection.execute(
            "INSERT INTO messages"
            " (from_member_id, to_member_id, created_at, status_state, status_timestamp, text)"
            " VALUES (1, 2, '', 'input_required', '', '')"
        )
        newest = connection.execute(
            "SELECT (SELECT max(fleet_id) FROM fleets), (SELECT max(member_id) FROM members),"
            " (SELECT max(message_id) FROM messages)"
        ).fetchone()
    database.close()
    assert newest == (6, 56, 21)


def test_a_log_of_a_killed_writer_comes_over_too(source: Path, target: Path) -> None:
    run_sql(source, "PRAGMA journal_mode=WAL")
    for number in range(2):
        kill_while_writing(source, "UPDATE messages SET text = 'changed' WHERE message_id = 1")
        if number:
            (source.parent / "old.db-shm").unlink()
        before = folder_state(source.parent)
        bring_over(source, target)
        assert folder_state(source.parent) == before
        assert rows(target, "SELECT text FROM messages WHERE message_id = 1") == [("changed",)]
        target.unlink()


def test_nothing_appears_beside_a_source_in_log_mode(source: Path, target: Path) -> None:
    run_sql(source, "PRAGMA journal_mode=WAL")
    before, changed = folder_state(source.parent), source.parent.stat().st_mtime_ns
    bring_over(source, target)
    assert folder_state(source.parent) == before
    assert source.parent.stat().st_mtime_ns == changed  # Not even for a moment.


def test_the_journal_of_a_killed_writer_is_played_back_on_a_copy(source: Path, target: Path) -> None:
    big = "UPDATE messages SET text = hex(zeroblob(300000))"
    kill_while_writing(source, big, commit=False)
    assert (source.parent / "old.db-journal").stat().st_size > 0
    before = folder_state(source.parent)
    bring_over(source, target)
    assert folder_state(source.parent) == before
    check_messages(target, noted=True)


def test_a_source_that_is_written_meanwhile_is_not_imported(source: Path, target: Path) -> None:
    def write(copied: int, total: int) -> None:
        run_sql(source, "UPDATE messages SET text = 'changed'")

    with pytest.raises(ImportFailed, match="somebody writes to it; end what uses it, then try again"):
        bring_over(source, target, progress=write)
    assert not target.parent.exists()


def test_a_source_in_use_is_read_at_one_moment(source: Path, target: Path) -> None:
    run_sql(source, "PRAGMA journal_mode=WAL")
    with held_by_another_process(
        source, "DELETE FROM messages WHERE message_id = 1", "BEGIN IMMEDIATE", "DELETE FROM messages"
    ):
        before = folder_state(source.parent)
        assert bring_over(source, target).tables[3] == TableCount("messages", 4, 4, 0, 0)
        assert folder_state(source.parent) == before


def test_a_source_that_may_only_be_read(source: Path, target: Path) -> None:
    target.parent.mkdir()
    script = """
from datetime import UTC, datetime
from cafleet.db.earlier_format import Mending, import_earlier
print(import_earlier(sys.argv[1], sys.argv[2], keep_placements=True, monitors={}, mending=Mending(str, str),
    now=datetime(2026, 6, 1, tzinfo=UTC), progress=lambda copied, total: None).tables[3].target)
"""
    source.chmod(0o400)
    source.parent.chmod(0o500)
    finished = run_without_rights(script, str(source), str(target))
    source.parent.chmod(0o700)
    assert finished.stdout == "5\n", finished.stderr


@pytest.mark.parametrize("kind", ["empty file", "empty database", "set up", "set up with assets"])
def test_a_target_without_a_fleet_is_filled(source: Path, target: Path, kind: str) -> None:
    target.parent.mkdir()
    target.touch()
    if kind == "empty database":
        run_sql(target, "PRAGMA journal_mode=WAL")
    elif kind != "empty file":
        setup_database(str(target), NOW)
    if kind == "set up with assets":
        run_sql(target, "INSERT INTO asset_installs VALUES ('one', '/p', '1', '')")
    assert bring_over(source, target).tables[3].target == 5
    check_fleets_and_members(target)
    assert rows(target, "SELECT count(*) FROM asset_installs") == [(int(kind == "set up with assets"),)]
    assert os.listdir(target.parent) == ["team.db"]


def contents(folder: Path) -> dict[str, tuple[int, str]]:
    """What is in `folder`, without what a reader leaves beside a current database."""
    if not folder.exists():
        return {}
    return {
        path: facts for path, facts in folder_state(folder).items() if not path.endswith(("-wal", "-shm"))
    }


def check_refused(source: Path, target: Path, error: type[CafleetError], **options: Mapping[int, int]) -> str:
    """Nothing changed on either side; the message."""
    before = folder_state(source.parent)
    there = contents(target.parent)
    with pytest.raises(error) as caught:
        bring_over(source, target, monitors=options.get("monitors"))
    assert folder_state(source.parent) == before
    assert contents(target.parent) == there
    return str(caught.value)


@pytest.mark.parametrize("kind", ["in use", "foreign", "the source", "outdated"])
def test_a_target_that_holds_something_is_refused(source: Path, target: Path, kind: str) -> None:
    target.parent.mkdir()
    if kind == "in use":
        database = fresh_database(target.parent)
        run_sql(Path(database.path), *ADD_TEAM)
        bring = target
    elif kind == "foreign":
        target.write_text("mine")
        bring = target
    elif kind == "outdated":
        file_at_version(target, 1)
        bring = target
    else:
        bring = source
    assert "is not empty; an import needs a new file" in check_refused(source, bring, ImportTargetInUse)


def test_a_target_that_appears_meanwhile_is_left_alone(source: Path, target: Path) -> None:
    def appear(*_: int) -> None:
        setup_database(str(target), NOW)

    with pytest.raises(ImportFailed, match="was made by somebody else meanwhile; try again"):
        bring_over(source, target, progress=appear)
    assert rows(target, "SELECT count(*) FROM fleets") == [(0,)]
    assert bring_over(source, target).tables[0] == TableCount("fleets", 2, 2, 0, 0)


def test_stand_ins_are_looked_up_by_index(target: Path) -> None:
    setup_database(str(target), NOW)
    with closing(sqlite3.connect(target)) as connection:
        connection.execute("ATTACH ? AS earlier", (":memory:",))
        connection.execute("CREATE TABLE earlier.messages (from_member_id)")
        steps: list[str] = []

        def explain(statement: str) -> None:
            if "INSERT INTO members" in statement:
                steps.append(statement)

        connection.execute("INSERT INTO fleets (name, created_at, director_member_id) VALUES ('x', '', 7)")
        connection.set_trace_callback(explain)
        assert earlier_rows.add_stand_ins(connection, NOW_TEXT) == (7,)
        connection.set_trace_callback(None)
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {steps[0]}")]
    assert not [step for step in plan if "SCAN" in step and "messages" in step]


def test_sources_that_are_none(source: Path, target: Path) -> None:
    missing = source.with_name("missing.db")
    assert (
        check_refused(missing, target, DatabaseUnreadable) == f"cannot open database {missing}: no such file"
    )
    for write, error in (
        (lambda path: path.write_text("text"), DatabaseForeign),
        (lambda path: path.touch(), DatabaseUnreadable),
        (lambda path: file_at_version(path, HEAD_VERSION), NothingToImport),
        (lambda path: file_at_version(path, 1), NothingToImport),
    ):
        path = source.with_name("other.db")
        write(path)
        check_refused(path, target, error)
        path.unlink()


def test_the_earliest_files_say_what_to_do_first(source: Path, target: Path) -> None:
    earliest = source.with_name("registry.db")
    run_sql(
        earliest, *(f"CREATE TABLE {name} (x)" for name in ("alembic_version", "sessions", "agents", "tasks"))
    )
    told = check_refused(earliest, target, TooEarly)
    assert "a cafleet before 0.11, which nothing later can read or upgrade" in told
    assert "start afresh in another file with 'cafleet setup'" in told


def test_a_line_that_is_not_known(source: Path, target: Path) -> None:
    run_sql(source, "INSERT INTO refinery_schema_history VALUES (10, 'later', '', '')")
    assert "version 10 of the binary line is not known" in check_refused(source, target, ImportFailed)
    run_sql(source, "DROP TABLE refinery_schema_history")
    check_refused(source, target, ImportFailed)


def damage(source: Path) -> None:
    """Overwrite a page of its messages."""
    run_sql(source, "UPDATE messages SET text = hex(zeroblob(100000)) WHERE message_id = 2")
    page = rows(source, "SELECT rootpage FROM sqlite_master WHERE name = 'messages'")[0][0]
    size = rows(source, "PRAGMA page_size")[0][0]
    with source.open("r+b") as file:
        file.seek((int(str(page)) - 1) * int(str(size)))
        file.write(b"\xff" * int(str(size)))


def lose_rows_that_an_index_has(source: Path) -> None:
    """As an interrupted write to a bad disk might."""
    with closing(sqlite3.connect(source)) as connection:
        indexes = connection.execute(
            "SELECT * FROM sqlite_master WHERE type = 'index' AND tbl_name = 'messages'"
        ).fetchall()
        connection.execute("PRAGMA writable_schema=ON")
        connection.execute("DELETE FROM sqlite_master WHERE type = 'index' AND tbl_name = 'messages'")
        connection.commit()
    with closing(sqlite3.connect(source)) as connection:
        connection.execute("DELETE FROM messages WHERE message_id IN (3, 4)")
        connection.execute("PRAGMA writable_schema=ON")
        connection.executemany("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", indexes)
        connection.commit()


def test_a_damaged_source_is_called_so(source: Path, target: Path) -> None:
    damage(source)
    told = check_refused(source, target, ImportFailed)
    assert told.startswith(f"{source} was not imported: it is damaged (")
    assert str(target) not in told


def test_a_source_whose_counts_are_wrong_comes_to_an_end(source: Path, target: Path) -> None:
    lose_rows_that_an_index_has(source)
    assert "messages: 5 rows became 3" in check_refused(source, target, ImportFailed)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("messages SET text = x'6869' WHERE message_id = 4", "the text of message 4 is not text"),
        (
            "messages SET text = CAST(x'ff41' AS TEXT) WHERE message_id = 4",
            "the text of message 4 is not UTF-8 text",
        ),
        (
            "messages SET status_timestamp = x'00' WHERE message_id = 2",
            "the status_timestamp of message 2 is not text",
        ),
        (
            "messages SET origin_message_id = 'x' WHERE message_id = 4",
            "the origin_message_id of message 4 is not a number",
        ),
        (
            "members SET name = CAST(x'ff41' AS TEXT) WHERE member_id = 7",
            "the name of member 7 is not UTF-8 text",
        ),
        ("members SET name = x'6869' WHERE member_id = 2", "the name of member 2 is not text"),
        ("fleets SET name = x'6869' WHERE fleet_id = 3", "the name of fleet 3 is not text"),
        ("monitor_runtime SET pid = 'x'", "the pid of the monitor loop of fleet 3 is not a number"),
        (
            "member_placements SET mux_pane_id = x'6869' WHERE member_id = 2",
            "the mux_pane_id of the placement of member 2 is not text",
        ),
    ],
)
def test_a_value_of_another_kind_is_named(source: Path, target: Path, change: str, message: str) -> None:
    run_sql(source, f"UPDATE {change}")
    with pytest.raises(WrongKind) as caught:
        bring_over(source, target, keep_placements=True)
    assert str(caught.value) == f"integrity error: {message}"
    assert not target.exists()


def test_what_is_left_out_need_not_be_readable(source: Path, target: Path) -> None:
    run_sql(source, "UPDATE member_placements SET mux_pane_id = x'6869'")
    bring_over(source, target)


def test_a_counter_that_is_no_number_is_passed_over(source: Path, target: Path) -> None:
    run_sql(source, "UPDATE sqlite_sequence SET seq = 'x' WHERE name = 'messages'")
    bring_over(source, target)
    assert rows(target, "SELECT seq FROM sqlite_sequence WHERE name = 'messages'") == [(9,)]


def test_nothing_of_the_sources_own_runs(source: Path, target: Path) -> None:
    run_sql(
        source,
        "CREATE TABLE ran (what)",
        "CREATE TRIGGER on_member AFTER INSERT ON members BEGIN SELECT raise(ABORT, 'ran'); END",
        "CREATE TRIGGER on_message AFTER INSERT ON messages BEGIN INSERT INTO ran VALUES (1); END",
        "CREATE VIEW members_too AS SELECT * FROM members",
    )
    before = folder_state(source.parent)
    bring_over(source, target)
    assert folder_state(source.parent) == before
    assert rows(target, "SELECT name FROM sqlite_master WHERE type IN ('trigger', 'view')") == []


def test_a_target_that_cannot_be_opened_is_not_called_full(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    told = check_refused(source, folder, DatabaseUnreadable)
    assert told == f"cannot open database {folder}: it is a directory"


def test_a_refused_import_leaves_no_folder(source: Path, tmp_path: Path) -> None:
    add_second_monitor(source)
    check_refused(source, tmp_path / "a" / "b" / "team.db", MonitorDuplicates)
    assert not (tmp_path / "a").exists()


def test_the_indexes_are_those_of_a_new_file(source: Path, target: Path) -> None:
    bring_over(source, target)
    found = set(rows(target, "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
    assert set(HEAD_SCHEMA.items()) <= found


def test_a_source_with_a_missing_column(source: Path, target: Path) -> None:
    run_sql(source, "ALTER TABLE messages DROP COLUMN origin_message_id")
    assert "no such column: origin_message_id" in check_refused(source, target, ImportFailed)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "UPDATE messages SET status_state = 'lost' WHERE message_id = 4",
            "message 4 has an unknown status_state 'lost'",
        ),
        ("UPDATE messages SET type = 'x' WHERE message_id = 2", "message 2 has an unknown type 'x'"),
        (
            "UPDATE members SET status = 'asleep' WHERE member_id = 7",
            "member 7 has an unknown status 'asleep'",
        ),
    ],
)
def test_an_unknown_value_is_named(source: Path, target: Path, statement: str, message: str) -> None:
    run_sql(source, statement)
    assert check_refused(source, target, IntegrityError) == f"integrity error: {message}"


# -- monitors --------------------------------------------------------------------------------------


def add_second_monitor(source: Path) -> None:
    run_sql(
        source,
        "DROP INDEX idx_members_one_active_monitor_per_fleet",
        "INSERT INTO members SELECT 8, 3, 'second', '', 'active', '2026-01-01', NULL, member_card_json"
        " FROM members WHERE member_id = 2",
        "INSERT INTO member_placements (member_id, mux_session, mux_window_id, coding_agent, created_at)"
        " VALUES (8, 's', '@1', 'one', '2026-01-01')",
    )


def test_two_monitors_need_a_choice(source: Path, target: Path) -> None:
    add_second_monitor(source)
    assert check_refused(source, target, MonitorDuplicates) == (
        "active monitor duplicates prevent migration: fleet 3: members 2, 8"
    )


@pytest.mark.parametrize("choice", [{3: 1}, {3: 7}, {5: 2}, {99: 2}, {3: 99}])
def test_a_choice_must_be_one_of_them(source: Path, target: Path, choice: dict[int, int]) -> None:
    add_second_monitor(source)
    ((fleet_id, member_id),) = choice.items()
    assert check_refused(source, target, NotAnActiveMonitor, monitors=choice) == (
        f"member {member_id} is not an active monitor of fleet {fleet_id} in the imported file"
    )


def test_the_chosen_monitor_stays_and_the_other_is_deregistered(source: Path, target: Path) -> None:
    add_second_monitor(source)
    report = bring_over(source, target, keep_placements=True, monitors={3: 8})
    assert report.deregistered_monitors == (2,)
    assert rows(
        target, "SELECT member_id, status, deregistered_at FROM members WHERE member_id IN (2, 8)"
    ) == [
        (2, "deregistered", NOW_TEXT),
        (8, "active", None),
    ]
    assert rows(target, "SELECT member_id FROM member_placements") == [(1,), (8,)]
    assert report.tables[2] == TableCount("member_placements", 3, 2, 0, 1)


def test_a_choice_that_was_not_needed_changes_nothing(source: Path, target: Path) -> None:
    assert bring_over(source, target, monitors={3: 2}).deregistered_monitors == ()
    check_fleets_and_members(target)


# -- rows that the current format cannot hold --------------------------------------------------------


def test_everybody_who_is_named_gets_a_row(source: Path, target: Path) -> None:
    run_sql(
        source,
        "UPDATE fleets SET director_member_id = 60 WHERE fleet_id = 5",
        "INSERT INTO messages (owner_member_id, from_member_id, to_member_id, type, created_at, status_state,"
        " status_timestamp, text) VALUES (61, 7, 61, 'unicast', 't', 'completed', 't', 'to nobody'),"
        " (62, 63, 62, 'unicast', 't', 'completed', 't', 'nobody to nobody')",
        "DROP INDEX idx_members_one_active_monitor_per_fleet",
        "INSERT INTO members VALUES (30, 40, 'lost', '', 'active', 't', NULL, 'not json')",
        "INSERT INTO monitor_runtime (fleet_id) VALUES (41)",
    )
    report = bring_over(source, target)
    assert report.stand_in_members == (55, 60, 61, 62, 63)
    assert report.stand_in_fleets == (40, 41)
    assert rows(target, "SELECT member_id, fleet_id FROM members WHERE name LIKE 'unknown-%'") == [
        (55, 3),
        (60, 5),
        (61, 3),
        (62, 3),
        (63, 3),
    ]
    assert rows(target, "SELECT fleet_id, deleted_at FROM fleets WHERE name LIKE 'unknown-%'") == [
        (40, NOW_TEXT),
        (41, NOW_TEXT),
    ]
    assert rows(target, "SELECT member_card_json FROM members WHERE member_id = 30") == [('{"skills":[]}',)]
    assert rows(target, "PRAGMA foreign_key_check") == []


def test_names_are_mended_where_the_rules_ask_for_it(source: Path, target: Path) -> None:
    mending = Mending(lambda name: name.replace("zoë", "zoe"), lambda text: text.replace("looks", "watches"))
    report = bring_over(source, target, mending=mending)
    assert report.mended_members == (2, 7)
    assert report.mended_fleets == ()
    query = "SELECT name, description FROM members WHERE member_id IN (2, 7)"
    assert rows(target, query) == [("watcher", "watches"), ("zoe", "left")]


def test_a_directors_card_carries_no_marker(source: Path, target: Path) -> None:
    run_sql(
        source,
        "UPDATE fleets SET director_member_id = 2 WHERE fleet_id = 3",
    )
    bring_over(source, target)
    assert rows(target, "SELECT member_card_json FROM members WHERE member_id = 2") == [
        ('{"skills":["watch"]}',)
    ]


# -- failures ---------------------------------------------------------------------------------------


def test_progress_counts_the_messages(source: Path, target: Path) -> None:
    seen: list[tuple[int, int]] = []
    bring_over(source, target, progress=lambda copied, total: seen.append((copied, total)))
    assert seen == [(5, 5)]


KILLED_IMPORT = """
import os, signal, sys
from datetime import UTC, datetime
from cafleet.db.earlier_format import Mending, import_earlier
def progress(copied, total):
    os.kill(os.getpid(), int(sys.argv[3]))
import_earlier(sys.argv[1], sys.argv[2], keep_placements=True, monitors={}, mending=Mending(str, str),
    now=datetime(2026, 6, 1, tzinfo=UTC), progress=progress)
"""


@pytest.mark.parametrize("start", ["missing", "set up"])
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_an_import_that_is_ended_can_be_done_again(
    source: Path, target: Path, start: str, end: signal.Signals
) -> None:
    if start == "set up":
        setup_database(str(target), NOW)
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_IMPORT, str(source), str(target), str(int(end))],
        check=False,
        capture_output=True,
    )
    assert killed.returncode == -end
    if start == "missing":
        assert not target.exists()
        assert target.parent.exists() == (end is signal.SIGKILL), "the new folder goes, too"
    else:
        assert rows(target, "SELECT count(*) FROM fleets") == [(0,)]
    assert bring_over(source, target).tables[3].target == 5
    check_fleets_and_members(target)


def test_a_disk_that_fails_leaves_no_target(source: Path, target: Path) -> None:
    run_sql(source, "UPDATE messages SET text = hex(zeroblob(300000)) WHERE message_id = 1")
    script = (
        "import resource, sys\n"
        "from cafleet.errors import CafleetError\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))\n"
        f"script = {KILLED_IMPORT!r}\n"
        "try: exec(script)\n"
        "except CafleetError as error: print(error)\n"
    )
    finished = subprocess.run(
        [sys.executable, "-c", script, str(source), str(target), "0"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert "was not imported: the disk refused to read or write" in finished.stdout
    assert not target.parent.exists()
