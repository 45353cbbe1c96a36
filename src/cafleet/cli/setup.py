"""`setup`: the database and the assets, two independent halves that are both attempted (SPEC 8)."""

from collections.abc import Callable

from cafleet.cli.arguments import Command, Values, option
from cafleet.cli.known_agents import AGENT
from cafleet.cli.output import Output
from cafleet.db.migrate import SetupAction, SetupResult, setup_database
from cafleet.errors import CafleetError
from cafleet.runtime import Runtime

Half = Callable[[Runtime, Values], list[str]]
"""Does its part and returns what it did, a clause per line. Raises CafleetError."""


def setup(runtime: Runtime, values: Values, out: Output) -> int:
    """Attempt both halves; the exit code is 1 if either failed."""
    done = [_attempt(name, half, runtime, values, out) for name, half in HALVES]
    return 0 if all(done) else 1


def _attempt(name: str, half: Half, runtime: Runtime, values: Values, out: Output) -> bool:
    try:
        for line in half(runtime, values):
            out.write(f"{name}: {line}")
    except CafleetError as error:
        out.write(f"{name}: failed")
        out.error(str(error))
        return False
    return True


def _database(runtime: Runtime, _values: Values) -> list[str]:
    path = runtime.database.path
    return [_what_happened(path, result := setup_database(path, runtime.now())), *result.notes]


def _what_happened(path: str, result: SetupResult) -> str:
    if result.action is SetupAction.CREATED:
        return f"created {path} at format {result.version}."
    if result.action is SetupAction.UNCHANGED:
        return f"{path} is at format {result.version}; nothing to do."
    backup = f"; a copy of what it was is {result.backup_path}" if result.backup_path else ""
    return f"{path} upgraded from format {result.from_version} to {result.version}{backup}."


HALVES: list[tuple[str, Half]] = [("database", _database)]

COMMANDS = {
    "setup": Command(
        setup,
        option("--coding-agent", "A", "install for this coding agent only", many=True),
        json=False,
        description="Safe to repeat, and to be repeated after every upgrade. What exists is kept: before a "
        "file is upgraded, a copy is written beside it.",
        examples=("cafleet setup", f"cafleet setup --coding-agent {AGENT}"),
    ),
}
