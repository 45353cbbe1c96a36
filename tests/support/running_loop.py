"""A `monitor run` of the installed program, in the background, with its log in a file."""

import signal
import sqlite3
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

from tests.support.program import SCRIPT, Program
from tests.support.waiting import DEADLINE_SECONDS, wait_until


class RunningLoop:
    """One process. `running_loop` makes it and ends it."""

    def __init__(self, program: Program, fleet_id: int, *options: str, environ: Mapping[str, str]) -> None:
        self._program, self._fleet_id = program, fleet_id
        self._log = program.home / f"loop-{len(list(program.home.glob('loop-*')))}"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [SCRIPT, "monitor", "run", str(fleet_id), *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**program.environ, **environ},
                cwd=program.home,
            )

    def said(self) -> list[str]:
        """What it printed so far, without times."""
        lines = self._log.read_text().splitlines()
        return [line.split(" ", 1)[1] if line[:2] == "20" else line for line in lines]

    def wait_for(self, text: str) -> None:
        """Until a line with `text` is in its log."""
        wait_until(lambda: any(text in line for line in self.said()), what=f"{text!r} in the log")

    def row(self) -> dict[str, Any]:
        """The fleet's runtime row, straight from the file; empty where there is none."""
        return runtime_row(self._program, self._fleet_id)

    def wait_for_ticks(self, count: int) -> None:
        """Until so many further heartbeats were stamped."""
        seen: set[object] = {self.row()["last_tick_at"]}

        def passed() -> bool:
            assert self.process.poll() is None, self.said()
            seen.add(self.row()["last_tick_at"])
            return len(seen) > count

        wait_until(passed, what=f"{count} ticks")

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Its exit code after a signal."""
        self.process.send_signal(number)
        return self.process.wait(DEADLINE_SECONDS)


def runtime_row(program: Program, fleet_id: int) -> dict[str, Any]:
    """The fleet's runtime row, straight from the file; empty where there is none."""
    with closing(sqlite3.connect(f"file:{program.database_path}?mode=ro", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        found = connection.execute("SELECT * FROM monitor_runtime WHERE fleet_id = ?", (fleet_id,)).fetchone()
    return dict(found) if found else {}


@contextmanager
def running_loop(
    program: Program, *options: str, fleet_id: int = 1, environ: Mapping[str, str] | None = None
) -> Iterator[RunningLoop]:
    """A loop that has claimed its fleet."""
    loop = RunningLoop(program, fleet_id, *(options or ("--tick", "1")), environ=environ or {})
    try:
        wait_until(
            lambda: loop.process.poll() is not None or loop.row().get("pid") == loop.process.pid,
            what="the claim",
        )
        assert loop.process.poll() is None, loop.said()
        yield loop
    finally:
        if loop.process.poll() is None:
            loop.process.kill()
        loop.process.wait()
