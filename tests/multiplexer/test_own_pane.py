"""The calling pane as the environment alone names it."""

import os
from collections.abc import Iterator, Mapping

import pytest
from tests.support.fake_herdr import listening_here

from cafleet.multiplexer.own_pane import own_pane

TMUX = {"TMUX": "/tmp/tmux-1/default,41,0", "TMUX_PANE": "%3"}


@pytest.fixture
def listener() -> Iterator[str]:
    with listening_here() as path:
        yield path


def herdr(path: str) -> dict[str, str]:
    return {"HERDR_ENV": "1", "HERDR_SOCKET_PATH": path, "HERDR_PANE_ID": "w1:p2"}


def test_tmux_names_server_and_pane() -> None:
    assert own_pane(TMUX) == (f"{os.uname().nodename}|/tmp/tmux-1/default|41", "%3")


def test_the_kernel_tells_which_process_a_herdr_server_is(listener: str) -> None:
    assert own_pane(herdr(listener)) == (f"{os.uname().nodename}|{listener}|{os.getpid()}", "w1:p2")


def test_of_nested_multiplexers_the_chosen_one_is_meant(listener: str) -> None:
    nested = {**TMUX, **herdr(listener)}
    assert own_pane(nested) is None
    for name, alone in (("tmux", TMUX), ("herdr", herdr(listener))):
        assert own_pane({**nested, "CAFLEET_MULTIPLEXER": name}) == own_pane(alone)
    assert own_pane({**TMUX, "CAFLEET_MULTIPLEXER": "another"}) is None


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"TMUX": "/tmp/tmux-1/default,41,0"},
        {**TMUX, "TMUX": "relative,41,0"},
        {**TMUX, "TMUX": "/tmp/tmux-1/default"},
        {**TMUX, "TMUX_PANE": "3"},
        {"HERDR_ENV": "1"},
        herdr("relative"),
        herdr("/nonexistent/herdr.sock"),
        herdr("/" + "x" * 200),
    ],
)
def test_what_names_no_pane(environ: Mapping[str, str]) -> None:
    assert own_pane(environ) is None


def test_a_pane_id_that_could_be_an_option_is_none(listener: str) -> None:
    assert own_pane({**herdr(listener), "HERDR_PANE_ID": "--current"}) is None
