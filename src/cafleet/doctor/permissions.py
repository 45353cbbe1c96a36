"""Rules of the products themselves that would keep a member from its broker commands."""

import json
import os
import re
import tomllib
from collections.abc import Iterator
from typing import Any

from cafleet.agents import locations, probe
from cafleet.agents.base import find_binary
from cafleet.doctor.records import Finding, Row, Section, issue, note
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
_OUTSIDE = "cafleet *"
"""Pattern of the commands that have to run outside a sandbox."""
_CANNOT_TELL = "cannot tell"
_MANAGED_CLAUDE = "/etc/claude-code/managed-settings.json"
_RULE = re.compile(r"Bash(?:\((.*)\))?", re.DOTALL)


def check_permissions(runtime: Runtime, directory: str) -> Section:
    """`directory`: the folder whose project settings count, besides the user's own."""
    rows: list[Row] = []
    findings: list[Finding] = []
    claude: list[dict[str, Any]] = []
    for path in _claude_files(runtime, directory):
        rows.append({"file": path})
        try:
            claude.append(_claude_settings(path))
        except (OSError, ValueError, RecursionError) as error:
            findings.append(issue(f"{path} cannot be read as JSON: {error}", f"mend {path}"))
        else:
            findings += _check_claude(path, claude[-1])
    findings += _check_claude_sandbox(runtime, claude)
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


def _claude_settings(path: str) -> dict[str, Any]:
    """Raises OSError, ValueError, RecursionError."""
    with open(path, encoding="utf-8") as file:
        settings = json.load(file)
    return settings if isinstance(settings, dict) else {}


def _check_claude(path: str, settings: dict[str, Any]) -> Iterator[Finding]:
    for kind in ("deny", "ask"):
        for rule in _strings(settings, "permissions", kind):
            if command := _blocked_command(rule):
                text = f"'{rule}' under permissions.{kind} keeps members from '{command}'"
                yield issue(text, f"remove it from {path}")


def _blocked_command(rule: str) -> str | None:
    """The first of a member's commands that a rule matches: `Bash` or `Bash(pattern)`."""
    match = _RULE.fullmatch(rule.strip())
    if match is None:
        return None
    pattern = "*" if match[1] is None else match[1]
    return next((command for command in _COMMANDS if _matches(pattern, command)), None)


def _matches(pattern: str, command: str) -> bool:
    """Whether a rule's pattern (`word:*`, or any text with `*`) stands for a command."""
    # `word *` also stands for `word` alone; none of the commands is that short.
    parts = re.sub(r":\*$", "*", pattern.strip()).split("*")
    return re.fullmatch(".*".join(map(re.escape, parts)), command, re.DOTALL) is not None


def _check_claude_sandbox(runtime: Runtime, all_settings: list[dict[str, Any]]) -> Iterator[Finding]:
    """Its own sandbox is off unless some file switches it on; lists of several files count together."""
    if not any(_value(settings, "sandbox", "enabled") is True for settings in all_settings):
        return
    excluded = [one for settings in all_settings for one in _strings(settings, "sandbox", "excludedCommands")]
    if all(any(_matches(pattern, command) for pattern in excluded) for command in _COMMANDS):
        return
    text = "claude's sandbox keeps members from the database and from the multiplexer's socket"
    yield issue(text, f'add "{_OUTSIDE}" to sandbox.excludedCommands in {_claude_user_file(runtime)}')


def _claude_user_file(runtime: Runtime) -> str:
    folder = _folder(runtime, "claude") or os.path.join(runtime.config.home, ".claude")
    return os.path.join(folder, "settings.json")


def _value(settings: dict[str, Any], *keys: str) -> object:
    """What stands there; None where a key, or the table above it, is missing or of another kind."""
    value: object = settings
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _strings(settings: dict[str, Any], *keys: str) -> list[str]:
    value = _value(settings, *keys)
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


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
        except (OSError, ValueError, RecursionError) as error:
            yield issue(f"{config_path} cannot be read as TOML: {error}", f"mend {config_path}")
    if binary is None:
        return
    rules = _rule_files(os.path.join(folder, "rules"))
    rows += [{"file": path} for path in rules]
    decision = _policy(runtime, binary, rules) if rules else None
    if decision == "allow":
        return  # What the rules allow runs outside the sandbox.
    if decision is _CANNOT_TELL:
        text = f"{binary} cannot say what the rules in {os.path.join(folder, 'rules')} allow"
        yield note(
            text, "update codex, or see that a member's 'cafleet message poll' runs outside its sandbox"
        )
    elif decision is not None:
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
    """What the program itself says to a member's first command; None: no rule matches it."""
    flags = [word for path in rules for word in ("--rules", path)]
    argv = [binary, "execpolicy", "check", *flags, "--", *_COMMANDS[0].split()]
    output = probe.output_of(argv, runtime.config.environ, POLICY_SECONDS)
    try:
        answer = json.loads(output or "")
    except ValueError:
        return _CANNOT_TELL
    if not isinstance(answer, dict):
        return _CANNOT_TELL
    decision = answer.get("decision")
    return decision if isinstance(decision, str) else None


def _sandboxed(runtime: Runtime, settings: dict[str, Any], config_path: str) -> Iterator[Finding]:
    """No rule lets cafleet out of the sandbox: can it work inside?"""
    mend = "cafleet setup --coding-agent codex"
    if settings.get("sandbox_mode") == "danger-full-access":
        return
    data, table = runtime.config.data_directory, "sandbox_workspace_write"
    if not any(_is_inside(data, root) for root in _strings(settings, table, "writable_roots")):
        text = f"codex members cannot write {data}: their sandbox does not allow it"
        yield issue(text, f"{mend}, or {_writable_root(data, config_path)}")
    if _value(settings, table, "network_access") is not True:
        text = f"codex members cannot reach the multiplexer's socket: {config_path} does not allow it"
        yield issue(text, f"{mend}, or network_access = true under [{table}] in {config_path}")


def _is_inside(path: str, root: str) -> bool:
    """`root`: of the user's; only an absolute one can hold an absolute path."""
    path, root = os.path.normpath(path), os.path.normpath(root)
    return os.path.isabs(root) and os.path.commonpath([path, root]) == root


def _writable_root(folder: str, config_path: str) -> str:
    roots = json.dumps([folder], ensure_ascii=False)
    return f"writable_roots = {roots} under [sandbox_workspace_write] in {config_path}"


# -- what lets a sandboxed agent write the database --------------------------------------------


def grants(runtime: Runtime) -> str:
    """The setting of each product whose own sandbox can keep its commands from writing the data folder."""
    codex = os.path.join(
        _folder(runtime, "codex") or os.path.join(runtime.config.home, ".codex"), "config.toml"
    )
    return (
        f"of codex, {_writable_root(runtime.config.data_directory, codex)};"
        f' of claude, "{_OUTSIDE}" in sandbox.excludedCommands in {_claude_user_file(runtime)}'
    )
