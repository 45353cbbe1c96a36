"""Statements on `asset_installs`: one per function, connection in, records out (SPEC 8)."""

from sqlite3 import Connection

from cafleet.models import AssetInstall


def list_all(conn: Connection) -> list[AssetInstall]:
    """Every recorded install, current or superseded, by agent and path."""
    statement = """
        SELECT coding_agent, path, cafleet_version, installed_at FROM asset_installs
        ORDER BY coding_agent, path
    """
    return [AssetInstall(*row) for row in conn.execute(statement)]


def upsert(conn: Connection, install: AssetInstall) -> None:
    """Record which version last installed an agent's assets at a path."""
    statement = """
        INSERT INTO asset_installs (coding_agent, path, cafleet_version, installed_at) VALUES (?, ?, ?, ?)
        ON CONFLICT (coding_agent, path) DO UPDATE SET
            cafleet_version = excluded.cafleet_version, installed_at = excluded.installed_at
    """
    conn.execute(statement, install)
