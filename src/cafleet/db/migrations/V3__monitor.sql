-- A monitor member, marked in its card, and the loop that wakes it (SPEC 2.3, 9).

ALTER TABLE members ADD COLUMN member_card_json TEXT NOT NULL DEFAULT '{}';

-- One row per fleet whose loop has run; no row means no monitor.
CREATE TABLE monitor_runtime (
    fleet_id INTEGER NOT NULL PRIMARY KEY REFERENCES fleets(fleet_id) ON DELETE RESTRICT,
    pid INTEGER,
    started_at TEXT,
    last_tick_at TEXT,
    last_wake_at TEXT,
    wake_requested_at TEXT,
    tick_seconds INTEGER NOT NULL DEFAULT 5,
    wake_interval_seconds INTEGER
);
