"""`cafleet doctor` on a bare machine, on a healthy one, and on one with each fault (SPEC 8)."""

import json
import os
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.database import run_without_rights
from tests.support.machine import Machine
from tests.support.program import seed_messages, seed_team
from tests.support.tmux_server import TmuxServer
from tests.support.waiting import wait_until

from cafleet import __version__, config
from cafleet.clock import utc_now
from cafleet.db import members
from cafleet.db.database import Database
from cafleet.doctor.file_system import kind_of
from cafleet.doctor.records import Level, Report
from cafleet.doctor.report import examine
from cafleet.errors import MultiplexerTimeout, PaneGone
from cafleet.models import Placement
from cafleet.multiplexer.base import Multiplexer
from cafleet.multiplexer.select import UnknownMultiplexer
from cafleet.runtime import Runtime

Section = dict[str, Any]


def issues(section: Section) -> list[tuple[str, str]]:
    """Text and mend of what has to be mended."""
    return [(one["text"], one["mend"]) for one in section["findings"] if one["level"] == "issue"]


def notes(section: Section) -> list[str]:
    return [one["text"] for one in section["findings"] if one["level"] == "note"]


def change(machine: Machine, statement: str) -> None:
    connection = sqlite3.connect(machine.program.database_path)
    with connection:
        connection.execute(statement)
    connection.close()


# -- whole machines ----------------------------------------------------------------------------


def test_a_bare_machine(bare_machine: Machine) -> None:
    sections = bare_machine.sections(code=1)
    assert list(sections) == ["multiplexer", "database", "coding agents", "permissions", "fleets"]
    assert issues(sections["database"]) == [("there is no database yet", "cafleet setup")]
    assert issues(sections["coding agents"]) == [
        ("no coding agent's program is on PATH", "install one of: claude, codex, opencode")
    ]
    assert not bare_machine.program.database_path.exists()
    assert os.listdir(bare_machine.home) == []


def test_a_healthy_machine(machine: Machine) -> None:
    sections = machine.sections("--deep", code=0)
    database = sections["database"]["rows"][0]
    assert database["path"] == str(machine.program.database_path)
    assert (database["state"], database["journal"], database["integrity"]) == ("current", "wal", "ok")
    assert database["bytes"] > 0
    assert database["file system"] == kind_of(str(machine.program.database_path))
    claude, codex, opencode = sections["coding agents"]["rows"]
    assert claude == {
        "agent": "claude",
        "binary": str(machine.programs / "claude"),
        "version": "2.1.332 (Claude Code)",
        "path": str(machine.home / ".claude"),
        "origin": "default",
        "assets": "ok",
        "installed": __version__,
    }
    assert (codex["binary"], codex["version"], codex["assets"]) == (None, None, "ok")
    assert opencode["version"] == "1.18.33"


def test_text_says_the_same(machine: Machine) -> None:
    done = machine.doctor()
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "no issues found"
    assert f"  path: {machine.program.database_path}\n" in done.stdout
    (machine.home / ".claude/skills/cafleet/SKILL.md").unlink()
    change(machine, "UPDATE asset_installs SET cafleet_version = '0.9' WHERE coding_agent = 'opencode'")
    done = machine.doctor()
    assert done.code == 1
    assert done.stdout.splitlines()[-1] == "2 issues found"
    gone = machine.home / ".claude/skills/cafleet/SKILL.md"
    assert f"  ! {gone} is gone\n      cafleet setup --coding-agent claude\n" in done.stdout


def test_one_issue_is_one_issue(machine: Machine) -> None:
    (machine.home / ".opencode/agents/cafleet.md").unlink()
    assert machine.doctor().stdout.splitlines()[-1] == "1 issue found"


# -- the environment ---------------------------------------------------------------------------


@pytest.mark.parametrize("url", ["postgresql://host/name", "sqlite:///team.db", "team.db", "sqlite:////"])
def test_a_database_url_that_cannot_be_read_stops_nothing(machine: Machine, url: str) -> None:
    sections = machine.sections(code=1, CAFLEET_DATABASE_URL=url)
    assert issues(sections["settings"]) == [
        (
            f"CAFLEET_DATABASE_URL must be an absolute sqlite:/// URL (got '{url}')",
            "set it to sqlite:////absolute/path/to/a/file.db, or unset it",
        )
    ]
    # Nothing is said of another file than the one that was meant.
    assert notes(sections["database"]) == ["not looked at, since it is not known where it is"]
    assert (sections["database"]["rows"], sections["fleets"]["rows"]) == ([], [])
    assert {row["assets"] for row in sections["coding agents"]["rows"]} == {"unknown"}
    assert issues(sections["coding agents"]) == []
    done = machine.doctor(CAFLEET_DATABASE_URL=url)
    assert (done.code, done.stderr) == (1, "")
    assert done.stdout.startswith("settings\n  ! CAFLEET_DATABASE_URL must be ")
    assert done.stdout.endswith("\n1 issue found\n")


@pytest.mark.parametrize(
    "name", ["CAFLEET_MAX_TEXT_LEN", "CAFLEET_BROKER_PORT", "CAFLEET_MONITOR_WAKE_INTERVAL"]
)
def test_a_number_that_cannot_be_read_stops_nothing(machine: Machine, name: str) -> None:
    sections = machine.sections(code=1, **{name: "ten"})
    assert issues(sections.pop("settings")) == [
        (f"{name} must be a whole number (got 'ten')", "set it to a whole number, or unset it")
    ]
    assert sections == machine.sections(code=0)


def test_several_wrong_variables_are_several_issues(machine: Machine) -> None:
    wrong = {"CAFLEET_DATABASE_URL": "x", "CAFLEET_MAX_TEXT_LEN": "x", "CODEX_HOME": "x"}
    sections = machine.sections(code=1, **wrong)
    assert len(issues(sections["settings"])) == 2
    assert len(issues(sections["coding agents"])) == 1


def test_a_folder_variable_that_does_not_count_is_noted(machine: Machine) -> None:
    sections = machine.sections(code=0, XDG_DATA_HOME="data")
    assert notes(sections["settings"]) == [
        "XDG_DATA_HOME is not an absolute path (got 'data'), so it is not used"
    ]
    assert sections["database"]["rows"][0]["path"] == str(machine.program.database_path)


def test_a_folder_that_was_removed_meanwhile(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "removed").mkdir()
    command = (
        "sh",
        "-c",
        'cd "$1" && rmdir "$1" && exec cafleet doctor --json',
        "sh",
        str(tmp_path / "removed"),
    )
    done = subprocess.run(command, env=machine.program.environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["issues"] == 0


def examined_with(error: Exception, home: Path) -> Report:
    """Everything, in a pane whose multiplexer fails with `error`."""

    def broken(backend: str) -> Multiplexer:
        raise error

    settings = config.load({"HOME": str(home), "CAFLEET_MULTIPLEXER": "tmux", "TMUX": "/s,1,0"})
    runtime = Runtime(settings, Database(settings.database_path), broken, utc_now)
    return examine(runtime, deep=True, directory=str(home))


@pytest.mark.parametrize("mistake", [ValueError("odd"), RecursionError("deep"), AssertionError()])
def test_a_check_that_breaks_does_not_end_the_others(mistake: Exception, tmp_path: Path) -> None:
    """Whatever goes wrong inside one check, all five sections are there."""
    report = examined_with(mistake, tmp_path)
    names = ["multiplexer", "database", "coding agents", "permissions", "fleets"]
    assert [section.name for section in report.sections] == names
    (found,) = report.sections[0].findings
    assert found.text == f"this check could not be finished: {type(mistake).__name__}: {mistake}"
    assert found.mend


@pytest.mark.parametrize(
    ("error", "mend"),
    [
        (MultiplexerTimeout("tmux", 5), "wait until it answers, or end it and start it again"),
        (PaneGone("its server is gone"), "run this in a pane of a running multiplexer"),
        (UnknownMultiplexer("x", ["tmux"]), "set CAFLEET_MULTIPLEXER to one of those, or unset it"),
    ],
)
def test_each_failure_of_a_multiplexer_has_its_mend(error: Exception, mend: str, tmp_path: Path) -> None:
    (found,) = examined_with(error, tmp_path).sections[0].findings
    assert (found.level, found.text, found.mend) == (Level.ISSUE, str(error), mend)


def test_a_chosen_multiplexer_that_is_not_installed(machine: Machine) -> None:
    section = machine.sections(code=1, CAFLEET_MULTIPLEXER="herdr")["multiplexer"]
    assert issues(section) == [
        ("CAFLEET_MULTIPLEXER names herdr, which is not on PATH", "install it, or unset CAFLEET_MULTIPLEXER")
    ]


# -- multiplexer -------------------------------------------------------------------------------


def test_outside_a_multiplexer(machine: Machine) -> None:
    section = machine.sections(code=0)["multiplexer"]
    assert section["rows"] == [{"backend": None}]
    assert notes(section)[0].startswith("this is no pane of a multiplexer")


def test_in_a_pane(machine: Machine, tmux_server: TmuxServer) -> None:
    environ = {"TMUX": f"{tmux_server.socket},{tmux_server.pid},0", "TMUX_PANE": "%0"}
    row = machine.sections(code=0, **environ)["multiplexer"]["rows"][0]
    assert (row["backend"], row["session"], row["pane"]) == ("tmux", "main", "%0")
    assert str(tmux_server.socket) in row["server"]


@pytest.mark.parametrize(
    ("environ", "names"),
    [
        ({"TMUX": "/nonexistent/socket,1,0", "TMUX_PANE": "%0", "HERDR_ENV": "1"}, "CAFLEET_MULTIPLEXER"),
        ({"CAFLEET_MULTIPLEXER": "screen"}, "CAFLEET_MULTIPLEXER"),
        ({"TMUX": "/nonexistent/socket,1,0", "TMUX_PANE": "%0"}, ""),
    ],
)
def test_a_multiplexer_that_cannot_be_used(machine: Machine, environ: dict[str, str], names: str) -> None:
    found = issues(machine.sections(code=1, **environ)["multiplexer"])
    assert len(found) == 1
    assert names in found[0][0]


# -- database ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "text", "mend"),
    [
        ("PRAGMA application_id = 7", "the file is not a cafleet database", "CAFLEET_DATABASE_URL"),
        (
            "INSERT INTO refinery_schema_history VALUES (99, 'later', '', '')",
            "the database is of a newer format than this cafleet's",
            "upgrade cafleet",
        ),
        ("DROP INDEX idx_members_fleet_status", "the database is damaged", "cafleet backup"),
    ],
)
def test_a_database_that_is_refused(machine: Machine, statement: str, text: str, mend: str) -> None:
    change(machine, statement)
    found = issues(machine.sections(code=1)["database"])
    assert len(found) == 1
    assert found[0][0].startswith(text)
    assert mend in found[0][1]


def test_a_database_that_others_can_read(machine: Machine) -> None:
    path = machine.program.database_path
    path.chmod(0o644)
    found = issues(machine.sections(code=1)["database"])
    assert found == [(f"others can read the messages in {path}", f"chmod 600 {path}")]


def test_what_mends_a_file_can_be_pasted_into_a_shell(machine: Machine) -> None:
    path = machine.home / "our data" / "it's.db"
    machine.program.environ["CAFLEET_DATABASE_URL"] = f"sqlite:///{path}"
    assert machine.program.run("setup").code == 0
    path.chmod(0o644)
    ((_, mend),) = issues(machine.sections(code=1)["database"])
    subprocess.run(["sh", "-c", mend], check=True)
    assert issues(machine.sections(code=0)["database"]) == []


def test_a_database_that_is_refused_says_nothing_of_assets(machine: Machine) -> None:
    """What is installed is recorded in it: 'not installed' would send its reader the wrong way."""
    change(machine, "PRAGMA application_id = 7")
    section = machine.sections(code=1)["coding agents"]
    assert {row["assets"] for row in section["rows"]} == {"unknown"}
    assert issues(section) == []


def test_a_database_that_somebody_keeps_locked(machine: Machine) -> None:
    """Being busy is not damage: no copy has to be put in its place."""
    holder = sqlite3.connect(machine.program.database_path, isolation_level=None)
    try:
        holder.execute("PRAGMA locking_mode = EXCLUSIVE")
        holder.execute("BEGIN EXCLUSIVE")
        section = machine.sections("--deep", code=1)["database"]
    finally:
        holder.close()
    assert issues(section) == [
        (
            "the database is busy; try again",
            f"where that goes on, end what holds it: fuser -v {machine.program.database_path}",
        )
    ]


def examined_without_rights(home: Path, before: str = "", level: str = "issue") -> list[tuple[str, str]]:
    """What is found of the database for a user who is not root, after `before` has been run."""
    script = f"""
import json
{before}
from cafleet import config
from cafleet.clock import utc_now
from cafleet.db.database import Database
from cafleet.doctor.database import check_database
from cafleet.runtime import Runtime
settings = config.load({{"HOME": sys.argv[1]}})
runtime = Runtime(settings, Database(settings.database_path), None, utc_now)
print(json.dumps([one[1:] for one in check_database(runtime, deep=False).findings if one.level == "{level}"]))
"""
    done = run_without_rights(script, str(home))
    assert done.stderr == ""
    return [(text, mend) for text, mend in json.loads(done.stdout)]


def notes_without_rights(home: Path) -> list[tuple[str, str]]:
    """The database's notes for a user who is not root."""
    return examined_without_rights(home, level="note")


def test_a_database_without_a_log_says_how_it_gets_one(machine: Machine) -> None:
    change(machine, "PRAGMA journal_mode = DELETE")
    section = machine.sections(code=0)["database"]
    assert section["rows"][0]["journal"] == "delete"
    ((text, mend),) = [(one["text"], one["mend"]) for one in section["findings"]]
    assert text == "the journal mode is delete, so readers and writers wait for each other"
    assert mend.startswith("run 'cafleet setup'; ")
    assert machine.program.run("setup").code == 0
    assert machine.sections(code=0)["database"]["rows"][0]["journal"] == "wal"


def test_a_read_only_folder_does_not_hide_the_log(machine: Machine) -> None:
    """SQLite reads such a file without locks, and then calls its journal mode delete."""
    folder = machine.program.database_path.parent
    folder.chmod(0o500)
    try:
        assert notes_without_rights(machine.home) == []
    finally:
        folder.chmod(0o700)


def test_the_file_system_is_named(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 254:0 / / rw shared:1 - ext4 /dev/vda rw\n"
        "30 22 0:44 / /mnt/my\\040share rw - 9p share rw,trans=virtio\n"
        "31 22 0:45 / /mnt/my\\040share rw master:2 - virtiofs share rw\n"
        "32 22 0:46 / /mnt/my rw - nfs4 host:/x rw\n"
    )
    found = [kind_of(path, str(mounts)) for path in ("/mnt/my share/a.db", "/mnt/my/a.db", "/mnt/mya.db")]
    assert found == ["virtiofs", "nfs4", "ext4"]
    assert kind_of("/", str(tmp_path / "missing")) is None


@pytest.mark.parametrize("what", ["the file", "its folder"])
def test_a_database_that_its_modes_protect(machine: Machine, what: str) -> None:
    path = machine.program.database_path
    target, modes = (path, 0o400) if what == "the file" else (path.parent, 0o500)
    former = target.stat().st_mode
    target.chmod(modes)
    try:
        found = examined_without_rights(machine.home)
    finally:
        target.chmod(former)
    assert (f"{target} cannot be written: nothing can be sent", f"chmod u+w {target}") in found


def test_a_database_that_a_sandbox_protects(machine: Machine) -> None:
    """I3: the modes are right, the system refuses all the same; the mend is the sandbox's own setting."""
    folder = machine.program.database_path.parent
    refuse = """
import errno
real = os.open
def refusing(path, flags, *rest, **more):
    if flags & os.O_TMPFILE == os.O_TMPFILE:
        raise OSError(errno.EROFS, "Read-only file system")
    return real(path, flags, *rest, **more)
os.open = refusing
"""
    ((text, mend),) = examined_without_rights(machine.home, refuse)
    assert text == f"{folder} cannot be written, although its modes and those of the database allow it"
    config_path, settings = machine.home / ".codex/config.toml", machine.home / ".claude/settings.json"
    assert f'writable_roots = ["{folder}"] under [sandbox_workspace_write] in {config_path}' in mend
    assert f'"cafleet *" in sandbox.excludedCommands in {settings}' in mend


def test_a_damaged_page_is_found_by_a_deep_check_only(machine: Machine) -> None:
    team = seed_team(machine.program, "ann")
    seed_messages(machine.program, 2000, from_id=team.director_id, to_id=team.director_id)
    path = machine.program.database_path
    with path.open("r+b") as file:
        file.seek(path.stat().st_size - 3 * 4096)
        file.write(b"\xff" * 4096)
    assert issues(machine.sections()["database"]) == []
    section = machine.sections("--deep", code=1)["database"]
    assert section["rows"][0]["integrity"] == "damaged"
    assert issues(section)[0][0].startswith("the integrity check failed: ")


# -- coding agents -----------------------------------------------------------------------------


def test_an_agent_without_assets(machine: Machine) -> None:
    change(machine, "DELETE FROM asset_installs WHERE coding_agent = 'claude'")
    section = machine.sections(code=1)["coding agents"]
    assert section["rows"][0]["assets"] == "not installed"
    assert issues(section) == [
        ("claude is installed, but cafleet's skill for it is not", "cafleet setup --coding-agent claude")
    ]


def test_an_agent_that_is_not_there_needs_no_assets(machine: Machine) -> None:
    change(machine, "DELETE FROM asset_installs WHERE coding_agent = 'codex'")
    assert machine.sections(code=0)["coding agents"]["rows"][1]["assets"] == "not installed"


def test_stale_assets(machine: Machine) -> None:
    change(machine, "UPDATE asset_installs SET cafleet_version = '0.9' WHERE coding_agent = 'codex'")
    section = machine.sections(code=1)["coding agents"]
    assert (section["rows"][1]["assets"], section["rows"][1]["installed"]) == ("stale", "0.9")
    assert issues(section)[0][1] == "cafleet setup"


def test_a_variable_that_is_not_absolute(machine: Machine) -> None:
    section = machine.sections(code=1, CODEX_HOME="rel")["coding agents"]
    assert section["rows"][1]["assets"] == "error"
    assert issues(section)[0][0] == "CODEX_HOME must be an absolute path (got 'rel')"


def test_a_variable_that_moves_an_agent(machine: Machine, tmp_path_factory: pytest.TempPathFactory) -> None:
    moved = str(tmp_path_factory.mktemp("moved"))
    section = machine.sections(code=1, CLAUDE_CONFIG_DIR=moved)["coding agents"]
    row = section["rows"][0]
    assert (row["path"], row["origin"], row["assets"]) == (moved, "CLAUDE_CONFIG_DIR", "not installed")
    assert notes(section) == [
        f"superseded: claude assets {__version__} at {machine.home / '.claude'}, not used now"
    ]


def test_a_mistake_in_the_configuration(machine: Machine) -> None:
    path = machine.write(".config/cafleet/config.toml", '[agents.own]\ncommand = ["own"]\ncolour = 1\n')
    section = machine.sections(code=1)["coding agents"]
    text, mend = issues(section)[0]
    assert text.startswith(f"{path}:3: agents.own.colour: unknown key")
    assert str(path) in mend
    assert [row["agent"] for row in section["rows"]] == ["claude", "codex", "opencode"]


def test_a_configured_agent(machine: Machine) -> None:
    machine.write(".config/cafleet/config.toml", '[agents.own]\ncommand = ["own", "{prompt}"]\n')
    machine.install("own", "echo must not be run > ran")
    row = machine.sections(code=0)["coding agents"]["rows"][3]
    assert (row["agent"], row["binary"], row["version"]) == ("own", str(machine.programs / "own"), None)
    assert row["assets"] is None


def test_a_program_that_hangs_or_fails_has_no_version(machine: Machine) -> None:
    machine.install("claude", "exit 3")
    assert machine.sections(code=0)["coding agents"]["rows"][0]["version"] is None


# -- permissions -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["deny", "ask"])
@pytest.mark.parametrize(
    ("rule", "blocks"),
    [
        ("Bash", True),
        ("Bash(*)", True),
        ("Bash(cafleet:*)", True),
        ("Bash(cafleet *)", True),
        ("Bash(cafleet message send *)", True),
        ("Bash(cafleet member prompt *)", False),
        ("Bash(rm *)", False),
        ("Read(*)", False),
    ],
)
def test_claude_rules(machine: Machine, kind: str, rule: str, blocks: bool) -> None:
    path = machine.write(".claude/settings.json", json.dumps({"permissions": {kind: [rule]}}))
    found = issues(machine.sections(code=int(blocks))["permissions"])
    if blocks:
        text, mend = found[0]
        assert text.startswith(f"'{rule}' under permissions.{kind} keeps members from 'cafleet message ")
        assert mend == f"remove it from {path}"


def test_the_projects_claude_rules_count_too(machine: Machine) -> None:
    machine.write(".claude/settings.local.json", json.dumps({"permissions": {"ask": ["Bash"]}}))
    assert len(issues(machine.sections(code=1)["permissions"])) == 1


@pytest.mark.parametrize(
    "text",
    ["[]", "3", '{"permissions": 3}', '{"permissions": {"deny": [1]}}', '{"sandbox": {"enabled": []}}'],
)
def test_odd_claude_settings_stop_nothing(machine: Machine, text: str) -> None:
    machine.write(".claude/settings.json", text)
    assert issues(machine.sections(code=0)["permissions"]) == []


@pytest.mark.parametrize("text", ["{", "[" * 100_000, ""])
def test_claude_settings_that_cannot_be_read(machine: Machine, text: str) -> None:
    path = machine.write(".claude/settings.json", text)
    ((text, mend),) = issues(machine.sections(code=1)["permissions"])
    assert text.startswith(f"{path} cannot be read as JSON: ")
    assert mend == f"mend {path}"


@pytest.mark.parametrize(
    ("excluded", "blocks"),
    [
        ([], True),
        (["git *"], True),
        (["cafleet message send *"], True),
        (["cafleet *"], False),
        (["cafleet:*"], False),
    ],
)
def test_claude_in_a_sandbox(machine: Machine, excluded: list[str], blocks: bool) -> None:
    """Switched on by one file, let out by another."""
    path = machine.write(".claude/settings.json", json.dumps({"sandbox": {"excludedCommands": excluded}}))
    machine.write(".claude/settings.local.json", json.dumps({"sandbox": {"enabled": True}}))
    found = issues(machine.sections(code=int(blocks))["permissions"])
    assert [mend for _, mend in found] == (
        [f'add "cafleet *" to sandbox.excludedCommands in {path}'] if blocks else []
    )


POLICY = """
case "$1" in
--version) echo 'codex-cli 0.171.0' ;;
execpolicy) echo '{"matchedRules": [], "decision": "%s"}' ;;
esac
"""


def test_codex_with_its_rules(machine: Machine) -> None:
    machine.install("codex", POLICY % "allow")
    section = machine.sections(code=0)["permissions"]
    assert {"file": str(machine.home / ".codex/rules/cafleet.rules")} in section["rows"]


def test_codex_with_a_rule_against_it(machine: Machine) -> None:
    machine.install("codex", POLICY % "forbidden")
    text, _ = issues(machine.sections(code=1)["permissions"])[0]
    assert text == f"a rule in {machine.home / '.codex/rules'} says 'forbidden' to 'cafleet message poll 1'"


def test_codex_without_rules_is_held_in_its_sandbox(machine: Machine) -> None:
    machine.install("codex", "echo 'codex-cli 0.171.0'")
    (machine.home / ".codex/rules/cafleet.rules").unlink()
    folder = machine.program.database_path.parent
    found = issues(machine.sections(code=1)["permissions"])
    assert found[0] == (
        f"codex members cannot write {folder}: their sandbox does not allow it",
        f'cafleet setup --coding-agent codex, or writable_roots = ["{folder}"]'
        f" under [sandbox_workspace_write] in {machine.home / '.codex/config.toml'}",
    )
    assert found[1][0].startswith("codex members cannot reach the multiplexer's socket")
    assert "network_access = true" in found[1][1]
    machine.write(
        ".codex/config.toml",
        f"[sandbox_workspace_write]\nwritable_roots = ['{folder.parent}']\nnetwork_access = true\n",
    )
    assert issues(machine.sections()["permissions"]) == []


@pytest.mark.parametrize("root", ["", "src", "~/.local", "{home}/.local/share/cafleet-other"])
def test_a_writable_root_that_is_none_of_the_databases(machine: Machine, root: str) -> None:
    machine.install("codex", "echo 'codex-cli 0.171.0'")
    (machine.home / ".codex/rules/cafleet.rules").unlink()
    roots = json.dumps([root.format(home=machine.home)])
    machine.write(
        ".codex/config.toml", f"[sandbox_workspace_write]\nnetwork_access = true\nwritable_roots = {roots}\n"
    )
    ((text, _),) = issues(machine.sections(code=1)["permissions"])
    assert text.startswith("codex members cannot write ")


def test_a_codex_that_cannot_tell_what_its_rules_allow(machine: Machine) -> None:
    machine.install("codex", "echo 'codex-cli 0.100.0'")
    (text,) = notes(machine.sections(code=0)["permissions"])
    assert (
        text
        == f"{machine.programs / 'codex'} cannot say what the rules in {machine.home / '.codex/rules'} allow"
    )


@pytest.mark.parametrize("toml", ["x = [", "x = " + "[" * 100_000])
def test_a_codex_configuration_that_cannot_be_read(machine: Machine, toml: str) -> None:
    path = machine.write(".codex/config.toml", toml)
    text, mend = issues(machine.sections(code=1)["permissions"])[0]
    assert text.startswith(f"{path} cannot be read as TOML")
    assert mend == f"mend {path}"


# -- fleets ------------------------------------------------------------------------------------


def test_the_pane_of_a_director_is_gone(machine: Machine) -> None:
    team = seed_team(machine.program, "ann")
    section = machine.sections(code=1)["fleets"]
    assert section["rows"] == [
        {
            "fleet": team.fleet_id,
            "name": "team",
            "members": 2,
            "pending notifications": 0,
            "monitor loop": False,
        }
    ]
    text, mend = issues(section)[0]
    assert text == f"the pane of member {team.director_id} (director) of fleet {team.fleet_id} is gone"
    assert mend.startswith(f"cafleet fleet delete {team.fleet_id}")


def place(machine: Machine, member_id: int, server: str, pane: str | None) -> None:
    database = Database(str(machine.program.database_path))
    with database.write() as conn:
        members.delete_placement(conn, member_id)
        placement = Placement(member_id, "s", "@0", pane, "tmux", "claude", "", server)
        members.insert_placement(conn, placement)
    database.close()


def test_panes_of_members(machine: Machine, tmux_servers: Callable[..., TmuxServer]) -> None:
    server = tmux_servers().start()
    name = server.name
    team = seed_team(machine.program, "gone", "dead", "pending", "alive", "shell")
    server.run("set-option", "-g", "remain-on-exit", "on")
    dead = server.add_pane("sh", "-c", "exit 3")
    prompt = server.add_pane("sh", "-i")
    gone, ended, pending, alive, shell = team.member_ids
    place(machine, team.director_id, name, prompt)
    place(machine, shell, name, prompt)
    place(machine, gone, name, "%99")
    place(machine, ended, name, dead)
    place(machine, pending, name, None)
    place(machine, alive, name, "%0")
    wait_until(lambda: server.show("#{pane_dead}", dead) == "1", what="the end of its program")
    found = dict(issues(machine.sections(code=1)["fleets"]))
    who = "member {} ({}) of fleet 1"
    assert f"the pane of {who.format(gone, 'gone')} is gone" in found
    assert f"the program of {who.format(ended, 'dead')} has ended with status 3" in found
    assert f"{who.format(pending, 'pending')} has no pane yet: its start was cut off" in found
    assert f"the program of {who.format(shell, 'shell')} has ended: a shell is there" in found
    assert len(found) == 4, "a Director's user may use a shell"
    mend = found[f"the pane of {who.format(gone, 'gone')} is gone"]
    assert mend == f"cafleet member respawn {gone} PROMPT, or cafleet member delete {gone}"


def test_panes_on_several_servers(machine: Machine, tmux_servers: Callable[..., TmuxServer]) -> None:
    """Field case D9: a fleet can reach further than the server that this process runs in."""
    here, there, ended = (tmux_servers().start() for _ in range(3))
    team = seed_team(machine.program, "ann", "bob")
    for member, server in zip((team.director_id, *team.member_ids), (here, there, ended), strict=True):
        place(machine, member, server.name, "%0")
    gone = ended.name
    ended.stop()
    section = machine.sections(code=1)["fleets"]
    assert notes(section) == [
        "panes of live fleets are on 3 multiplexer servers: "
        f"tmux {here.name}, tmux {there.name}, tmux {gone} (gone)"
    ]
    assert len(issues(section)) == 1, "the lost pane"
    place(machine, team.member_ids[0], here.name, "%0")
    place(machine, team.member_ids[1], here.name, "%0")
    assert notes(machine.sections(code=0)["fleets"]) == []


def test_pending_notifications(machine: Machine, tmux_servers: Callable[..., TmuxServer]) -> None:
    server = tmux_servers().start()
    name = server.name
    team = seed_team(machine.program, "ann")
    for member in (team.director_id, *team.member_ids):
        place(machine, member, name, "%0")
    seed_messages(machine.program, 3, from_id=team.director_id, to_id=team.member_ids[0])
    section = machine.sections(code=1)["fleets"]
    assert section["rows"][0]["pending notifications"] == 3
    assert issues(section) == [
        (
            "fleet 1: 3 notifications are still to be typed",
            f"cafleet monitor run 1, or cafleet message wait {team.director_id}",
        )
    ]
