"""Fleets in a real tmux server: panes are opened, found, spared and closed as the rules say."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from tests.support.database import fresh_database
from tests.support.standin import AGENT, write_configuration
from tests.support.tmux_server import TmuxServer
from tests.support.waiting import has_ended, wait_until

from cafleet import clock, config
from cafleet.broker import caller, fleets, identity, inbox, members, messages, placements
from cafleet.broker.fleets import FleetCreated, MonitorRequest
from cafleet.broker.member_creation import MemberRequest, create_member, register_member
from cafleet.broker.member_deletion import PaneEnd, delete_member
from cafleet.broker.member_respawn import RespawnRequest, respawn_member
from cafleet.errors import AgentDidNotStart, DirectorPaneGone
from cafleet.launch import MAX_PROMPT_BYTES, StartState
from cafleet.models import Member, NotificationState
from cafleet.multiplexer.select import multiplexer
from cafleet.runtime import Runtime

_NOTE = """
import json, os, sys, time
with open(sys.argv[1] + ".new", "w") as file:
    json.dump({"environ": dict(os.environ), "argv": sys.argv[2:], "cwd": os.getcwd()}, file)
os.rename(sys.argv[1] + ".new", sys.argv[1])
time.sleep(100000)
"""


class Site:
    """A home, a database and a tmux server with one pane, from which the calls come."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.notes = directory / "notes.json"
        self.database = fresh_database(directory)
        write_configuration(directory)
        script = _NOTE.replace("{", "{{").replace("}", "}}")
        note = json.dumps([sys.executable, "-c", script, str(self.notes), "{prompt}"])
        with open(directory / ".config" / "cafleet" / "config.toml", "a", encoding="utf-8") as file:
            file.write(f"\n[agents.noting]\ncommand = {note}\n")
            file.write('\n[agents.short]\ncommand = ["sh", "-c", "echo no licence; exit 4", "{prompt}"]\n')
        self.base = {
            "HOME": str(directory),
            "PATH": os.environ["PATH"],
            "CAFLEET_DATABASE_URL": f"sqlite:///{self.database.path}",
        }
        # The server has another environment than the caller, as after a night.
        server_environ = self.base | {"PATH": "/usr/bin:/bin", "CLAUDECODE": "1", "UNRELATED": "kept"}
        del server_environ["CAFLEET_DATABASE_URL"]
        self.server = TmuxServer(environ=server_environ).start()
        self.home_pane = self.server.panes()[0]

    def runtime(self, pane: str | None = None) -> Runtime:
        """As a process in `pane` has it; by default in the first one."""
        settings = config.load(self.server.environ(pane or self.home_pane, self.base))
        return Runtime(settings, self.database, lambda name: multiplexer(name, settings), clock.utc_now)

    def fleet(self, agent: str = AGENT, *, monitor: bool = False) -> FleetCreated:
        wish = MonitorRequest("watch {fleet_id}", str(self.directory)) if monitor else None
        return fleets.create_fleet(self.runtime(), "team", agent, wish)

    def request(self, fleet_id: int, prompt: str = "work", *, agent: str | None = None) -> MemberRequest:
        return MemberRequest(fleet_id, "worker", "", prompt, str(self.directory), agent, skills=("tests",))

    def noted(self) -> dict[str, Any]:
        """What the `noting` agent found when it started."""
        text = wait_until(lambda: self.notes.read_text() if self.notes.exists() else "")
        return cast(dict[str, Any], json.loads(text))

    def close(self) -> None:
        self.server.stop()
        self.database.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.close()


def pane_of(member: Member) -> str:
    return placements.pane_of(member)[1].pane


def test_a_fleet_a_monitor_and_a_member_come_up_and_take_messages(site: Site) -> None:
    made = site.fleet(monitor=True)
    assert made.monitor is not None
    assert made.start is not None
    assert made.start.state is StartState.READY
    started = create_member(site.runtime(), site.request(made.fleet.fleet_id))
    assert started.start.state is StartState.READY
    worker = started.member
    assert site.server.panes() == [site.home_pane, pane_of(made.monitor), pane_of(worker)]
    assert site.server.run("display-message", "-p", "#{pane_id}") == site.home_pane, "the focus stays"

    sent = messages.send(site.runtime(), made.director.member_id, worker.member_id, "hello")
    assert sent.notification == (NotificationState.NOTIFIED, None)
    in_its_pane = site.runtime(pane_of(worker))
    assert identity.whoami(in_its_pane).member == worker
    assert caller.caller_mismatch(in_its_pane, made.director.member_id) == worker.member_id
    assert caller.caller_mismatch(in_its_pane, worker.member_id) is None


def test_a_pane_gets_this_cafleet_the_same_file_and_nothing_of_its_parents(site: Site) -> None:
    made = site.fleet()
    folder = site.directory / "#{pane_id} -x"
    folder.mkdir()
    request = site.request(made.fleet.fleet_id, agent="noting")._replace(directory=str(folder))
    started = create_member(site.runtime(), request, start_wait_seconds=0)
    noted = site.noted()

    environ = noted["environ"]
    assert environ["CAFLEET_DATABASE_URL"] == site.base["CAFLEET_DATABASE_URL"]
    assert environ["TMUX_PANE"] == pane_of(started.member)
    assert environ["UNRELATED"] == "kept"
    assert "CLAUDECODE" not in environ
    assert noted["cwd"] == str(folder)
    found = subprocess.run(
        ["sh", "-c", "command -v cafleet"], env=environ, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == os.path.join(os.path.dirname(sys.executable), "cafleet")


def test_a_prompt_of_96_kib_arrives_as_it_was_given(site: Site) -> None:
    made = site.fleet()
    prompt = "$(touch x) `y` 'z' \"w\" ;\n" + "é{{}}" * 20_000
    prompt += "x" * (MAX_PROMPT_BYTES - len(prompt.replace("{{}}", "{}").encode()))
    create_member(
        site.runtime(), site.request(made.fleet.fleet_id, prompt, agent="noting"), start_wait_seconds=0
    )
    noted = site.noted()
    assert noted["argv"] == [prompt.replace("{{}}", "{}")]


def test_an_agent_that_ends_at_once_leaves_no_pane_and_no_member(site: Site) -> None:
    made = site.fleet()
    site.server.run("set-option", "-g", "remain-on-exit", "on")
    with pytest.raises(AgentDidNotStart, match=r"(exit status 4|its program has ended): no licence"):
        create_member(site.runtime(), site.request(made.fleet.fleet_id, agent="short"))
    assert site.server.panes() == [site.home_pane]
    roster = members.list_members(site.runtime(), made.fleet.fleet_id)
    assert [entry.member.member_id for entry in roster] == [made.director.member_id]


def test_deleting_a_member_ends_its_processes_and_spares_its_neighbours(site: Site) -> None:
    made = site.fleet()
    worker = create_member(site.runtime(), site.request(made.fleet.fleet_id)).member
    pid = int(site.server.show("#{pane_pid}", pane_of(worker)))
    split_off = site.server.run(
        "split-window", "-d", "-P", "-F", "#{pane_id}", "-t", pane_of(worker), "sleep", "100000"
    )
    done = delete_member(site.runtime(), worker.member_id)
    assert done.pane is PaneEnd.CLOSED
    assert site.server.panes() == sorted([site.home_pane, split_off])
    assert has_ended(pid)


def test_a_stranger_on_a_new_server_with_the_old_pane_id_is_not_touched(site: Site) -> None:
    made = site.fleet()
    worker = create_member(site.runtime(), site.request(made.fleet.fleet_id)).member
    site.server.kill_server()
    site.server.start()
    stranger = site.server.add_pane()
    assert stranger == pane_of(worker)

    sent = messages.send(site.runtime(), made.director.member_id, worker.member_id, "hello")
    assert sent.notification.state is NotificationState.FAILED
    with pytest.raises(DirectorPaneGone):
        create_member(site.runtime(), site.request(made.fleet.fleet_id))
    respawn = RespawnRequest(worker.member_id, "work on", str(site.directory))
    again = respawn_member(site.runtime(), respawn)
    assert again.start.state is StartState.READY
    sent = messages.send(site.runtime(), made.director.member_id, worker.member_id, "welcome back")
    assert sent.notification.state is NotificationState.NOTIFIED
    assert len(inbox.poll(site.runtime(), worker.member_id)) == 2

    done = fleets.delete_fleet(site.runtime(stranger), made.fleet.fleet_id, kill_panes=True)
    assert [closing.problem for closing in done.panes] == [None]
    assert site.server.panes() == [site.home_pane, stranger]
    assert site.server.screen(stranger) == ""


def test_a_killed_creation_leaves_a_member_that_can_be_deleted_or_respawned(site: Site) -> None:
    """SIGKILL between the commit and the pane's record: the placement stays pending."""
    made = site.fleet()
    assert made.director.placement is not None
    pending = made.director.placement._replace(mux_pane_id=None)
    one, two = (register_member(site.runtime(), site.request(made.fleet.fleet_id), pending) for _ in range(2))
    again = respawn_member(site.runtime(), RespawnRequest(one.member_id, "work", str(site.directory)))
    assert again.start.state is StartState.READY
    assert delete_member(site.runtime(), two.member_id).pane is PaneEnd.NONE
    pid = int(site.server.show("#{pane_pid}", pane_of(again.member)))
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: pane_of(again.member) not in site.server.panes())
    assert delete_member(site.runtime(), one.member_id).pane is PaneEnd.GONE
