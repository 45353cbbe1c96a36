import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.database import fresh_database

from cafleet.db.diagnosis import DatabaseState, diagnose

DIE = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute(sys.argv[2]).fetchall()
connection.commit()
os.kill(os.getpid(), signal.SIGKILL)
"""


def run_and_die(path: str, statement: str) -> None:
    """A process that does one thing to the file and is then killed: log and index stay behind."""
    done = subprocess.run([sys.executable, "-c", DIE, path, statement], check=False)
    assert done.returncode == -signal.SIGKILL


def test_an_index_that_is_not_of_this_log_is_not_waited_for(tmp_path: Path) -> None:
    """Killed right after SQLite had found nothing to recover: the log has a header, the index no salt."""
    database = fresh_database(tmp_path)
    database.close()
    run_and_die(database.path, "UPDATE fleets SET name = 'x'")
    run_and_die(database.path, "INSERT INTO fleets (name, created_at) VALUES ('a', 'b')")
    os.truncate(database.path + "-wal", 32)
    os.truncate(database.path + "-shm", 0)
    run_and_die(database.path, "SELECT * FROM fleets")
    before = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path) if "team.db" in name}
    assert sorted(before) == ["team.db", "team.db-shm", "team.db-wal"]
    assert diagnose(database.path).state is DatabaseState.CURRENT
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
