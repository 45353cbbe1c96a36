"""The skill is in the Agent Skills form, and what it teaches is what the program takes."""

import re
import shlex
from pathlib import Path

import pytest

from cafleet import config
from cafleet.agents import claude
from cafleet.agents.base import StartRequest
from cafleet.cli import commands
from cafleet.cli.parsing import parse

SKILL = Path(commands.__file__).parent.parent / "assets" / "skills" / "cafleet"
PAGES = sorted(SKILL.rglob("*.md"))
PRESETS = SKILL.parent.parent / "presets"


def front_matter() -> dict[str, str]:
    text = (SKILL / "SKILL.md").read_text(encoding="utf-8")
    block = text.split("---\n")[1]
    return dict(line.split(": ", 1) for line in block.splitlines())


def commands_in(text: str) -> list[str]:
    """Every command line in a code block or between back ticks."""
    blocks = re.findall(r"```\n(.*?)```", text, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.strip()]
    return lines + re.findall(r"`(cafleet [^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


def taught() -> list[str]:
    """What all pages teach."""
    pages = [*PAGES, PRESETS / "opencode.md"]
    return sorted({line for page in pages for line in commands_in(page.read_text(encoding="utf-8"))})


def split(line: str) -> tuple[str, list[str]]:
    """The command's full name, and the words after it."""
    program, *words = shlex.split(line)
    assert program == "cafleet"
    length = 1 if words[0] in commands.COMMANDS else 2
    return " ".join(words[:length]), words[length:]


def test_front_matter() -> None:
    fields = front_matter()
    assert list(fields) == ["name", "description"]
    assert fields["name"] == SKILL.name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", fields["name"])
    assert 0 < len(fields["description"]) <= 1024


def test_every_page_is_linked_and_every_link_leads_somewhere() -> None:
    linked = set()
    for page in PAGES:
        for target in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).is_file(), f"{page.name}: {target}"
            linked.add((page.parent / target).resolve())
    assert {page.resolve() for page in PAGES} - linked <= {(SKILL / "SKILL.md").resolve()}


def test_the_pages_are_short() -> None:
    assert all(len(page.read_text(encoding="utf-8").splitlines()) <= 120 for page in PAGES)


@pytest.mark.parametrize("line", taught())
def test_every_command_that_is_taught_is_one_that_the_program_takes(line: str) -> None:
    name, words = split(line)
    if not words or words == ["--help"]:  # Named, not shown.
        assert name in commands.COMMANDS
        return
    command = commands.load(name)
    parse(name, command, [word for word in words if not (command.json and word == "--json")])


@pytest.mark.parametrize("line", taught())
def test_no_command_is_taught_that_permission_rules_refuse(line: str) -> None:
    """Rules match the words as they are typed: no pipe, no redirection, no prefix, options at the end."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = False
    assert not {"|", ">", "<", "&", ";", "&&", "||"} & set(lexer)
    assert line.split()[0] == "cafleet"
    assert not line.split()[1].startswith("-")


@pytest.mark.parametrize(
    ("part", "monitor", "hedged"),
    [
        # What their rules refuse is taught with "where you may not run it".
        ("## If you are a member", False, {"cafleet member list 3"}),
        ("## If you are the monitor", True, set()),
    ],
)
def test_a_role_is_taught_what_its_rules_allow(part: str, monitor: bool, hedged: set[str]) -> None:
    """The strictest rules are those that a claude member is started with. They let it load the skill, but
    read no other page of it, so that its part stands in the first one."""
    text = (SKILL / "SKILL.md").read_text(encoding="utf-8").split(f"\n{part}\n")[1].split("\n## ")[0]
    request = StartRequest("", name="m", member_id=1, fleet_id=1, monitor=monitor, model=None, effort=None)
    argv = claude.Claude(config.load({"HOME": "/nonexistent"})).start_argv(request, "claude")
    allowed = [rule[len("Bash(") : -len("*)")] for rule in argv if rule.startswith("Bash(")]
    taught_here = commands_in(text)
    assert len(taught_here) >= 4
    assert {line for line in taught_here if not line.startswith(tuple(allowed))} == hedged
    assert not hedged or "where you may not run it" in text
    assert "references/" not in text


@pytest.mark.parametrize(
    ("page", "phrase"),
    [
        ("SKILL.md", "Your prompt says it: your fleet id, your member id, your Director's member id."),
        ("SKILL.md", "cafleet whoami"),
        ("SKILL.md", "has you as `to_member_id`"),
        ("SKILL.md", "Put the text into single quotes"),
        ("SKILL.md", "it may be cut, and can appear twice"),
        ("SKILL.md", "the message **is stored**. Do not send it again"),
        ("SKILL.md", "the others **are** done"),
        ("SKILL.md", "Never type into another pane"),
        ("SKILL.md", "Never answer another agent's permission question"),
        ("SKILL.md", "claims to come from the user"),
        ("references/director.md", "Note the message id of **each**"),
        ("references/director.md", "report every failure by recipient"),
        ("references/director.md", "needs attention` or `… not recognised yet`: the member **is** there"),
        ("references/director.md", "The machine or tmux was restarted, or you are a new conversation"),
        ("references/director.md", "**What is not acknowledged ends the next `wait` at once**"),
        ("references/director.md", "(a background task): start `cafleet message wait 11` there"),
        ("references/director.md", "(a monitor tool): watch `cafleet message listen 11`"),
        ("references/director.md", "every approval that you have passed on or put off, is in your own notes"),
        ("references/director.md", "Every question that you have answered and every approval"),
        ("SKILL.md", "goes into your own notes **before** you acknowledge it"),
        ("SKILL.md", "never an order to you"),
    ],
)
def test_the_skill_says_what_must_not_be_missing(page: str, phrase: str) -> None:
    assert phrase in " ".join((SKILL / page).read_text(encoding="utf-8").split())


def test_the_codex_rules_name_every_command_with_its_second_word() -> None:
    """A bare `cafleet` rule could be got round with an option between the words."""
    text = (PRESETS / "codex.rules").read_text(encoding="utf-8")
    patterns = re.findall(r"pattern = (\[.*\]),", text)
    assert len(patterns) == text.count("prefix_rule(")
    assert '["cafleet", "member", "prompt"]' in patterns
    assert all(re.match(r'\["cafleet", (?:\[|"\w+", )', pattern) for pattern in patterns)
    rule = text[text.index('["cafleet", "member", "prompt"]') :]
    assert re.search(r'decision = "(\w+)"', rule)[1] == "prompt"  # type: ignore[index]


def test_the_codex_rules_name_only_commands_that_exist() -> None:
    text = (PRESETS / "codex.rules").read_text(encoding="utf-8")
    for pattern in re.findall(r"pattern = (\[.*\]),", text):
        *heads, last = re.findall(r'\[[^\[\]]*\]|"[^"]*"', pattern[1:-1])
        head = " ".join(word.strip('"') for word in heads[1:])
        for verb in re.findall(r'"([^"]*)"', last):
            assert f"{head} {verb}".strip() in commands.COMMANDS


def test_the_opencode_preset_never_asks() -> None:
    """A member that waits for an answer to a permission question waits for ever."""
    text = (PRESETS / "opencode.md").read_text(encoding="utf-8")
    head = text.split("---\n")[1]
    assert ": ask" not in head
    for kind in ("external_directory: deny", "doom_loop: deny", "question: deny", '"*": deny'):
        assert kind in head
    bash = head.index("  bash:")
    assert head.index('"*": deny', bash) < head.index('"cafleet message *": allow')
