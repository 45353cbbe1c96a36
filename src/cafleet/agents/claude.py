"""Claude Code (screens taken with 2.1.332 and 2.1.197).

The composer stands between the last two rules; the upper one carries the session's name and, where
the text has scrolled, `↑ <n> more`. Rows below the lower rule are the footer. A permission question,
a menu or the trust dialog takes the place of composer and footer.
"""

import re

from cafleet.agents.base import (
    LONGEST_LINE,
    AgentState,
    AssetHome,
    Extent,
    Reading,
    Screen,
    StartRequest,
    option,
)
from cafleet.agents.locations import identity
from cafleet.agents.screen import last_inked
from cafleet.config import Config
from cafleet.errors import UsageError

EFFORTS = ("low", "medium", "high", "xhigh", "max")
_MEMBER_RULES = ("Bash(cafleet message *)",)
_MONITOR_RULES = (*_MEMBER_RULES, "Bash(cafleet monitor scan *)", "Bash(cafleet member ping *)")

_RULE = re.compile(r"─{3,}(?: .* ─+|─*)")
"""A rule, with or without words in it."""
_PROMPT = re.compile(r"[❯!#&>](?: |\xa0|$)")
_SCROLLED_UP = re.compile(r"─ ↑ \d+ more ─")
_SCROLLED_DOWN = re.compile(r"─ ↓ \d+ more ─")
_PLACEHOLDER = re.compile(r'Press up to edit queued messages|Try ".*"')
"""Known also where a terminal shows them undimmed."""
_FOLDED = re.compile(r"\[Pasted text #\d+(?: \+\d+ lines)?\]")
_WORKING_FOOTER = re.compile(r"\besc to interrupt\b")
_SPINNER = re.compile(r"[·✢✳✶✻✽*] \S.*(?:…|· retrying in )")
_DIALOG = re.compile(
    r"(?i)\b(?:enter|esc|space) to (?:confirm|select|submit|cancel|continue|exit|go back|close|toggle)\b"
    r"|\bdo you want to (?:proceed|make this edit|create|allow)\b"
    r"|^\s*❯ (?:\d+\. )?(?:yes|no)\b"
)
_DIALOG_ROWS = 8
"""How far up from the last row a dialog's hints can be."""
_SPINNER_ROWS = 8
"""The spinner's row, its tips and a list of queued messages, above the composer."""


class Claude:
    """Fulfils `base.Agent`."""

    name = "claude"
    binary = "claude"
    settle_seconds = 0.15
    start_seconds = 10.0
    line_limit = LONGEST_LINE
    scrub = (
        "CLAUDECODE",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_SSE_PORT",
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_PID",
    )
    has_assets = True

    def __init__(self, config: Config) -> None:
        self._config = config

    def check(self, model: str | None, effort: str | None) -> None:  # noqa: ARG002
        """Models pass through; the program itself ignores a bad effort, so it is refused here."""
        if effort is not None and effort not in EFFORTS:
            raise UsageError(f"claude has no effort '{effort}'; known: {', '.join(EFFORTS)}")

    def start_argv(self, request: StartRequest, binary_path: str) -> list[str]:
        """`--allowedTools` takes every word up to the next flag, so `--name` has to follow it."""
        rules = _MONITOR_RULES if request.monitor else _MEMBER_RULES
        argv = [binary_path, "--permission-mode", "dontAsk", "--allowedTools", *rules]
        argv += option("--name", request.name)
        if request.model:
            argv += option("--model", request.model)
        if request.effort:
            argv += ["--effort", request.effort]
        return [*argv, "--", request.prompt]

    def read(self, screen: Screen) -> Reading:
        composer = _composer_rows(screen)
        if composer is None:
            return Reading(AgentState.AWAITING_USER if _is_dialog(screen) else AgentState.UNKNOWN, None)
        first, end = composer
        text, extent = _composer_text(screen, first, end)
        return Reading(
            AgentState.WORKING if _is_working(screen, first, end) else AgentState.AT_REST, text, extent
        )

    def asset_home(self) -> AssetHome:
        path, origin = identity(self.name, self._config)
        return AssetHome(path, origin, f"{path}/skills", None)


def make(config: Config) -> Claude:
    """What `registry` asks each product module for."""
    return Claude(config)


def _composer_rows(screen: Screen) -> tuple[int, int] | None:
    """(first row, row of the lower rule), or None where the last rules hold no composer."""
    rows = screen.rows
    rules = [at for at, row in enumerate(rows) if _RULE.fullmatch(row)][-2:]
    if len(rules) < 2 or rules[1] - rules[0] < 2:
        return None
    upper, lower = rules
    if last_inked(rows) <= lower:  # A dialog ends with a rule; a composer always has its footer.
        return None
    if _PROMPT.match(rows[upper + 1]) or _SCROLLED_UP.search(rows[upper]):
        return upper + 1, lower
    return None


def _composer_text(screen: Screen, first: int, end: int) -> tuple[str, Extent]:
    ink = [row.replace("\xa0", " ") for row in screen.ink[first:end]]
    marker = screen.rows[first][:1]
    scrolled = bool(_SCROLLED_UP.search(screen.rows[first - 1]))
    if not scrolled:
        # Any other prompt sign is a mode (a shell command, a note): what is pasted there is no message.
        ink[0] = ink[0][2:] if marker in "❯>" else f"{marker}{ink[0][1:]}"
    text = "\n".join(row.strip() for row in ink).strip()
    if _PLACEHOLDER.fullmatch(text):
        return "", Extent.WHOLE
    if _FOLDED.fullmatch(text):
        return text, Extent.FOLDED
    if scrolled and not _SCROLLED_DOWN.search(screen.rows[end]):
        return text, Extent.TAIL
    return text, Extent.WHOLE


def _is_working(screen: Screen, first: int, end: int) -> bool:
    if any(_WORKING_FOOTER.search(row) for row in screen.rows[end + 1 :]):
        return True
    # The footer can give way to another hint for a while.
    return any(_SPINNER.match(row) for row in screen.rows[max(0, first - 1 - _SPINNER_ROWS) : first - 1])


def _is_dialog(screen: Screen) -> bool:
    last = last_inked(screen.rows)
    return any(_DIALOG.search(row) for row in screen.rows[max(0, last - _DIALOG_ROWS) : last + 1])
