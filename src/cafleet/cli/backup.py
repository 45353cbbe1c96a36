"""`backup`: a consistent copy of a database in use (SPEC 2.6)."""

from cafleet.cli.arguments import Command, Values, positional
from cafleet.cli.escapes import escape
from cafleet.cli.output import Output
from cafleet.cli.progress import ProgressLine
from cafleet.db.backup import backup as write_backup
from cafleet.folders import absolute_path
from cafleet.runtime import Runtime


def backup(runtime: Runtime, values: Values, out: Output) -> int:
    """Write the copy; the path is shown as it really is."""
    try:
        with ProgressLine(out) as line:
            done = write_backup(
                runtime.database,
                absolute_path(values.text("file")),
                lambda copied, total: line.show(_how_far(copied, total)),
            )
    except KeyboardInterrupt:
        out.error("interrupted; no backup was written")
        raise
    if out.as_json:
        out.json({"path": done.path, "size": done.size})
    else:
        out.write(f"Backup written to {escape(done.path)} ({done.size} bytes, integrity checked).")
    return 0


def _how_far(copied: int, total: int) -> str:
    """`copied`, `total`: bytes."""
    if copied >= total:
        return "checking the copy"
    return f"{copied >> 20} of {total >> 20} MiB copied ({100 * copied // total} %)"


COMMANDS = {
    "backup": Command(
        backup,
        positional("file", "FILE", "where to write it; must not exist"),
        description="Agents may go on meanwhile: the copy holds what was stored at one moment. It appears "
        "under its name only when it is whole and has passed SQLite's integrity check, and only its owner "
        "may read it. docs/file-format.md says how to restore one.",
        examples=("cafleet backup team-monday.db", "cafleet backup /var/backups/team.db --json"),
    ),
}
