"""The first process of a new pane: reads its orders, then becomes the agent.

Run as `python -I -S launcher.py FILE`, so it imports nothing of cafleet. See `launch_file.py`.
"""

import fcntl
import json
import os
import signal
import stat
import sys
from typing import Any

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
            orders = json.load(file)
        os.ftruncate(descriptor, 0)
        become(orders)
    except (OSError, ValueError) as error:
        words = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) else str(error)
        reason = f"cannot start the program: {words}"
        os.pwrite(descriptor, reason.encode("utf-8", "replace"), 0)
        sys.stderr.write(reason + "\n")
    return FAILED


def become(orders: dict[str, Any]) -> None:
    """Replace this process as ordered. Raises OSError or ValueError."""
    environ = scrubbed(dict(os.environ), orders["scrub"])
    environ.update(orders["environ"])
    if orders["title"] and sys.stdout.isatty():
        sys.stdout.write(f"\x1b]2;{orders['title']}\x07")
        sys.stdout.flush()
    os.chdir(orders["directory"])
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, the agent must not.
        signal.signal(number, signal.SIG_DFL)
    os.execve(orders["argv"][0], orders["argv"], environ)


def scrubbed(environ: dict[str, str], names: list[str]) -> dict[str, str]:
    """Without the variables that `names` lists, a trailing `*` standing for any ending."""
    prefixes = tuple(name[:-1] for name in names if name.endswith("*"))
    exact = {name for name in names if not name.endswith("*")}
    return {
        name: value
        for name, value in environ.items()
        if name not in exact and not (prefixes and name.startswith(prefixes))
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
