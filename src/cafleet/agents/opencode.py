"""opencode (screens taken with 1.18.33).

The composer is the column of `┃` that ends in `╹▀▀▀…`: a blank row, the text, a blank row, the row
that names agent and model. Below it the footer says whether the program works. A permission or a
question is a column of `┃` that does not end so. A pane wider than 120 columns has a side bar.
"""

import os
import re

from cafleet.agents.base import AgentState, AssetHome, Extent, Preset, Reading, Screen, StartRequest, option
from cafleet.agents.locations import identity
from cafleet.agents.screen import cut_columns, last_inked
from cafleet.config import Config
from cafleet.errors import CafleetError, UsageError

_MODEL = re.compile(r"[^/\s]+/\S+")
_FLOOR = re.compile(r"(\s*)╹(▀+)")
_WALL = re.compile(r"\s*┃")
_PLACEHOLDER = re.compile(r'(?:Ask anything|Run a command)(?:…|\.\.\.) ?".*"')
_FOLDED = re.compile(r"\[Pasted ~\d+ lines\]")
_WORKING = re.compile(r"\besc (?:again to )?interrupt\b")
_DIALOG = re.compile(r"△ |\benter\s+(?:confirm|submit|toggle)\b|\besc\s+(?:dismiss|cancel)\b")


class Opencode:
    """Fulfils `base.Agent`."""

    name = "opencode"
    binary = "opencode"
    settle_seconds = 0.3
    start_seconds = 30.0
    line_limit = 149
    """A longer paste is shown as `[Pasted ~1 lines]`."""
    scrub = ("OPENCODE", "OPENCODE_PID", "OPENCODE_CLIENT", "OPENCODE_SERVER_PASSWORD")
    has_assets = True

    def __init__(self, config: Config) -> None:
        self._config = config

    def check(self, model: str | None, effort: str | None) -> None:
        if model is not None and not _MODEL.fullmatch(model):
            raise UsageError(f"opencode needs a model as <provider>/<model> (got '{model}')")
        if effort is not None:
            raise UsageError("opencode has no effort setting; leave --effort out")

    def start_argv(self, request: StartRequest, binary_path: str) -> list[str]:
        """Raises CafleetError: no preset. An unknown agent name would run one that allows everything."""
        preset = self.asset_home().preset
        if preset is not None and not os.path.isfile(preset.target):
            raise CafleetError(
                f"opencode agent preset not found at {preset.target};"
                " run 'cafleet setup --coding-agent opencode'"
            )
        argv = [binary_path, "--agent", "cafleet"]
        if request.model:
            argv += option("--model", request.model)
        return [*argv, f"--prompt={request.prompt}"]

    def read(self, screen: Screen) -> Reading:
        floor = _floor(screen)
        if floor is None:
            return Reading(AgentState.AWAITING_USER if _is_dialog(screen) else AgentState.UNKNOWN, None)
        text, extent = _composer_text(screen, floor)
        working = any(_WORKING.search(row) for row in screen.rows[floor + 1 :])
        return Reading(AgentState.WORKING if working else AgentState.AT_REST, text, extent)

    def asset_home(self) -> AssetHome:
        path, origin = identity(self.name, self._config)
        configured = self._config.environ.get("XDG_CONFIG_HOME", "")
        above = configured if os.path.isabs(configured) else os.path.join(self._config.home, ".config")
        skills = os.path.join(above, "opencode", "skills")
        return AssetHome(path, origin, skills, Preset("opencode.md", f"{path}/agents/cafleet.md"))


def make(config: Config) -> Opencode:
    """What `registry` asks each product module for."""
    return Opencode(config)


def _floor(screen: Screen) -> int | None:
    """Row of the composer's lower edge; None where something else stands below it."""
    for at in range(len(screen.rows) - 1, 0, -1):
        row = screen.rows[at]
        if _FLOOR.match(row):
            return at if _WALL.match(screen.rows[at - 1]) else None
        if _WALL.match(row):
            return None
    return None


def _composer_text(screen: Screen, floor: int) -> tuple[str, Extent]:
    edge = _FLOOR.match(screen.rows[floor])
    left = len(edge[1]) if edge else 0
    right = left + 1 + (len(edge[2]) if edge else 0)
    top = floor
    while top > 0 and _is_of_composer(screen.rows[top - 1], left, right):
        top -= 1
    ink = [cut_columns(screen.ink[at], left + 1, right).strip() for at in range(top, floor - 1)]
    text = "\n".join(ink).strip()
    if _PLACEHOLDER.fullmatch(text):
        text = ""
    name = cut_columns(screen.rows[floor - 1], left + 1, right).split()[:1]
    if name == ["Shell"]:  # What is pasted into its shell mode would run.
        return f"! {text}".strip(), Extent.WHOLE
    return text, Extent.FOLDED if _FOLDED.fullmatch(text) else Extent.WHOLE


def _is_of_composer(row: str, left: int, right: int) -> bool:
    """A list of completions stands on the composer, but has a wall on its right side, too."""
    return cut_columns(row, left, left + 1) == "┃" and not cut_columns(row, left + 1, right).endswith("┃")


def _is_dialog(screen: Screen) -> bool:
    last = last_inked(screen.rows)
    bottom = last
    while bottom > 0 and not _WALL.match(screen.rows[bottom]):
        bottom -= 1
    top = bottom
    while top > 0 and _WALL.match(screen.rows[top - 1]):
        top -= 1
    return any(_DIALOG.search(row) for row in screen.rows[top : last + 1])
