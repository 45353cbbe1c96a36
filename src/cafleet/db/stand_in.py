"""Reading where a file cannot be opened in place (SPEC 2.5)."""

from cafleet.db import connections
from cafleet.db.private_copy import PrivateCopy


class StandIn:
    """A connection for one read where the file cannot be opened in place: its folder is read-only.

    Without a log the file itself is read, without locks; `has_changed` then tells whether somebody else
    wrote meanwhile. With a log, a private copy of both.
    """

    def __init__(self, file: str) -> None:
        """`file`: its real path. Raises OSError, sqlite3.Error."""
        self._file = file
        self._copy: PrivateCopy | None = None
        self._signature: object = None
        if connections.size_of(file + "-wal") or connections.size_of(file + "-journal"):
            self._copy = PrivateCopy(file)
            self.connection = self._copy.connection
        else:
            self._signature = connections.signature(file)
            self.connection = connections.connect(file, "mode=ro&immutable=1")

    def has_changed(self) -> bool:
        """Whether what was read may be a mixture of old and new."""
        return self._copy is None and connections.signature(self._file) != self._signature

    def close(self) -> None:
        """Close the connection and remove the copy."""
        if self._copy is None:
            self.connection.close()
        else:
            self._copy.close()
