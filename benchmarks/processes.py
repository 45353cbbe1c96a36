"""Whole processes: what one hot command costs from start to exit, in time and in memory."""

import statistics
import sys
from collections.abc import Callable, Iterator

from benchmarks.earlier import Earlier
from benchmarks.measure import interleave, median_ratio, peak_kib, timed_process
from benchmarks.place import PROGRAM, Place
from benchmarks.table import Row, at_most, skipped

ROUNDS = 60
LIMIT = 3.5
MEMORY_LIMIT_MIB = 20.0
EARLIER_LIMIT = 12.0
EARLIER_ROUNDS = 7


def hot_commands() -> dict[str, list[str]]:
    """The three hot commands of one member that writes to itself, as argv; ack gets its id added."""
    return {
        "send": [PROGRAM, "message", "send", "--from", "2", "--to", "2", "hello"],
        "poll": [PROGRAM, "message", "poll", "2"],
        "ack": [PROGRAM, "message", "ack"],
    }


def rows(earlier: str | None) -> Iterator[Row]:
    """`earlier`: a virtual environment that holds the earlier release, or None."""
    with Place() as place:
        yield from _against_python(place)
        yield from _memory(place)
        yield from _against_earlier(place, earlier)


def _against_python(place: Place) -> Iterator[Row]:
    commands = hot_commands()
    works = {"python": timed_process([sys.executable, "-c", "pass"], place.environ)}
    works |= {name: timed_process(commands[name], place.environ) for name in ("send", "poll")}
    works["ack"] = _acknowledge(place)
    times = interleave(works, ROUNDS)
    bare = statistics.median(times["python"]) * 1000
    for name in ("send", "poll", "ack"):
        whole = statistics.median(times[name]) * 1000
        yield at_most(
            f"`message {name}`: whole process",
            LIMIT,
            median_ratio(times[name], times["python"]),
            f"{whole:.1f} ms, bare {bare:.1f} ms",
            against="`python -c pass`",
        )


def _memory(place: Place) -> Iterator[Row]:
    commands = hot_commands()
    place.command("message", "send", "--from", "2", "--to", "2", "weigh me")
    commands["ack"] = [*commands["ack"], _newest(place)]
    bare = peak_kib([sys.executable, "-c", "pass"], place.environ) / 1024
    for name, argv in commands.items():
        peak = peak_kib(argv, place.environ) / 1024
        yield Row(
            f"`message {name}`: greatest resident size",
            f"under {MEMORY_LIMIT_MIB:g} MiB",
            f"{peak:.1f} MiB, bare {bare:.1f} MiB",
            f"{peak / bare:.2f}",
            peak < MEMORY_LIMIT_MIB,
        )


def _against_earlier(place: Place, earlier: str | None) -> Iterator[Row]:
    goal = f"at least {EARLIER_LIMIT:g} x as fast"
    if earlier is None:
        yield skipped("hot commands against PyPI `cafleet` 0.22.0", goal, "set BENCH_EARLIER to its venv")
        return
    with Earlier(earlier) as other:
        commands = hot_commands()
        works: dict[str, Callable[[], float]] = {
            "send": timed_process(commands["send"], place.environ),
            "earlier send": timed_process(other.send, other.environ),
            "poll": timed_process(commands["poll"], place.environ),
            "earlier poll": timed_process(other.poll, other.environ),
            "ack": _acknowledge(place),
            "earlier ack": other.acknowledge,
        }
        times = interleave(works, EARLIER_ROUNDS, warm_up=1)
    for name in ("send", "poll", "ack"):
        ratio = median_ratio(times[f"earlier {name}"], times[name])
        yield Row(
            f"`message {name}` against PyPI `cafleet` 0.22.0",
            goal,
            f"{statistics.median(times[name]) * 1000:.1f} ms,"
            f" 0.22.0 {statistics.median(times[f'earlier {name}']) * 1000:.0f} ms",
            f"{ratio:.1f}",
            ratio >= EARLIER_LIMIT,
        )


def _acknowledge(place: Place) -> Callable[[], float]:
    """Each call acknowledges the newest message that the sends in the same turn left behind."""

    def run() -> float:
        argv = [PROGRAM, "message", "ack", _newest(place)]
        return timed_process(argv, place.environ)()

    return run


def _newest(place: Place) -> str:
    connection = place.connect()
    try:
        row = connection.execute("SELECT max(message_id) FROM messages WHERE status_state = 'input_required'")
        return str(row.fetchone()[0])
    finally:
        connection.close()
