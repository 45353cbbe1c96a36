"""`import` and `backup`, killed or failing at every SQL statement and file operation (SPEC 2.6, 14).

Either the file with its final name is whole, or it is not there. What else a kill left is in nobody's way
and goes with the next import, backup or setup.
"""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
from tests.support.breaking import Breaker, Broken
from tests.support.database import kill_while_writing, run_sql
from tests.support.earlier_files import write_binary_line, write_python_line
from tests.support.file_content import TABLES, content
from tests.support.program import Program, seed_messages, seed_team

FAILING = r"^(sql|end|file (?!os\.remove|os\.rmdir))"
"""What can fail before there is something to clean up."""
HEX = re.compile(r"\.[0-9a-f]{8}\.")
IMPORTED = (*TABLES, "sqlite_sequence")


def write_with_a_log(path: Path) -> None:
    """Newer than the file is its log, whose index is lost: it is read through a copy."""
    write_binary_line(path, 9)
    run_sql(path, "PRAGMA journal_mode=WAL")
    kill_while_writing(path, "UPDATE fleets SET name = 'in the log' WHERE fleet_id = 3")
    path.with_name(path.name + "-shm").unlink()


SOURCES: dict[str, Callable[[Path], None]] = {
    "Python line": write_python_line,
    "binary line with a log": write_with_a_log,
}


class Place:
    """A home with a folder for temporary files of its own, and what lies around there."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.home, self.temporary = directory / "home", directory / "tmp"
        self.home.mkdir()
        self.temporary.mkdir()
        self.program = Program(self.home, TMPDIR=str(self.temporary))
        self.folder = self.program.database_path.parent

    def earlier(self, line: str) -> Path:
        """A folder with nothing in it but a file of that line, `old.db`."""
        folder = self.home / "earlier"
        folder.mkdir()
        SOURCES[line](folder / "old.db")
        return folder

    def unfinished(self) -> list[str]:
        """What a killed builder left, without the part of its names that differs each time."""
        found = [*self.home.rglob("*"), *self.temporary.rglob("*")]
        return sorted(HEX.sub(".", str(path)) for path in found if ".partial" in str(path))

    def clear(self) -> None:
        for folder in (self.folder, self.temporary):
            shutil.rmtree(folder, ignore_errors=True)
        self.temporary.mkdir()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("line", SOURCES)
def test_a_killed_import_left_a_whole_file_or_none(place: Place, line: str) -> None:
    earlier = place.earlier(line)
    before = bytes_of(earlier)
    words = ("import", str(earlier / "old.db"))
    scratch = place.directory / "scratch"
    outcomes, seen = set(), set()
    with Breaker(place.program) as breaker:
        assert breaker.run(*words).code == 0
        whole = content(place.folder, scratch, tables=IMPORTED)
        for at in count(1):
            place.clear()
            run = breaker.run(*words, at=at)
            assert bytes_of(earlier) == before, run.step
            there = place.program.database_path.exists()
            outcomes.add(there)
            if there:
                assert content(place.folder, scratch, tables=IMPORTED) == whole, run.step
            assert there or "Imported" not in run.stdout, f"{run.step}: reported but not stored"
            left = (there, *place.unfinished())
            if left not in seen:  # One of each kind; only what is in the unfinished files differs.
                seen.add(left)
                again = breaker.run(*words)
                assert (again.code, "is not empty" in again.stderr) == ((1, True) if there else (0, False))
                assert content(place.folder, scratch, tables=IMPORTED) == whole, run.step
                assert place.unfinished() == [], run.step
            if run.step is None:
                break
    assert outcomes == {False, True}
    assert len(seen) > 4, "it can leave more kinds of things than that"
    assert at > 80, "there are more steps than that"


def test_a_killed_import_into_a_fresh_database_is_done_or_not(place: Place) -> None:
    """`setup` came first, so the file is filled where it is."""
    write_python_line(place.home / "old.db")
    words = ("import", str(place.home / "old.db"))
    scratch = place.directory / "scratch"
    found = []
    with Breaker(place.program) as breaker:
        for at in count(1):
            place.clear()
            assert breaker.run("setup", "--coding-agent", "claude").code == 0
            run = breaker.run(*words, at=at, only="^(sql (BEGIN|INSERT|DELETE|COMMIT)|end)")
            found.append(len(content(place.folder, scratch, tables=IMPORTED)))
            again = breaker.run(*words)
            assert (again.code == 0) == (found[-1] == found[0]), (run.step, again)
            if run.step is None:
                break
    assert len(set(found)) == 2, "as before, or whole"
    assert sorted(found) == found
    assert len(found) > 15


@pytest.mark.parametrize("line", ["Python line", "binary line with a log"])
def test_a_failing_import_says_so_and_leaves_nothing(place: Place, line: str) -> None:
    earlier = place.earlier(line)
    before = bytes_of(earlier)
    words = ("import", str(earlier / "old.db"))
    scratch = place.directory / "scratch"
    codes = set()
    with Breaker(place.program, fail=True) as breaker:
        assert breaker.run(*words).code == 0
        whole = content(place.folder, scratch, tables=IMPORTED)
        for at in count(1):
            place.clear()
            run = breaker.run(*words, at=at, only=FAILING)
            assert bytes_of(earlier) == before, run.step
            assert place.unfinished() == [], run.step
            codes.add(run.code)
            assert_told(run)
            if run.code == 0:
                assert content(place.folder, scratch, tables=IMPORTED) == whole, run.step
            else:
                assert not place.program.database_path.exists(), run
            if run.step is None:
                break
    assert codes == {0, 1}


def assert_told(run: Broken) -> None:
    assert run.code == 0 or re.fullmatch(r"Error: (?!internal).+\n", run.stderr), run


# -- backup ------------------------------------------------------------------------------------


@contextmanager
def backups(place: Place, *, fail: bool) -> Iterator[Breaker]:
    """The program with a team, and its file's log still beside the file."""
    assert place.program.run("setup").code == 0
    seed_team(place.program, "ann", "bob")
    seed_messages(place.program, 3, from_id=1, to_id=2)
    kill_while_writing(place.program.database_path, "UPDATE fleets SET name = 'in the log'")
    (place.home / "kept").mkdir()
    with Breaker(place.program, fail=fail) as breaker:
        yield breaker


def test_a_killed_backup_left_a_whole_file_or_none(place: Place) -> None:
    kept, scratch = place.home / "kept" / "team.db", place.directory / "scratch"
    words = ("backup", str(kept))
    outcomes, seen = set(), set()
    with backups(place, fail=False) as breaker:
        whole = content(place.folder, scratch)
        for at in count(1):
            run = breaker.run(*words, at=at)
            there = kept.exists()
            outcomes.add(there)
            assert there or "Backup written" not in run.stdout, f"{run.step}: reported but not stored"
            if there:
                assert content(kept.parent, scratch, name="team.db") == whole, run.step
                assert kept.stat().st_mode & 0o777 == 0o600, run.step
            left = (there, *place.unfinished())
            if left not in seen:
                seen.add(left)
                again = breaker.run(*words)
                assert (again.code, "already exists" in again.stderr) == ((1, True) if there else (0, False))
                assert os.listdir(kept.parent) == ["team.db"], run.step
                assert content(kept.parent, scratch, name="team.db") == whole, run.step
            shutil.rmtree(kept.parent)
            kept.parent.mkdir()
            assert content(place.folder, scratch) == whole, run.step
            if run.step is None:
                break
    assert outcomes == {False, True}
    assert len(seen) > 4, "it can leave more kinds of things than that"


def test_a_failing_backup_says_so_and_leaves_nothing(place: Place) -> None:
    kept, scratch = place.home / "kept" / "team.db", place.directory / "scratch"
    codes = set()
    with backups(place, fail=True) as breaker:
        whole = content(place.folder, scratch)
        for at in count(1):
            run = breaker.run("backup", str(kept), at=at, only=FAILING)
            codes.add(run.code)
            assert_told(run)
            assert os.listdir(kept.parent) == (["team.db"] if run.code == 0 else []), run
            if run.code == 0:
                assert content(kept.parent, scratch, name="team.db") == whole, run.step
                kept.unlink()
            if run.step is None:
                break
    assert codes == {0, 1}


def test_setup_removes_what_a_killed_import_left(place: Place) -> None:
    write_python_line(place.home / "old.db")
    with Breaker(place.program) as breaker:
        run = breaker.run("import", str(place.home / "old.db"), at=1, only="INSERT INTO messages")
        assert run.step is not None
        assert place.unfinished() != []
        assert breaker.run("setup").code == 0
    assert place.unfinished() == []
