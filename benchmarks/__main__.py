"""`make bench`: every row of the goals that exists by now, each against a yardstick in the same run."""

import argparse
import os
import platform
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import TextIO

from benchmarks import crowd, inside, monitor, notifying, processes, waiting, web
from benchmarks.table import Row, markdown_table, text_table

PAGE = "docs/benchmarks.md"
PREFACE = """# Benchmarks

Written by `make bench`; every row was measured against its yardstick in the same run, in turns, and is
given as a median. A row that misses its goal says so.

"""


def main() -> int:
    """Measure, print, write the page. Exit code 0 whatever the figures are: this is no test."""
    sections: dict[str, Callable[[], Iterator[Row]]] = {
        "processes": lambda: processes.rows(os.environ.get("BENCH_EARLIER") or None),
        "inside": inside.rows,
        "waiting": waiting.rows,
        "crowd": crowd.rows,
        "notifying": notifying.rows,
        "monitor": monitor.rows,
        "web": web.rows,
    }
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "section", nargs="*", choices=[*sections, []], help="measure these only; write no page"
    )
    chosen = parser.parse_args().section
    rows: list[Row] = []
    for name, section in sections.items():
        if not chosen or name in chosen:
            progress(f"measuring: {name} ...", sys.stderr)
            rows.extend(section())
    print(text_table(rows))
    if not chosen:
        with open(PAGE, "w", encoding="utf-8") as page:
            page.write(f"{PREFACE}{machine()}\n\n{markdown_table(rows)}\n")
    return 0


def progress(text: str, stream: TextIO) -> None:
    """A sign of life, since the whole run takes some minutes."""
    print(text, file=stream, flush=True)


def machine() -> str:
    """What the figures were measured on."""
    tmux = subprocess.run(["tmux", "-V"], text=True, stdout=subprocess.PIPE, check=False).stdout.strip()
    return (
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {tmux},"
        f" {platform.system()} {platform.machine()}, {os.cpu_count()} cores."
    )


if __name__ == "__main__":
    sys.exit(main())
