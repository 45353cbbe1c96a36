"""The environment: variables that stop other commands, or that count for nothing."""

import os

from cafleet import config
from cafleet.doctor.records import Section, issue, note
from cafleet.runtime import Runtime

NAME = "settings"

_WANTED = {
    config.HOME_SETTING: "an absolute path",
    config.DATABASE_SETTING: "sqlite:////absolute/path/to/a/file.db",
}
_FOLDERS = ("XDG_DATA_HOME", "XDG_CONFIG_HOME")


def check_settings(runtime: Runtime) -> Section:
    """A finding per variable that has a wrong value; nothing where all is well."""
    environ = runtime.config.environ
    findings = []
    for name, text in config.mistakes(environ).items():
        findings.append(issue(text, f"set it to {_WANTED.get(name, 'a whole number')}, or unset it"))
    for name in _FOLDERS:
        value = environ.get(name)
        if value and not os.path.isabs(value):
            text = f"{name} is not an absolute path (got '{value}'), so it is not used"
            findings.append(note(text, "set it to an absolute path, or unset it"))
    return Section(NAME, [], findings)


def names_a_database(runtime: Runtime) -> bool:
    """Whether it is known which database file is meant."""
    return config.mistakes(runtime.config.environ).keys().isdisjoint(_WANTED)
