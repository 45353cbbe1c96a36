"""Clocks and counters: everything here measures, nothing here knows cafleet."""

import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple


class Finished(NamedTuple):
    """One child process from start to exit."""

    seconds: float
    status: int
    """Exit code."""


def run_process(argv: list[str], environ: Mapping[str, str]) -> Finished:
    """Run `argv` with its output thrown away; wall time from spawn until it is reaped."""
    null = os.open(os.devnull, os.O_RDWR)
    actions = [(os.POSIX_SPAWN_DUP2, null, target) for target in (0, 1, 2)]
    started = time.perf_counter()
    pid = os.posix_spawn(argv[0], argv, environ, file_actions=actions)
    _, status = os.waitpid(pid, 0)
    seconds = time.perf_counter() - started
    os.close(null)
    return Finished(seconds, os.waitstatus_to_exitcode(status))


_PEAK = """
import os, sys
pid = os.fork()
if not pid:
    null = os.open(os.devnull, os.O_RDWR)
    for target in (0, 1): os.dup2(null, target)
    os.execv(sys.argv[1], sys.argv[1:])
usage = os.wait4(pid, 0)
if usage[1]: sys.exit(f"{sys.argv[1:]} failed")
print(usage[2].ru_maxrss)
"""


def peak_kib(argv: list[str], environ: Mapping[str, str]) -> int:
    """Greatest resident size of `argv`, in KiB.

    The kernel counts what a process was before exec as its own, so a small one in between forks it.
    """
    read_end, write_end = os.pipe()
    command = [sys.executable, "-I", "-S", "-c", _PEAK, *argv]
    pid = os.posix_spawn(sys.executable, command, environ, file_actions=[(os.POSIX_SPAWN_DUP2, write_end, 1)])
    os.close(write_end)
    with os.fdopen(read_end) as answer:
        text = answer.read()
    _, status = os.waitpid(pid, 0)
    if status:
        raise RuntimeError(f"could not measure {argv}")
    return int(text)


def interleave(
    works: Mapping[str, Callable[[], float]], rounds: int, *, warm_up: int = 3
) -> dict[str, list[float]]:
    """Seconds of every work, taken in turns (A B C A B C ...), so that a noisy moment hits all alike.

    Each work returns the seconds that it took.
    """
    times: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(warm_up + rounds):
        for name, work in works.items():
            seconds = work()
            if turn >= warm_up:
                times[name].append(seconds)
    return times


def timed(work: Callable[[], object]) -> Callable[[], float]:
    """`work` as something that `interleave` takes."""

    def run() -> float:
        started = time.perf_counter()
        work()
        return time.perf_counter() - started

    return run


def timed_process(argv: list[str], environ: Mapping[str, str]) -> Callable[[], float]:
    """The same for a process. A run of it raises RuntimeError where the process fails."""

    def run() -> float:
        finished = run_process(argv, environ)
        if finished.status:
            raise RuntimeError(f"{' '.join(argv)} ended with {finished.status}")
        return finished.seconds

    return run


def median_ratio(numerator: Sequence[float], denominator: Sequence[float]) -> float:
    """Ratio of the two medians."""
    return statistics.median(numerator) / statistics.median(denominator)


def percentile(values: Sequence[float], percent: float) -> float:
    """The value below which `percent` of `values` lie (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def cpu_seconds(pid: int) -> float:
    """CPU time that a live process and its threads have used so far, by the scheduler's own account in ns."""
    nanoseconds = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:
            nanoseconds += int(file.read().split()[0])
    return nanoseconds / 1e9


def resident_kib(pid: int) -> int:
    """Greatest resident size so far of a live process, in KiB."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
    raise RuntimeError(f"process {pid} has no VmHWM")
