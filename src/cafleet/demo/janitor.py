"""Cleans up after a demo, however it ended: a process of its own that outlives the demo by a moment.

Run as `python -I janitor.py FOLDER SOCKET`. It waits until its standard input is closed, which the kernel
does even for a demo that was killed, and then ends the private tmux server and every process that was
started in the demo's environment, and removes the folder. Told `keep`, it leaves all of it.
Exit code 0: everything is gone, or was to be kept.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time

GRACE_SECONDS = 2.0
KEEP = b"keep\n"
_POLL_SECONDS = 0.02
_TMUX_SECONDS = 10


def main() -> int:
    """Wait for the end of standard input, then clear; 0 where nothing is left, or all was to be kept."""
    folder, socket = sys.argv[1:3]
    if sys.stdin.buffer.read() == KEEP:
        return 0
    end_server(socket)
    gone = end_processes(folder)
    shutil.rmtree(folder, ignore_errors=True)
    return 0 if gone and not os.path.exists(folder) else 1


def end_server(socket: str) -> None:
    """End the tmux server; its panes' programs get a hang-up."""
    # Whatever is left of it is ended with the other processes.
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(
            ["tmux", "-S", socket, "kill-server"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_TMUX_SECONDS,
            check=False,
        )


def end_processes(folder: str) -> bool:
    """End every process whose environment names the folder, first politely; True when none is left."""
    return _ended_by(signal.SIGTERM, folder) or _ended_by(signal.SIGKILL, folder)


def _ended_by(request: signal.Signals, folder: str) -> bool:
    deadline = time.monotonic() + GRACE_SECONDS
    told: set[int] = set()
    while remaining := processes_of(folder):
        if time.monotonic() > deadline:
            return False
        for pid in remaining - told:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, request)
        told |= remaining
        time.sleep(_POLL_SECONDS)
    return True


def processes_of(folder: str) -> set[int]:
    """Processes with the folder in their environment; none where the system does not tell."""
    try:
        numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return set()
    return {pid for pid in numbers if pid != os.getpid() and _names(pid, os.fsencode(folder))}


def _names(pid: int, folder: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return folder in file.read()
    except OSError:
        return False  # Ended meanwhile, or another user's.


if __name__ == "__main__":
    sys.exit(main())
