"""`cafleet setup`, its assets half, and the guard that looks after it (SPEC 8)."""

import os
import sqlite3
from pathlib import Path

import pytest
from tests.support.database import run_sql, run_without_rights
from tests.support.program import Program

from cafleet import __version__

PLACES = {
    "claude": (".claude/skills/cafleet/SKILL.md",),
    "codex": (".codex/skills/cafleet/SKILL.md", ".codex/rules/cafleet.rules"),
    "opencode": (".config/opencode/skills/cafleet/SKILL.md", ".opencode/agents/cafleet.md"),
}
VARIABLES = {
    "claude": ("CLAUDE_CONFIG_DIR", ("skills/cafleet/SKILL.md",)),
    "codex": ("CODEX_HOME", ("skills/cafleet/SKILL.md", "rules/cafleet.rules")),
    "opencode": ("OPENCODE_CONFIG_DIR", ("agents/cafleet.md",)),
}


MEND = "; make room for it there, with the right to write, and run 'cafleet setup' again"


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def rows(program: Program) -> list[tuple[str, str, str]]:
    with sqlite3.connect(program.database_path) as connection:
        found = connection.execute(
            "SELECT coding_agent, path, cafleet_version FROM asset_installs ORDER BY 1, 2"
        )
        result = found.fetchall()
    connection.close()
    return result


def record_other_version(program: Program, agent: str, version: str) -> None:
    connection = sqlite3.connect(program.database_path)
    with connection:
        connection.execute(
            "UPDATE asset_installs SET cafleet_version = ? WHERE coding_agent = ?", (version, agent)
        )
    connection.close()


def test_setup_installs_for_every_agent(program: Program) -> None:
    done = program.run("setup")
    assert (done.code, done.stderr) == (0, "")
    assert all((program.home / place).is_file() for places in PLACES.values() for place in places)
    assert rows(program) == [
        ("claude", str(program.home / ".claude"), __version__),
        ("codex", str(program.home / ".codex"), __version__),
        ("opencode", str(program.home / ".opencode"), __version__),
    ]
    lines = done.stdout.splitlines()
    assert lines[0].startswith("database: created ")
    assert all(line.startswith("assets: ") for line in lines[1:])


def test_setup_can_be_repeated(program: Program) -> None:
    program.run("setup")
    (program.home / ".claude/skills/cafleet/SKILL.md").write_text("changed by somebody")
    (program.home / ".claude/skills/mine").mkdir()
    before = rows(program)
    assert program.run("setup").code == 0
    assert rows(program) == before
    assert "changed by somebody" not in (program.home / ".claude/skills/cafleet/SKILL.md").read_text()
    assert sorted(os.listdir(program.home / ".claude/skills")) == ["cafleet", "mine"]


def test_setup_for_one_agent(program: Program) -> None:
    assert program.run("setup", "--coding-agent", "codex").code == 0
    assert [row[0] for row in rows(program)] == ["codex"]
    assert not (program.home / ".claude").exists()


def test_an_unknown_agent_is_refused_before_anything_is_done(program: Program) -> None:
    done = program.run("setup", "--coding-agent", "gemma")
    assert done.code == 2
    assert done.stderr.startswith("Error: unknown coding agent 'gemma'; known: claude, codex, opencode\n")
    assert os.listdir(program.home) == []


@pytest.mark.parametrize("agent", VARIABLES)
def test_a_variable_moves_an_agents_assets(program: Program, agent: str, tmp_path: Path) -> None:
    variable, places = VARIABLES[agent]
    moved = tmp_path / "moved"
    done = program.run("setup", "--coding-agent", agent, environ={variable: str(moved)})
    assert done.code == 0
    assert all((moved / place).is_file() for place in places)
    assert rows(program) == [(agent, str(moved), __version__)]


@pytest.mark.parametrize("agent", VARIABLES)
def test_a_variable_that_is_not_absolute_stops_that_agent_only(program: Program, agent: str) -> None:
    variable, _ = VARIABLES[agent]
    done = program.run("setup", environ={variable: "some/where"})
    assert done.code == 1
    assert done.stderr == f"Error: {variable} must be an absolute path (got 'some/where')\n"
    assert [row[0] for row in rows(program)] == sorted({*VARIABLES} - {agent})


def test_a_mistake_in_the_configuration_stops_no_built_in_agent(program: Program) -> None:
    path = program.home / ".config/cafleet/config.toml"
    path.parent.mkdir(parents=True)
    path.write_text("[agents.own]\n")
    done = program.run("setup")
    assert done.code == 1
    assert done.stderr == f"Error: {path}:1: agents.own: has no 'command'\n"
    assert [row[0] for row in rows(program)] == sorted(PLACES)
    assert program.run("fleet", "list").code == 0


def test_a_database_that_is_refused_does_not_keep_the_assets_back(program: Program) -> None:
    program.database_path.parent.mkdir(parents=True)
    program.database_path.write_bytes(b"something else entirely, long enough to be looked at" * 20)
    before = program.database_path.read_bytes()
    done = program.run("setup", "--coding-agent", "claude", "--coding-agent", "codex")
    assert done.code == 1
    lines = done.stdout.splitlines()
    assert (lines[0], lines[-1]) == ("database: failed", "assets: failed")
    assert [line.split(" installed ")[0] for line in lines[1:-1]] == [
        "assets: claude skill",
        "assets: codex skill",
        "assets: codex preset",
    ]
    assert done.stderr == (
        f"Error: {program.database_path} is not a cafleet database\n"
        "Warning: The assets are in place, but that could not be recorded.\n"
    )
    assert (program.home / PLACES["claude"][0]).is_file()
    assert program.database_path.read_bytes() == before


def test_a_database_that_cannot_be_named_does_not_keep_the_assets_back(program: Program) -> None:
    done = program.run("setup", "--coding-agent", "claude", environ={"CAFLEET_DATABASE_URL": "team.db"})
    assert done.code == 1
    assert done.stdout.startswith("database: failed\nassets: claude skill installed in ")
    assert done.stderr == (
        "Error: CAFLEET_DATABASE_URL must be an absolute sqlite:/// URL (got 'team.db')\n"
        "Warning: The assets are in place, but that could not be recorded.\n"
    )
    assert (program.home / PLACES["claude"][0]).is_file()
    assert not program.database_path.exists(), "no other file is made in its stead"


def test_without_a_home_nothing_is_done(program: Program) -> None:
    done = program.run("setup", environ={"HOME": "some/where"})
    assert done == (1, "", "Error: HOME must be an absolute path (got 'some/where')\n")
    assert os.listdir(program.home) == []


def test_records_that_cannot_be_written_are_told_of(program: Program) -> None:
    assert program.run("setup").code == 0
    run_sql(
        program.database_path,
        "CREATE TRIGGER refuse BEFORE INSERT ON asset_installs BEGIN SELECT raise(ABORT, 'no'); END",
    )
    done = program.run("setup", "--coding-agent", "claude")
    assert done.code == 1
    assert done.stdout.splitlines()[-1] == "assets: failed"
    assert done.stderr.splitlines()[1:] == ["The assets are in place, but that could not be recorded."]


def test_a_symlink_as_target_is_replaced(program: Program, tmp_path: Path) -> None:
    mine = tmp_path / "dotfiles"
    mine.mkdir()
    skills = program.home / ".claude" / "skills"
    skills.mkdir(parents=True)
    (skills / "cafleet").symlink_to(mine)
    assert program.run("setup", "--coding-agent", "claude").code == 0
    assert not (skills / "cafleet").is_symlink()
    assert os.listdir(mine) == []


def test_a_target_that_cannot_be_written_is_named(program: Program) -> None:
    (program.home / ".claude").write_text("a file where a folder should be")
    done = program.run("setup")
    assert done.code == 1
    target = program.home / ".claude" / "skills" / "cafleet"
    assert done.stderr == f"Error: cannot install claude assets at {target}: not a directory{MEND}\n"
    assert [row[0] for row in rows(program)] == ["codex", "opencode"]


def test_a_read_only_target_is_named(tmp_path: Path) -> None:
    read_only = tmp_path / "read-only"
    (read_only / "skills").mkdir(parents=True)
    (read_only / "skills").chmod(0o555)
    script = """
os.environ.update(HOME=sys.argv[1], CLAUDE_CONFIG_DIR=sys.argv[2])
sys.argv[1:] = ["setup", "--coding-agent", "claude"]
from cafleet.cli.main import run
run()
"""
    done = run_without_rights(script, str(tmp_path), str(read_only))
    target = read_only / "skills" / "cafleet"
    assert done.stderr == f"Error: cannot install claude assets at {target}: permission denied{MEND}\n"
    assert done.returncode == 1
    assert os.listdir(read_only / "skills") == []


# -- the guard ---------------------------------------------------------------------------------

GUARDED = (("fleet", "list"), ("member", "list", "1"), ("message", "poll", "1"))


@pytest.mark.parametrize("command", GUARDED)
def test_without_assets_nothing_runs(program: Program, command: tuple[str, ...]) -> None:
    program.run("setup")
    for agent, (variable, _) in VARIABLES.items():
        program.environ[variable] = str(program.home / "nowhere" / agent)
    done = program.run(*command)
    assert done.code == 1
    assert done.stderr == "Error: no assets are installed at the resolved paths; run 'cafleet setup'\n"


def test_the_format_comes_first(program: Program) -> None:
    done = program.run("fleet", "list")
    assert done.stderr == f"Error: no cafleet database at {program.database_path}; run 'cafleet setup'\n"


@pytest.mark.parametrize("command", GUARDED)
def test_stale_assets_stop_a_command_until_setup_has_run(program: Program, command: tuple[str, ...]) -> None:
    program.run("setup")
    record_other_version(program, "claude", "0.9.0")
    record_other_version(program, "opencode", "0.8.0")
    done = program.run(*command)
    assert done.code == 1
    assert done.stderr == (
        f"Error: stale assets (claude=0.9.0, opencode=0.8.0 ; cafleet {__version__}); run 'cafleet setup'\n"
    )
    assert program.run("setup").code == 0
    assert "assets" not in program.run(*command).stderr


def test_one_agents_assets_are_enough(program: Program) -> None:
    program.run("setup", "--coding-agent", "codex")
    assert program.run("fleet", "list").code == 0


def test_rows_at_other_paths_do_not_count(program: Program, tmp_path: Path) -> None:
    program.run("setup")
    record_other_version(program, "codex", "0.9.0")
    assert program.run("fleet", "list").code == 1
    moved = {"CODEX_HOME": str(tmp_path / "moved")}
    assert program.run("fleet", "list", environ=moved).code == 0


def test_commands_that_touch_no_fleet_are_not_stopped(program: Program) -> None:
    program.run("setup")
    record_other_version(program, "claude", "0.9.0")
    assert "stale" not in program.run("whoami").stderr
    assert "stale" not in program.run("--help").stderr


def test_a_configured_agents_skills(program: Program) -> None:
    file = program.home / ".config" / "cafleet" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text('[agents.own]\ncommand = ["own", "{prompt}"]\nskills = "~/own/skills"\n')
    assert program.run("setup", "--coding-agent", "own").code == 0
    assert (program.home / "own/skills/cafleet/SKILL.md").is_file()
    assert program.run("fleet", "list").code == 0
    file.unlink()
    assert program.run("fleet", "list").stderr.startswith("Error: no assets are installed")


def test_a_configured_agent_without_a_place_for_skills(program: Program) -> None:
    file = program.home / ".config" / "cafleet" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text('[agents.own]\ncommand = ["own", "{prompt}"]\n')
    done = program.run("setup", "--coding-agent", "own")
    assert done.code == 2
    assert "own has no folder for skills; set agents.own.skills in config.toml" in done.stderr
    assert program.run("setup").code == 0
