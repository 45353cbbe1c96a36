"""Settings from the environment (SPEC 2.1)."""

import os
import pwd

import pytest

from cafleet import config
from cafleet.errors import CafleetError


@pytest.mark.parametrize("home", ["some/where", ".", "~"])
def test_a_relative_home_is_refused(home: str) -> None:
    """Each folder that a command runs in would have a database of its own."""
    with pytest.raises(CafleetError) as caught:
        config.load({"HOME": home})
    assert str(caught.value) == f"HOME must be an absolute path (got '{home}')"
    assert config.mistakes({"HOME": home}) == {"HOME": str(caught.value)}


@pytest.mark.parametrize("environ", [{}, {"HOME": ""}])
def test_without_home_the_user_database_knows(environ: dict[str, str]) -> None:
    home = pwd.getpwuid(os.getuid()).pw_dir
    settings = config.load(environ)
    assert settings.home == home
    assert settings.database_path == f"{home}/.local/share/cafleet/cafleet_v8.db"


def test_a_forgiving_reader_takes_a_relative_home_for_none() -> None:
    assert config.load({"HOME": "some/where"}, forgiving=True).home == pwd.getpwuid(os.getuid()).pw_dir
