"""A stand-in for `tmux` first on PATH: notes every call, and fails or hangs on demand.

`TmuxShim(directory)` writes the program; put `shim.directory` first on a PATH. It passes on to the
real tmux unless the call's arguments contain one of the texts set with `fail` or `hang`.
"""

import json
import os
import shutil
import stat
import sys
from pathlib import Path
from typing import NamedTuple

_PROGRAM = """\
#!{python} -IS
import json, os, sys, time
folder = {folder!r}
arguments = sys.argv[1:]
with open(os.path.join(folder, "calls"), "a") as log:
    log.write(json.dumps([time.monotonic(), os.getpid(), arguments]) + "\\n")
whole = " ".join(arguments)

def wanted(name):
    try:
        with open(os.path.join(folder, name)) as file:
            order = json.load(file)
    except FileNotFoundError:
        return None
    if order["text"] not in whole:
        return None
    if order.get("skip"):
        order["skip"] -= 1
        with open(os.path.join(folder, name), "w") as file:
            json.dump(order, file)
        return None
    if order["times"] is not None:
        order["times"] -= 1
        path = os.path.join(folder, name)
        if order["times"] <= 0:
            os.unlink(path)
        else:
            with open(path, "w") as file:
                json.dump(order, file)
    return order

if wanted("kill"):
    os.kill(os.getppid(), 9)
if wanted("hang"):
    time.sleep(3600)
order = wanted("delay")
if order:
    time.sleep(order["seconds"])
order = wanted("before")
if order:
    os.spawnvp(os.P_WAIT, order["command"][0], order["command"])
order = wanted("fail")
if order:
    sys.stderr.write(order["message"] + "\\n")
    sys.exit(1)
os.execv({tmux!r}, ["tmux", *arguments])
"""


class Call(NamedTuple):
    """One run of tmux."""

    seconds: float
    pid: int
    arguments: list[str]


class TmuxShim:
    """The stand-in and its orders."""

    def __init__(self, directory: Path) -> None:
        real = shutil.which("tmux")
        assert real is not None, "tmux is not installed"
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        program = directory / "tmux"
        program.write_text(_PROGRAM.format(python=sys.executable, folder=str(directory), tmux=real))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)

    def path(self, rest: str | None = None) -> str:
        """A PATH value with the stand-in first."""
        return f"{self.directory}{os.pathsep}{os.environ['PATH'] if rest is None else rest}"

    def calls(self) -> list[Call]:
        """Every call so far, oldest first."""
        log = self.directory / "calls"
        if not log.exists():
            return []
        return [Call(*json.loads(line)) for line in log.read_text().splitlines()]

    def forget(self) -> None:
        """Start counting calls anew."""
        (self.directory / "calls").unlink(missing_ok=True)

    def fail(self, text: str, *, message: str = "shim: told to fail", times: int | None = None) -> None:
        """Let calls whose arguments contain `text` fail with `message`; the next `times` only, if set."""
        self._order("fail", {"text": text, "message": message, "times": times})

    def hang(self, text: str, *, times: int | None = None) -> None:
        """Let calls whose arguments contain `text` never return."""
        self._order("hang", {"text": text, "times": times})

    def delay(self, text: str, seconds: float) -> None:
        """Let the next call whose arguments contain `text` take that much longer."""
        self._order("delay", {"text": text, "times": 1, "seconds": seconds})

    def run_before(self, text: str, *command: str) -> None:
        """Run `command` to its end before the next call whose arguments contain `text`."""
        self._order("before", {"text": text, "times": 1, "command": command})

    def kill_caller(self, *, skip: int) -> None:
        """Kill whoever makes the next call but `skip`, once; the call itself takes its course."""
        self._order("kill", {"text": "", "times": 1, "skip": skip})

    def behave(self) -> None:
        """No more failures."""
        for name in ("fail", "hang", "delay", "before", "kill"):
            (self.directory / name).unlink(missing_ok=True)

    def _order(self, name: str, order: dict[str, object]) -> None:
        """In one step, as a call may be under way."""
        new = self.directory / f"{name}.new"
        new.write_text(json.dumps(order))
        new.rename(self.directory / name)
