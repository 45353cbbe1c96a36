"""`doctor`: one screen that says why something would not work, and what mends it (SPEC 8)."""

import os

from cafleet.cli.arguments import Command, Values, flag
from cafleet.cli.escapes import escape
from cafleet.cli.output import BOLD, YELLOW, Output
from cafleet.cli.progress import ProgressLine
from cafleet.doctor.records import Fact, Level, Report, Row, Section
from cafleet.doctor.report import examine
from cafleet.runtime import Runtime


def doctor(runtime: Runtime, values: Values, out: Output) -> int:
    """Exit code 1 where there is something to mend."""
    with ProgressLine(out) as line:
        line.show("looking")
        report = examine(runtime, deep=values.flag("deep"), directory=_current_folder())
    if out.as_json:
        out.json(_record(report))
    else:
        for section in report.sections:
            _show(section, out)
        count = report.issues
        out.write("no issues found" if not count else f"{count} issue{'s' * (count != 1)} found")
    return 1 if report.issues else 0


def _current_folder() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:  # Removed meanwhile: nothing is in it.
        return os.curdir


def _record(report: Report) -> dict[str, object]:
    sections = [
        {
            "name": section.name,
            "rows": section.rows,
            "findings": [
                {"level": one.level.value, "text": one.text, "mend": one.mend or None}
                for one in section.findings
            ],
        }
        for section in report.sections
    ]
    return {"sections": sections, "issues": report.issues}


def _show(section: Section, out: Output) -> None:
    out.write(out.paint(section.name, BOLD))
    for line in _lines(section.rows):
        out.write(f"  {line}")
    for one in section.findings:
        mark = out.paint("!", YELLOW) if one.level is Level.ISSUE else "-"
        out.write(f"  {mark} {escape(one.text)}")
        if one.mend:
            out.write(f"      {escape(one.mend)}")
    if not section.rows and not section.findings:
        out.write("  nothing to report")
    out.write("")


def _lines(rows: list[Row]) -> list[str]:
    """A fact per line where there is one row, else a row per line."""
    if len(rows) == 1:
        return [f"{name}: {escape(_text(value))}" for name, value in rows[0].items()]
    return ["  ".join(f"{name}: {escape(_text(value))}" for name, value in row.items()) for row in rows]


def _text(value: Fact) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else str(value)


COMMANDS = {
    "doctor": Command(
        doctor,
        flag("--deep", "also check the integrity of the whole database file"),
        description="Each finding is followed by the command or setting that mends it. Exit code 1 where "
        "there is something to mend. Nothing is changed.",
        examples=("cafleet doctor", "cafleet doctor --deep --json"),
        forgiving=True,
    ),
}
