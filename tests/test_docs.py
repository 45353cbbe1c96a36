"""Every command is documented, and its documentation is what the program does (STYLE: executed rules)."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from scripts.generate_command_reference import PAGE, reference
from tests.support.program import Program

from cafleet.cli import commands
from cafleet.cli.help_pages import command_page
from cafleet.cli.parsing import parse

ROOT = PAGE.parent.parent
NAMES = sorted(commands.COMMANDS)


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def test_the_reference_page_is_what_the_generator_writes() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference(), "run scripts/generate_command_reference.py"


def test_the_generator_runs_as_a_script(tmp_path: Path) -> None:
    script = Path("scripts/generate_command_reference.py")
    copy = tmp_path / "scripts" / script.name
    copy.parent.mkdir()
    (tmp_path / "docs").mkdir()
    copy.write_bytes((PAGE.parent.parent / script).read_bytes())
    subprocess.run([sys.executable, str(copy)], check=True, capture_output=True)
    assert (tmp_path / "docs" / "commands.md").read_text(encoding="utf-8") == reference()


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_help_with_working_examples(name: str) -> None:
    _, guard, summary = commands.COMMANDS[name]
    command = commands.load(name)
    assert guard in (commands.NO_GUARD, commands.FORMAT, commands.ASSETS)
    assert summary
    assert not summary.endswith(".")
    assert command.examples, "an example is the shortest explanation"
    page = command_page(name, summary, command)
    for argument in command.arguments:
        assert argument.help
        assert argument.label in page
    for example in command.examples:
        words = shlex.split(example)
        assert words[: 1 + len(name.split())] == ["cafleet", *name.split()]
        rest = [word for word in words[1 + len(name.split()) :] if word != "--json" or not command.json]
        parse(name, command, rest)
        # An agent's permission rules refuse these, so nobody shall learn them here.
        assert not set(example.replace("'", "")) & set("|><;&$`")


@pytest.mark.parametrize("name", NAMES)
def test_help_needs_no_database_and_makes_none(name: str, program: Program) -> None:
    result = program.run(*name.split(), "--help")
    assert (result.code, result.stderr) == (0, "")
    assert result.stdout.startswith(f"Usage: cafleet {name}")
    assert "Examples:" in result.stdout
    assert not program.database_path.exists()


def test_the_main_help_lists_every_command(program: Program) -> None:
    result = program.run("--help")
    assert result.code == 0
    for name, (_, _, summary) in commands.COMMANDS.items():
        assert f"  {name} " in result.stdout
        assert summary.split()[0] in result.stdout


def described() -> list[tuple[str, str]]:
    """Page and words of every command that the README and the pages, but the generated one, show or name."""
    found = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        if page == PAGE:
            continue
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        blocks = re.findall(r"^```\w*\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
        shown = re.findall(r"^(?:\$ )?cafleet ([a-z].*)", "\n".join(blocks), flags=re.MULTILINE)
        named = re.findall(r"`cafleet ([a-z][^`\n]*)`", text)
        found += [(page.name, line) for line in shown + named]
    return found


@pytest.mark.parametrize(("page", "line"), described())
def test_a_command_on_a_page_is_one_that_the_program_has(page: str, line: str) -> None:
    """In a clause it may lack its arguments; its name and its options must be right."""
    words = shlex.split(line.replace("…", "").split(" > ")[0], comments=True)
    name = " ".join(words[: 1 if words[0] in commands.COMMANDS else 2])
    if name in commands.groups() or name in ("--help", "--version"):
        return
    assert name in commands.COMMANDS, f"{page}: cafleet {line}"
    command = commands.load(name)
    flags = {flag for argument in command.arguments for flag in argument.flags} | {"--json", "--help"}
    used = {word.partition("=")[0] for word in words if re.match(r"--\w", word)}
    assert used <= flags, f"{page}: cafleet {line}"
