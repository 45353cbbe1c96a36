"""Settings from the environment: the only reader of `os.environ`.

`config.toml` (configured agents) is read by `agents.configured`, only when a name is not built in.
"""

import os
from collections.abc import Container, Mapping
from importlib import import_module

from cafleet.errors import CafleetError, InvalidInput
from cafleet.light_typing import NamedTuple

HOME_SETTING = "HOME"
DATABASE_SETTING = "CAFLEET_DATABASE_URL"
INTEGER_SETTINGS = ("CAFLEET_MAX_TEXT_LEN", "CAFLEET_BROKER_PORT", "CAFLEET_MONITOR_WAKE_INTERVAL")
DATABASE_FILE_NAME = "cafleet_v8.db"
DEFAULT_MAX_TEXT_LEN = 200
"""Code points of a body that a notification line shows."""
DEFAULT_BROKER_HOST = "127.0.0.1"
DEFAULT_BROKER_PORT = 8000
DEFAULT_WAKE_INTERVAL_SECONDS = 600


class Config(NamedTuple):
    """Settings of one invocation, already checked where a wrong value must stop every command."""

    environ: Mapping[str, str]
    """A snapshot, to hand to child processes and to read a product's own variables from."""
    home: str
    database_path: str
    """Absolute path of the SQLite file (SPEC 2.1)."""
    database_url: str | None
    """`CAFLEET_DATABASE_URL` as it was set, to pass on to new panes; None when unset."""
    config_path: str
    """`$XDG_CONFIG_HOME/cafleet/config.toml`; need not exist."""
    max_text_len: int
    """`CAFLEET_MAX_TEXT_LEN`, code points; 0: the notification's header alone."""
    debug: bool
    """`CAFLEET_DEBUG=1`: show tracebacks."""

    @property
    def data_directory(self) -> str:
        """The folder of the database; `locks/`, `wakeups/` and `launch/` live in it.

        That of the file itself where the path is a link: whoever comes by another name must meet the
        same locks.
        """
        path = self.database_path
        return os.path.dirname(os.path.realpath(path) if os.path.islink(path) else path)


def load(environ: Mapping[str, str] | None = None, *, forgiving: bool = False) -> Config:
    """Settings from `environ` (the process environment by default).

    `forgiving`: a variable that cannot be read counts as unset; `mistakes` names it.

    Raises:
        CafleetError: `CAFLEET_DATABASE_URL` is not an absolute sqlite URL, or `HOME` not an absolute path
            (SPEC 2.1): each folder that a command runs in would have a database of its own.
        InvalidInput: another variable has a value that cannot be read.
    """
    snapshot = dict(os.environ if environ is None else environ)
    env = _without(snapshot, mistakes(snapshot)) if forgiving else snapshot
    home = _home(env)
    url = env.get("CAFLEET_DATABASE_URL") or None
    data_home = _absolute_or(env.get("XDG_DATA_HOME"), os.path.join(home, ".local", "share"))
    config_home = _absolute_or(env.get("XDG_CONFIG_HOME"), os.path.join(home, ".config"))
    return Config(
        environ=snapshot,
        home=home,
        database_path=os.path.join(data_home, "cafleet", DATABASE_FILE_NAME)
        if url is None
        else _path_of(url),
        database_url=url,
        config_path=os.path.join(config_home, "cafleet", "config.toml"),
        max_text_len=integer_setting(env, "CAFLEET_MAX_TEXT_LEN", DEFAULT_MAX_TEXT_LEN),
        debug=env.get("CAFLEET_DEBUG") == "1",
    )


def mistakes(environ: Mapping[str, str]) -> dict[str, str]:
    """Which of cafleet's own variables cannot be read: name to what is wrong with it."""
    found = {}
    for name in (HOME_SETTING, DATABASE_SETTING, *INTEGER_SETTINGS):
        try:
            _check(environ, name)
        except CafleetError as error:
            found[name] = str(error)
    return found


def _check(environ: Mapping[str, str], name: str) -> None:
    if name in INTEGER_SETTINGS:
        integer_setting(environ, name, 0)
    elif name == HOME_SETTING:
        _home(environ)
    elif environ.get(name):
        _path_of(environ[name])


def debug_wanted() -> bool:
    """`CAFLEET_DEBUG=1` in the process environment, also where the rest of the settings cannot be read."""
    return os.environ.get("CAFLEET_DEBUG") == "1"


def integer_setting(environ: Mapping[str, str], name: str, default: int) -> int:
    """A whole number >= 0 from the environment, `default` where unset or empty.

    Raises:
        InvalidInput: the value is anything else.
    """
    text = environ.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise InvalidInput(f"{name} must be a whole number (got '{text}')")
    return int(text)


def _without(environ: Mapping[str, str], names: Container[str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name not in names}


def _home(environ: Mapping[str, str]) -> str:
    """`HOME`, or what the user database says where that is unset or empty."""
    home = environ.get(HOME_SETTING)
    if home and not os.path.isabs(home):
        raise CafleetError(f"{HOME_SETTING} must be an absolute path (got '{home}')")
    return home or _home_of_user()


def _home_of_user() -> str:
    try:
        home: str = import_module("pwd").getpwuid(os.getuid()).pw_dir
    except KeyError:  # A container's user that nobody gave a name.
        home = ""
    return home if os.path.isabs(home) else os.sep


def _absolute_or(value: str | None, default: str) -> str:
    return value if value and os.path.isabs(value) else default


def _path_of(url: str) -> str:
    prefix = "sqlite:///"
    path = url[len(prefix) :] if url.startswith(prefix) else ""
    if not path.startswith("/") or "\0" in path or path.endswith("/"):
        raise CafleetError(f"CAFLEET_DATABASE_URL must be an absolute sqlite:/// URL (got '{url}')")
    return os.path.normpath(path)
