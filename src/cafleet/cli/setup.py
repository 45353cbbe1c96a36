"""`setup`: the database and the assets, two independent halves that are both attempted (SPEC 8)."""

from collections.abc import Callable
from functools import partial

from cafleet.agents import registry
from cafleet.assets.install import choose, install
from cafleet.cli.arguments import Command, Values, option
from cafleet.cli.known_agents import AGENT
from cafleet.cli.output import Output
from cafleet.db.migrate import SetupAction, SetupResult, setup_database
from cafleet.errors import CafleetError, UsageError
from cafleet.runtime import Runtime

Step = Callable[[], list[str]]
"""Does its part and returns what it did, a clause per line. Raises CafleetError."""


def setup(runtime: Runtime, values: Values, out: Output) -> int:
    """Attempt both halves, and the assets of each agent; the exit code is 1 if anything failed."""
    names = values.texts("coding_agent")
    steps: list[tuple[str, Step]] = [("database", partial(_database, runtime)), *_asset_steps(runtime, names)]
    said: set[str] = set()
    done = [_attempt(name, step, out, said) for name, step in steps]
    return 0 if all(done) else 1


def _asset_steps(runtime: Runtime, names: list[str]) -> list[tuple[str, Step]]:
    """Raises UsageError, before anything is done, for an agent that cannot be installed for."""
    try:
        chosen = choose(runtime, names)
    except UsageError:
        raise
    except CafleetError as error:  # A mistake in config.toml is no reason to do nothing for the others.
        chosen = [] if names else [*registry.BUILT_IN]
        return [*_installing(runtime, chosen), ("assets", partial(_fail, error))]
    return _installing(runtime, chosen)


def _installing(runtime: Runtime, names: list[str]) -> list[tuple[str, Step]]:
    return [("assets", partial(_assets, runtime, name)) for name in names]


def _attempt(name: str, step: Step, out: Output, said: set[str]) -> bool:
    """`said`: what went wrong before. A refused database fails each agent's step, and is told once."""
    try:
        for line in step():
            out.write(f"{name}: {line}")
    except CafleetError as error:
        out.write(f"{name}: failed")
        words = [text for text in (str(error), *getattr(error, "__notes__", ())) if text not in said]
        said.update(words)
        if words:
            out.error(*words)
        return False
    return True


def _fail(error: CafleetError) -> list[str]:
    raise error


def _assets(runtime: Runtime, name: str) -> list[str]:
    done = install(runtime, name)
    lines = [f"{name} skill installed in {done.skill_path}."]
    return lines if done.preset_path is None else [*lines, f"{name} preset installed as {done.preset_path}."]


def _database(runtime: Runtime) -> list[str]:
    path = runtime.database.path
    return [_what_happened(path, result := setup_database(path, runtime.now())), *result.notes]


def _what_happened(path: str, result: SetupResult) -> str:
    if result.action is SetupAction.CREATED:
        return f"created {path} at format {result.version}."
    if result.action is SetupAction.UNCHANGED:
        return f"{path} is at format {result.version}; nothing to do."
    backup = f"; a copy of what it was is {result.backup_path}" if result.backup_path else ""
    return f"{path} upgraded from format {result.from_version} to {result.version}{backup}."


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
