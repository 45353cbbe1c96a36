"""How the built-in agents are started (SPEC 6)."""

import os
from pathlib import Path

import pytest

from cafleet import config
from cafleet.agents import registry
from cafleet.agents.base import Agent, StartRequest
from cafleet.errors import CafleetError, UsageError

PROMPT = "- do it"


def agent(name: str, home: Path, **environ: str) -> Agent:
    return registry.get(name, config.load({"HOME": str(home), "PATH": os.environ["PATH"], **environ}))


def request(
    *, name: str = "ada", monitor: bool = False, model: str | None = None, effort: str | None = None
) -> StartRequest:
    return StartRequest(
        PROMPT, name=name, member_id=4, fleet_id=2, monitor=monitor, model=model, effort=effort
    )


def program(folder: Path, usage: str) -> str:
    """A program whose `--help` prints `usage`."""
    path = folder / "program"
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{usage}\nEND\n")
    path.chmod(0o755)
    return str(path)


def test_claude(tmp_path: Path) -> None:
    argv = agent("claude", tmp_path).start_argv(request(), "/bin/claude")
    assert argv == ["/bin/claude", "--permission-mode", "dontAsk", "--allowedTools",
                    "Bash(cafleet message *)", "--name", "ada", "--", PROMPT]  # fmt: skip


def test_claude_with_model_and_effort(tmp_path: Path) -> None:
    argv = agent("claude", tmp_path).start_argv(request(model="opus", effort="high"), "/bin/claude")
    assert argv[-6:] == ["--model", "opus", "--effort", "high", "--", PROMPT]


def test_a_monitors_claude_may_scan_and_ping(tmp_path: Path) -> None:
    argv = agent("claude", tmp_path).start_argv(request(monitor=True), "/bin/claude")
    assert argv[3:7] == ["--allowedTools", "Bash(cafleet message *)", "Bash(cafleet monitor scan *)",
                         "Bash(cafleet member ping *)"]  # fmt: skip


def test_a_value_that_looks_like_a_flag_is_attached(tmp_path: Path) -> None:
    argv = agent("claude", tmp_path).start_argv(request(name="-x", model="-m"), "/bin/claude")
    assert "--name=-x" in argv
    assert "--model=-m" in argv


def test_codex_with_a_daemon(tmp_path: Path) -> None:
    binary = program(tmp_path, "Options:\n      --no-daemon  Run in this process")
    argv = agent("codex", tmp_path).start_argv(request(model="gpt", effort="high"), binary)
    assert argv == [binary, "--no-daemon", "-c", "allow_login_shell=false", "--ask-for-approval", "never",
                    "--sandbox", "workspace-write", "--model", "gpt", "--config=model_reasoning_effort=high",
                    "--", PROMPT]  # fmt: skip


@pytest.mark.parametrize("usage", ["Options: none", ""])
def test_an_older_codex_is_not_given_a_flag_that_it_does_not_know(tmp_path: Path, usage: str) -> None:
    argv = agent("codex", tmp_path).start_argv(request(), program(tmp_path, usage))
    assert "--no-daemon" not in argv


def test_a_codex_that_cannot_be_asked_is_started_all_the_same(tmp_path: Path) -> None:
    argv = agent("codex", tmp_path).start_argv(request(), str(tmp_path / "missing"))
    assert argv[1:3] == ["-c", "allow_login_shell=false"]


def preset(home: Path) -> Path:
    path = home / ".opencode" / "agents" / "cafleet.md"
    path.parent.mkdir(parents=True)
    path.write_text("---\n---\n")
    return path


def test_opencode(tmp_path: Path) -> None:
    preset(tmp_path)
    argv = agent("opencode", tmp_path).start_argv(request(model="mock/mock-model"), "/bin/opencode")
    assert argv == ["/bin/opencode", "--agent", "cafleet", "--model", "mock/mock-model",
                    f"--prompt={PROMPT}"]  # fmt: skip


def test_opencode_is_not_started_without_its_preset(tmp_path: Path) -> None:
    """An unknown agent name silently runs one that allows everything."""
    path = tmp_path / ".opencode" / "agents" / "cafleet.md"
    with pytest.raises(CafleetError) as caught:
        agent("opencode", tmp_path).start_argv(request(), "/bin/opencode")
    assert str(caught.value) == (
        f"opencode agent preset not found at {path}; run 'cafleet setup --coding-agent opencode'"
    )


def test_the_preset_is_looked_for_where_the_program_does(tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    path = moved / "agents" / "cafleet.md"
    path.parent.mkdir(parents=True)
    path.write_text("---\n---\n")
    argv = agent("opencode", tmp_path, OPENCODE_CONFIG_DIR=str(moved)).start_argv(request(), "/bin/opencode")
    assert argv[1:3] == ["--agent", "cafleet"]


@pytest.mark.parametrize(
    ("name", "model", "effort", "reason"),
    [
        ("claude", None, "turbo", "claude has no effort 'turbo'; known: low, medium, high, xhigh, max"),
        ("codex", None, "max", "codex has no effort 'max'; known: minimal, low, medium, high, xhigh"),
        ("opencode", None, "high", "opencode has no effort setting; leave --effort out"),
        ("opencode", "gpt-5", None, "opencode needs a model as <provider>/<model> (got 'gpt-5')"),
        ("opencode", "/gpt-5", None, "opencode needs a model as <provider>/<model> (got '/gpt-5')"),
        ("opencode", "openai/", None, "opencode needs a model as <provider>/<model> (got 'openai/')"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_happens(
    tmp_path: Path, name: str, model: str | None, effort: str | None, reason: str
) -> None:
    with pytest.raises(UsageError) as caught:
        agent(name, tmp_path).check(model, effort)
    assert str(caught.value) == reason


@pytest.mark.parametrize(
    ("name", "model", "effort"),
    [
        ("claude", "anything goes", "xhigh"),
        ("codex", "anything goes", "minimal"),
        ("opencode", "openrouter/openai/gpt-5", None),
        ("opencode", None, None),
    ],
)
def test_what_can_work_passes(tmp_path: Path, name: str, model: str | None, effort: str | None) -> None:
    agent(name, tmp_path).check(model, effort)


@pytest.mark.parametrize(
    ("name", "variable", "path", "skills"),
    [
        ("claude", "CLAUDE_CONFIG_DIR", ".claude", ".claude/skills"),
        ("codex", "CODEX_HOME", ".codex", ".codex/skills"),
        ("opencode", "OPENCODE_CONFIG_DIR", ".opencode", ".config/opencode/skills"),
    ],
)
def test_asset_home(tmp_path: Path, name: str, variable: str, path: str, skills: str) -> None:
    home = agent(name, tmp_path).asset_home()
    assert home is not None
    assert (home.path, home.origin) == (str(tmp_path / path), "default")
    assert home.skills_directory == str(tmp_path / skills)
    moved = agent(name, tmp_path, **{variable: "/elsewhere/"}).asset_home()
    assert moved is not None
    assert (moved.path, moved.origin) == ("/elsewhere", variable)
    with pytest.raises(CafleetError, match=rf"^{variable} must be an absolute path \(got 'rel/dir'\)$"):
        agent(name, tmp_path, **{variable: "rel/dir"}).asset_home()


def test_opencode_skills_follow_the_configuration_folder(tmp_path: Path) -> None:
    home = agent("opencode", tmp_path, XDG_CONFIG_HOME="/elsewhere").asset_home()
    assert home is not None
    assert home.skills_directory == "/elsewhere/opencode/skills"
