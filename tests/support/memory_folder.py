"""Where the tests' files lie: in memory where there is room, since each commit of SQLite waits for the disk.

Processes are killed and disks are full there as anywhere; only a loss of power would differ, and no test
can cause one.
"""

import os

FOLDER = "/dev/shm"
LEAST_FREE_BYTES = 2 << 30
"""More than a whole run needs; a container often has 64 MiB."""


def use_memory() -> None:
    """Let pytest make its `tmp_path` folders in memory, unless told otherwise or it has no room there."""
    if _is_fit(FOLDER):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", FOLDER)


def _is_fit(folder: str) -> bool:
    """Tests put programs there, too."""
    if not os.access(folder, os.W_OK | os.X_OK):
        return False
    found = os.statvfs(folder)
    return not found.f_flag & os.ST_NOEXEC and found.f_bavail * found.f_frsize >= LEAST_FREE_BYTES
