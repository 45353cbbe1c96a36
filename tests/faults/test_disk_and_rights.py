"""A full disk, and a database that may only be read (SPEC 14; field case I3): the installed program."""

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.support.database import DROP_PRIVILEGES, folder_state, rows, run_sql, sha256_of
from tests.support.earlier_files import write_python_line
from tests.support.program import Program, Result, seed_messages, seed_team
from tests.support.waiting import DEADLINE_SECONDS

SIZE_KILOBYTES = 640
BODY = "x" * 60_000
SEND = ("message", "send", "--from", "1", "--to", "1")


def run_after(
    code: str, program: Program, *arguments: str, preexec_fn: Callable[[], None] | None = None
) -> Result:
    """The program, in a process that has run `code` before."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}from cafleet.cli.main import run; run()", *arguments],
        env=program.environ,
        cwd=program.home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_SECONDS,
        preexec_fn=preexec_fn,
    )
    return Result(done.returncode, done.stdout, done.stderr)


class SmallDisk:
    """A folder that takes little: a file system of its own for root, else files that may not grow."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        size = f"size={SIZE_KILOBYTES}k,mode=700"
        mounted = ["mount", "-t", "tmpfs", "-o", size, "cafleet-test", str(folder)]
        self.mounted = (
            os.geteuid() == 0 and subprocess.run(mounted, capture_output=True, check=False).returncode == 0
        )

    def run(self, program: Program, *arguments: str) -> Result:
        def limit() -> None:
            if not self.mounted:
                bytes_ = SIZE_KILOBYTES * 1024 // 2
                resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_, bytes_))

        return run_after("", program, *arguments, preexec_fn=limit)

    def remove(self) -> None:
        if self.mounted:
            subprocess.run(["umount", "-l", str(self.folder)], check=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    disk = SmallDisk(tmp_path / "disk")
    yield disk
    disk.remove()


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Not set up yet; its home is not on the small disk."""
    home = tmp_path / "home"
    home.mkdir()
    return Program(home)


def test_a_full_disk(program: Program, small_disk: SmallDisk) -> None:
    path = small_disk.folder / "team.db"
    program.environ["CAFLEET_DATABASE_URL"] = f"sqlite:///{path}"
    assert small_disk.run(program, "setup").code == 0
    seed_on(program, path)
    stored = 0
    for _ in range(40):
        sent = small_disk.run(program, *SEND, BODY)
        if sent.code:
            break
        assert sent.stdout.startswith("Message sent.\n")
        stored += 1
    assert sent.code == 1, "the disk never became full"
    assert stored > 0
    assert_one_line(sent)
    assert sent.stderr.startswith(("Error: the disk is full: ", "Error: the disk refused to read or write "))

    assert rows(path, "SELECT count(*) FROM messages") == [(stored,)]
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]
    for command in (("message", "poll", "1", "--json"), ("member", "list", "1"), ("message", "show", "1")):
        assert small_disk.run(program, *command).code == 0
    refused = small_disk.run(program, "backup", str(small_disk.folder / "copy.db"))
    assert refused.code == 1
    assert refused.stderr.startswith("Error: no backup was written to ")
    assert_one_line(refused)
    assert not [name for name in os.listdir(small_disk.folder) if "copy" in name]

    if small_disk.mounted:
        bigger = ["mount", "-o", "remount,size=4m", str(small_disk.folder)]
        subprocess.run(bigger, check=True)
    assert program.run(*SEND, "there is room again").code == 0
    assert rows(path, "SELECT count(*) FROM messages") == [(stored + 1,)]


def test_an_import_into_a_full_disk_leaves_nothing(program: Program, small_disk: SmallDisk) -> None:
    source = program.home / "old.db"
    write_python_line(source)
    run_sql(source, "UPDATE messages SET text = hex(zeroblob(90000))")
    before = sha256_of(source)
    path = small_disk.folder / "team.db"
    program.environ["CAFLEET_DATABASE_URL"] = f"sqlite:///{path}"
    done = small_disk.run(program, "import", str(source))
    assert (done.code, done.stdout) == (1, "")
    assert_one_line(done)
    assert ("the disk is full: " if small_disk.mounted else "the disk refused ") in done.stderr
    assert os.listdir(small_disk.folder) == []
    assert sha256_of(source) == before
    if small_disk.mounted:
        bigger = ["mount", "-o", "remount,size=8m", str(small_disk.folder)]
        subprocess.run(bigger, check=True)
        assert small_disk.run(program, "import", str(source)).code == 0


def test_setup_on_a_full_disk_leaves_nothing(program: Program, small_disk: SmallDisk) -> None:
    if not small_disk.mounted:
        pytest.skip("needs a file system of its own; test_migrate.py limits the size of files instead")
    filler = small_disk.folder / "filler"
    with suppress(OSError), filler.open("wb") as file:
        while True:
            file.write(b"x" * 4096)
            file.flush()
    program.environ["CAFLEET_DATABASE_URL"] = f"sqlite:///{small_disk.folder}/team.db"
    done = program.run("setup")
    assert done.code == 1
    assert "Error: the disk is full: " in done.stderr
    assert "database: failed" in done.stdout
    assert os.listdir(small_disk.folder) == ["filler"]


def seed_on(program: Program, path: Path) -> None:
    """A team in the file at `path`; `seed_team` knows only where it is by default."""
    program.database_path.parent.mkdir(parents=True)
    program.database_path.symlink_to(path)
    seed_team(program, "ann")
    program.database_path.unlink()


def assert_one_line(result: Result) -> None:
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr
    assert "internal error" not in result.stderr


# -- a database that may only be read ----------------------------------------------------------

READ: tuple[tuple[str, ...], ...] = (
    ("fleet", "list"),
    ("fleet", "show", "1"),
    ("member", "list", "1"),
    ("member", "show", "2"),
    ("message", "poll", "3"),
    ("message", "show", "1"),
    ("message", "wait", "3", "--timeout", "0"),
    ("monitor", "status", "1"),
)
WRITE: tuple[tuple[str, ...], ...] = (
    ("message", "send", "--from", "1", "--to", "2", "hello"),
    ("message", "broadcast", "--from", "1", "hello"),
    ("message", "ack", "1"),
    ("member", "delete", "3"),
    ("fleet", "delete", "1"),
    ("monitor", "run", "1"),
)


def run_as_a_normal_user(program: Program, *arguments: str) -> Result:
    return run_after(DROP_PRIVILEGES, program, *arguments)


def by_modes(folder: Path) -> Callable[[], None]:
    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)

    def undo() -> None:
        folder.chmod(0o700)

    return undo


def by_a_mount(folder: Path) -> Callable[[], None]:
    for options in (["--bind", str(folder), str(folder)], ["-o", "remount,ro,bind", str(folder)]):
        if subprocess.run(["mount", *options], capture_output=True, check=False).returncode:
            pytest.skip("may not mount")

    def undo() -> None:
        subprocess.run(["umount", "-l", str(folder)], check=True)

    return undo


@pytest.mark.parametrize("close", [by_modes, by_a_mount])
def test_a_read_only_database(program: Program, close: Callable[[Path], Callable[[], None]]) -> None:
    assert program.run("setup").code == 0
    seed_team(program, "ann", "bob")
    seed_messages(program, 2, from_id=1, to_id=3)
    path = program.database_path
    before = folder_state(program.home)
    undo = close(path.parent)
    try:
        for command in READ:
            done = run_as_a_normal_user(program, *command)
            assert (done.code, done.stderr) == (0, ""), command
        for command in WRITE:
            done = run_as_a_normal_user(program, *command)
            assert (done.code, done.stdout) == (1, ""), command
            assert_one_line(done)
            grant = f"allow writing to the folder {path.parent} and the files in it (in a sandbox, "
            assert done.stderr.startswith("Error: "), command
            assert grant in done.stderr, command
        kept = program.home / "kept.db"
        assert run_as_a_normal_user(program, "backup", str(kept)).code == 0
        kept.unlink()
    finally:
        undo()
    after = folder_state(program.home)
    assert {name: digest for name, (_, digest) in after.items()} == {n: d for n, (_, d) in before.items()}
