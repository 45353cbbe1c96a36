"""SPEC 4.5: hints may be lost, but never fail a writer."""

import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.waiting import DEADLINE_SECONDS

from cafleet.db.wakeups import Receiver, send_hints


@pytest.fixture(params=["short", "long"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Where the sockets go; the long path does not fit into a socket's address."""
    parent = tmp_path if request.param == "short" else tmp_path / ("x" * 120)
    parent.mkdir(exist_ok=True)
    return parent / "wakeups"


@pytest.fixture
def receiver(folder: Path) -> Iterator[Receiver]:
    made = Receiver(str(folder))
    yield made
    made.close()


def send(folder: Path) -> None:
    send_hints(str(folder), os.listdir(folder))


def test_a_hint_arrives(folder: Path, receiver: Receiver) -> None:
    assert not receiver.wait(0)
    send(folder)
    assert receiver.wait(DEADLINE_SECONDS)
    assert not receiver.wait(0)


def test_many_hints_are_one(folder: Path, receiver: Receiver) -> None:
    for _ in range(5):
        send(folder)
    assert receiver.wait(DEADLINE_SECONDS)
    assert not receiver.wait(0.01)


def test_a_hint_ends_a_wait_that_has_begun(folder: Path, receiver: Receiver) -> None:
    sender = threading.Timer(0.05, send, [folder])
    sender.start()
    assert receiver.wait(DEADLINE_SECONDS)
    sender.join()


def test_every_waiter_gets_it(folder: Path, receiver: Receiver) -> None:
    second = Receiver(str(folder))
    send(folder)
    assert receiver.wait(DEADLINE_SECONDS)
    assert second.wait(DEADLINE_SECONDS)
    second.close()


def test_a_full_buffer_does_not_hold_the_writer_up(folder: Path, receiver: Receiver) -> None:
    for _ in range(2000):
        send(folder)
    assert receiver.wait(DEADLINE_SECONDS)


def test_the_folder_is_private_whatever_the_umask(tmp_path: Path) -> None:
    previous = os.umask(0)
    try:
        Receiver(str(tmp_path / "wakeups")).close()
    finally:
        os.umask(previous)
    assert stat.S_IMODE((tmp_path / "wakeups").stat().st_mode) == 0o700


def test_the_socket_of_a_killed_waiter_is_swept(folder: Path, receiver: Receiver) -> None:
    script = (
        "import os, signal, sys\n"
        "from cafleet.db.wakeups import Receiver\n"
        "Receiver(sys.argv[1])\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", script, str(folder)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(os.listdir(folder)) == 2
    send(folder)
    assert len(os.listdir(folder)) == 1
    assert receiver.wait(DEADLINE_SECONDS)


def test_a_live_stranger_and_other_files_are_left_alone(folder: Path, receiver: Receiver) -> None:
    (folder / "notes.txt").write_text("mine")
    (folder / "subfolder").mkdir()
    (folder / "dangling").symlink_to("nowhere")
    stream = "s"
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        directory = os.open(folder, os.O_RDONLY)
        listener.bind(f"/proc/self/fd/{directory}/{stream}")
        os.close(directory)
        listener.listen()
        send(folder)
        assert receiver.wait(DEADLINE_SECONDS)
        assert len(os.listdir(folder)) == 5
    assert (folder / "notes.txt").read_text() == "mine"


def test_sockets_that_vanish_meanwhile_are_no_matter(folder: Path, receiver: Receiver) -> None:
    names = os.listdir(folder)
    send_hints(str(folder), ["gone", *names])
    assert receiver.wait(DEADLINE_SECONDS)
    receiver.close()
    send_hints(str(folder), names)
    (folder / "file").touch()
    send_hints(str(folder / "file"), ["x"])
    send_hints(str(folder / "no such folder"), ["x"])


def test_no_folder_no_receiver(folder: Path) -> None:
    folder.touch()
    with pytest.raises(OSError, match=r"."):
        Receiver(str(folder))
