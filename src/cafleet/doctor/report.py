"""All checks, one after the other; none of them can end the others (SPEC 8)."""

from collections.abc import Callable, Sequence

from cafleet.doctor.agents import check_agents
from cafleet.doctor.database import check_database
from cafleet.doctor.fleets import check_fleets
from cafleet.doctor.multiplexer import check_multiplexer
from cafleet.doctor.permissions import check_permissions
from cafleet.doctor.records import Report, Section, issue
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
    return Report([_run(name, check, runtime) for name, check in checks])


def _run(name: str, check: Check, runtime: Runtime) -> Section:
    try:
        return check(runtime)
    except (CafleetError, OSError) as error:
        return Section(
            name, [], [issue(f"this check could not be finished: {error}", "see the other sections")]
        )
