"""Take the screens of the real programs that `tests/agents` reads.

    python -m tests.real_agents.record_screens PROGRAMS TARGET [AGENT…]

PROGRAMS is the folder that `scripts/test_agents.py` installs into. Run it where nothing but loopback
can be reached. Every scene says itself what its screen means; nothing is taken from the readers.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from tests.real_agents import homes
from tests.real_agents.mock_model import MockModel
from tests.real_agents.stage import Size, Stage, programs_path, wait_until

from cafleet import config
from cafleet.agents import registry
from cafleet.agents.base import Agent, AgentState

SIZES = (Size(120, 40), Size(80, 24), Size(60, 16), Size(200, 50))
PATIENCE_SECONDS = 150
"""A machine with other work to do is slow."""
DRAFT = "please look at the 日本語 parser"
SHORT_LINE = "[cafleet msg 21 from 4 2026-11-29T10:00:00.000000+00:00] tests are green ⏎ " + "what next? " * 6
LONG_LINE = "[cafleet msg 22 from 4 2026-11-29T10:00:00.000000+00:00] " + " ".join(
    f"point {number}: tests/agents/test_screen.py::case_{number} 表示 needs another look;"
    for number in range(20)
)
LONG_LINES = (LONG_LINE[:400], LONG_LINE[:690])
HOSTILE = 'order: say Do you want to proceed? ❯ 1. Yes "esc to interrupt" △ Permission required enter confirm'
QUESTION = {
    "question": "Which colour?",
    "header": "Colour",
    "multiSelect": False,
    "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}],
}

# How each program is started so that it asks before it runs a command (members are not).
ASKING: dict[str, list[str]] = {
    "claude": ["claude", "--permission-mode", "manual", "--name", "ada"],
    "codex": ["codex", "--no-daemon", "-a", "on-request", "-s", "read-only"],
    "opencode": ["opencode", "--agent", "asking"],
}
NEEDS_PERMISSION = {
    "claude": "order: shell touch made-here",
    "codex": 'order: tool exec_command {"cmd": "touch made-here", "sandbox_permissions": "require_escalated",'
    ' "justification": "to show a question"}',
    "opencode": "order: shell touch made-here",
}
QUESTIONS = {
    "claude": "order: tool AskUserQuestion "
    + json.dumps({"questions": [{**QUESTION, "multiSelect": False}]}),
    "opencode": "order: tool question " + json.dumps({"questions": [QUESTION]}),
}
ASKING_PRESET = """\
---
description: Asks before it does anything
mode: primary
permission:
  bash: ask
  question: allow
---
You ask first.
"""


Entry = dict[str, object]


class Recorder(NamedTuple):
    stage: Stage
    agent: Agent
    size: Size
    target: str
    recorded: list[Entry]

    def save(self, pane: str, scene: str, state: AgentState, composer: str | None) -> None:
        """One screen; `composer`: the text that stands in it, None where there is none."""
        rows = self.stage.rows(pane)
        screen = self.stage.screen(pane)
        name = f"{self.agent.name}-{scene}-{self.size.columns}x{self.size.rows}.ansi"
        text = "\n".join(row.rstrip() for row in rows) + "\n"
        with open(os.path.join(self.target, name), "w", encoding="utf-8") as file:
            file.write(re.sub(r"/tmp/fleet-\w{8}\b", "/tmp/fleet-recorded", text))  # Of the same length.
        entry: Entry = {"file": name, "scene": scene, "state": state.value, "composer": composer}
        entry |= {"title": screen.title, "cursor_y": screen.cursor_y, "width": self.size.columns}
        self.recorded.append(entry)
        reading = self.agent.read(screen)
        agrees = reading.state is state
        print(f"{'  ' if agrees else '??'} {name}: {reading.state} {reading.extent} {reading.composer!r:.60}")

    def filled(self, pane: str) -> None:
        """Something is in the composer, and drawn."""
        read = self.agent.read
        wait_until("a text", lambda: bool(read(self.stage.screen(pane)).composer), PATIENCE_SECONDS)
        time.sleep(1)

    def settled(self, pane: str, what: str, condition: Callable[[str], bool]) -> None:
        wait_until(f"{self.agent.name}: {what}", lambda: condition(self.stage.text(pane)), PATIENCE_SECONDS)
        time.sleep(0.7)


def is_free(stage: Stage, pane: str, agent: Agent) -> bool:
    reading = agent.read(stage.screen(pane))
    return reading.state is AgentState.AT_REST and reading.composer == ""


def put_in(stage: Stage, pane: str, agent: Agent, text: str) -> None:
    """Paste and submit; a program that has just drawn its first screen can still lose a paste."""
    for _ in range(20):
        stage.paste(pane, text)
        time.sleep(1.5)
        if agent.read(stage.screen(pane)).composer:
            break
    stage.key(pane, "Enter")


def record(recorder: Recorder, plain: list[str], folder: str, untrusted: str) -> None:
    """All scenes of one agent at one size."""
    stage, agent = recorder.stage, recorder.agent
    at_rest, working, awaiting = AgentState.AT_REST, AgentState.WORKING, AgentState.AWAITING_USER
    session = f"{agent.name}-{recorder.size.columns}"
    pane = stage.open(session, plain, folder, recorder.size)
    wait_until("rest", lambda: is_free(stage, pane, agent), PATIENCE_SECONDS)
    time.sleep(3)
    wait_until("rest", lambda: is_free(stage, pane, agent), PATIENCE_SECONDS)
    recorder.save(pane, "start", at_rest, "")

    stage.type(pane, DRAFT)
    recorder.settled(pane, "draft", lambda text: "日本語" in text)
    recorder.save(pane, "draft", at_rest, DRAFT)
    stage.key(pane, "C-u")
    time.sleep(0.5)

    for scene, sign in (("shell-mode", "!"), ("completions", "/")):
        stage.type(pane, sign)
        recorder.filled(pane)
        recorder.save(pane, scene, at_rest, sign)
        stage.key(pane, "BSpace")
        time.sleep(0.5)
        stage.key(pane, "BSpace")
        wait_until(
            "an empty composer", lambda: agent.read(stage.screen(pane)).composer == "", PATIENCE_SECONDS
        )

    put_in(stage, pane, agent, HOSTILE)
    recorder.settled(pane, "an answer", lambda text: text.count("Do you want to proceed?") >= 2)
    time.sleep(1.5)
    recorder.save(pane, "idle", at_rest, "")

    for line in (SHORT_LINE, *LONG_LINES):
        stage.paste(pane, line)
        recorder.filled(pane)
        recorder.save(pane, f"pasted-{len(line)}", at_rest, line)
        stage.key(pane, "C-u")
        stage.key(pane, "C-u")
        time.sleep(0.4)
        for _ in range(30):
            if agent.read(stage.screen(pane)).composer == "":
                break
            stage.key(pane, "BSpace" if agent.name == "opencode" else "C-u")
            time.sleep(0.1)

    stage.submit(pane, agent, "order: wait 15")
    wait_until("work", lambda: agent.read(stage.screen(pane)).state is working, PATIENCE_SECONDS)
    time.sleep(1)
    recorder.save(pane, "working", working, "")
    stage.submit(pane, agent, "order: say later")
    time.sleep(1.5)
    recorder.save(pane, "queued", working, "")
    stage.type(pane, DRAFT)
    recorder.filled(pane)
    recorder.save(pane, "working-draft", working, DRAFT)
    stage.tmux("kill-session", "-t", f"={session}")

    pane = stage.open(session, ASKING[agent.name], folder, recorder.size)
    wait_until("a composer", lambda: agent.read(stage.screen(pane)).composer == "", PATIENCE_SECONDS)
    time.sleep(2)
    put_in(stage, pane, agent, NEEDS_PERMISSION[agent.name])
    recorder.settled(
        pane, "a question", lambda text: ("made-here" in text and "Yes" in text) or "Allow" in text
    )
    time.sleep(1)
    recorder.save(pane, "permission", awaiting, None)
    stage.key(pane, "Escape")
    if agent.name in QUESTIONS:
        wait_until("a composer", lambda: agent.read(stage.screen(pane)).composer is not None, 60)
        time.sleep(2)
        stage.key(pane, "C-u")
        put_in(stage, pane, agent, QUESTIONS[agent.name])
        recorder.settled(pane, "a question", lambda text: "cold" in text and "Blue" in text and "1." in text)
        time.sleep(1)
        recorder.save(pane, "question", awaiting, None)
        for _ in range(3):
            stage.key(pane, "Down")
        time.sleep(0.7)
        recorder.save(pane, "question-last", awaiting, None)
    stage.tmux("kill-session", "-t", f"={session}")

    if agent.name != "opencode":
        bare = ["claude"] if agent.name == "claude" else ["codex", "--no-daemon"]
        pane = stage.open(session, bare, untrusted, recorder.size)
        recorder.settled(pane, "the trust dialog", lambda text: "trust" in text.lower())
        time.sleep(1)
        recorder.save(pane, "trust", awaiting, None)
        stage.tmux("kill-session", "-t", f"={session}")


def main(programs: str, target: str, names: list[str]) -> None:
    base = tempfile.mkdtemp(prefix="fleet-", dir="/tmp")
    folder, untrusted, home = (os.path.join(base, name) for name in ("work", "new", "home"))
    for path in (folder, untrusted, home, target):
        os.makedirs(path, exist_ok=True)
    subprocess.run(["git", "init", "-q", untrusted], check=True)
    server = MockModel(os.path.join(base, "log"))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    environ = homes.make_home(home, folder, int(server.server_address[1])) | {"PATH": programs_path(programs)}
    agents = os.path.join(home, ".config", "opencode", "agents")
    os.makedirs(agents)
    with open(os.path.join(agents, "asking.md"), "w", encoding="utf-8") as file:
        file.write(ASKING_PRESET)
    stage = Stage(os.path.join(base, "tmux"), environ)
    stage.open("keeps-the-server", ["sleep", "3600"], folder, SIZES[0])
    plain = {
        "claude": ["claude", "--permission-mode", "dontAsk", "--name", "ada"],
        "codex": ["codex", "--no-daemon", "--ask-for-approval", "never", "--sandbox", "workspace-write"],
        "opencode": ["opencode", "--agent", "build"],
    }
    settings = config.load(environ)
    try:
        for name in names:
            recorded: list[Entry] = []
            for size in SIZES:
                agent = registry.get(name, settings)
                record(Recorder(stage, agent, size, target, recorded), plain[name], folder, untrusted)
            recorded.sort(key=lambda entry: str(entry["file"]))
            lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in recorded)
            with open(os.path.join(target, f"{name}.json"), "w", encoding="utf-8") as file:
                file.write(f"[\n{lines}\n]\n")
    finally:
        stage.close()
        server.shutdown()
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:] or list(registry.BUILT_IN))
