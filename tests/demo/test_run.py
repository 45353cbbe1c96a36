"""`cafleet demo`: what it shows, and that it leaves nothing behind however it ends (SPEC 12)."""

import os
import pty
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.support.breaking import Breaker
from tests.support.program import SCRIPT, Program
from tests.support.waiting import DEADLINE_SECONDS, wait_until

ANSWERED = "Done: Run the tests"


def processes_that_name(text: str) -> list[str]:
    """Command lines of processes with `text` in their arguments or environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (entry / "cmdline").read_bytes()
            if text.encode() in command + (entry / "environ").read_bytes() and entry.name != str(os.getpid()):
                found.append(command.replace(b"\0", b" ").decode())
    return found


def folder_in(transcript: str) -> str:
    """The folder that a transcript says everything lives in."""
    found = re.search(r"Everything lives in (\S+)\.\n", transcript)
    assert found is not None, transcript
    return found[1]


def is_gone(folder: str) -> bool:
    """No file, no socket, no process of that demo."""
    return not os.path.exists(folder) and not processes_that_name(folder)


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """The program, with its temporary files where the test can look for them."""
    scratch = tmp_path / "t"
    scratch.mkdir()
    yield Program(tmp_path, TMPDIR=str(scratch))
    with suppress(OSError):
        for left in scratch.iterdir():
            subprocess.run(
                ["tmux", "-S", str(left / "tmux"), "kill-server"], check=False, capture_output=True
            )


class TestWhatItShows:
    def test_a_fleet_works_from_end_to_end(self, program: Program) -> None:
        done = program.run("demo")
        assert done.code == 0, done.stdout + done.stderr
        assert done.stderr == ""
        for expected in (
            "$ cafleet fleet create --name demo",
            "1 director=1",
            "2 ada backend=standin pane=%1",
            "$ cafleet message send --from 1 --to 2 'Run the tests'",
            "» [cafleet msg 1 from 1 ",
            ANSWERED,
            "broadcast id=3 recipients=2 notified=2",
            "> Before you go on, could you",
            "Done: Review the change",
        ):
            assert expected in done.stdout
        assert is_gone(folder_in(done.stdout))

    def test_a_draft_is_respected_and_the_message_comes_later(self, program: Program) -> None:
        shown = program.run("demo").stdout
        warning = shown.index("not notified: a draft stands in its composer")
        picture = shown.index("> Before you go on, could you\n".rstrip())
        assert warning < picture < shown.index("Done: Review the change")
        assert "could you[cafleet" not in shown.replace(" ", "")

    def test_a_pipe_gets_plain_text(self, program: Program) -> None:
        assert "\x1b" not in program.run("demo").stdout

    def test_a_terminal_gets_colour(self, program: Program) -> None:
        ours, theirs = pty.openpty()
        running = subprocess.Popen(
            [SCRIPT, "demo"], env=program.environ, stdout=theirs, stdin=subprocess.DEVNULL
        )
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # A terminal whose other side is closed says so with an error.
            while data := os.read(ours, 65536):
                shown += data
        os.close(ours)
        assert running.wait() == 0
        assert b"\x1b[1m1. " in shown


class TestWhatItLeaves:
    def test_nothing_of_the_users_is_touched(self, program: Program, tmp_path: Path) -> None:
        program.run("demo")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["t"]
        assert list((tmp_path / "t").iterdir()) == []

    @pytest.mark.parametrize(
        ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 143), (signal.SIGINT, 130)]
    )
    @pytest.mark.parametrize("moment", ["$ cafleet setup", "$ cafleet member list", "$ cafleet message wait"])
    def test_a_signal_ends_it_and_all_of_it(
        self, program: Program, number: signal.Signals, code: int, moment: str
    ) -> None:
        running = program.start("demo")
        shown = self.read_until(running, moment)
        running.send_signal(number)
        rest, _ = running.communicate(timeout=DEADLINE_SECONDS)
        folder = folder_in(shown + rest.decode())
        assert running.returncode == code
        assert is_gone(folder)

    @pytest.mark.parametrize(
        "moment", ["$ cafleet setup", "$ cafleet member create", "$ cafleet message send"]
    )
    def test_even_a_kill_leaves_nothing_for_long(self, program: Program, moment: str) -> None:
        running = program.start("demo")
        folder = folder_in(self.read_until(running, moment))
        running.kill()
        running.communicate()
        wait_until(lambda: is_gone(folder), what="an end of everything that the killed demo had started")

    @pytest.mark.parametrize("fail", [False, True], ids=["kill", "fail"])
    def test_it_can_be_broken_at_any_step_before_there_is_a_fleet(
        self, program: Program, short_folder: Path, fail: bool
    ) -> None:
        """Each file that it makes, and each process that it starts, until its first own command."""
        there = {"TMPDIR": str(short_folder)}
        steps: list[str] = []

        def is_empty() -> bool:
            return not os.listdir(short_folder) and not processes_that_name(str(short_folder))

        with Breaker(program, fail=fail) as breaker:
            while not steps or not steps[-1].startswith("spawn cafleet"):
                run = breaker.run(
                    "demo", at=len(steps) + 1, only="^(file .*cafleet-demo-|spawn)", environ=there
                )
                assert run.step is not None, run
                assert run.code == (1 if fail else -signal.SIGKILL), run
                assert "internal error" not in run.stderr, run
                steps.append(run.step)
                wait_until(is_empty, what=f"an end of everything after {run.step}")
        assert len(steps) > 6, steps

    @pytest.fixture
    def short_folder(self) -> Iterator[Path]:
        """A socket's path may have 107 bytes."""
        with tempfile.TemporaryDirectory(prefix="cft-") as folder:
            yield Path(folder)

    @staticmethod
    def read_until(running: "subprocess.Popen[bytes]", text: str) -> str:
        """What the demo shows up to the line that holds `text`."""
        assert running.stdout is not None
        shown = ""
        while text not in shown:
            line = running.stdout.readline()
            assert line, shown
            shown += line.decode()
        return shown


class TestKeep:
    @staticmethod
    def shell(command: str) -> str:
        """A command as a spectator would type it, outside the demo's environment."""
        return subprocess.run(["sh", "-c", command], check=True, text=True, stdout=subprocess.PIPE).stdout

    def test_it_says_how_to_look_and_how_to_end_it(self, program: Program) -> None:
        done = program.run("demo", "--keep")
        assert done.code == 0, done.stdout + done.stderr
        folder = folder_in(done.stdout)
        commands = dict(re.findall(r"(?m)^ +(watch|open|end)[^:]*: +(.+?)(?: {4}.*)?$", done.stdout))

        attach = commands["watch"]
        assert attach.endswith(" attach")
        listing = attach.removesuffix("attach") + "list-panes -s -F '#{pane_id}'"
        panes = self.shell(listing)
        assert sorted(panes.split()) == ["%0", "%1", "%2"]

        tmux = attach.removesuffix(" attach")
        pane = self.shell(f"{tmux} new-window -d -P -F '#{{pane_id}}'").strip()
        self.shell(f"{tmux} send-keys -t {pane} 'cafleet fleet list' Enter")
        wait_until(lambda: "demo" in self.shell(f"{tmux} capture-pane -p -t {pane}"), what="the fleet's name")

        subprocess.run(["sh", "-c", commands["end"]], check=True)
        wait_until(lambda: is_gone(folder), what="the end of a kept demo")


def shimmed(program: Program, tmp_path: Path, cases: str) -> dict[str, str]:
    """An environment whose tmux first runs `cases`, of a shell's `case "$*" in`."""
    tools = tmp_path / "tools"
    tools.mkdir()
    shim = tools / "tmux"
    shim.write_text(f'#!/bin/sh\ncase "$*" in {cases} esac\nexec {shutil.which("tmux")} "$@"\n')
    shim.chmod(0o755)
    return {"PATH": f"{tools}:{program.environ['PATH']}"}


class TestWhatItNeeds:
    def test_without_tmux_it_says_what_to_install(self, program: Program, tmp_path: Path) -> None:
        tools = tmp_path / "tools"
        tools.mkdir()
        for name in ("sh", "env"):
            found = shutil.which(name)
            assert found is not None
            (tools / name).symlink_to(found)
        done = program.run("demo", environ={"PATH": str(tools)})
        assert done.code == 1
        assert done.stderr.startswith("Error: the demo needs tmux, which is not installed")
        assert list((tmp_path / "t").iterdir()) == []

    def test_a_step_that_fails_is_an_error_that_names_it(self, program: Program, tmp_path: Path) -> None:
        environ = shimmed(program, tmp_path, "*split-window*) echo no room >&2; exit 1;;")
        done = program.run("demo", environ=environ)
        assert done.code == 1
        assert "Error: the demo went wrong" in done.stderr
        assert "no room" in done.stdout
        assert is_gone(folder_in(done.stdout))

    def test_a_long_place_for_temporary_files_is_left_for_a_short_one(
        self, program: Program, tmp_path: Path
    ) -> None:
        """The path of a tmux socket has 107 bytes at most."""
        long = tmp_path / ("x" * 100)
        long.mkdir()
        done = program.run("demo", environ={"TMPDIR": str(long)})
        assert (done.code, done.stderr) == (0, "")
        folder = folder_in(done.stdout)
        assert folder.startswith("/tmp/cafleet-demo-")
        assert is_gone(folder)
        assert list(long.iterdir()) == []
