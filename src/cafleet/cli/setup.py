"""`setup`: the database and the assets, two independent halves that are both attempted (SPEC 8)."""

from collections.abc import Callable
from functools import partial

from cafleet import config
from cafleet.agents import registry
from cafleet.assets.install import Installed, choose, install, record
from cafleet.cli.arguments import Command, Values, option
from cafleet.cli.known_agents import AGENT
from cafleet.cli.output import Output, OutputClosed, OutputFailed
from cafleet.cli.progress import ProgressLine
from cafleet.db.migrate import SetupAction, SetupResult, setup_database
from cafleet.errors import CafleetError, UsageError
from cafleet.runtime import Runtime

Step = Callable[[], list[str]]
"""Does its part and returns what it did, a clause per line. Raises CafleetError."""


def setup(runtime: Runtime, values: Values, out: Output) -> int:
    """Attempt both halves, and the assets of each agent; the exit code is 1 if anything failed."""
    mistakes = config.mistakes(runtime.config.environ)
    if config.HOME_SETTING in mistakes:
        raise CafleetError(mistakes[config.HOME_SETTING])  # Neither half has a place.
    chosen, mistake = _chosen(runtime, values.texts("coding_agent"))
    unknown = mistakes.get(config.DATABASE_SETTING)
    attempts = _Attempts(out)

    attempts.make("database", partial(_database, runtime) if unknown is None else partial(_fail, unknown))
    installed: list[Installed] = []
    for name in chosen:
        attempts.make("assets", partial(_assets, runtime, name, installed))
    if mistake is not None:
        attempts.make("assets", partial(_fail, str(mistake)))
    if installed:
        step = partial(_record, runtime, installed) if unknown is None else partial(_fail, unknown)
        attempts.make("assets", step, note="The assets are in place, but that could not be recorded.")
    if attempts.unsaid is not None:
        raise attempts.unsaid
    return 1 if attempts.errors else 0


def _chosen(runtime: Runtime, names: list[str]) -> tuple[list[str], CafleetError | None]:
    """The agents to install for, and what keeps others from being known. Raises UsageError, before anything
    is done, for an agent that cannot be installed for."""
    try:
        return choose(runtime, names), None
    except UsageError:
        raise
    except CafleetError as error:  # A mistake in config.toml is no reason to do nothing for the others.
        return ([] if names else [*registry.BUILT_IN]), error


class _Attempts:
    """Makes steps, each whatever became of the others, and tells of each cause of failure once."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self.errors: list[str] = []
        self.unsaid: OutputClosed | OutputFailed | None = None
        """Why standard output takes no more: no reason to leave a step out."""

    def make(self, name: str, step: Step, *, note: str | None = None) -> None:
        """`note`: what is to be known besides where this step fails."""
        try:
            with ProgressLine(self._out) as progress:  # An upgrade copies the file, however large, before.
                progress.show(f"{name}: at work")
                done = step()
            for line in done:
                self._say(f"{name}: {line}")
        except CafleetError as error:
            self._say(f"{name}: failed")
            notes = [*getattr(error, "__notes__", ()), *([] if note is None else [note])]
            if str(error) not in self.errors:
                self._out.error(str(error), *notes)
            elif note is not None:
                self._out.warn(note)
            self.errors.append(str(error))

    def _say(self, line: str) -> None:
        if self.unsaid is None:
            try:
                self._out.write(line)
            except (OutputClosed, OutputFailed) as error:
                self.unsaid = error


def _fail(problem: str) -> list[str]:
    raise CafleetError(problem)


def _assets(runtime: Runtime, name: str, installed: list[Installed]) -> list[str]:
    done = install(runtime, name)
    installed.append(done)
    lines = [f"{name} skill installed in {done.skill_path}."]
    return lines if done.preset_path is None else [*lines, f"{name} preset installed as {done.preset_path}."]


def _record(runtime: Runtime, installed: list[Installed]) -> list[str]:
    record(runtime, installed)
    return []


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
        forgiving=True,
        description="Safe to repeat, and to be repeated after every upgrade. What exists is kept: before a "
        "file is upgraded, a copy is written beside it.",
        examples=("cafleet setup", f"cafleet setup --coding-agent {AGENT}"),
    ),
}
