"""One writer into a pane at a time, whatever happens to the writers."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.waiting import DEADLINE_SECONDS

from cafleet.errors import PaneBusy
from cafleet.multiplexer.base import PaneAddress
from cafleet.multiplexer.pane_lock import (
    PaneLockUnavailable,
    lock_path,
    pane_lock,
    pane_locks,
    sweep_locks,
)

PANE = PaneAddress("host|/tmp/tmux-0/default|100", "main", "@0", "%1")
OTHER = PANE._replace(pane="%2")

HOLDER = """
import sys
from cafleet.multiplexer.base import PaneAddress
from cafleet.multiplexer.pane_lock import pane_lock
with pane_lock(sys.argv[1], "tmux", PaneAddress(sys.argv[2], "", "", sys.argv[3])):
    print("held", flush=True)
    sys.stdin.read()
"""

NOTER = """
import os, signal, sys
from cafleet.multiplexer.base import PaneAddress
from cafleet.multiplexer.pane_lock import pane_lock
with pane_lock(sys.argv[1], "tmux", PaneAddress(sys.argv[2], "", "", sys.argv[3])) as lock:
    lock.leave_note("first", 50.0)
    lock.leave_note("pasted", 50.0)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@contextmanager
def held_elsewhere(directory: Path, pane: PaneAddress = PANE) -> Iterator[subprocess.Popen[str]]:
    """Another process holds the pane's lock; it ends with the block at the latest."""
    command = [sys.executable, "-c", HOLDER, str(directory), str(pane.server), pane.pane]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        try:
            assert holder.stdout.readline() == "held\n"
            yield holder
        finally:
            holder.kill()


def is_free(directory: Path, pane: PaneAddress = PANE) -> bool:
    try:
        with pane_lock(str(directory), "tmux", pane, timeout_seconds=0.0):
            return True
    except PaneBusy:
        return False


def test_a_lock_that_another_process_holds_is_busy_after_a_while(tmp_path: Path) -> None:
    with held_elsewhere(tmp_path):
        started = time.monotonic()
        with pytest.raises(PaneBusy, match="pane is busy"), pane_lock(str(tmp_path), "tmux", PANE, 0.2):
            pass
        assert time.monotonic() - started >= 0.2
        assert is_free(tmp_path, OTHER)


def test_waiting_ends_when_the_holder_is_killed(tmp_path: Path) -> None:
    with held_elsewhere(tmp_path) as holder:
        assert not is_free(tmp_path)
        holder.send_signal(signal.SIGKILL)
        with pane_lock(str(tmp_path), "tmux", PANE, timeout_seconds=30.0):
            assert not is_free(tmp_path)
    assert is_free(tmp_path)


def test_a_lock_is_released_by_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), pane_lock(str(tmp_path), "tmux", PANE):
        raise ZeroDivisionError
    assert is_free(tmp_path)


def test_placements_of_one_pane_share_its_lock(tmp_path: Path) -> None:
    with pane_lock(str(tmp_path), "tmux", PANE):
        assert not is_free(tmp_path, PANE._replace(session="renamed", window="@9"))


@pytest.mark.parametrize(
    ("backend", "pane"),
    [
        ("herdr", PANE),
        ("tmux", OTHER),
        ("tmux", PANE._replace(server="host|/tmp/tmux-0/default|101")),
        ("tmux", PANE._replace(server=None)),
        ("tmux", PANE._replace(server="host|/tmp/tmux-0/" + "long" * 60 + "|1")),
        ("tmux", PANE._replace(server="host|/tmp/tmux-0/" + "long" * 60 + "|2")),
    ],
)
def test_other_panes_have_other_locks(tmp_path: Path, backend: str, pane: PaneAddress) -> None:
    with pane_lock(str(tmp_path), "tmux", PANE), pane_lock(str(tmp_path), backend, pane, 0.0):
        assert not is_free(tmp_path)


def test_a_lock_file_is_private_and_has_a_plain_name(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with pane_lock(str(tmp_path), "tmux", PANE._replace(pane="../../%1")):
            pass
    finally:
        os.umask(before)
    (folder,) = tmp_path.iterdir()
    (file,) = folder.iterdir()
    assert folder.name == "locks"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert file.stat().st_mode & 0o777 == 0o600
    assert set(file.name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._=+-")


def test_several_panes_are_held_together_each_once(tmp_path: Path) -> None:
    panes = [("tmux", PANE), ("tmux", OTHER), ("tmux", PANE._replace(session="again"))]
    with pane_locks(str(tmp_path), panes, timeout_seconds=0.0):
        assert not is_free(tmp_path)
        assert not is_free(tmp_path, OTHER)
    assert is_free(tmp_path)
    assert is_free(tmp_path, OTHER)


def test_of_several_panes_all_are_held_or_none(tmp_path: Path) -> None:
    with held_elsewhere(tmp_path, OTHER):
        with pytest.raises(PaneBusy), pane_locks(str(tmp_path), [("tmux", PANE), ("tmux", OTHER)], 0.05):
            pass
        assert is_free(tmp_path)


def test_a_deleted_lock_file_protects_nobody_and_misleads_nobody(tmp_path: Path) -> None:
    path = Path(lock_path(str(tmp_path), "tmux", PANE))
    with held_elsewhere(tmp_path):
        path.unlink()
        with pane_lock(str(tmp_path), "tmux", PANE, timeout_seconds=0.0):
            assert path.exists()
            assert not is_free(tmp_path)


def test_a_waiter_notices_that_its_file_was_replaced(tmp_path: Path) -> None:
    """Who waited for a file that was unlinked meanwhile takes the lock of the new one."""
    path = Path(lock_path(str(tmp_path), "tmux", PANE))
    with held_elsewhere(tmp_path) as first:
        path.unlink()
        with held_elsewhere(tmp_path):
            first.kill()
            first.wait()
            assert not is_free(tmp_path)


def test_a_symlink_is_not_followed(tmp_path: Path) -> None:
    path = Path(lock_path(str(tmp_path), "tmux", PANE))
    path.parent.mkdir()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PaneLockUnavailable), pane_lock(str(tmp_path), "tmux", PANE):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "locks").write_text("a file in its place")
    with (
        pytest.raises(PaneLockUnavailable, match=str(tmp_path / "locks")),
        pane_lock(str(tmp_path), "tmux", PANE),
    ):
        pass
    with pytest.raises(PaneLockUnavailable, match="No such file"):
        pane_lock(str(tmp_path / "absent"), "tmux", PANE).__enter__()


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    before = set(os.listdir("/proc/self/fd"))
    with held_elsewhere(tmp_path), pytest.raises(PaneBusy), pane_lock(str(tmp_path), "tmux", PANE, 0.05):
        pass
    with pane_lock(str(tmp_path), "tmux", PANE):
        pass
    assert set(os.listdir("/proc/self/fd")) == before


def note_of(directory: Path, pane: PaneAddress = PANE) -> str:
    with pane_lock(str(directory), "tmux", pane) as lock:
        return lock.note


def test_a_note_outlives_a_killed_holder_until_it_is_dropped(tmp_path: Path) -> None:
    command = [sys.executable, "-c", NOTER, str(tmp_path), str(PANE.server), PANE.pane]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert note_of(tmp_path) == "pasted"
    assert note_of(tmp_path, OTHER) == ""
    assert note_of(tmp_path) == "pasted", "reading it changes nothing"
    with pane_lock(str(tmp_path), "tmux", PANE) as lock:
        lock.drop_note()
        assert lock.note == ""
    assert note_of(tmp_path) == ""


def test_a_note_holds_for_a_while(tmp_path: Path) -> None:
    with pane_lock(str(tmp_path), "tmux", PANE) as lock:
        lock.leave_note("pasted", 50.0)
        assert lock.note == "pasted"
        lock.leave_note("pasted", -1.0)
        assert lock.note == ""


def test_a_mark_stays_beside_the_notes_until_they_are_dropped(tmp_path: Path) -> None:
    with pane_lock(str(tmp_path), "tmux", PANE) as lock:
        assert lock.mark == ""
        lock.leave_mark("5-0badcafe")
        assert (lock.note, lock.mark) == ("", "5-0badcafe")
        for note in ("pasted", "entered"):
            lock.leave_note(note, 50.0)
    with pane_lock(str(tmp_path), "tmux", PANE) as lock:
        assert (lock.note, lock.mark) == ("entered", "5-0badcafe")
        lock.drop_note()
        assert (lock.note, lock.mark) == ("", "")


@pytest.mark.parametrize(
    "content",
    ["", "\0" * 40, "pasted", "pasted soon", "pasted nan", "pasted inf", "pasted 99999999999", "\xff\xfe 1"],
    ids=["empty", "zeros", "cut", "a word", "nan", "inf", "from before a restart", "no ASCII"],
)
def test_what_is_no_note_is_none(tmp_path: Path, content: str) -> None:
    assert note_of(tmp_path) == ""
    Path(lock_path(str(tmp_path), "tmux", PANE)).write_text(content, encoding="latin-1")
    assert note_of(tmp_path) == ""


def test_sweeping_removes_old_files_that_nobody_holds(tmp_path: Path) -> None:
    for pane in (PANE, OTHER):
        assert is_free(tmp_path, pane)
    with held_elsewhere(tmp_path, OTHER):
        assert sweep_locks(str(tmp_path), time.time()) == 0
        assert sweep_locks(str(tmp_path), time.time() + 8 * 24 * 3600) == 1
        assert not Path(lock_path(str(tmp_path), "tmux", PANE)).exists()
        assert not is_free(tmp_path, OTHER)
    assert sweep_locks(str(tmp_path / "absent"), time.time()) == 0


WORKER = """
import os, sys
from cafleet.multiplexer.base import PaneAddress
from cafleet.multiplexer.pane_lock import lock_path, pane_lock
directory, address = sys.argv[1], PaneAddress("server", "", "", "%1")
for _ in range(40):
    with pane_lock(directory, "tmux", address, timeout_seconds=60.0):
        inside = os.open(os.path.join(directory, "inside"), os.O_CREAT | os.O_EXCL)
        os.close(inside)
        os.unlink(os.path.join(directory, "inside"))
        if os.getpid() % 2:  # Half of them delete the lock file while they hold it.
            os.unlink(lock_path(directory, "tmux", address))
"""


def test_writers_never_overlap_even_when_the_file_is_deleted(tmp_path: Path) -> None:
    workers = [subprocess.Popen([sys.executable, "-c", WORKER, str(tmp_path)]) for _ in range(6)]
    assert [worker.wait(timeout=DEADLINE_SECONDS) for worker in workers] == [0] * 6


SWAPPED = """
import fcntl, os, sys
from cafleet.errors import PaneBusy
from cafleet.multiplexer.base import PaneAddress
from cafleet.multiplexer.pane_lock import lock_path, pane_lock
directory, address = sys.argv[1], PaneAddress("server", "", "", "%1")
path, other = lock_path(directory, "tmux", address), None

def swap(event, arguments):
    global other
    if event == "fcntl.flock" and other is None:
        other = -1
        os.unlink(path)
        other = os.open(path, os.O_CREAT | os.O_RDWR)
        fcntl.flock(other, fcntl.LOCK_EX)

sys.addaudithook(swap)
try:
    with pane_lock(directory, "tmux", address, timeout_seconds=0.0):
        print("taken")
except PaneBusy:
    print("busy")
"""


def test_a_file_that_is_replaced_between_opening_and_locking_gives_no_second_lock(tmp_path: Path) -> None:
    """Somebody else holds the lock of the file that is there now; ours is of one without a name."""
    done = subprocess.run(
        [sys.executable, "-c", SWAPPED, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "busy\n"
