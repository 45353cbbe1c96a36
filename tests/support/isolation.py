"""What no test can get wrong: the user's home, tmux server and settings are out of reach.

`isolate` replaces the environment before any test module is imported, so that child processes get
the replacement too.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_REAL_HOME_NAME = "CAFLEET_TEST_REAL_HOME"
REAL_HOME = os.environ.get(_REAL_HOME_NAME) or os.path.expanduser("~")
"""A parallel test process inherits the replaced HOME, so the real one is handed on by name."""
_KEPT_OUT = (
    (".local", "share", "cafleet"),
    (".config", "cafleet"),
    (".config", "opencode"),
    (".claude",),
    (".claude.json",),
    (".codex",),
    (".opencode",),
    (".agents",),
)
PROTECTED = tuple(os.path.join(REAL_HOME, *parts) for parts in _KEPT_OUT)
_FORGOTTEN_PREFIXES = ("CAFLEET_", "TMUX", "HERDR", "CLAUDE", "CODEX_", "OPENCODE", "XDG_")
_MARK = "CAFLEET_TEST_RUN"
_WRITES = frozenset(
    ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.symlink", "os.link", "sqlite3.connect")
)

_outer = os.environ.get(_MARK, "")
_scratch = tempfile.mkdtemp(prefix="cafleet-tests-", dir=_outer if os.path.isdir(_outer) else None)
"""A parallel test process has its own inside that of the process that started it, which removes both:
it may itself be ended before it has tidied up."""


def isolate() -> None:
    """Replace the environment and start watching. Once per process."""
    for name in list(os.environ):
        if name.startswith(_FORGOTTEN_PREFIXES):
            del os.environ[name]
    home = os.path.join(_scratch, "home")
    places = {
        "HOME": home,
        "XDG_DATA_HOME": os.path.join(home, ".local", "share"),
        "XDG_CONFIG_HOME": os.path.join(home, ".config"),
        "XDG_STATE_HOME": os.path.join(home, ".local", "state"),
        "XDG_CACHE_HOME": os.path.join(home, ".cache"),
        "XDG_RUNTIME_DIR": os.path.join(_scratch, "run"),
        "TMUX_TMPDIR": os.path.join(_scratch, "tmux"),
    }
    for folder in places.values():
        os.makedirs(folder, mode=0o700, exist_ok=True)
    os.environ.update(places)
    os.environ[_MARK] = _scratch
    os.environ[_REAL_HOME_NAME] = REAL_HOME
    # Colour is the business of the tests about it.
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"):
        os.environ.pop(name, None)
    sys.addaudithook(_watch)


def clean_up() -> None:
    """Remove the stand-in home."""
    shutil.rmtree(_scratch, ignore_errors=True)


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    """Audit hook: nothing is written where a user's real cafleet and agents keep their files."""
    if event == "open":
        if not _opens_for_writing(arguments):
            return
    elif event not in _WRITES:
        return
    for argument in arguments[:2]:
        if isinstance(argument, bytes | str) and os.fsdecode(argument).startswith(PROTECTED):
            raise RuntimeError(f"a test reached for the real home: {event} {os.fsdecode(argument)}")


def _opens_for_writing(arguments: tuple[object, ...]) -> bool:
    _, mode, flags = arguments[:3]
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


def left_tmux_servers() -> Iterator[tuple[int, str]]:
    """Servers that descend from this run, told by the mark in their environment (Linux only)."""
    mark = f"{_MARK}={_scratch}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (entry / "comm").read_text().startswith("tmux: server") and mark in (
                entry / "environ"
            ).read_bytes().split(b"\0"):
                yield int(entry.name), (entry / "cmdline").read_text().replace("\0", " ").strip()
