"""The installed program in a real pane of 80 × 24, by keys and by mouse."""

import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.program import SCRIPT, Program, seed_team
from tests.support.tmux_server import TmuxServer
from tests.support.waiting import wait_until

COLOUR = re.compile(r"\x1b\[[0-9;:]*[34]8[;:][25]")
"""A sequence for a colour beyond the terminal's own sixteen."""


@pytest.fixture
def program(tmp_path: Path) -> Program:
    made = Program(tmp_path)
    made.run("setup")
    seed_team(made, "ann", "bob")
    made.run("message", "send", "--from", "1", "--to", "3", "for bob")
    return made


@pytest.fixture
def small_server(tmux_servers: Callable[..., TmuxServer]) -> TmuxServer:
    """With room for 80 x 24, and one row more for tmux's own status line."""
    return tmux_servers().start(width=80, height=25)


def _start(server: TmuxServer, program: Program, *more: str) -> str:
    """A pane with the dashboard. `more`: environment."""
    environ = [*(f"{name}={value}" for name, value in program.environ.items()), *more]
    pane = server.add_pane(
        "env", "-i", *environ, "TERM=screen", "/bin/sh", "-c", '"$0" top; echo "left: $?"; cat', SCRIPT
    )
    server.run("resize-window", "-t", pane, "-x", "80", "-y", "24")
    for text in ("for bob", "q Quit"):
        server.wait_for_text(pane, text)
    return pane


def test_it_fits_and_is_used_with_keys_and_mouse(small_server: TmuxServer, program: Program) -> None:
    pane = _start(small_server, program)
    rows = small_server.run("capture-pane", "-p", "-t", pane).split("\n")
    assert rows[0].split() == ["1", "team", "(3)"]
    assert len(rows) == 24, rows
    assert rows[23].split()[:2] == ["s", "Send"]
    assert rows[23].split()[-2:] == ["h", "Held"]
    assert not COLOUR.search(small_server.run("capture-pane", "-p", "-e", "-t", pane))

    row = next(number for number, text in enumerate(rows, 1) if " bob " in text and "member" not in text)
    for action in "Mm":  # A button goes down, and up.
        small_server.run("send-keys", "-l", "-t", pane, f"\x1b[<0;10;{row}{action}")
    small_server.wait_for_text(pane, "Inbox of bob (1)")
    for key in ("i", "a"):
        small_server.run("send-keys", "-t", pane, key)
    wait_until(
        lambda: program.run("message", "poll", "3").stdout == "No messages found.\n", what="an empty inbox"
    )
    small_server.run("send-keys", "-t", pane, "q")
    small_server.wait_for_text(pane, "left: 0")


@pytest.mark.parametrize("number", ["TERM", "HUP", "INT", "QUIT"])
def test_a_signal_leaves_the_terminal_as_it_was(
    small_server: TmuxServer, program: Program, number: str
) -> None:
    pane = _start(small_server, program)
    state = "#{alternate_on} #{mouse_any_flag} #{cursor_flag}"
    assert small_server.run("display-message", "-p", "-t", pane, state) == "1 1 0"
    shell = small_server.run("display-message", "-p", "-t", pane, "#{pane_pid}")
    (child,) = subprocess.run(
        ["pgrep", "-P", shell], capture_output=True, text=True, check=True
    ).stdout.split()
    os.kill(int(child), getattr(signal, f"SIG{number}"))
    small_server.wait_for_text(pane, "left: 130")
    assert small_server.run("display-message", "-p", "-t", pane, state) == "0 0 1"


def test_it_is_suspended_and_comes_back(small_server: TmuxServer, program: Program) -> None:
    environ = [*(f"{name}={value}" for name, value in program.environ.items()), "TERM=screen", "PS1=$ "]
    pane = small_server.add_pane("env", "-i", *environ, "bash", "--norc")
    small_server.run("send-keys", "-t", pane, f"{SCRIPT} top", "Enter")
    small_server.wait_for_text(pane, "for bob")
    small_server.run("send-keys", "-t", pane, "C-z")
    small_server.wait_for_text(pane, "Stopped")
    program.run("message", "send", "--from", "1", "--to", "2", "sent meanwhile")
    small_server.run("send-keys", "-t", pane, "fg", "Enter")
    small_server.wait_for_text(pane, "1 team (3)")
    small_server.wait_for_text(pane, "sent meanwhile")
    small_server.run("send-keys", "-t", pane, "q")
    small_server.wait_for_text(pane, "$ fg")


def test_it_is_not_suspended_where_nobody_could_bring_it_back(
    small_server: TmuxServer, program: Program
) -> None:
    pane = _start(small_server, program)
    small_server.run("send-keys", "-t", pane, "C-z")
    small_server.wait_for_text(pane, "no shell to come back from")
    small_server.run("send-keys", "-t", pane, "q")
    small_server.wait_for_text(pane, "left: 0")


def test_without_colours_everything_is_still_seen(small_server: TmuxServer, program: Program) -> None:
    pane = _start(small_server, program, "NO_COLOR=1")
    shown = small_server.run("capture-pane", "-p", "-e", "-t", pane)
    colours = set(re.findall(r"\x1b\[(?:[\d;]*;)?((?:3|4|9|10)\d(?:[;:]\d+)*)m", shown))
    assert colours <= {"39", "49"}
    assert "\x1b[7m" in shown or "\x1b[0;7m" in shown


def test_a_dumb_terminal_is_refused(tmux_servers: Callable[..., TmuxServer], program: Program) -> None:
    tmux_server = tmux_servers().start(width=120, height=25)
    environ = [f"{name}={value}" for name, value in program.environ.items()]
    pane = tmux_server.add_pane(
        "env", "-i", *environ, "TERM=dumb", "/bin/sh", "-c", '"$0" top; echo "left: $?"; cat', SCRIPT
    )
    tmux_server.wait_for_text(pane, "left: 2")
    assert "cannot draw on a terminal with TERM=dumb" in tmux_server.run("capture-pane", "-p", "-t", pane)


def test_without_a_terminal_it_says_so(program: Program) -> None:
    result = program.run("top")
    assert result.code == 2
    assert result.stderr.startswith("Error: 'cafleet top' needs a terminal")


def test_it_does_not_start_without_a_database(tmp_path: Path) -> None:
    result = Program(tmp_path).run("top")
    assert (result.code, result.stdout) == (1, "")
    assert "run 'cafleet setup'" in result.stderr
