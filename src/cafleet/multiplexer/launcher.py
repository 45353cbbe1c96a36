"""The first process of a new pane: reads its orders, then becomes the agent.

Run as `python -I -S launcher.py FILE`, so it imports nothing of cafleet. See `launch_file.py`.
"""

import fcntl
import os
import signal
import stat
import sys

FAILED = 127


def main(path: str) -> int:
    """Take the launch file, set the process up, and replace it; returns only after a failure."""
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        return FAILED
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    os.unlink(path)
    try:
        with open(descriptor, "rb", closefd=False) as file:
            orders = read(file.read())
        os.ftruncate(descriptor, 0)
        become(*orders)
    except (OSError, ValueError, TypeError) as error:
        words = f"{error.strerror}: {_text(error.filename)}" if isinstance(error, OSError) else str(error)
        reason = f"cannot start the program: {words}"
        os.pwrite(descriptor, reason.encode("utf-8", "replace"), 0)
        sys.stderr.write(reason + "\n")
    return FAILED


def _text(name: object) -> str:
    return os.fsdecode(name) if isinstance(name, bytes | str) else ""


def read(content: bytes) -> list[list[bytes]]:
    """The lists of a launch file: each a count and its items, all ended by a NUL."""
    items = iter(content.split(b"\0")[:-1])
    return [[next(items) for _ in range(int(count))] for count in items]


def become(
    directory: list[bytes], title: list[bytes], argv: list[bytes], scrub: list[bytes], environ: list[bytes]
) -> None:
    """Replace this process as ordered. Raises OSError or ValueError."""
    whole = scrubbed(dict(os.environb), scrub)
    for entry in environ:
        name, _, value = entry.partition(b"=")
        whole[name] = value
    if title[0] and os.isatty(1):
        os.write(1, b"\x1b]2;" + title[0] + b"\x07")
    os.chdir(directory[0])
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, the agent must not.
        signal.signal(number, signal.SIG_DFL)
    os.execve(argv[0], argv, whole)


def scrubbed(environ: dict[bytes, bytes], names: list[bytes]) -> dict[bytes, bytes]:
    """Without the variables that `names` lists, a trailing `*` standing for any ending."""
    prefixes = tuple(name[:-1] for name in names if name.endswith(b"*"))
    return {
        name: value for name, value in environ.items() if name not in names and not name.startswith(prefixes)
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
