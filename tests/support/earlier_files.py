"""Files of the two earlier lines, as their releases wrote them."""

import sqlite3
from contextlib import closing
from pathlib import Path

BINARY_VERSIONS = range(1, 10)

_LEDGER_ROW = "INSERT INTO refinery_schema_history VALUES (NUMBER, 'x', '', '');"

_TABLES = """
CREATE TABLE members (
    member_id INTEGER NOT NULL, fleet_id INTEGER NOT NULL, name VARCHAR NOT NULL,
    description VARCHAR NOT NULL, status VARCHAR NOT NULL, registered_at VARCHAR NOT NULL,
    deregistered_at VARCHAR, member_card_json VARCHAR NOT NULL,
    PRIMARY KEY (member_id AUTOINCREMENT),
    FOREIGN KEY(fleet_id) REFERENCES fleets (fleet_id) ON DELETE RESTRICT);
CREATE TABLE fleets (
    fleet_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, name VARCHAR, created_at VARCHAR NOT NULL,
    deleted_at VARCHAR, director_member_id INTEGER REFERENCES members (member_id) ON DELETE RESTRICT);
CREATE TABLE member_placements (
    member_id INTEGER NOT NULL PRIMARY KEY REFERENCES members (member_id) ON DELETE CASCADE,
    mux_session VARCHAR NOT NULL, mux_window_id VARCHAR NOT NULL, mux_pane_id VARCHAR,
    backend VARCHAR DEFAULT 'tmux' NOT NULL, coding_agent VARCHAR NOT NULL, created_at VARCHAR NOT NULL);
CREATE TABLE monitor_runtime (
    fleet_id INTEGER NOT NULL PRIMARY KEY REFERENCES fleets (fleet_id) ON DELETE RESTRICT,
    pid INTEGER, started_at VARCHAR, last_tick_at VARCHAR, tick_seconds INTEGER DEFAULT '5' NOT NULL);
CREATE TABLE messages (
    message_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    owner_member_id INTEGER NOT NULL REFERENCES members (member_id) ON DELETE RESTRICT,
    from_member_id INTEGER NOT NULL, to_member_id INTEGER, type VARCHAR NOT NULL, created_at VARCHAR NOT NULL,
    status_state VARCHAR NOT NULL, status_timestamp VARCHAR NOT NULL, origin_message_id INTEGER,
    text VARCHAR NOT NULL);
CREATE INDEX idx_members_fleet_status ON members (fleet_id, status);
CREATE INDEX idx_messages_owner_member_status_ts ON messages (owner_member_id, status_timestamp);
CREATE INDEX idx_messages_from_member_status_ts ON messages (from_member_id, status_timestamp);
"""

_MONITOR_CONFIG = """
CREATE TABLE monitor_config (
    member_id INTEGER NOT NULL PRIMARY KEY REFERENCES members (member_id) ON DELETE CASCADE,
    interval_seconds INTEGER DEFAULT '60' NOT NULL, last_ping_at VARCHAR,
    enabled INTEGER DEFAULT '1' NOT NULL, last_stall_check_at VARCHAR);
INSERT INTO monitor_config (member_id) VALUES (2);
"""

_OLD_INSTALLS = """
CREATE TABLE asset_installs (
    coding_agent VARCHAR NOT NULL PRIMARY KEY, cafleet_version VARCHAR NOT NULL,
    installed_at VARCHAR NOT NULL);
INSERT INTO asset_installs VALUES ('one', '0.1', '2026-01-01');
"""

_NEW_INSTALLS = """
CREATE TABLE asset_installs (
    coding_agent TEXT NOT NULL, path TEXT NOT NULL, cafleet_version TEXT NOT NULL, installed_at TEXT NOT NULL,
    PRIMARY KEY (coding_agent, path));
INSERT INTO asset_installs VALUES ('one', '/home', '0.1', '2026-01-01');
"""

_VERSION_9 = """
ALTER TABLE messages ADD COLUMN notified_at TEXT;
ALTER TABLE member_placements ADD COLUMN keystroke_at TEXT;
ALTER TABLE member_placements ADD COLUMN forced_at TEXT;
ALTER TABLE member_placements ADD COLUMN silence_notice_at TEXT;
CREATE TABLE member_execs (
    exec_id INTEGER PRIMARY KEY AUTOINCREMENT, member_id INTEGER NOT NULL REFERENCES members(member_id),
    command TEXT NOT NULL, created_at TEXT NOT NULL, dispatched_at TEXT, started_at TEXT, pid INTEGER,
    finished_at TEXT, exit_code INTEGER, resumed_at TEXT);
INSERT INTO member_execs (member_id, command, created_at) VALUES (1, 'make', '2026-01-05');
UPDATE messages SET notified_at = '2026-01-09' WHERE message_id = 1;
"""

_VERSION_8 = """
CREATE UNIQUE INDEX idx_members_one_active_monitor_per_fleet ON members(fleet_id)
    WHERE status = 'active' AND json_extract(member_card_json, '$.cafleet.kind') = 'monitor';
"""


_ROWS = """
INSERT INTO fleets VALUES
    (3, 'red', '2026-01-01T00:00:00.000000+00:00', NULL, 1),
    (5, NULL, '2026-01-02T00:00:00.000000+00:00', '2026-01-03T00:00:00.000000+00:00', 4);
INSERT INTO members VALUES
    (1, 3, 'Director', 'leads', 'active', '2026-01-01T00:00:00.000000+00:00', NULL,
        '{"name":"x","description":"","skills":[]}'),
    (2, 3, 'watcher', 'looks', 'active', '2026-01-01T00:00:01.000000+00:00', NULL,
        '{"name":"m","skills":["watch"],"cafleet":{"kind":"MARKER"}}'),
    (4, 5, 'Director', '', 'deregistered', '2026-01-02', '2026-01-03',
        '{"name":"x","description":"","skills":[]}'),
    (7, 3, 'zoë', 'left', 'deregistered', '2026-01-01T00:00:02.000000+00:00', '2026-01-04',
        '{"name":"x","description":"","skills":[]}');
INSERT INTO member_placements (member_id, mux_session, mux_window_id, mux_pane_id, coding_agent, created_at)
    VALUES (1, 's', '@1', '%1', 'one', '2026-01-01'), (2, 's', '@1', NULL, 'two', '2026-01-01');
INSERT INTO monitor_runtime (fleet_id, pid, started_at, last_tick_at)
    VALUES (3, 77, '2026-01-01', '2026-01-02');
INSERT INTO messages VALUES
    (1, 2, 1, 2, 'unicast', '2026-01-01T00:00:05.000000+00:00', 'input_required',
        '2026-01-01T00:00:05.000000+00:00', NULL, 'look there'),
    (2, 1, 2, 1, 'unicast', '2026-01-01T00:00:06.000000+00:00', 'completed',
        '2026-01-01T00:00:07.000000+00:00', NULL, 'done'),
    (3, 1, 1, NULL, 'broadcast_summary', '2026-01-01T00:00:08.000000+00:00', 'completed',
        '2026-01-01T00:00:08.000000+00:00', 3, 'Broadcast sent to 1 recipients'),
    (4, 2, 1, 2, 'unicast', '2026-01-01T00:00:08.000000+00:00', 'input_required',
        '2026-01-01T00:00:08.000000+00:00', 3, 'all' || char(10) || 'of you 🚀'),
    (9, 1, 55, 1, 'unicast', '2026-01-01T00:00:09.000000+00:00', 'input_required',
        '2026-01-01T00:00:09.000000+00:00', NULL, 'from somebody long gone');
UPDATE sqlite_sequence SET seq = 20 WHERE name = 'messages';
UPDATE sqlite_sequence SET seq = 8 WHERE name = 'members';
"""
"""`MARKER`: the kind in a monitor's card."""


def write_python_line(path: Path) -> None:
    """A file of the released Python line at its last revision, with two fleets."""
    _write(
        path,
        "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY);"
        "INSERT INTO alembic_version VALUES ('0006');",
        _TABLES,
        _ROWS.replace("MARKER", "monitoring-member"),
        _MONITOR_CONFIG,
        _OLD_INSTALLS,
        "UPDATE messages SET status_state = 'canceled' WHERE message_id = 2;",
    )


def write_binary_line(path: Path, version: int) -> None:
    """A file of the binary line at ledger `version`, with two fleets."""
    scripts = [
        "CREATE TABLE refinery_schema_history(version INT4 PRIMARY KEY, name VARCHAR(255),"
        " applied_on VARCHAR(255), checksum VARCHAR(255));",
        *(_LEDGER_ROW.replace("NUMBER", str(number)) for number in range(1, version + 1)),
        _TABLES,
        _ROWS.replace("MARKER", "monitor" if version >= 8 else "monitoring-member"),
        _NEW_INSTALLS if version >= 6 else _OLD_INSTALLS,
    ]
    if version < 4:
        scripts.append(_MONITOR_CONFIG)
    if version >= 4:
        scripts.append("ALTER TABLE monitor_runtime ADD COLUMN last_wake_at TEXT;")
        scripts.append("UPDATE monitor_runtime SET last_wake_at = '2026-01-07';")
    if version >= 5:
        scripts.append("ALTER TABLE monitor_runtime ADD COLUMN wake_interval_seconds INTEGER;")
    if version >= 7:
        scripts.append("ALTER TABLE monitor_runtime ADD COLUMN wake_requested_at TEXT;")
    if version >= 8:
        scripts.append(_VERSION_8)
    if version >= 9:
        scripts.append(_VERSION_9)
    _write(path, *scripts)


def _write(path: Path, *scripts: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for script in scripts:
            connection.executescript(script)
