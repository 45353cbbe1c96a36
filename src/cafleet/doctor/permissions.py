"""Rules of the products themselves that would keep a member from its broker commands."""

import json
import os
import re
import tomllib
from collections.abc import Iterator
from typing import Any

from cafleet.agents import locations, probe
from cafleet.agents.base import find_binary
from cafleet.doctor.records import Finding, Row, Section, issue
from cafleet.errors import CafleetError
from cafleet.runtime import Runtime

NAME = "permissions"
POLICY_SECONDS = 10.0

_COMMANDS = (
    "cafleet message poll 1",
    "cafleet message ack 1",
    "cafleet message send --from 1 --to 2 hello",
    "cafleet message wait 1",
)
"""What a member runs."""
_MANAGED_CLAUDE = "/etc/claude-code/managed-settings.json"
_RULE = re.compile(r"Bash(?:\((.*)\))?", re.DOTALL)


def check_permissions(runtime: Runtime, directory: str) -> Section:
    """`directory`: the folder whose project settings count, besides the user's own."""
    rows: list[Row] = []
    findings: list[Finding] = []
    for path in _claude_files(runtime, directory):
        rows.append({"file": path})
        findings += _check_claude(path)
    codex = _folder(runtime, "codex")
    if codex is not None:
        findings += _check_codex(runtime, codex, rows)
    return Section(NAME, rows, findings)


def _folder(runtime: Runtime, name: str) -> str | None:
    try:
        path, _ = locations.identity(name, runtime.config)
    except CafleetError:  # Reported with the agents.
        return None
    return path


# -- claude: deny and ask rules ----------------------------------------------------------------


def _claude_files(runtime: Runtime, directory: str) -> list[str]:
    folder = _folder(runtime, "claude")
    project = os.path.join(directory, ".claude")
    candidates = [_MANAGED_CLAUDE, *(os.path.join(folder, "settings.json") for _ in [0] if folder)]
    candidates += [os.path.join(project, name) for name in ("settings.json", "settings.local.json")]
    return [path for path in dict.fromkeys(candidates) if os.path.isfile(path)]


def _check_claude(path: str) -> Iterator[Finding]:
    try:
        with open(path, encoding="utf-8") as file:
            settings = json.load(file)
    except (OSError, ValueError) as error:
        yield issue(f"{path} cannot be read as JSON: {error}", f"mend {path}")
        return
    permissions = settings.get("permissions") if isinstance(settings, dict) else None
    for kind in ("deny", "ask"):
        rules = permissions.get(kind) if isinstance(permissions, dict) else None
        for rule in rules if isinstance(rules, list) else []:
            if isinstance(rule, str) and (command := _blocked_command(rule)):
                text = f"'{rule}' under permissions.{kind} keeps members from '{command}'"
                yield issue(text, f"remove it from {path}")


def _blocked_command(rule: str) -> str | None:
    """The first of a member's commands that a rule matches: `Bash`, `Bash(word:*)` or a pattern with `*`."""
    match = _RULE.fullmatch(rule.strip())
    if match is None:
        return None
    pattern = "*" if match[1] is None else re.sub(r":\*$", "*", match[1].strip())
    # `word *` also stands for `word` alone; none of the commands is that short.
    expression = ".*".join(re.escape(part) for part in pattern.split("*"))
    return next((command for command in _COMMANDS if re.fullmatch(expression, command, re.DOTALL)), None)


# -- codex: rules and sandbox ------------------------------------------------------------------


def _check_codex(runtime: Runtime, folder: str, rows: list[Row]) -> Iterator[Finding]:
    binary = find_binary("codex", runtime.config.environ.get("PATH", ""))
    config_path = os.path.join(folder, "config.toml")
    settings: dict[str, Any] = {}
    if os.path.isfile(config_path):
        rows.append({"file": config_path})
        try:
            with open(config_path, "rb") as file:
                settings = tomllib.load(file)
        except (OSError, ValueError) as error:
            yield issue(f"{config_path} cannot be read as TOML: {error}", f"mend {config_path}")
    if binary is None:
        return
    rules = _rule_files(os.path.join(folder, "rules"))
    rows += [{"file": path} for path in rules]
    decision = _policy(runtime, binary, rules) if rules else None
    if decision == "allow":
        return  # What the rules allow runs outside the sandbox.
    if decision is not None:
        text = f"a rule in {os.path.join(folder, 'rules')} says '{decision}' to '{_COMMANDS[0]}'"
        yield issue(
            text, "remove that rule; 'cafleet setup --coding-agent codex' installs one that allows it"
        )
    else:
        yield from _sandboxed(runtime, settings, config_path)


def _rule_files(folder: str) -> list[str]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    return [os.path.join(folder, name) for name in names if name.endswith(".rules")]


def _policy(runtime: Runtime, binary: str, rules: list[str]) -> str | None:
    """What the program itself says to a member's first command; None: no rule matches, or it cannot tell."""
    flags = [word for path in rules for word in ("--rules", path)]
    argv = [binary, "execpolicy", "check", *flags, "--", *_COMMANDS[0].split()]
    output = probe.output_of(argv, runtime.config.environ, POLICY_SECONDS)
    try:
        decision = json.loads(output or "").get("decision")
    except (ValueError, AttributeError):
        return None
    return decision if isinstance(decision, str) else None


def _sandboxed(runtime: Runtime, settings: dict[str, Any], config_path: str) -> Iterator[Finding]:
    """No rule lets cafleet out of the sandbox: can it work inside?"""
    mend = "cafleet setup --coding-agent codex"
    if settings.get("sandbox_mode") == "danger-full-access":
        return
    write = settings.get("sandbox_workspace_write")
    roots = write.get("writable_roots") if isinstance(write, dict) else None
    data = runtime.config.data_directory
    if not any(_is_inside(data, root) for root in roots or [] if isinstance(root, str)):
        yield issue(f"codex members cannot write {data}: their sandbox does not allow it", mend)
    if not (isinstance(write, dict) and write.get("network_access") is True):
        text = f"codex members cannot reach the multiplexer's socket: {config_path} does not allow it"
        yield issue(text, mend)


def _is_inside(path: str, root: str) -> bool:
    return os.path.commonpath([os.path.normpath(path), os.path.normpath(root)]) == os.path.normpath(root)
