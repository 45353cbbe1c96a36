"""Which process listens at a Unix socket, as the kernel knows it."""

import _socket  # The bare C module: a `message send` from a herdr pane comes here.
import sys

from cafleet.errors import MultiplexerError, MultiplexerTimeout, PaneGone

_DARWIN_PEER = (0, 0x002)
"""`SOL_LOCAL`, `LOCAL_PEERPID`."""
_CREDENTIALS_BYTES = 12
"""Process, user and group, four bytes each."""


def listening_pid(path: str, program: str, timeout_seconds: float) -> int:
    """The process id of the server at `path`; `program` is the multiplexer's name, for errors.

    Raises:
        PaneGone: nobody listens there.
        MultiplexerTimeout, MultiplexerError: it cannot be asked.
    """
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout_seconds)
        connection.connect(path)
        if sys.platform == "darwin":
            return connection.getsockopt(*_DARWIN_PEER)
        credentials = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, _CREDENTIALS_BYTES)
    except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError) as error:
        raise PaneGone(f"its {program} server ({path}) is gone") from error
    except TimeoutError as error:
        raise MultiplexerTimeout(program, timeout_seconds) from error
    except OSError as error:
        raise MultiplexerError(f"cannot reach {program} at {path}: {error.strerror or error}") from error
    finally:
        connection.close()
    return int.from_bytes(credentials[:4], sys.byteorder)
