"""The herdr backend against a stand-in made from herdr's documentation, held to the contract."""

import json
import os
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.multiplexer.contract import MultiplexerContract
from tests.support import pane_recorder
from tests.support.fake_herdr import FakeHerdr
from tests.support.waiting import DEADLINE_SECONDS, wait_until

from cafleet.errors import MultiplexerError, MultiplexerTimeout, NotInMultiplexer, PaneGone
from cafleet.multiplexer.base import LaunchSpec, Multiplexer, PaneAddress
from cafleet.multiplexer.herdr import Herdr

_PASTE = re.compile(rb"\x1b\[200~(.*?)\x1b\[201~", re.DOTALL)


class HerdrStage:
    has_dead_panes = False
    has_modes = True

    def __init__(self, server: FakeHerdr, directory: Path) -> None:
        self.server, self.directory = server, directory
        self.multiplexer: Multiplexer = Herdr(server.environ(), timeout_seconds=DEADLINE_SECONDS)
        self.here = self.address("w1:p1")

    def address(self, pane: str) -> PaneAddress:
        info = self.server.request("pane.get", pane_id=pane)["result"]["pane"]
        name = f"{os.uname().nodename}|{self.server.socket}|{self.server.pid}"
        return PaneAddress(name, info["workspace_id"], info["tab_id"], info["pane_id"])

    def log(self, pane: PaneAddress) -> Path:
        return self.directory / f"{self.server.pid}-{pane.pane}"

    def shows(self, pane: PaneAddress, text: str) -> bool:
        read = self.server.request("pane.read", pane_id=pane.pane, source="visible")["result"]["read"]
        return text in read["text"]

    def add_pane(self) -> PaneAddress:
        made = self.server.request("tab.create", workspace_id="w1")["result"]["root_pane"]
        pane = self.address(made["pane_id"])
        command = [sys.executable, "-S", pane_recorder.__file__, str(self.log(pane))]
        wait_until(lambda: self.shows(pane, "$"))
        line = f"exec {shlex.join(command)}"
        self.server.request("pane.send_input", pane_id=pane.pane, text=line, keys=["enter"])
        wait_until(lambda: self.shows(pane, "ready"))
        return pane

    def received(self, pane: PaneAddress) -> bytes:
        return self.log(pane).read_bytes() if self.log(pane).exists() else b""

    def pasted(self, pane: PaneAddress) -> list[str]:
        return [paste.decode() for paste in _PASTE.findall(self.received(pane))]

    def enters(self, pane: PaneAddress) -> int:
        return _PASTE.sub(b"", self.received(pane)).count(b"\r")

    def close(self, pane: PaneAddress) -> None:
        self.server.request("pane.close", pane_id=pane.pane)

    def end_program(self, pane: PaneAddress, exit_status: int) -> None:
        raise NotImplementedError

    def enter_mode(self, pane: PaneAddress) -> None:
        self.server.request("fake.scroll", pane_id=pane.pane, offset=3)

    def restart_server(self, pane: PaneAddress) -> PaneAddress:
        self.stop_server()
        self.server.start()
        stranger = self.add_pane()
        while stranger.pane != pane.pane:
            stranger = self.add_pane()
        return stranger

    def stop_server(self) -> None:
        self.server.stop()


@pytest.fixture
def herdr_server() -> Iterator[FakeHerdr]:
    """A stand-in herdr server with the pane `w1:p1`."""
    made = FakeHerdr()
    yield made.start()
    made.remove()


@pytest.fixture
def stage(herdr_server: FakeHerdr, tmp_path: Path) -> HerdrStage:
    return HerdrStage(herdr_server, tmp_path)


class TestHerdr(MultiplexerContract):
    pass


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"HERDR_ENV": "1"},
        {"HERDR_ENV": "1", "HERDR_SOCKET_PATH": "relative", "HERDR_PANE_ID": "w1:p1"},
        {"HERDR_ENV": "1", "HERDR_SOCKET_PATH": "/x", "HERDR_PANE_ID": "--current"},
        {"HERDR_SOCKET_PATH": "/x", "HERDR_PANE_ID": "w1:p1"},
    ],
)
def test_without_a_usable_environment_there_is_no_calling_pane(environ: dict[str, str]) -> None:
    with pytest.raises(NotInMultiplexer):
        Herdr({"PATH": os.environ["PATH"], **environ}).current_pane()


def test_the_pane_of_a_named_session_is_reached_by_its_socket(stage: HerdrStage) -> None:
    environ = {**stage.server.environ(), "HERDR_SESSION": "another", "HERDR_SOCKET_PATH": "/nonexistent"}
    assert Herdr(environ).look(stage.here).height > 1


def test_what_the_new_process_is_given(stage: HerdrStage, launch: LaunchSpec, tmp_path: Path) -> None:
    out = tmp_path / "out"
    script = (
        "import json, os, sys, time; out = sys.argv[1];"
        "json.dump([sys.argv[2:], os.getcwd(), dict(os.environ)], open(out + '.new', 'w'));"
        "os.rename(out + '.new', out); time.sleep(1000)"
    )
    given = ["-x", "", "a 'b' $c;", "p" * 98_304]
    launch = launch._replace(
        argv=[sys.executable, "-S", "-c", script, str(out), *given],
        environ={**launch.environ, "MEMBER": "7", "HERDR_PANE_ID": "w9:p9"},
        scrub=["CAFLEET_TEST_R*"],
    )
    made = stage.multiplexer.open_pane(stage.here, launch)
    wait_until(out.exists)
    arguments, directory, environ = json.loads(out.read_text())
    assert arguments == given
    assert directory == launch.directory
    assert environ["MEMBER"] == "7"
    assert environ["HERDR_PANE_ID"] == made.pane
    assert "CAFLEET_TEST_RUN" not in environ
    assert list(Path(launch.private_directory).iterdir()) == []
    assert stage.multiplexer.look(made).title == "a member"
    assert not stage.multiplexer.look(made).shell


def test_a_program_that_cannot_start_leaves_nothing(stage: HerdrStage, launch: LaunchSpec) -> None:
    with pytest.raises(MultiplexerError, match="No such file or directory: /absent/x"):
        stage.multiplexer.open_pane(stage.here, launch._replace(argv=["/absent/x"]))
    assert list(Path(launch.private_directory).iterdir()) == []
    wait_until(lambda: set(stage.multiplexer.list_panes(stage.here.server)) == {"w1:p1"})


def test_a_full_tab_gets_a_further_tab(stage: HerdrStage, launch: LaunchSpec) -> None:
    tabs = [stage.multiplexer.open_pane(stage.here, launch).window for _ in range(3)]
    assert tabs[0] == stage.here.window
    assert tabs[-1] != stage.here.window


def test_a_shell_at_its_prompt(stage: HerdrStage) -> None:
    wait_until(lambda: stage.multiplexer.look(stage.here).shell)


def test_a_frozen_server_is_a_timeout(stage: HerdrStage) -> None:
    multiplexer = Herdr(stage.server.environ(), timeout_seconds=0.3)
    os.kill(stage.server.pid, 19)
    try:
        with pytest.raises(MultiplexerTimeout, match="herdr did not answer"):
            multiplexer.look(stage.here)
    finally:
        os.kill(stage.server.pid, 18)


def test_no_herdr_on_the_path(stage: HerdrStage) -> None:
    with pytest.raises(MultiplexerError, match="herdr not found on PATH"):
        Herdr({**stage.server.environ(), "PATH": "/nonexistent"}).look(stage.here)


@pytest.mark.parametrize(
    ("script", "error", "words"),
    [
        ("echo not json", MultiplexerError, "cannot be read: 'not json"),
        ("echo '[]'", MultiplexerError, "cannot be read"),
        ("echo '{\"result\": {}}'", MultiplexerError, "lacks 'pane'"),
        ('echo \'{"code": "pane_not_found", "message": "pane x"}\' >&2; exit 1', PaneGone, "pane x"),
        (
            'echo \'{"error": {"code": "x", "message": "no"}}\' >&2; exit 1',
            MultiplexerError,
            "herdr: no",
        ),
        ("echo 'unknown option' >&2; exit 2", MultiplexerError, "herdr: unknown option"),
        ("exit 3", MultiplexerError, "exit status 3"),
    ],
)
def test_answers_that_were_not_expected(
    herdr_server: FakeHerdr, tmp_path: Path, script: str, error: type[MultiplexerError], words: str
) -> None:
    program = tmp_path / "herdr"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    with pytest.raises(error, match=re.escape(words)):
        Herdr({**herdr_server.environ(), "PATH": f"{tmp_path}:/bin"}).current_pane()


def test_a_caller_that_ends_its_own_pane_can_still_reply(
    stage: HerdrStage, launch: LaunchSpec, tmp_path: Path
) -> None:
    reply = tmp_path / "reply"
    script = (
        "import os, sys; from cafleet.multiplexer.herdr import Herdr; h = Herdr(dict(os.environ));"
        f"done = h.kill_pane(h.current_pane()); open({str(reply)!r}, 'w').write(f'replied {{done}}');"
        "import time; time.sleep(1000)"
    )
    launch = launch._replace(
        argv=[sys.executable, "-c", script], environ={"PATH": stage.server.environ()["PATH"]}
    )
    made = stage.multiplexer.open_pane(stage.here, launch)
    wait_until(lambda: reply.exists() and reply.read_text() == "replied True")
    wait_until(lambda: made.pane not in stage.multiplexer.list_panes(made.server))
