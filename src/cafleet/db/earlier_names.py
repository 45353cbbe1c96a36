"""Files of PyPI cafleet 0.11 to 0.17: the rows of the later releases under other names (SPEC 2.6).

They are copied into a temporary database with the later names, so that nothing else need know of them.
"""

import sqlite3

TABLES = frozenset({"fleets", "agents", "agent_placements", "tasks"})
"""What every file of those releases has."""

_OLD_TABLE = {
    "members": "agents",
    "member_placements": "agent_placements",
    "messages": "tasks",
    "asset_installs": "skill_installs",
}
"""By the later name, where it is another one."""

_COLUMNS: dict[str, dict[str, tuple[str, ...]]] = {
    "alembic_version": {"version_num": ("version_num",)},
    "fleets": {
        "fleet_id": ("fleet_id",),
        "name": ("name", "label"),
        "created_at": ("created_at",),
        "deleted_at": ("deleted_at",),
        "director_member_id": ("director_agent_id",),
    },
    "members": {
        "member_id": ("agent_id",),
        "fleet_id": ("fleet_id",),
        "name": ("name",),
        "description": ("description",),
        "status": ("status",),
        "registered_at": ("registered_at",),
        "deregistered_at": ("deregistered_at",),
        "member_card_json": ("agent_card_json",),
    },
    "member_placements": {
        "member_id": ("agent_id",),
        "mux_session": ("mux_session", "tmux_session"),
        "mux_window_id": ("mux_window_id", "tmux_window_id"),
        "mux_pane_id": ("mux_pane_id", "tmux_pane_id"),
        "backend": ("backend", "'tmux'"),
        "coding_agent": ("coding_agent",),
        "created_at": ("created_at",),
    },
    "messages": {
        "message_id": ("task_id",),
        "owner_member_id": ("context_id",),
        "from_member_id": ("from_agent_id",),
        "to_member_id": ("to_agent_id",),
        "type": ("type",),
        "created_at": ("created_at",),
        "status_state": ("status_state",),
        "status_timestamp": ("status_timestamp",),
        "origin_message_id": ("origin_task_id",),
        "text": ("text",),
    },
    "monitor_runtime": {
        name: (name,) for name in ("fleet_id", "pid", "started_at", "last_tick_at", "tick_seconds")
    },
    "monitor_config": {"member_id": ("agent_id",)},
    "asset_installs": {"coding_agent": ("coding_agent",)},
}
"""By table and column as they are called later: the old column's names, newest first; a literal where
there was none."""


def attach_renamed(connection: sqlite3.Connection, uri: str) -> None:
    """Attach the file at `uri` as `oldest`, and a temporary copy with the later names as `earlier`."""
    connection.execute("ATTACH ? AS oldest", (uri,))
    connection.execute("ATTACH '' AS earlier")
    found = {name for (name,) in connection.execute("SELECT name FROM oldest.sqlite_master")}
    for table, columns in _COLUMNS.items():
        old = _OLD_TABLE.get(table, table)
        if old in found:
            known = {row[1] for row in connection.execute(f"PRAGMA oldest.table_info({old})")}
            parts = [f"{_source(names, known)} AS {name}" for name, names in columns.items()]
            connection.execute(f"CREATE TABLE earlier.{table} AS SELECT {', '.join(parts)} FROM oldest.{old}")  # noqa: S608
    connection.execute("CREATE UNIQUE INDEX earlier.by_id ON messages (message_id)")
    _copy_counters(connection)


def _source(names: tuple[str, ...], known: set[str]) -> str:
    return next((name for name in names if name in known or name.startswith("'")), names[0])


def _copy_counters(connection: sqlite3.Connection) -> None:
    # A table that counts brings SQLite's own table of counters into being.
    connection.execute("CREATE TABLE earlier.counting (x INTEGER PRIMARY KEY AUTOINCREMENT)")
    for table in ("fleets", "members", "messages"):
        connection.execute(
            "INSERT INTO earlier.sqlite_sequence SELECT ?, seq FROM oldest.sqlite_sequence WHERE name = ?",
            (table, _OLD_TABLE.get(table, table)),
        )
