"""A tool call of the stand-in: a `cafleet` command whose output it waits for."""

import os
import signal
import sys
from collections.abc import Mapping, Sequence

_READ_BYTES = 65536


class Tool:
    """A running `cafleet` command."""

    def __init__(self, arguments: Sequence[str], environ: Mapping[str, str]) -> None:
        self.output = b""
        self.reader, writer = os.pipe()
        actions: list[tuple[int, int, str, int, int] | tuple[int, int, int]] = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, writer, 1),
            (os.POSIX_SPAWN_DUP2, writer, 2),
        ]
        program = ("cafleet", *arguments)
        try:
            self._pid = os.posix_spawnp("cafleet", program, environ, file_actions=actions)
        except FileNotFoundError:
            own = (sys.executable, "-m", *program)
            self._pid = os.posix_spawn(sys.executable, own, environ, file_actions=actions)
        finally:
            os.close(writer)

    def read(self) -> bool:
        """Take what it printed; True once it has ended."""
        data = os.read(self.reader, _READ_BYTES)
        self.output += data
        if not data:
            self._reap()
        return not data

    def stop(self) -> None:
        """End it."""
        os.kill(self._pid, signal.SIGTERM)
        self._reap()

    def _reap(self) -> None:
        os.close(self.reader)
        os.waitpid(self._pid, 0)
