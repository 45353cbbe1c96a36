"""Break a command at its n-th step: each SQL statement, file operation and child process is one.

`Breaker` keeps one process that has cafleet loaded and forks a child per run, so that a command can be
broken at every single one of its steps in a reasonable time. Nothing in cafleet knows of it.
"""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import NamedTuple, Self

from tests.support.program import SCRIPT, Program

_SERVER = r"""
import errno, io, json, os, re, signal, sqlite3, sys, time
import cafleet.cli.main as program
from cafleet.cli import commands
for module, _, _ in commands.COMMANDS.values():
    if module not in ("server", "mcp", "top", "demo"):
        __import__("cafleet.cli." + module)
import cafleet.db.migrate, cafleet.db.private_copy, cafleet.db.wakeups
import cafleet.delivery.attempt, cafleet.monitor.loop, cafleet.multiplexer.tmux
from cafleet.monitor.stopping import StopSignals

FILES = {"os.mkdir", "os.rename", "os.link", "os.remove", "os.rmdir", "os.symlink", "os.chmod"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
order = passed = None

def step(kind, text):
    # True where this is the one at which the command shall fail.
    global passed
    if not re.search(order["only"], kind + " " + text):
        return False
    passed += 1
    if passed != order["at"]:
        return False
    os.write(3, (kind + " " + text).encode("utf-8", "replace")[:300])
    if order["how"] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    return True

def statement(sql):
    if step("sql", " ".join(sql.split())):
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode, error.sqlite_errorname = sqlite3.SQLITE_IOERR_WRITE, "SQLITE_IOERR_WRITE"
        raise error

class Connection(sqlite3.Connection):
    def execute(self, sql, *parameters):
        statement(sql)
        return super().execute(sql, *parameters)

    def executemany(self, sql, parameters):
        statement(sql)
        return super().executemany(sql, parameters)

    def backup(self, target, **options):
        statement("backup")
        return super().backup(target, **options)

def connect(name, *arguments, **options):
    if name == ":memory:":  # Of no file: nothing can be left half done.
        return real_connect(name, *arguments, **options)
    return real_connect(name, *arguments, factory=Connection, **options)

def spawn(program, *arguments, **options):
    if step("spawn", os.path.basename(program)):
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    pid = real_spawn(program, *arguments, **options)
    if order["how"] == "kill":
        step("spawned", os.path.basename(program))
    return pid

def audit(event, arguments):
    if event in FILES or (event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING):
        if step("file", event + " " + str(arguments[0])):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
    elif event == "subprocess.Popen" and step("spawn", os.path.basename(arguments[0])):
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

def pause(signals, seconds):
    # A loop rests for a moment only, and is asked to end after its last tick.
    order["ticks"] -= 1
    if not order["ticks"]:
        os.kill(os.getpid(), signal.SIGTERM)
    return real_pause(signals, min(seconds, 0.02))

def child():
    global passed, real_connect, real_spawn, real_pause
    for number, name in ((1, "out"), (2, "err"), (3, "at")):
        target = os.open(os.path.join(scratch, name), os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        os.dup2(target, number)
    for number, name in ((1, "stdout"), (2, "stderr")):
        setattr(sys, name, io.TextIOWrapper(open(number, "wb"), encoding="utf-8"))
    os.environ.update(order["environ"])
    passed = 0
    real_connect, sqlite3.connect = sqlite3.connect, connect
    real_spawn, os.posix_spawn = os.posix_spawn, spawn
    real_pause, StopSignals.pause = StopSignals.pause, pause
    sys.addaudithook(audit)
    code = program.main(order["argv"])
    step("end", "")
    sys.stdout.flush()
    os._exit(code)

scratch = sys.argv[1]
sys.argv[0] = sys.argv[2]
print("ready", flush=True)
for line in sys.stdin:
    order = json.loads(line)
    pid = os.fork()
    if not pid:
        try:
            child()
        finally:
            os._exit(99)
    if order["after"] is not None:
        time.sleep(order["after"])
        os.kill(pid, signal.SIGKILL)
    print(os.waitpid(pid, 0)[1], flush=True)
"""


class Broken(NamedTuple):
    """How a run ended."""

    code: int
    """Exit code; negative: the signal."""
    stdout: str
    stderr: str
    step: str | None
    """Where it was broken; None: it came to its end first."""


class Breaker:
    """Runs of one installed program. A context manager."""

    def __init__(self, program: Program, *, fail: bool = False) -> None:
        """`fail`: a step raises what a full disk or a lacking process would; else the process is killed."""
        self._program, self._how = program, "fail" if fail else "kill"
        self._scratch = program.home.parent / f"breaker-{program.home.name}"

    def __enter__(self) -> Self:
        self._scratch.mkdir(exist_ok=True)
        self._process = subprocess.Popen(
            [sys.executable, "-B", "-c", _SERVER, str(self._scratch), SCRIPT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self._program.environ,
            cwd=self._program.home,
            text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def run(
        self,
        *argv: str,
        at: int | None = None,
        only: str = "",
        after_seconds: float | None = None,
        environ: Mapping[str, str] | None = None,
        ticks: int = 1,
    ) -> Broken:
        """One command, broken at step number `at` of those whose description matches `only`.

        `after_seconds`: it is killed then instead, wherever it is.
        `ticks`: after how many a monitor loop is asked to end; it hardly rests between them.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        re.compile(only)
        order: dict[str, object] = {
            "argv": argv,
            "at": at,
            "only": only,
            "how": self._how,
            "environ": dict(environ or {}),
        }
        order |= {"ticks": ticks, "after": after_seconds}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        status = int(self._process.stdout.readline())
        code = -(status & 0x7F) if status & 0x7F else status >> 8
        out, err, step = ((self._scratch / name).read_text("utf-8") for name in ("out", "err", "at"))
        assert code in (0, 1, 2, -signal.SIGKILL), (argv, step, out, err)
        return Broken(code, out, err, step or None)
