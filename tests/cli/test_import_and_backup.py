"""`import`, `backup`, and how a backup is restored, with the installed program (SPEC 2.6)."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from tests.support.database import folder_state, rows, run_sql
from tests.support.earlier_files import write_binary_line, write_python_line
from tests.support.program import SCRIPT, Program, Team, seed_messages
from tests.support.waiting import wait_until

SECOND_MONITOR = (
    "INSERT INTO members VALUES (8, 3, 'other', 'looks too', 'active', '2026-01-05', NULL,"
    """ '{"skills":[],"cafleet":{"kind":"monitoring-member"}}')"""
)


@pytest.fixture
def earlier(bare_program: Program) -> Path:
    """A file of the released Python line, alone in its folder."""
    folder = bare_program.home / "earlier"
    folder.mkdir()
    write_python_line(folder / "old.db")
    return folder / "old.db"


def test_a_file_comes_over_and_its_messages_can_be_read(bare_program: Program, earlier: Path) -> None:
    before = folder_state(earlier.parent)
    done = bare_program.run("import", "earlier/old.db")
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"Imported {earlier} (Python line, revision 0006) into {bare_program.database_path}.",
        "table\tsource\timported\tadded\tleft_out",
        "fleets\t2\t2\t0\t0",
        "members\t4\t5\t1\t0",
        "member_placements\t2\t0\t0\t2",
        "messages\t5\t5\t0\t0",
        "monitor_runtime\t1\t1\t0\t0",
        "Not kept, has no place any more: asset_installs (rows: 1).",
        "Not kept, has no place any more: monitor_config (rows: 1).",
        "Placements left out: 2. 'cafleet fleet list' does not show fleets without panes. Read them with"
        " 'cafleet fleet show' and 'cafleet message poll', end them with 'cafleet fleet delete'."
        " New work takes a new fleet.",
        "Members 55 stand in for those that messages name and the file lacks.",
        "Canceled messages, which count as acknowledged now: 1.",
        "Next: 'cafleet setup' installs this version's skills.",
    ]
    assert folder_state(earlier.parent) == before
    assert bare_program.run("setup").code == 0
    inbox = json.loads(bare_program.run("message", "poll", "1", "--json").stdout)
    assert [(m["message_id"], m["from_member_id"], m["text"]) for m in inbox] == [
        (9, 55, "from somebody long gone")
    ]
    assert bare_program.run("message", "ack", "9").code == 0
    assert bare_program.run("fleet", "list").stdout == "No fleets found.\n"
    assert bare_program.run("fleet", "show", "3").code == 0
    assert bare_program.run("fleet", "delete", "3").code == 0


def test_json_has_the_same_facts(bare_program: Program, earlier: Path) -> None:
    done = bare_program.run("import", str(earlier), "--keep-placements", "--json")
    assert (done.code, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert list(report)[:4] == ["source", "target", "written_by", "tables"]
    assert report["tables"][2] == {
        "table": "member_placements",
        "source": 2,
        "target": 2,
        "added": 0,
        "left_out": 0,
    }
    assert report["stand_in_members"] == [55]
    assert report["not_kept"] == {"asset_installs": 1, "monitor_config": 1}
    assert report["canceled_messages"] == 1


def test_placements_of_members_that_left_are_told_of(bare_program: Program, earlier: Path) -> None:
    run_sql(earlier, "UPDATE members SET status = 'deregistered' WHERE member_id = 2")
    done = bare_program.run("import", str(earlier), "--keep-placements")
    assert "Placements left out, of members that are not active: 1.\n" in done.stdout


@pytest.mark.parametrize("version", [1, 9])
def test_the_binary_line(bare_program: Program, version: int) -> None:
    write_binary_line(bare_program.home / "old.db", version)
    done = bare_program.run("import", "old.db")
    assert (done.code, done.stderr) == (0, "")
    assert f"(binary line, version {version})" in done.stdout


def test_who_stays_the_monitor_is_chosen(bare_program: Program, earlier: Path) -> None:
    run_sql(earlier, SECOND_MONITOR)
    refused = bare_program.run("import", str(earlier))
    assert (refused.code, refused.stdout) == (1, "")
    assert refused.stderr == (
        "Error: active monitor duplicates prevent migration: fleet 3: members 2, 8\n"
        "Choose who stays in each fleet, for instance: --monitor 3=2\n"
    )
    assert not bare_program.database_path.exists()
    assert bare_program.run("import", str(earlier), "--monitor", "3=1").code == 1
    done = bare_program.run("import", str(earlier), "--monitor", "3=8")
    assert (done.code, done.stderr) == (0, "")
    assert "Monitors 2 were not chosen and are deregistered." in done.stdout
    assert rows(bare_program.database_path, "SELECT status FROM members WHERE member_id IN (2, 8)") == [
        ("deregistered",),
        ("active",),
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--monitor", "3"), "--monitor must be FLEET_ID=MEMBER_ID (got '3')"),
        (("--monitor", "3=x"), "--monitor must be a whole number (got 'x')"),
        (("--monitor", "3=1", "--monitor", "3=2"), "--monitor names a fleet twice"),
    ],
)
def test_a_choice_that_cannot_be_read(
    bare_program: Program, earlier: Path, words: tuple[str, ...], message: str
) -> None:
    done = bare_program.run("import", str(earlier), *words)
    assert done.code == 2
    assert done.stderr.startswith(f"Error: {message}")
    assert not bare_program.database_path.exists()


def test_a_row_that_cannot_be_held_is_named_with_what_to_do(bare_program: Program, earlier: Path) -> None:
    run_sql(earlier, "UPDATE messages SET text = CAST(x'ff41' AS TEXT) WHERE message_id = 4")
    done = bare_program.run("import", str(earlier))
    assert (done.code, done.stdout) == (1, "")
    assert done.stderr == (
        "Error: integrity error: the text of message 4 is not UTF-8 text\n"
        "Nothing was imported. Mend that row with sqlite3, in a copy of the file, and import the copy.\n"
    )


def test_many_ids_make_no_endless_line(bare_program: Program, earlier: Path) -> None:
    template = (
        "INSERT INTO messages"
        " (owner_member_id, from_member_id, type, created_at, status_state, status_timestamp, text)"
        " VALUES (1, SENDER, 'unicast', '2026-01-06', 'completed', '2026-01-06', '')"
    )
    senders = [100, 101, 102, *range(200, 300, 2)]
    run_sql(earlier, *(template.replace("SENDER", str(sender)) for sender in senders))
    done = bare_program.run("import", str(earlier))
    assert (done.code, done.stderr) == (0, "")
    evens = ", ".join(str(number) for number in range(200, 236, 2))
    assert f"Members 55, 100-102, {evens} and others, 54 in all, stand in for those" in done.stdout


def test_a_database_in_use_is_not_touched(program: Program, team: Team) -> None:
    write_python_line(program.home / "old.db")
    before = folder_state(program.home)
    done = program.run("import", "old.db")
    assert done.code == 1
    # Reading a current file may leave an empty log beside it, as every command does.
    after = {name: state for name, state in folder_state(program.home).items() if name in before}
    assert done.stderr.startswith(f"Error: {program.database_path} is not empty; an import needs a new file")
    assert after == before


def interrupt(program: Program, *command: str, building: Path) -> tuple[int, bytes, bytes]:
    """Exit code and output of a command that is told to end as soon as it builds something in a folder."""
    process = subprocess.Popen(
        [SCRIPT, *command], env=program.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    wait_until(lambda: any(building.glob("*.partial/copy.db")), what="a file that is being built")
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate()
    return process.returncode, output, errors


def test_an_interrupted_import_says_so_and_leaves_nothing(bare_program: Program, earlier: Path) -> None:
    run_sql(
        earlier,
        "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 300000)"
        " INSERT INTO messages (owner_member_id, from_member_id, to_member_id, type, created_at,"
        " status_state, status_timestamp, text) SELECT 2, 1, 2, 'unicast', 't', 'completed', 't', 'x' FROM n",
    )
    done = interrupt(bare_program, "import", str(earlier), building=bare_program.database_path.parent)
    assert done == (130, b"", b"Error: interrupted; nothing was imported\n")
    assert os.listdir(bare_program.home) == ["earlier"]


# -- backup ------------------------------------------------------------------------------------


def test_a_backup_and_its_refusals(program: Program, team: Team) -> None:
    done = program.run("backup", "kept.db")
    kept = program.home / "kept.db"
    assert done == (0, f"Backup written to {kept} ({kept.stat().st_size} bytes, integrity checked).\n", "")
    again = program.run("backup", "kept.db")
    assert again == (1, "", f"Error: {kept} already exists; nothing was overwritten\n")
    other = program.run("backup", "other.db", "--json")
    assert json.loads(other.stdout) == {"path": f"{program.home}/other.db", "size": kept.stat().st_size}


def test_an_interrupted_backup_says_so_and_leaves_nothing(program: Program, team: Team) -> None:
    seed_messages(program, 1, from_id=1, to_id=2)
    run_sql(program.database_path, "UPDATE messages SET text = hex(zeroblob(100000000))")
    folder = program.home / "kept"
    folder.mkdir()
    done = interrupt(program, "backup", str(folder / "team.db"), building=folder)
    assert done == (130, b"", b"Error: interrupted; no backup was written\n")
    assert os.listdir(folder) == []


def test_a_backup_under_load_can_be_restored_and_no_id_comes_twice(program: Program, team: Team) -> None:
    """As docs/file-format.md says: with nobody using the file, put the copy in its place."""
    send = ("message", "send", "--from", "2", "--to", "2")
    senders = [program.start(*send, "--key", str(number), f"message {number}") for number in range(12)]
    backup = program.run("backup", "kept.db")
    assert backup.code == 0
    for sender in senders:
        assert sender.communicate()[1] == b""
        assert sender.returncode == 0
    folder = program.database_path.parent
    for name in os.listdir(folder):
        if name.startswith(program.database_path.name):
            (folder / name).unlink()
    shutil.copy(program.home / "kept.db", program.database_path)
    assert rows(program.database_path, "PRAGMA integrity_check") == [("ok",)]
    in_copy = [row[0] for row in rows(program.database_path, "SELECT message_id FROM messages")]
    assert in_copy == list(range(1, len(in_copy) + 1)), "of one moment"
    for number in range(12):  # Whoever is not sure repeats: each is there once.
        assert program.run(*send, "--key", str(number), f"message {number}").code == 0
    stored = rows(program.database_path, "SELECT text FROM messages ORDER BY text")
    assert stored == sorted((f"message {number}",) for number in range(12))
    ids = [row[0] for row in rows(program.database_path, "SELECT message_id FROM messages")]
    assert ids == list(range(1, 13)), "counted on from where the copy was"
