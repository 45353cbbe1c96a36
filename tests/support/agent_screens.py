"""Screens of the real programs, taken by `tests/real_agents/record_screens.py`."""

import json
from pathlib import Path
from typing import NamedTuple

from cafleet import config
from cafleet.agents import registry, screen
from cafleet.agents.base import Agent, Extent, Reading, Screen

FOLDER = Path(__file__).parent.parent / "agents" / "screens"


class Taken(NamedTuple):
    """One screen and what the scene in which it was taken says of it."""

    agent: str
    scene: str
    state: str
    composer: str | None
    """The text that was put into the composer; None: the screen has none."""
    title: str
    cursor_y: int
    width: int
    rows: tuple[str, ...]
    """With escape sequences."""

    def screen(self) -> Screen:
        return screen.parse(self.rows, title=self.title, cursor_y=self.cursor_y, width=self.width)

    def over(self, other: "Taken", own_rows: int) -> Screen:
        """The bottom of this screen below the text of another one, as after some scrolling."""
        rows = (*other.rows, *self.rows[-own_rows:])
        return screen.parse(rows, title=self.title, cursor_y=0, width=self.width)


def built_in(name: str) -> Agent:
    """A built-in agent with nothing set in the environment."""
    return registry.get(name, config.load({"HOME": "/nonexistent"}))


def holds(reading: Reading, line: str, *, just_pasted: bool) -> bool:
    """Whether the composer holds `line` and nothing else; blanks and line breaks do not count.

    `just_pasted`: whoever pasted it a moment ago may take a folded paste for it.
    """
    texts = ["".join(text.split()) for text in reading.texts()]
    wanted = "".join(line.split())
    if not texts or not texts[0] or reading.extent is Extent.FOLDED:
        return just_pasted and reading.extent is Extent.FOLDED
    return wanted.endswith(texts[0]) if reading.extent is Extent.TAIL else wanted in texts


def load() -> dict[str, Taken]:
    """Every taken screen, by a readable id."""
    taken = {}
    for index in sorted(FOLDER.glob("*.json")):
        for entry in json.loads(index.read_text(encoding="utf-8")):
            text = (FOLDER / entry["file"]).read_text(encoding="utf-8")
            rows = tuple(text.removesuffix("\n").split("\n"))
            one = Taken(
                agent=index.stem,
                scene=entry["scene"],
                state=entry["state"],
                composer=entry["composer"],
                title=entry["title"],
                cursor_y=entry["cursor_y"],
                width=entry["width"],
                rows=rows,
            )
            taken[entry["file"].removesuffix(".ansi")] = one
    return taken
