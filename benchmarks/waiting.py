"""Waiting: how soon a blocked reader has what a finished sender stored, and what waiting costs."""

import contextlib
import os
import select
import signal
import statistics
import subprocess
import time
from collections.abc import Iterator

from benchmarks.measure import cpu_seconds, percentile, resident_kib
from benchmarks.place import PROGRAM, Place
from benchmarks.table import Row

ROUNDS = 60
LOST_ROUNDS = 15
IDLE_SECONDS = 20.0
PATIENCE_SECONDS = 10.0
READER, WRITER = "1", "2"


def rows() -> Iterator[Row]:
    """Latency with hints, without them, and the idle cost of both verbs."""
    with Place() as place:
        yield _latency("sender's exit → `listen` prints", _listen(place, ROUNDS, hints=True))
        yield _latency("sender's exit → `wait` has returned", _wait(place, ROUNDS))
        lost = _listen(place, LOST_ROUNDS, hints=False)
        median = statistics.median(lost) * 1000
        yield Row(
            "the same with every hint lost",
            "median under 300 ms",
            f"median {median:.0f} ms, greatest {max(lost) * 1000:.0f} ms",
            "",
            median < 300,
        )
        yield from _idle(place)


def _latency(work: str, delays: list[float]) -> Row:
    median, tail = statistics.median(delays) * 1000, percentile(delays, 95) * 1000
    return Row(
        work,
        "median under 5 ms, p95 under 20 ms",
        f"median {median:.1f} ms, p95 {tail:.1f} ms",
        "",
        median < 5 and tail < 20,
    )


def _start(place: Place, *arguments: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [PROGRAM, "message", *arguments], env=place.environ, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
    )


def _send(place: Place) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [PROGRAM, "message", "send", "--from", WRITER, "--to", READER, "news"],
        env=place.environ,
        stdout=subprocess.DEVNULL,
    )


def _delay(sender: "subprocess.Popen[bytes]", other: int) -> float:
    """Seconds from the sender's exit until the descriptor `other` is readable; 0 where it was first."""
    sender_fd = os.pidfd_open(sender.pid)
    poller = select.poll()
    poller.register(sender_fd, select.POLLIN)
    poller.register(other, select.POLLIN)
    moments: dict[int, float] = {}
    deadline = time.perf_counter() + PATIENCE_SECONDS
    while len(moments) < 2 and time.perf_counter() < deadline:
        for descriptor, _ in poller.poll(100):
            moments[descriptor] = time.perf_counter()
            poller.unregister(descriptor)
    os.close(sender_fd)
    sender.wait()
    if len(moments) < 2:
        raise RuntimeError("the reader never answered")
    return max(0.0, moments[other] - moments[sender_fd])


def _listen(place: Place, rounds: int, *, hints: bool) -> list[float]:
    with contextlib.ExitStack() as stack:
        listener = _start(place, "listen", READER)
        stack.callback(_end, listener)
        assert listener.stdout is not None
        _settle(place, listener)
        _drain(listener)
        delays = []
        for _ in range(rounds):
            if not hints:
                _lose_hints(place)
            delays.append(_delay(_send(place), listener.stdout.fileno()))
            _drain(listener)
        _acknowledge_all(place)
        return delays


def _wait(place: Place, rounds: int) -> list[float]:
    delays = []
    for _ in range(rounds):
        waiter = _start(place, "wait", READER)
        _settle(place, waiter)
        waiter_fd = os.pidfd_open(waiter.pid)
        delays.append(_delay(_send(place), waiter_fd))
        os.close(waiter_fd)
        _end(waiter)
        _acknowledge_all(place)
    return delays


def _idle(place: Place) -> Iterator[Row]:
    started = {verb: _start(place, verb, READER) for verb in ("listen", "wait")}
    for process in started.values():
        _settle(place, process)
    before = {verb: cpu_seconds(process.pid) for verb, process in started.items()}
    time.sleep(IDLE_SECONDS)
    for verb, process in started.items():
        share = (cpu_seconds(process.pid) - before[verb]) / IDLE_SECONDS * 100
        memory = resident_kib(process.pid) / 1024
        _end(process)
        yield Row(
            f"an idle `{verb}`, {IDLE_SECONDS:.0f} s",
            "under 0.05 % of a core, under 20 MiB",
            f"{share:.4f} % of a core, {memory:.1f} MiB",
            "",
            share < 0.05 and memory < 20,
        )


def _settle(place: Place, process: "subprocess.Popen[bytes]") -> None:
    """Until the process has had time to block: its CPU account stands still."""
    del place
    previous, deadline = -1.0, time.perf_counter() + PATIENCE_SECONDS
    while time.perf_counter() < deadline:
        time.sleep(0.1)
        used = cpu_seconds(process.pid)
        if used == previous:
            return
        previous = used
    raise RuntimeError("a reader never came to rest")


def _drain(process: "subprocess.Popen[bytes]") -> None:
    """Take everything that the listener printed; it prints a message with one write."""
    assert process.stdout is not None
    while select.select([process.stdout], [], [], 0.05)[0]:
        os.read(process.stdout.fileno(), 65536)


def _lose_hints(place: Place) -> None:
    folder = os.path.join(os.path.dirname(place.database_path), "wakeups")
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))


def _acknowledge_all(place: Place) -> None:
    with place.connect() as connection:
        connection.execute("UPDATE messages SET status_state = 'completed'")


def _end(process: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    process.communicate()
