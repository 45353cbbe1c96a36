"""The monitor loop: what it costs while nothing happens, which is nearly always."""

import contextlib
import signal
import subprocess
import time
from collections.abc import Iterator

from benchmarks.measure import cpu_seconds, resident_kib
from benchmarks.place import PROGRAM, Place
from benchmarks.table import Row

IDLE_SECONDS = 30.0
PATIENCE_SECONDS = 10.0


def rows() -> Iterator[Row]:
    """An idle loop over a fleet of the usual size, at its usual pace."""
    with Place() as place:
        process = subprocess.Popen(
            [PROGRAM, "monitor", "run", "1"],
            env=place.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        try:
            _settle(place, process.pid)
            before = cpu_seconds(process.pid)
            time.sleep(IDLE_SECONDS)
            share = (cpu_seconds(process.pid) - before) / IDLE_SECONDS * 100
            memory = resident_kib(process.pid) / 1024
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            process.wait()
    yield Row(
        f"an idle `monitor run`, a tick every 5 s, {IDLE_SECONDS:.0f} s",
        "under 0.5 % of a core, under 25 MiB",
        f"{share:.3f} % of a core, {memory:.1f} MiB",
        "",
        share < 0.5 and memory < 25,
    )


def _settle(place: Place, pid: int) -> None:
    """Until it has claimed its fleet and had its first tick."""
    deadline = time.perf_counter() + PATIENCE_SECONDS
    while time.perf_counter() < deadline:
        with place.connect() as connection:
            row = connection.execute("SELECT pid FROM monitor_runtime").fetchone()
        if row and row[0] == pid:
            time.sleep(1.0)
            return
        time.sleep(0.05)
    raise RuntimeError("the loop never claimed its fleet")
