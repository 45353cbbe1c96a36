"""Notification: what typing one line into a pane at rest adds to a send."""

import os
import shutil
import statistics
import sys
from collections.abc import Iterator

from benchmarks.measure import interleave, median_ratio, run_process, timed_process
from benchmarks.place import PROGRAM
from benchmarks.table import Row, skipped
from cafleet.demo.stage import Stage
from cafleet.demo.standin.configuration import agent_table

ROUNDS = 40
PROCESS_LIMIT = 5
RATIO_LIMIT = 4.0
DIRECTOR, MEMBER = "1", "2"


def rows() -> Iterator[Row]:
    """Processes and time; needs tmux."""
    if shutil.which("tmux") is None:
        yield skipped("notification, pane at rest", f"at most {PROCESS_LIMIT} tmux processes", "no tmux here")
        return
    with Stage(os.environ) as stage:
        _hire_a_silent_member(stage)
        yield _processes(stage)
        yield _time(stage)


def _hire_a_silent_member(stage: Stage) -> None:
    """Its agent takes every line and does nothing, so that it does not disturb the measurement."""
    table = agent_table([sys.executable, "-m", "cafleet.demo.standin"])
    path = os.path.join(stage.environ["HOME"], ".config", "cafleet", "config.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(table.replace('"--member-id", "{member_id}", ', ""))
    for words in (
        ("setup",),
        ("fleet", "create", "--name", "bench", "--coding-agent", "standin"),
        ("member", "create", "--fleet-id", "1", "--name", "ada", "--description", "listens", "Start"),
    ):
        reply = stage.cafleet(*words)
        if reply.status:
            raise RuntimeError(f"{words}: {reply.output}")
    stage.until("the agent starts", lambda: any("ready" in row for row in stage.screen("%1")))


def _processes(stage: Stage) -> Row:
    """Count the tmux processes of one send through a program of that name that notes each call."""
    folder = os.path.join(stage.folder, "counting")
    os.mkdir(folder)
    calls = os.path.join(folder, "calls")
    with open(os.path.join(folder, "tmux"), "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\necho call >>"{calls}"\nexec "{shutil.which("tmux")}" "$@"\n')
    os.chmod(file.name, 0o755)
    environ = {**stage.environ, "PATH": os.pathsep.join([folder, stage.environ["PATH"]])}
    run_process(_send(DIRECTOR, MEMBER), environ)
    with open(calls, encoding="utf-8") as file:
        count = len(file.readlines())
    return Row(
        "notification, pane at rest",
        f"at most {PROCESS_LIMIT} tmux processes",
        f"{count} tmux processes",
        "",
        count <= PROCESS_LIMIT,
    )


def _time(stage: Stage) -> Row:
    times = interleave(
        {
            "without": timed_process(_send(MEMBER, DIRECTOR), stage.environ),
            "with": timed_process(_send(DIRECTOR, MEMBER), stage.environ),
        },
        ROUNDS,
    )
    with_line, without = (statistics.median(times[name]) * 1000 for name in ("with", "without"))
    ratio = median_ratio(times["with"], times["without"])
    return Row(
        "`message send` with a notification (stand-in agent)",
        f"under {RATIO_LIMIT:g} x without",
        f"{with_line:.0f} ms, without {without:.0f} ms",
        f"{ratio:.2f}",
        ratio < RATIO_LIMIT,
    )


def _send(sender: str, recipient: str) -> list[str]:
    return [PROGRAM, "message", "send", "--from", sender, "--to", recipient, "hello"]
