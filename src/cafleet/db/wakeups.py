"""Hints from writers to waiters: an empty datagram after each commit (SPEC 4.5).

A waiter binds a socket in a private folder beside the database; a writer sends to every socket there. A
hint may be lost (another user, a sandbox, a full buffer), so nothing here ever raises, and nobody relies
on it: `wait_for_change` also looks at the file now and then.
"""

import _socket  # The bare C module: `socket` costs a hot command several milliseconds.
import os
import stat
from contextlib import suppress

ADDRESS_BYTES = 100
"""What every system accepts as the path of a socket."""
NAME_BYTES = 32
"""More than any socket's name here."""


def send_hints(directory: str, names: list[str]) -> None:
    """Wake whoever waits: `names` are the sockets in `directory`. Sockets that nobody reads are removed."""
    with suppress(OSError):
        address = _Addresses(directory)
        try:
            sender = _socket.socket(_socket.AF_UNIX, _socket.SOCK_DGRAM)
            try:
                for name in names:
                    _send(sender, address.of(name), os.path.join(directory, name))
            finally:
                sender.close()
        finally:
            address.close()


class Receiver:
    """One waiter's socket. Raises OSError where it cannot be made; then there are no hints."""

    def __init__(self, directory: str) -> None:
        make_private(directory)
        name = f"{os.getpid()}-{os.urandom(4).hex()}"
        self._path = os.path.join(directory, name)
        address = _Addresses(directory)
        try:
            self._socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_DGRAM)
            try:
                self._socket.bind(address.of(name))
            except BaseException:
                self._socket.close()
                raise
        finally:
            address.close()

    def wait(self, timeout_seconds: float) -> bool:
        """Block until a hint arrives: True, or the time is over: False. Takes all hints at once."""
        self._socket.settimeout(max(timeout_seconds, 0.0))
        try:
            self._socket.recv(1)
        except (TimeoutError, BlockingIOError):
            return False
        self._socket.settimeout(0.0)
        try:
            while True:
                self._socket.recv(1)
        except BlockingIOError:
            return True

    def close(self) -> None:
        """Take the socket away. Without this (a kill) the next writer does it."""
        self._socket.close()
        with suppress(OSError):
            os.unlink(self._path)


class _Addresses:
    """Socket addresses in a folder, also where its path is too long for one."""

    def __init__(self, directory: str) -> None:
        self._prefix = directory
        self._descriptor: int | None = None
        if len(os.fsencode(directory)) + NAME_BYTES > ADDRESS_BYTES:
            self._descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
            self._prefix = f"/proc/self/fd/{self._descriptor}"

    def of(self, name: str) -> str:
        return os.path.join(self._prefix, name)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)


def make_private(directory: str) -> None:
    """A folder of mode 0700 whatever the umask is; an existing one keeps its mode. Raises OSError."""
    try:
        os.mkdir(directory, 0o700)
    except FileExistsError:
        return
    os.chmod(directory, 0o700)


def _send(sender: _socket.socket, address: str, path: str) -> None:
    try:
        sender.sendto(b"", _socket.MSG_DONTWAIT, address)
    except ConnectionRefusedError:
        _sweep(path)
    except OSError:
        pass  # A full buffer holds hints enough; a socket that is gone needs none.


def _sweep(path: str) -> None:
    """Remove the socket at `path`, whose reader died. Never a file of another kind."""
    with suppress(OSError):
        if stat.S_ISSOCK(os.lstat(path).st_mode):
            os.unlink(path)
