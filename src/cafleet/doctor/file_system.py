"""Which kind of file system a file lies on: network and guest ones cannot do all that SQLite asks for."""

import os
import re

_MOUNTS = "/proc/self/mountinfo"


def kind_of(path: str, mounts: str = _MOUNTS) -> str | None:
    """The system's name of it, such as `ext4`, `nfs4` or `9p`; None where the system does not tell."""
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:
        return None
    real, found, length = os.path.realpath(path), None, 0
    for line in lines:
        before, _, after = line.partition(" - ")
        point = _unescaped(before.split()[4])
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= length:  # Of several mounts at one point the last one is seen.
            found, length = after.split()[0], len(point)
    return found


def _unescaped(point: str) -> str:
    """Blanks and the like are written as three octal digits."""
    return re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), point)
