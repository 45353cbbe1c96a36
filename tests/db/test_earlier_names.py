"""Files of the first releases with numbered fleets, whose tables and columns had other names."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.database import SETUP_TIME, folder_state, rows, run_sql

from cafleet.broker.names import mend_description, mend_name
from cafleet.db.diagnosis import DatabaseState, diagnose
from cafleet.db.earlier_format import ImportReport, import_earlier
from cafleet.db.earlier_rows import Mending
from cafleet.db.migrate import setup_database

TABLES = """
CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY);
INSERT INTO alembic_version VALUES ('0001');
CREATE TABLE agents (
    agent_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, fleet_id INTEGER NOT NULL, name VARCHAR NOT NULL,
    description VARCHAR NOT NULL, status VARCHAR NOT NULL, registered_at VARCHAR NOT NULL,
    deregistered_at VARCHAR, agent_card_json VARCHAR NOT NULL);
CREATE TABLE fleets (
    fleet_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, label VARCHAR, created_at VARCHAR NOT NULL,
    deleted_at VARCHAR, director_agent_id INTEGER REFERENCES agents (agent_id));
CREATE TABLE tasks (
    task_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, context_id INTEGER NOT NULL,
    from_agent_id INTEGER NOT NULL, to_agent_id INTEGER, type VARCHAR NOT NULL, created_at VARCHAR NOT NULL,
    status_state VARCHAR NOT NULL, status_timestamp VARCHAR NOT NULL, origin_task_id INTEGER,
    text VARCHAR NOT NULL);
CREATE TABLE agent_placements (
    agent_id INTEGER NOT NULL PRIMARY KEY, director_agent_id INTEGER, tmux_session VARCHAR NOT NULL,
    tmux_window_id VARCHAR NOT NULL, tmux_pane_id VARCHAR, coding_agent VARCHAR DEFAULT 'one' NOT NULL,
    created_at VARCHAR NOT NULL);
INSERT INTO agents VALUES
    (1, 1, 'Director', 'leads', 'active', '2026-01-01', NULL, '{"name":"x","skills":[]}'),
    (2, 1, 'ann', 'writes', 'active', '2026-01-02', NULL,
        '{"skills":["c"],"cafleet":{"kind":"monitoring-member"}}');
INSERT INTO fleets VALUES (1, 'red', '2026-01-01', NULL, 1);
INSERT INTO agent_placements VALUES (1, NULL, 's', '@1', '%1', 'one', '2026-01-01');
INSERT INTO tasks VALUES
    (3, 2, 1, 2, 'unicast', '2026-01-03', 'input_required', '2026-01-03', NULL, 'hello' || char(10) || '🚀'),
    (4, 1, 1, 0, 'broadcast_summary', '2026-01-04', 'completed', '2026-01-04', 4,
        'Broadcast sent to 1 recipients'),
    (5, 2, 1, 2, 'unicast', '2026-01-04', 'canceled', '2026-01-05', 4, 'all');
UPDATE sqlite_sequence SET seq = 9 WHERE name = 'tasks';
"""

LATER = (
    "ALTER TABLE fleets RENAME COLUMN label TO name",
    "ALTER TABLE agent_placements RENAME COLUMN tmux_session TO mux_session",
    "ALTER TABLE agent_placements RENAME COLUMN tmux_window_id TO mux_window_id",
    "ALTER TABLE agent_placements RENAME COLUMN tmux_pane_id TO mux_pane_id",
    "ALTER TABLE agent_placements ADD COLUMN backend VARCHAR DEFAULT 'herdr' NOT NULL",
    "CREATE TABLE monitor_runtime (fleet_id INTEGER NOT NULL PRIMARY KEY, pid INTEGER, started_at VARCHAR,"
    " last_tick_at VARCHAR, tick_seconds INTEGER DEFAULT '5' NOT NULL)",
    "INSERT INTO monitor_runtime VALUES (1, 7, '2026-01-02', '2026-01-03', 5)",
    "CREATE TABLE monitor_config (agent_id INTEGER NOT NULL PRIMARY KEY, interval_seconds INTEGER)",
    "INSERT INTO monitor_config VALUES (2, 60)",
    "CREATE TABLE skill_installs (coding_agent VARCHAR NOT NULL PRIMARY KEY, cafleet_version VARCHAR)",
    "INSERT INTO skill_installs VALUES ('one', '0.15')",
)
"""What the last of these releases had besides."""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "old"
    folder.mkdir()
    with closing(sqlite3.connect(folder / "old.db")) as connection:
        connection.executescript(TABLES)
    return folder / "old.db"


def bring_over(source: Path, target: Path) -> ImportReport:
    return import_earlier(
        str(source),
        str(target),
        keep_placements=True,
        monitors={},
        mending=Mending(mend_name, mend_description),
        now=SETUP_TIME,
        progress=lambda copied, total: None,
    )


@pytest.mark.parametrize("later", [False, True])
def test_every_row_is_kept(source: Path, tmp_path: Path, later: bool) -> None:
    if later:
        run_sql(source, *LATER)
    assert diagnose(str(source)).state is DatabaseState.LEGACY
    before = folder_state(source.parent)
    target = tmp_path / "new" / "team.db"
    report = bring_over(source, target)
    assert folder_state(source.parent) == before

    counts = {table.table: (table.source, table.target) for table in report.tables}
    assert counts == {
        "fleets": (1, 1),
        "members": (2, 2),
        "member_placements": (1, 1),
        "messages": (3, 3),
        "monitor_runtime": (1, 1) if later else (0, 0),
    }
    assert report.canceled_messages == 1
    assert report.not_kept == ({"asset_installs": 1, "monitor_config": 1} if later else {})
    assert rows(target, "SELECT * FROM fleets") == [(1, "red", "2026-01-01", None, 1)]
    assert rows(target, "SELECT member_id, name, description, status, member_card_json FROM members") == [
        (1, "Director", "leads", "active", '{"skills":[]}'),
        (2, "ann", "writes", "active", '{"skills":["c"],"cafleet":{"kind":"monitor"}}'),
    ]
    assert rows(target, "SELECT mux_session, mux_window_id, mux_pane_id, backend FROM member_placements") == [
        ("s", "@1", "%1", "herdr" if later else "tmux")
    ]
    assert rows(
        target,
        "SELECT message_id, owner_member_id, from_member_id, type, status_state, origin_message_id, text"
        " FROM messages",
    ) == [
        (3, 2, 1, "unicast", "input_required", None, "hello\n🚀"),
        (4, 1, 1, "broadcast_summary", "completed", 4, "Broadcast sent to 1 recipients"),
        (5, 2, 1, "unicast", "completed", 4, "all"),
    ]
    assert rows(target, "SELECT seq FROM sqlite_sequence WHERE name = 'messages'") == [(9,)]
    assert rows(target, "PRAGMA integrity_check") == [("ok",)]
    assert diagnose(str(target)).state is DatabaseState.CURRENT


def test_a_file_that_setup_has_made_is_filled(source: Path, tmp_path: Path) -> None:
    setup_database(str(tmp_path / "made.db"), SETUP_TIME)
    assert bring_over(source, tmp_path / "made.db").tables == bring_over(source, tmp_path / "new.db").tables
