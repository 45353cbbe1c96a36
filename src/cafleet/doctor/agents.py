"""The coding agents: programs, skills and presets."""

import os

from cafleet import __version__
from cafleet.agents import probe, registry
from cafleet.agents.base import Agent, AssetHome, find_binary
from cafleet.assets.guard import is_current_path
from cafleet.assets.install import skill_target
from cafleet.db import asset_installs
from cafleet.db.diagnosis import DatabaseState, diagnose
from cafleet.doctor.records import Finding, Row, Section, issue, note
from cafleet.doctor.settings import names_a_database
from cafleet.errors import CafleetError, ConfigFileError, DatabaseError
from cafleet.models import AssetInstall
from cafleet.runtime import Runtime

NAME = "coding agents"
VERSION_SECONDS = 10.0
OK, STALE, NOT_INSTALLED, ERROR, UNKNOWN = "ok", "stale", "not installed", "error", "unknown"


def check_agents(runtime: Runtime) -> Section:
    """Per agent: program and its version; path, where that came from, and which assets are there."""
    findings: list[Finding] = []
    installs = _installs(runtime)
    rows: list[Row] = []
    for name in _names(runtime, findings):
        row, found = _check_agent(runtime, name, installs)
        rows.append(row)
        findings += found
    if not any(row["binary"] for row in rows):
        findings.append(
            issue("no coding agent's program is on PATH", f"install one of: {', '.join(registry.BUILT_IN)}")
        )
    findings += _superseded(runtime, installs or [])
    return Section(NAME, rows, findings)


def _names(runtime: Runtime, findings: list[Finding]) -> list[str]:
    try:
        return registry.known(runtime.config)
    except ConfigFileError as error:
        findings.append(issue(str(error), f"mend {error.path}; docs/agents.md describes every key"))
        return list(registry.BUILT_IN)


def _installs(runtime: Runtime) -> list[AssetInstall] | None:
    """What the database records; None where that cannot be known, which is reported elsewhere."""
    if not names_a_database(runtime):
        return None
    try:
        with runtime.database.read() as conn:
            return asset_installs.list_all(conn)
    except DatabaseError:
        nothing_yet = (DatabaseState.MISSING, DatabaseState.EMPTY)
        return [] if diagnose(runtime.config.database_path).state in nothing_yet else None


def _check_agent(
    runtime: Runtime, name: str, installs: list[AssetInstall] | None
) -> tuple[Row, list[Finding]]:
    agent = registry.get(name, runtime.config)
    binary = find_binary(agent.binary, runtime.config.environ.get("PATH", ""))
    row: Row = {"agent": name, "binary": binary, "version": _version(runtime, agent, binary)}
    try:
        home = agent.asset_home()
    except CafleetError as error:
        row |= {"path": None, "origin": None, "assets": ERROR, "installed": None}
        return row, [issue(str(error), "set the variable to an absolute path, or unset it")]
    if home is None:
        row |= {"path": None, "origin": None, "assets": None, "installed": None}
        return row, []
    if installs is None:
        row |= {"path": home.path, "origin": home.origin, "assets": UNKNOWN, "installed": None}
        return row, []
    recorded = next(
        (one.cafleet_version for one in installs if (one.coding_agent, one.path) == (name, home.path)), None
    )
    state, findings = _assets(name, home, recorded, wanted=binary is not None)
    row |= {"path": home.path, "origin": home.origin, "assets": state, "installed": recorded}
    return row, findings


def _version(runtime: Runtime, agent: Agent, binary: str | None) -> str | None:
    """Only of the built-in products: nobody knows what another program does with `--version`."""
    if binary is None or agent.name not in registry.BUILT_IN:
        return None
    output = probe.output_of([binary, "--version"], runtime.config.environ, VERSION_SECONDS)
    lines = (output or "").strip().splitlines()
    return lines[0] if lines else None


def _assets(name: str, home: AssetHome, recorded: str | None, *, wanted: bool) -> tuple[str, list[Finding]]:
    mend = f"cafleet setup --coding-agent {name}"
    if recorded is None:
        text = f"{name} is installed, but cafleet's skill for it is not"
        return NOT_INSTALLED, [issue(text, mend)] if wanted else []
    missing = [path for path in _files(home) if not os.path.isfile(path)]
    if missing:
        return ERROR, [issue(f"{missing[0]} is gone", mend)]
    if recorded != __version__:
        text = (
            f"the {name} assets are of cafleet {recorded}, this is {__version__}: most commands refuse to run"
        )
        return STALE, [issue(text, "cafleet setup")]
    return OK, []


def _files(home: AssetHome) -> list[str]:
    skill = os.path.join(skill_target(home), "SKILL.md")
    return [skill] if home.preset is None else [skill, home.preset.target]


def _superseded(runtime: Runtime, installs: list[AssetInstall]) -> list[Finding]:
    findings = []
    for one in installs:
        try:
            current = is_current_path(one, runtime.config)
        except CafleetError:
            continue  # Reported with the agent.
        if not current:
            findings.append(
                note(
                    f"superseded: {one.coding_agent} assets {one.cafleet_version} at {one.path}, not used now"
                )
            )
    return findings
