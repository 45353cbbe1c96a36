"""The processes of a pane: is its shell at the prompt, and ending all of them.

Linux tells through `/proc`. Elsewhere a shell is recognised by its name alone, and a pane is ended
by its process group.
"""

import contextlib
import os
import sys
import time

SHELLS = frozenset(("sh", "bash", "dash", "ash", "zsh", "fish", "ksh", "mksh", "oksh", "pdksh", "lksh"))
SHELLS |= {"tcsh", "csh", "rc", "es", "nu", "elvish", "xonsh", "pwsh", "busybox"}
_VALUE_OPTIONS = frozenset(
    ("-o", "+o", "-O", "+O", "--rcfile", "--init-file", "-C", "--init-command", "--config")
)
_SIGHUP, _SIGKILL, _SIGTERM = 1, 9, 15  # the same numbers on every POSIX system
_SIGCONT = 18 if sys.platform.startswith("linux") else 19
_POLL_SECONDS = 0.02
_KILL_WAIT_SECONDS = 1.0


class Process:
    """One line of the process table."""

    __slots__ = ("foreground_group", "group", "parent", "pid", "session", "started", "state")

    def __init__(self, pid: int, fields: list[bytes]) -> None:
        """`fields`: those of `/proc/<pid>/stat` after the name."""
        self.pid = pid
        self.state = fields[0].decode()
        self.parent, self.group, self.session = int(fields[1]), int(fields[2]), int(fields[3])
        self.foreground_group = int(fields[5])
        """Of its terminal; -1 without one."""
        self.started = fields[19]
        """Start time in clock ticks: with the pid it names one process for good."""


class ProcessTable:
    """What the system tells of its processes."""

    def __init__(self, folder: str = "/proc") -> None:
        """`folder`: as Linux has it; where there is none, nothing is known."""
        self._folder = folder

    def all(self) -> list[Process]:
        """Every process; empty where the system does not tell."""
        try:
            numbers = [int(name) for name in os.listdir(self._folder) if name.isdigit()]
        except OSError:
            return []
        return [process for process in map(self.read, numbers) if process is not None]

    def read(self, pid: int) -> Process | None:
        """One process; None: there is none, or the system does not tell."""
        try:
            with open(f"{self._folder}/{pid}/stat", "rb") as file:
                text = file.read()
        except OSError:
            return None
        # The name in parentheses may hold anything, parentheses too.
        return Process(pid, text[text.rindex(b")") + 2 :].split())

    def arguments(self, pid: int) -> list[str]:
        """Its command line; empty where that is not known."""
        try:
            with open(f"{self._folder}/{pid}/cmdline", "rb") as file:
                return os.fsdecode(file.read()).rstrip("\0").split("\0")
        except OSError:
            return []


SYSTEM = ProcessTable()


def shell_waits(command: str, pane_pid: int, *, table: ProcessTable = SYSTEM) -> bool:
    """True where the pane's foreground process is a shell and nothing runs in it.

    `command` is the foreground process's name. A script (`sh wrapper.sh`) that runs a program is
    no shell at its prompt; an interactive shell is, whatever helpers its prompt keeps in the group.
    """
    if not is_shell(command):
        return False
    leader = table.read(pane_pid)
    if leader is None:
        return True
    group = leader.foreground_group
    if _is_interactive(table.arguments(group)):
        return True
    names = [_name(table, process.pid) for process in tree(pane_pid, table=table) if process.group == group]
    return all(is_shell(name) for name in names)


def is_shell(command: str) -> bool:
    """By name; a login shell's leading dash and a version suffix are ignored."""
    name = os.path.basename(command).removeprefix("-")
    return name in SHELLS or name.rstrip("0123456789.-") in SHELLS


def tree(pid: int, *, table: ProcessTable = SYSTEM) -> list[Process]:
    """The process `pid` and its living descendants; empty where the system does not tell."""
    children: dict[int, list[Process]] = {}
    root = None
    for process in table.all():
        children.setdefault(process.parent, []).append(process)
        if process.pid == pid:
            root = process
    found = [root] if root is not None else []
    for process in found:  # grows while it is walked
        found.extend(children.get(process.pid, ()))
    return found


def of_pane(
    pane_pid: int, *, parent: int | None = None, ended: bool = False, table: ProcessTable = SYSTEM
) -> list[Process]:
    """Every process that belongs to a pane: its session and the descendants of its first process.

    `ended`: the first process is known to be no more. `parent`: which process has started it, where
    that is known. A process with its number that cannot be it is a stranger, and none of its own belong
    to the pane.
    """
    everything = table.all()
    first = next((process for process in everything if process.pid == pane_pid), None)
    if first is not None and (ended or parent not in (None, first.parent)):
        return []
    inside = {process.pid for process in tree(pane_pid, table=table)}
    return [process for process in everything if process.session == pane_pid or process.pid in inside]


def ancestors(pid: int, *, table: ProcessTable = SYSTEM) -> set[int]:
    """`pid` and every process above it."""
    found: set[int] = set()
    current: Process | None = table.read(pid)
    found.add(pid)
    while current is not None and current.parent > 0 and current.parent not in found:
        found.add(current.parent)
        current = table.read(current.parent)
    return found


def end_pane_processes(
    pane_pid: int,
    grace_seconds: float,
    *,
    parent: int | None = None,
    ended: bool = False,
    table: ProcessTable = SYSTEM,
) -> bool:
    """Hang up on a pane's processes, ask them to end, and kill what is left after the grace.

    `ended`: the pane is dead, only what its program left behind remains. `parent`: as for `of_pane`; in
    a sandbox with process numbers of its own, the multiplexer's mean others. This process and those above
    it are spared. Returns True where the caller was among them: then its pane must be closed
    last, after it has replied.
    """
    spared = ancestors(os.getpid(), table=table)
    first = table.read(pane_pid)
    members = of_pane(pane_pid, parent=parent, ended=ended, table=table)
    inside = any(process.pid in spared for process in members)
    if not (members or ended or table.all()):
        _end_group(pane_pid, grace_seconds)
        return False
    targets = [process for process in members if process.pid not in spared]
    start = time.monotonic()
    targets = _signalled(table, targets, _SIGHUP, start + grace_seconds / 2)
    targets = _signalled(table, targets, _SIGTERM, start + grace_seconds)
    # A program that was ending may have started others: look again before the last step.
    known = {process.pid for process in targets}
    # Its first process has mostly ended by now, and its number may be another's.
    now = table.read(pane_pid)
    ended = ended or first is None or now is None or now.started != first.started
    later = of_pane(pane_pid, parent=parent, ended=ended, table=table)
    targets += [process for process in later if process.pid not in spared | known]
    _signalled(table, targets, _SIGKILL, time.monotonic() + _KILL_WAIT_SECONDS)
    return inside


def _signalled(table: ProcessTable, targets: list[Process], number: int, deadline: float) -> list[Process]:
    """Signal the targets; the ones that still live at the deadline."""
    for process in targets:
        _send(process.pid, number)
        if process.state == "T":
            _send(process.pid, _SIGCONT)
    while targets:
        targets = [process for process in targets if _lives(table, process)]
        if not targets or time.monotonic() >= deadline:
            break
        time.sleep(_POLL_SECONDS)
    return targets


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _lives(table: ProcessTable, process: Process) -> bool:
    now = table.read(process.pid)
    return now is not None and now.started == process.started and now.state not in "ZX"


def _end_group(group: int, grace_seconds: float) -> None:
    """Where the process table cannot be read: the pane's own process group."""
    if group <= 1 or group == os.getpgrp():
        return
    for number, seconds in ((_SIGHUP, grace_seconds / 2), (_SIGTERM, grace_seconds / 2), (_SIGKILL, 0.0)):
        deadline = time.monotonic() + seconds
        try:
            os.killpg(group, number)
            while time.monotonic() < deadline:
                os.killpg(group, 0)
                time.sleep(_POLL_SECONDS)
        except (ProcessLookupError, PermissionError):
            return


def _name(table: ProcessTable, pid: int) -> str:
    arguments = table.arguments(pid)
    return arguments[0] if arguments else ""


def _is_interactive(arguments: list[str]) -> bool:
    """The command line of a shell that was started without a script and without `-c`."""
    if not arguments or not is_shell(arguments[0]):
        return False
    rest = iter(arguments[1:])
    for argument in rest:
        if argument in _VALUE_OPTIONS:
            next(rest, None)
        elif argument == "--" or argument[:1] not in "-+" or _runs_a_command(argument):
            return False
    return True


def _runs_a_command(option: str) -> bool:
    """`-c`, also in a cluster like `-lc`."""
    return not option.startswith("--") and "c" in option
