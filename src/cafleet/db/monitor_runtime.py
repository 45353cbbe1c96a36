"""Statements on `monitor_runtime`: one per function, connection in, records out (SPEC 9).

A loop proves that the row is still its own by the pid and start time that it claimed with.
"""

from sqlite3 import Connection

from cafleet.models import MonitorRuntime


def get(conn: Connection, fleet_id: int) -> MonitorRuntime | None:
    """The fleet's row; None: no monitor ever ran (or the fleet was deleted)."""
    statement = """
        SELECT fleet_id, pid, started_at, last_tick_at, last_wake_at, wake_requested_at, tick_seconds,
            wake_interval_seconds
        FROM monitor_runtime WHERE fleet_id = ?
    """
    row = conn.execute(statement, (fleet_id,)).fetchone()
    return None if row is None else MonitorRuntime(*row)


def claim(
    conn: Connection, fleet_id: int, *, pid: int, at: str, tick_seconds: int, wake_interval_seconds: int
) -> None:
    """Take the row, new or stale: keeps `last_wake_at`, clears a request of the time before."""
    statement = """
        INSERT INTO monitor_runtime (fleet_id, pid, started_at, last_tick_at, tick_seconds,
            wake_interval_seconds)
        VALUES (:fleet, :pid, :at, :at, :tick, :interval)
        ON CONFLICT (fleet_id) DO UPDATE SET pid = :pid, started_at = :at, last_tick_at = :at,
            wake_requested_at = NULL, tick_seconds = :tick, wake_interval_seconds = :interval
    """
    values = {
        "fleet": fleet_id, "pid": pid, "at": at, "tick": tick_seconds, "interval": wake_interval_seconds
    }  # fmt: skip
    conn.execute(statement, values)


def heartbeat(conn: Connection, fleet_id: int, *, pid: int, started_at: str, at: str) -> bool:
    """Stamp a tick; False where the row is not this loop's any more."""
    statement = """
        UPDATE monitor_runtime SET last_tick_at = ? WHERE fleet_id = ? AND pid = ? AND started_at = ?
    """
    return conn.execute(statement, (at, fleet_id, pid, started_at)).rowcount == 1


def clear(conn: Connection, fleet_id: int, *, pid: int, started_at: str) -> bool:
    """A loop's ordinary end: keeps intervals, the last wake and an open request; False as in `heartbeat`."""
    statement = """
        UPDATE monitor_runtime SET pid = NULL, started_at = NULL, last_tick_at = NULL
        WHERE fleet_id = ? AND pid = ? AND started_at = ?
    """
    return conn.execute(statement, (fleet_id, pid, started_at)).rowcount == 1


def stamp_wake(
    conn: Connection, fleet_id: int, *, pid: int, started_at: str, at: str, request: str | None
) -> bool:
    """A delivered wake: stamps it and clears `request`, which it met, in one write; a later one stays. False
    as in `heartbeat`."""
    statement = """
        UPDATE monitor_runtime SET last_wake_at = ?,
            wake_requested_at = CASE WHEN wake_requested_at IS NOT ? THEN wake_requested_at END
        WHERE fleet_id = ? AND pid = ? AND started_at = ?
    """
    return conn.execute(statement, (at, request, fleet_id, pid, started_at)).rowcount == 1


def request_wake(conn: Connection, fleet_id: int, at: str) -> bool:
    """Ask for a wake on the next tick; repeated requests are one. False: there is no row."""
    statement = "UPDATE monitor_runtime SET wake_requested_at = ? WHERE fleet_id = ?"
    return conn.execute(statement, (at, fleet_id)).rowcount == 1


def set_wake_interval(conn: Connection, fleet_id: int, seconds: int) -> bool:
    """Change the stored wake interval; False: there is no row."""
    statement = "UPDATE monitor_runtime SET wake_interval_seconds = ? WHERE fleet_id = ?"
    return conn.execute(statement, (seconds, fleet_id)).rowcount == 1


def delete(conn: Connection, fleet_id: int) -> bool:
    """Remove the row, as deleting the fleet does; False: there was none."""
    return conn.execute("DELETE FROM monitor_runtime WHERE fleet_id = ?", (fleet_id,)).rowcount == 1
