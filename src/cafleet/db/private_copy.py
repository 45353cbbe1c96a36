"""A copy of a database file that may be opened, repaired and thrown away.

For files that cannot be read in place without changing something beside them: a log without its shared
memory, a journal of an interrupted writer, a folder that cannot be written.
"""

import os
import shutil
import tempfile

from cafleet.db import connections
from cafleet.db.workshop import Workshop, sweep

COPY_ATTEMPTS = 5
"""How often copying starts again because somebody wrote meanwhile."""


class PrivateCopy:
    """A connection to a copy of the file at `path` with its log and journal, until `close()`.

    Recovery happens on the copy; the original is only read. What a killed process left of such a copy is
    removed by the next one. Raises OSError where copying fails.
    """

    def __init__(self, path: str) -> None:
        temporary = tempfile.gettempdir()
        sweep(temporary)
        self._workshop = Workshop(os.path.join(temporary, "cafleet"))
        try:
            self.path = self._workshop.file
            _copy_settled(path, self.path)
            self.connection = connections.connect(self.path, "mode=rw")
        except BaseException:
            self._workshop.remove()
            raise

    def close(self) -> None:
        """Close the connection and remove the copy."""
        self.connection.close()
        self._workshop.remove()


def _copy_settled(path: str, target: str) -> None:
    """Copy file, log and journal as they were at one moment."""
    for _ in range(COPY_ATTEMPTS):
        before = connections.signature(path)
        for suffix in ("", "-wal", "-journal"):
            if os.path.exists(path + suffix):
                shutil.copyfile(path + suffix, target + suffix)
            elif os.path.exists(target + suffix):
                os.unlink(target + suffix)
        if connections.signature(path) == before:
            return
    raise OSError(f"{path} keeps changing")
