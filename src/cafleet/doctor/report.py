"""All checks, one after the other; none of them can end the others (SPEC 8)."""

from collections.abc import Callable, Sequence

from cafleet.doctor.agents import check_agents
from cafleet.doctor.database import check_database
from cafleet.doctor.fleets import check_fleets
from cafleet.doctor.multiplexer import check_multiplexer
from cafleet.doctor.permissions import check_permissions
from cafleet.doctor.records import Report, Section, issue
from cafleet.doctor.settings import check_settings
from cafleet.errors import CafleetError
from cafleet.runtime import Runtime

Check = Callable[[Runtime], Section]


def examine(runtime: Runtime, *, deep: bool, directory: str) -> Report:
    """Run every check. `deep`: read the whole database file; `directory`: whose project settings count."""
    checks: Sequence[tuple[str, Check]] = (
        ("multiplexer", check_multiplexer),
        ("database", lambda runtime: check_database(runtime, deep=deep)),
        ("coding agents", check_agents),
        ("permissions", lambda runtime: check_permissions(runtime, directory)),
        ("fleets", check_fleets),
    )
    settings = _run("settings", check_settings, runtime)
    # Where all is well, the variables that were read are shown by the checks that read them.
    first = [settings] if settings.findings else []
    return Report([*first, *(_run(name, check, runtime) for name, check in checks)])


def _run(name: str, check: Check, runtime: Runtime) -> Section:
    try:
        return check(runtime)
    except (CafleetError, OSError) as error:
        found = issue(f"this check could not be finished: {error}", "see the other sections")
    except Exception as error:  # A mistake of ours must not hide what the other checks find.
        text = f"this check could not be finished: {type(error).__name__}: {error}"
        found = issue(text, "see the other sections; this is a mistake in cafleet: please report it")
    return Section(name, [], [found])
