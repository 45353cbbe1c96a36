"""`import`: bring over a file of an earlier cafleet (SPEC 2.6)."""

from cafleet.broker.names import mend_description, mend_name
from cafleet.cli.arguments import Command, Values, count, flag, option, positional
from cafleet.cli.escapes import escape
from cafleet.cli.output import Output
from cafleet.cli.progress import ProgressLine
from cafleet.cli.table import show_table
from cafleet.db.earlier_format import ImportReport, Mending, import_earlier
from cafleet.errors import IntegrityError, MonitorDuplicates, UsageError
from cafleet.folders import absolute_path
from cafleet.runtime import Runtime

MOST_SPANS = 20
"""How many ids, or runs of ids, a line names."""


def import_(runtime: Runtime, values: Values, out: Output) -> int:
    """Fill the database from the file; says what was kept, what was changed and what was not."""
    monitors = _monitors(values.pairs("monitor"))

    try:
        with ProgressLine(out) as line:
            report = import_earlier(
                absolute_path(values.text("source")),
                runtime.database.path,
                keep_placements=values.flag("keep_placements"),
                monitors=monitors,
                mending=Mending(mend_name, mend_description),
                now=runtime.now(),
                progress=lambda copied, total: line.show(f"{copied} of {total} messages"),
            )
    except MonitorDuplicates as error:
        choice = " ".join(f"--monitor {fleet}={min(ids)}" for fleet, ids in sorted(error.duplicates.items()))
        error.add_note(f"Choose who stays in each fleet, for instance: {choice}")
        raise
    except IntegrityError as error:
        error.add_note(
            "Nothing was imported. Mend that row with sqlite3, in a copy of the file, and import the copy."
        )
        raise
    except KeyboardInterrupt:
        out.error("interrupted; nothing was imported")
        raise
    if out.as_json:
        out.json(_record(report))
    else:
        _show(report, values.flag("keep_placements"), out)
    return 0


def _monitors(pairs: list[tuple[int, int]]) -> dict[int, int]:
    chosen = dict(pairs)
    if len(chosen) < len(pairs):
        raise UsageError("--monitor names a fleet twice")
    return chosen


def _fleet_and_member(text: str) -> tuple[int, int]:
    fleet, equals, member = text.partition("=")
    if not equals:
        raise ValueError(f"must be FLEET_ID=MEMBER_ID (got '{text}')")
    return count(fleet), count(member)


def _record(report: ImportReport) -> dict[str, object]:
    return {
        "source": report.source,
        "target": report.target,
        "written_by": report.line,
        "tables": [table._asdict() for table in report.tables],
        "not_kept": report.not_kept,
        "stand_in_members": report.stand_in_members,
        "stand_in_fleets": report.stand_in_fleets,
        "canceled_messages": report.canceled_messages,
        "deregistered_monitors": report.deregistered_monitors,
        "mended_fleets": report.mended_fleets,
        "mended_members": report.mended_members,
    }


def _show(report: ImportReport, kept_placements: bool, out: Output) -> None:
    out.write(f"Imported {escape(report.source)} ({escape(report.line)}) into {escape(report.target)}.")
    columns = ("table", "source", "imported", "added", "left_out")
    show_table(columns, [(t.table, t.source, t.target, t.added, t.left_out) for t in report.tables], out)
    for line in _remarks(report, kept_placements):
        out.write(line)
    out.write("Next: 'cafleet setup' installs this version's skills.")


def _remarks(report: ImportReport, kept_placements: bool) -> list[str]:
    """What a reader of the counts may wonder about."""
    lines = [
        f"Not kept, has no place any more: {table} (rows: {rows})." for table, rows in report.not_kept.items()
    ]
    placements = next(table for table in report.tables if table.table == "member_placements")
    if placements.left_out and kept_placements:
        lines.append(f"Placements left out, of members that are not active: {placements.left_out}.")
    elif placements.left_out:
        lines.append(
            f"Placements left out: {placements.left_out}. 'cafleet fleet list' does not show fleets without"
            " panes. Read them with 'cafleet fleet show' and 'cafleet message poll', end them with"
            " 'cafleet fleet delete'. New work takes a new fleet."
        )
    for what, ids in (
        ("Members {} stand in for those that messages name and the file lacks.", report.stand_in_members),
        ("Fleets {} stand in for those that members name and the file lacks.", report.stand_in_fleets),
        ("Monitors {} were not chosen and are deregistered.", report.deregistered_monitors),
        ("Names of fleets {} were changed to what is allowed now.", report.mended_fleets),
        ("Names or descriptions of members {} were changed to what is allowed now.", report.mended_members),
    ):
        if ids:
            lines.append(what.format(_ids(ids)))
    if report.canceled_messages:
        lines.append(f"Canceled messages, which count as acknowledged now: {report.canceled_messages}.")
    return lines


def _ids(ids: tuple[int, ...]) -> str:
    """Ascending ids for a line of text; `--json` has all of them."""
    spans: list[list[int]] = []
    for number in ids:
        if spans and number == spans[-1][-1] + 1:
            spans[-1][1:] = [number]
        else:
            spans.append([number])
    shown = ", ".join("-".join(map(str, span)) for span in spans[:MOST_SPANS])
    return shown if len(spans) <= MOST_SPANS else f"{shown} and others, {len(ids)} in all,"


COMMANDS = {
    "import": Command(
        import_,
        positional("source", "SOURCE", "the earlier file; it is only read"),
        flag("--keep-placements", "keep which pane each member was in; otherwise members come without panes"),
        option(
            "--monitor",
            "FLEET_ID=MEMBER_ID",
            "which monitor stays, for a fleet with several active ones",
            _fleet_and_member,
            many=True,
        ),
        description="Reads files of the released Python line (PyPI cafleet 0.11 to 0.22) and of the later "
        "binary line, and fills this cafleet's database, which must be missing or without a fleet. All ids, "
        "texts and times are kept, and no id is ever given out again. All or nothing: when it fails, the "
        "database is as it was before.",
        examples=(
            "cafleet import ~/.local/share/cafleet/cafleet_v5.db",
            "cafleet import old.db --keep-placements --monitor 1=7 --json",
        ),
    ),
}
