"""Completion in the three real shells, each in a pane: what a person sees and gets with Tab."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.database import held_by_another_process, run_sql
from tests.support.fleet_builder import World
from tests.support.program import Program, seed_team
from tests.support.tmux_server import TmuxServer
from tests.support.waiting import DEADLINE_SECONDS, wait_until

from cafleet.cli import candidates, commands
from cafleet.db.database import Database
from cafleet.errors import DatabaseBusy

SHELLS = ("bash", "zsh", "fish")
TAB = "Tab"
OTHER = r"other $(date) \d"
"""A name in which a shell could find something to do."""


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """With a fleet of a Director (1), ann (2) and bob: x (3), and another one of a Director (4)."""
    made = Program(tmp_path)
    made.run("setup")
    seed_team(made, "ann", "bob: x")
    seed_team(made, fleet=OTHER)
    return made


class Shell:
    """An interactive shell that knows nothing but the script."""

    def __init__(self, server: TmuxServer, program: Program, name: str) -> None:
        self._server = server
        script = program.run("completion", name)
        assert (script.code, script.stderr) == (0, "")
        folder = program.home / "completions"
        folder.mkdir()
        file = folder / "_cafleet"
        file.write_text(script.stdout, encoding="utf-8")
        environ = [f"{key}={value}" for key, value in program.environ.items()]
        command = {
            "bash": ("bash", "--norc", "--noprofile"),
            "zsh": ("zsh", "-f"),
            "fish": ("fish", "--no-config"),
        }[name]
        self.pane = server.add_pane("env", "-i", *environ, "TERM=screen", "PS1=$ ", *command)
        ready = {
            "bash": f"bind 'set show-all-if-ambiguous on'; source {file}",
            "zsh": f"PS1='$ '; fpath=({folder} $fpath); autoload -U compinit; compinit -D -u",
            "fish": f"function fish_prompt; echo '$ '; end; source {file}",
        }[name]
        self.type(f"{ready}; clear; echo rea''dy\n")
        server.wait_for_text(self.pane, "ready")

    def type(self, text: str) -> None:
        for line in text.splitlines(keepends=True):
            self._server.run("send-keys", "-l", "-t", self.pane, line.rstrip("\n"))
            if line.endswith("\n"):
                self._server.run("send-keys", "-t", self.pane, "Enter")

    def tab(self, text: str, *shown: str) -> None:
        """Type a line and Tab: all of `shown` appears, whatever the shell's way to list it."""
        self.type(text)
        self._server.run("send-keys", "-t", self.pane, TAB)
        self._until(lambda screen: all(part in screen for part in shown))
        self._server.run("send-keys", "-t", self.pane, "C-e", "C-u")
        self.type("clear\n")
        self._until(lambda screen: "cafleet" not in screen)

    def _until(self, wanted: Callable[[str], bool]) -> None:
        try:
            wait_until(lambda: wanted(self.screen()))
        except AssertionError as error:
            raise AssertionError(f"{error}; on the screen:\n{self.screen()}") from None

    def screen(self) -> str:
        return self._server.screen(self.pane)


@pytest.mark.parametrize("name", SHELLS)
def test_a_shell_completes_commands_options_and_ids(
    tmux_server: TmuxServer, program: Program, name: str
) -> None:
    shell = Shell(tmux_server, program, name)
    shell.tab("cafleet mess", "cafleet message")
    shell.tab("cafleet message ", "broadcast", "listen", "poll", "send")
    shell.tab("cafleet message send --fr", "--from")
    shell.tab("cafleet message poll ", "director (team)", "ann (team)", "bob: x (team)")
    shell.tab("cafleet message send --from 1 --to ", "ann (team)", f"director ({OTHER})")
    shell.tab("cafleet fleet show ", "team", OTHER)
    shell.tab("cafleet fleet create --coding-agent cl", "--coding-agent claude")
    shell.tab("cafleet completion z", "cafleet completion zsh")


@pytest.mark.parametrize("name", SHELLS)
def test_a_value_behind_an_equals_sign_is_completed(
    tmux_server: TmuxServer, program: Program, name: str
) -> None:
    (program.home / "plan.txt").touch()
    shell = Shell(tmux_server, program, name)
    shell.tab("cafleet message send --from=1 --to=", "ann (team)", f"director ({OTHER})")
    shell.tab("cafleet message send --key=a=b --fi", "--file")
    shell.tab("cafleet fleet create --coding-agent=cl", "--coding-agent=claude")
    shell.tab(f"cafleet message send --file={program.home}/pl", "plan.txt")
    shell.tab(f"cafleet member create --cwd={program.home}/compl", "completions/")


def test_bash_completes_what_is_before_the_cursor(tmux_server: TmuxServer, program: Program) -> None:
    shell = Shell(tmux_server, program, "bash")
    shell.type("cafleet message poll 4 --json")
    tmux_server.run("send-keys", "-t", shell.pane, *["Left"] * len("4 --json"))
    shell.tab("", "director (team)", "ann (team)", f"director ({OTHER})")
    shell.tab("cafleet message poll '", "director (team)", "ann (team)")


@pytest.mark.parametrize("name", SHELLS)
def test_the_only_one_is_inserted_without_its_name(
    tmux_server: TmuxServer, program: Program, name: str
) -> None:
    shell = Shell(tmux_server, program, name)
    shell.type("echo got; cafleet member show 3")
    tmux_server.run("send-keys", "-t", shell.pane, TAB)
    shell.type("\n")
    wait_until(lambda: "name: bob: x" in shell.screen(), what=shell.screen())


def test_the_lists_that_scripts_ask_for(program: Program) -> None:
    assert program.run("completion", "members").stdout.split("\n") == [
        f"4\tdirector ({OTHER})",
        "1\tdirector (team)",
        "2\tann (team)",
        "3\tbob: x (team)",
        "",
    ]
    assert program.run("completion", "fleets").stdout == f"2\t{OTHER}\n1\tteam\n"
    assert "claude\n" in program.run("completion", "agents").stdout
    assert program.run("completion", "tcsh") == (
        2,
        "",
        "Error: SHELL must be one of bash, zsh, fish (got 'tcsh')\n",
    )


def test_a_locked_database_is_not_waited_for(tmp_path: Path) -> None:
    world = World(tmp_path)
    path = Path(world.database.path)
    world.close()
    run_sql(path, "PRAGMA journal_mode=DELETE")  # Where a writer keeps readers out.
    patient = Database(str(path), busy_timeout_seconds=DEADLINE_SECONDS)
    started = time.monotonic()
    with held_by_another_process(path, "BEGIN EXCLUSIVE"), pytest.raises(DatabaseBusy):
        list(candidates.lines(world.runtime_with(patient), "members"))
    assert time.monotonic() - started < DEADLINE_SECONDS
    patient.close()


@pytest.mark.parametrize("name", SHELLS)
def test_a_script_needs_no_database_and_names_every_command(tmp_path: Path, name: str) -> None:
    program = Program(tmp_path)
    script = program.run("completion", name).stdout
    for command in commands.COMMANDS:
        assert command.split()[-1] in script
    assert not program.database_path.exists()
    assert program.run("completion", "members").code == 1


@pytest.mark.parametrize("name", SHELLS)
def test_nothing_is_offered_by_a_shell_without_a_database(
    tmux_servers: Callable[..., TmuxServer], tmp_path: Path, name: str
) -> None:
    program = Program(tmp_path)
    shell = Shell(tmux_servers().start(), program, name)
    shell.type("cafleet message poll ")
    tmux_server = shell._server
    tmux_server.run("send-keys", "-t", shell.pane, TAB)
    shell.type("7; echo do''ne\n")
    tmux_server.wait_for_text(shell.pane, "done")
    assert shell.screen().count("Error:") == 1
