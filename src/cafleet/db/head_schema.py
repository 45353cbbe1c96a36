"""The schema of the head version, as SQLite keeps it after all migrations.

This is the quick half of the diagnosis: a file whose texts are these needs no closer look. A file with
other texts is compared column by column instead (`steps.first_difference_from`). The migrations are what
makes a database; a test proves that they lead to exactly this.
"""

APPLICATION_ID = 1128351288
"""The ASCII bytes `CAF8`."""

HEAD_VERSION = 5
"""The file format that this cafleet reads and writes."""

HEAD_SCHEMA = {
    "asset_installs": """\
CREATE TABLE asset_installs (
    coding_agent TEXT NOT NULL,
    path TEXT NOT NULL,
    cafleet_version TEXT NOT NULL,
    installed_at TEXT NOT NULL,
    PRIMARY KEY (coding_agent, path)
)""",
    "fleets": """\
CREATE TABLE fleets (
    fleet_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    name TEXT,
    created_at TEXT NOT NULL,
    deleted_at TEXT,
    director_member_id INTEGER REFERENCES members(member_id) ON DELETE RESTRICT
)""",
    "member_placements": """\
CREATE TABLE member_placements (
    member_id INTEGER NOT NULL PRIMARY KEY REFERENCES members(member_id) ON DELETE CASCADE,
    mux_session TEXT NOT NULL,
    mux_window_id TEXT NOT NULL,
    mux_pane_id TEXT,
    backend TEXT NOT NULL DEFAULT 'tmux',
    coding_agent TEXT NOT NULL,
    created_at TEXT NOT NULL
, mux_server TEXT)""",
    "members": """\
CREATE TABLE members (
    member_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    fleet_id INTEGER NOT NULL REFERENCES fleets(fleet_id) ON DELETE RESTRICT,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    status TEXT NOT NULL,
    registered_at TEXT NOT NULL,
    deregistered_at TEXT
, member_card_json TEXT NOT NULL DEFAULT '{}')""",
    "messages": """\
CREATE TABLE messages (
    message_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    from_member_id INTEGER NOT NULL REFERENCES members(member_id) ON DELETE RESTRICT,
    to_member_id INTEGER NOT NULL REFERENCES members(member_id) ON DELETE RESTRICT,
    created_at TEXT NOT NULL,
    status_state TEXT NOT NULL,
    status_timestamp TEXT NOT NULL,
    text TEXT NOT NULL,
    notified_at TEXT
, type TEXT NOT NULL DEFAULT 'unicast', origin_message_id INTEGER, owner_member_id INTEGER
    GENERATED ALWAYS AS (CASE type WHEN 'broadcast_summary' THEN from_member_id ELSE to_member_id END) VIRTUAL
    REFERENCES members(member_id) ON DELETE RESTRICT, client_key TEXT)""",
    "monitor_runtime": """\
CREATE TABLE monitor_runtime (
    fleet_id INTEGER NOT NULL PRIMARY KEY REFERENCES fleets(fleet_id) ON DELETE RESTRICT,
    pid INTEGER,
    started_at TEXT,
    last_tick_at TEXT,
    last_wake_at TEXT,
    wake_requested_at TEXT,
    tick_seconds INTEGER NOT NULL DEFAULT 5,
    wake_interval_seconds INTEGER
)""",
    "refinery_schema_history": (
        "CREATE TABLE refinery_schema_history"
        "(version INT4 PRIMARY KEY, name VARCHAR(255), applied_on VARCHAR(255), checksum VARCHAR(255))"
    ),
    "idx_members_fleet_status": ("CREATE INDEX idx_members_fleet_status ON members(fleet_id, status)"),
    "idx_members_one_active_monitor_per_fleet": """\
CREATE UNIQUE INDEX idx_members_one_active_monitor_per_fleet
    ON members(fleet_id)
    WHERE status = 'active' AND json_extract(member_card_json, '$.cafleet.kind') = 'monitor'""",
    "idx_messages_client_key": """\
CREATE UNIQUE INDEX idx_messages_client_key
    ON messages(from_member_id, to_member_id, client_key)
    WHERE client_key IS NOT NULL""",
    "idx_messages_closed": """\
CREATE INDEX idx_messages_closed
    ON messages(owner_member_id, status_timestamp)
    WHERE type = 'unicast' AND status_state <> 'input_required'""",
    "idx_messages_from_member_status_ts": (
        "CREATE INDEX idx_messages_from_member_status_ts ON messages(from_member_id, status_timestamp)"
    ),
    "idx_messages_inbox": """\
CREATE INDEX idx_messages_inbox
    ON messages(owner_member_id, status_timestamp)
    WHERE status_state = 'input_required'""",
    "idx_messages_owner_member_status_ts": (
        "CREATE INDEX idx_messages_owner_member_status_ts ON messages(owner_member_id, status_timestamp)"
    ),
    "idx_messages_received": """\
CREATE INDEX idx_messages_received
    ON messages(owner_member_id, created_at)
    WHERE type = 'unicast'""",
    "idx_messages_sent": ("CREATE INDEX idx_messages_sent ON messages(from_member_id, created_at)"),
    "idx_messages_to_member_status_ts": (
        "CREATE INDEX idx_messages_to_member_status_ts ON messages(to_member_id, status_timestamp)"
    ),
    "idx_messages_unnotified": """\
CREATE INDEX idx_messages_unnotified
    ON messages(owner_member_id, created_at)
    WHERE status_state = 'input_required' AND notified_at IS NULL""",
}
