"""The gate for short-lived programs: bounded, complete, nothing left behind."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cafleet.errors import MultiplexerError, MultiplexerTimeout
from cafleet.multiplexer import child

ENVIRON = {"PATH": os.environ["PATH"]}


def run_python(code: str, *, text: str = "", timeout_seconds: float = 60.0) -> child.Finished:
    return child.run(sys.executable, ["-S", "-c", code], ENVIRON, text=text, timeout_seconds=timeout_seconds)


def test_output_errors_status_and_environment() -> None:
    code = "import os, sys; print(sorted(os.environ)[-1:]); sys.stderr.write('oh é'); sys.exit(3)"
    done = run_python("# -*- coding: utf-8 -*-\n" + code)
    assert done.status == 3
    assert done.output == "['PATH']\n"
    assert done.errors.startswith("oh")


def test_a_program_that_a_signal_ended() -> None:
    assert run_python("import os; os.kill(os.getpid(), 15)").status == -signal.SIGTERM


def test_much_text_flows_both_ways() -> None:
    text = "日本語 " * 200_000
    done = run_python(
        "import sys, shutil; shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer)", text=text
    )
    assert done.output == text


def test_a_program_that_does_not_read() -> None:
    assert run_python("print('done')", text="x" * 1_000_000).output == "done\n"


def own_children() -> set[str]:
    """Process ids of this process's children, unreaped ones included; other tests may have left some."""
    return {
        pid
        for task in os.listdir("/proc/self/task")
        for pid in Path(f"/proc/self/task/{task}/children").read_text().split()
    }


@pytest.mark.parametrize(
    "code",
    [
        "import time; time.sleep(1000)",
        "import os, time; os.close(1); os.close(2); time.sleep(1000)",
        "import sys, time; sys.stdin.read(); time.sleep(1000)",
        "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(1000)",
        "while True: print('x' * 1000)",
    ],
)
def test_a_program_that_does_not_end_is_killed_and_reaped(code: str) -> None:
    before, children = set(os.listdir("/proc/self/fd")), own_children()
    with pytest.raises(MultiplexerTimeout, match=r"did not answer within 0\.2 s"):
        run_python(code, text="input", timeout_seconds=0.2)
    assert set(os.listdir("/proc/self/fd")) == before
    assert own_children() <= children


def test_a_program_that_cannot_be_started(tmp_path: Path) -> None:
    before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(MultiplexerError, match="cannot start"):
        child.run(str(tmp_path / "absent"), [], ENVIRON, timeout_seconds=1.0)
    assert set(os.listdir("/proc/self/fd")) == before


def test_programs_are_found_on_the_given_path(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "tool"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    with pytest.raises(MultiplexerError, match="tool not found on PATH"):
        child.find_program("tool", {"PATH": f"/nonexistent:{program.parent}"})
    program.chmod(0o700)
    assert child.find_program("tool", {"PATH": f"/nonexistent:{program.parent}"}) == str(program)


def test_a_caller_without_standard_streams() -> None:
    code = (
        "import os, sys; saved = os.dup(1); [os.close(n) for n in (0, 1, 2)];"
        "from cafleet.multiplexer import child;"
        "done = child.run('/bin/sh', ['-c', 'cat; echo err >&2'], {}, text='in', timeout_seconds=30);"
        "os.write(saved, repr(tuple(done)).encode())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "(0, 'in', 'err\\n')"


def test_many_threads_at_once() -> None:
    results: list[str] = []

    def work(number: int) -> None:
        results.append(child.run("/bin/cat", [], {}, text=str(number), timeout_seconds=60.0).output)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(int, results)) == list(range(12))
