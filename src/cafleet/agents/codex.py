"""Codex (screens taken with codex-cli 0.171.0).

The composer is the block that starts with the last `›` of column 0, its other rows indented by two;
one blank row and the status rows follow. A dialog also marks its choice with `›`, and ends with a
hint that is drawn dim.
"""

import re

from cafleet.agents import probe
from cafleet.agents.base import (
    LONGEST_LINE,
    AgentState,
    AssetHome,
    Extent,
    Preset,
    Reading,
    Screen,
    StartRequest,
    option,
)
from cafleet.agents.locations import identity
from cafleet.agents.screen import last_inked
from cafleet.config import Config
from cafleet.errors import UsageError

EFFORTS = ("minimal", "low", "medium", "high", "xhigh")
HELP_SECONDS = 5.0

_PROMPT = re.compile(r"[›!](?: |$)")
_CHOICE = re.compile(r"› \d+\. ")
_PLACEHOLDER = "Ask Codex to do anything"
"""The one of a fresh composer; others are known by being dim."""
_FOLDED = re.compile(r"\[Pasted Content \d+ chars\](?: #\d+)?")
_WORKING = re.compile(r"[•◦] .*\(.*\besc to interrupt\)")
_TITLE_WORKING = re.compile(r"[⠁-⣿] ")
_HINT = re.compile(
    r"(?i)\b(?:enter|return) (?:to )?(?:confirm|continue|select|submit|choose)\b"
    r"|\besc (?:to )?(?:cancel|back|go back|close|exit|skip|dismiss)\b"
)
_WORKING_ROWS = 12
"""The status line and the list of queued messages, above the composer."""


class Codex:
    """Fulfils `base.Agent`."""

    name = "codex"
    binary = "codex"
    settle_seconds = 0.25
    start_seconds = 15.0
    line_limit = LONGEST_LINE
    scrub = (
        "CODEX_SANDBOX",
        "CODEX_SANDBOX_NETWORK_DISABLED",
        "CODEX_SESSION_ID",
        "CODEX_THREAD_ID",
        "CODEX_CI",
    )
    has_assets = True

    def __init__(self, config: Config) -> None:
        self._config = config
        self._usages: dict[str, str] = {}

    def check(self, model: str | None, effort: str | None) -> None:  # noqa: ARG002
        if effort is not None and effort not in EFFORTS:
            raise UsageError(f"codex has no effort '{effort}'; known: {', '.join(EFFORTS)}")

    def start_argv(self, request: StartRequest, binary_path: str) -> list[str]:
        """Without `--no-daemon` a newer program runs its turns in a shared process that does not have
        the member's environment; an older one does not know the flag. A login shell would reset PATH."""
        argv = [binary_path]
        if "--no-daemon" in self._usage(binary_path):
            argv.append("--no-daemon")
        argv += [
            "-c",
            "allow_login_shell=false",
            "--ask-for-approval",
            "never",
            "--sandbox",
            "workspace-write",
        ]
        if request.model:
            argv += option("--model", request.model)
        if request.effort:
            argv.append(f"--config=model_reasoning_effort={request.effort}")
        return [*argv, "--", request.prompt]

    def _usage(self, binary_path: str) -> str:
        """What `--help` prints, asked for once; empty where it does not answer."""
        if binary_path not in self._usages:
            output = probe.output_of([binary_path, "--help"], self._config.environ, HELP_SECONDS)
            self._usages[binary_path] = output or ""
        return self._usages[binary_path]

    def read(self, screen: Screen) -> Reading:
        start = _prompt_row(screen)
        if _is_dialog(screen, start):
            return Reading(AgentState.AWAITING_USER, None)
        if start is None:
            return Reading(AgentState.UNKNOWN, None)
        text, extent = _composer_text(screen, start)
        return Reading(AgentState.WORKING if _is_working(screen, start) else AgentState.AT_REST, text, extent)

    def asset_home(self) -> AssetHome:
        path, origin = identity(self.name, self._config)
        return AssetHome(path, origin, f"{path}/skills", Preset("codex.rules", f"{path}/rules/cafleet.rules"))


def make(config: Config) -> Codex:
    """What `registry` asks each product module for."""
    return Codex(config)


def _prompt_row(screen: Screen) -> int | None:
    rows = screen.rows
    for at in range(len(rows) - 1, -1, -1):
        if _PROMPT.match(rows[at]):
            return at
    return None


def _is_dialog(screen: Screen, start: int | None) -> bool:
    """The hint is the last row, and dim or below numbered choices: a status row can hold the same
    words (the thread's title is somebody's text), but in another colour and below a composer."""
    last = last_inked(screen.rows)
    if last < 0 or last == start or not _HINT.search(screen.rows[last]):
        return False
    dim = len(screen.ink[last].split()) < len(screen.rows[last].split())
    return dim or start is None or bool(_CHOICE.match(screen.rows[start]))


def _composer_text(screen: Screen, start: int) -> tuple[str, Extent]:
    end = last_inked(screen.rows) + 1
    footer = end
    while footer > start and screen.rows[footer - 1].strip():
        footer -= 1
    end = footer if footer > start else end  # No blank row between: the status rows are not shown.
    ink = list(screen.ink[start:end])
    marker, ink[0] = screen.rows[start][0], ink[0][2:]
    text = "\n".join(row.strip() for row in ink).strip()
    if marker != "›":
        return f"{marker} {text}".strip(), Extent.WHOLE
    if text == _PLACEHOLDER:
        return "", Extent.WHOLE
    if _FOLDED.fullmatch(text):
        return text, Extent.FOLDED
    scrolled = screen.rows[start].endswith("↑") and not screen.ink[start].endswith("↑")
    return text, Extent.TAIL if scrolled else Extent.WHOLE


def _is_working(screen: Screen, start: int) -> bool:
    above = screen.rows[max(0, start - _WORKING_ROWS) : start]
    return any(_WORKING.match(row) for row in above) or bool(_TITLE_WORKING.match(screen.title))
