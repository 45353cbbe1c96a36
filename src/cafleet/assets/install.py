"""The assets half of `setup`: skills and presets into each agent's folders, and a row about it (SPEC 8)."""

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from cafleet import __version__
from cafleet.agents import registry
from cafleet.agents.base import AssetHome
from cafleet.assets.replace import replace_file, replace_folder
from cafleet.clock import format_timestamp
from cafleet.db import asset_installs
from cafleet.errors import AssetsNotInstalled, UsageError
from cafleet.models import AssetInstall
from cafleet.runtime import Runtime

SKILL = "cafleet"
"""Name of the skill and of its folder."""
Replace = Callable[[str, str], None]
_HERE = os.path.dirname(os.path.abspath(__file__))


class Installed(NamedTuple):
    """What was done for one agent."""

    agent: str
    identity_path: str
    """The folder that the record is about."""
    skill_path: str
    preset_path: str | None


def choose(runtime: Runtime, names: Sequence[str]) -> list[str]:
    """The agents to install for: `names`, or every agent that has a place for skills.

    Raises:
        UnknownAgent: no such agent.
        UsageError: an agent that was named has no place for skills.
        ConfigFileError: config.toml has a mistake and is needed.
    """
    if not names:
        known = [registry.get(name, runtime.config) for name in registry.known(runtime.config)]
        return [agent.name for agent in known if agent.has_assets]
    for name in names:
        if not registry.get(name, runtime.config).has_assets:
            raise UsageError(f"{name} has no folder for skills; set agents.{name}.skills in config.toml")
    return list(dict.fromkeys(names))


def install(runtime: Runtime, name: str) -> Installed:
    """Replace one agent's skill and preset; `record` is to follow. Other skills are not touched.

    Raises:
        AssetsNotInstalled: a target cannot be written; the one before it is still whole.
        CafleetError: a variable that must be absolute is not.
    """
    home = registry.get(name, runtime.config).asset_home()
    if home is None:
        raise AssertionError(name)  # `choose` does not let it through.
    skill_path, preset = skill_target(home), home.preset
    _replace(name, replace_folder, os.path.join(_HERE, "skills", SKILL), skill_path)
    if preset is not None:
        _replace(name, replace_file, os.path.join(_HERE, "presets", preset.source), preset.target)
    return Installed(name, home.path, skill_path, None if preset is None else preset.target)


def record(runtime: Runtime, installed: Sequence[Installed]) -> None:
    """Note in the database that these are of this version; the guard relies on it. Raises DatabaseError."""
    now = format_timestamp(runtime.now())
    runtime.database.guard()
    with runtime.database.write() as conn:
        for one in installed:
            asset_installs.upsert(conn, AssetInstall(one.agent, one.identity_path, __version__, now))


def skill_target(home: AssetHome) -> str:
    """Where the skill's folder goes."""
    return os.path.join(home.skills_directory, SKILL)


def _replace(agent: str, replace: Replace, source: str, target: str) -> None:
    try:
        replace(source, target)
    except OSError as error:
        detail = (error.strerror or str(error)).lower()
        raise AssetsNotInstalled(agent, target, detail) from error
