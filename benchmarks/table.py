"""Rows of the result, and the two ways they are shown: on the terminal and in docs/benchmarks.md."""

from collections.abc import Sequence
from typing import NamedTuple


class Row(NamedTuple):
    """One goal and what was measured."""

    work: str
    goal: str
    figure: str
    """What was measured, in its own unit."""
    ratio: str
    """Measured against the yardstick of the same run."""
    reached: bool | None
    """None: not measured; `figure` says why."""

    @property
    def verdict(self) -> str:
        """`ok`, `misses` or `skipped`."""
        return {True: "ok", False: "misses", None: "skipped"}[self.reached]


HEADER = ("work", "goal", "measured", "ratio", "")


def at_most(work: str, limit: float, ratio: float, figure: str, *, against: str) -> Row:
    """A row whose ratio must not exceed `limit`."""
    return Row(work, f"at most {limit:g} x {against}", figure, f"{ratio:.2f}", ratio <= limit)


def skipped(work: str, goal: str, why: str) -> Row:
    """A row that this run could not measure."""
    return Row(work, goal, why, "", None)


def text_table(rows: Sequence[Row]) -> str:
    """Aligned columns for a terminal."""
    cells = [HEADER, *[(row.work, row.goal, row.figure, row.ratio, row.verdict) for row in rows]]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEADER))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(line.rstrip() for line in lines)


def markdown_table(rows: Sequence[Row]) -> str:
    """The same for a document."""
    lines = ["| work | goal | measured | ratio | |", "| --- | --- | --- | --- | --- |"]
    lines += [f"| {row.work} | {row.goal} | {row.figure} | {row.ratio} | {row.verdict} |" for row in rows]
    return "\n".join(lines)
