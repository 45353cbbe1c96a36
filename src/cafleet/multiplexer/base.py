"""The contract that every multiplexer backend fulfils (SPEC 5.1).

Whoever types holds the pane's lock (`pane_lock.py`); a backend itself takes no lock.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

from cafleet.errors import MultiplexerError

CALL_TIMEOUT_SECONDS = 5.0
"""How long one call of the multiplexer's program may take."""
KILL_GRACE_SECONDS = 2.0
"""How long the programs of a pane that is closed may take to end by themselves."""
CLOSE_DELAY_SECONDS = 0.5
"""How much later a pane closes that the caller itself runs in, so that it can still reply."""
LEAST_COLUMNS, LEAST_ROWS = 38, 10
"""The smallest pane that is opened for an agent, in cells: a smaller screen could not be read."""
ROOMY_COLUMNS = 80
"""A pane that has this width twice is split side by side."""


class SplitSide(StrEnum):
    """Where the new half of a split pane is."""

    RIGHT = "right"
    DOWN = "down"
    NONE = "none"
    """Nowhere: a half would be too small for an agent's screen."""


def split_side(width: int, height: int) -> SplitSide:
    """How a pane of this size, in cells, is split for an agent."""
    if width > 2 * ROOMY_COLUMNS:
        return SplitSide.RIGHT
    if height > 2 * LEAST_ROWS and width >= LEAST_COLUMNS:
        return SplitSide.DOWN
    return SplitSide.NONE


class PaneAddress(NamedTuple):
    """Where a pane is, as recorded in a placement. Opaque to everything outside `multiplexer/`."""

    server: str | None
    """`placement.mux_server`; None for a row that another cafleet wrote before format 5."""
    session: str
    window: str
    pane: str


class PaneView(NamedTuple):
    """One look at a live pane."""

    rows: tuple[str, ...]
    """The visible screen, top to bottom, with SGR escape sequences (colour, dim) and nothing else."""
    command: str
    """Name of the foreground process."""
    shell: bool
    """The foreground process is a shell that waits at its prompt: no agent runs here."""
    mode: str
    """What keeps keys from this program, or from it alone (`copy-mode`, `tree-mode`,
    `synchronize-panes`, `input-off`, …), or empty."""
    title: str
    width: int
    height: int
    cursor_x: int
    cursor_y: int


class PaneStatus(NamedTuple):
    """One line of a pane listing."""

    pane: str
    dead: bool
    exit_status: int | None
    """Exit code of a dead pane's program (128 and more: a signal's number), where it is known.

    Often it is not: tmux 3.3 misses one in ten."""
    command: str
    shell: bool = False
    """As `PaneView.shell`."""


class LaunchSpec(NamedTuple):
    """What the new pane's own process shall be. Never typed into a shell (field case F5)."""

    argv: Sequence[str]
    """`argv[0]` is an absolute path. Arguments of any length up to 96 KiB each, any text but NUL."""
    environ: Mapping[str, str]
    """Set in the new process, `PATH` included."""
    scrub: Sequence[str]
    """Names (or `PREFIX_*`) that the new process must not inherit from the multiplexer's server."""
    directory: str
    """Absolute working directory."""
    title: str
    private_directory: str
    """An existing or creatable folder (0700) for the short-lived launch file."""


class Multiplexer(Protocol):
    """A terminal multiplexer. Every call is bounded in time.

    Methods that take an address raise `PaneGone` (no such pane, or its server is gone or another
    one), `PaneDead`, `MultiplexerTimeout`, or `MultiplexerError` with the program's own words.
    """

    name: str

    def current_pane(self) -> PaneAddress:
        """The pane that this process runs in. Raises NotInMultiplexer."""
        ...

    def open_pane(self, beside: PaneAddress, launch: LaunchSpec) -> PaneAddress:
        """A new pane in the window of `beside`, without taking the focus; a new window of the same
        session where there is no space for a screen that an agent can work in.

        Returns once the program has taken the place of its launcher. Leaves nothing behind when it
        raises: MultiplexerError with the reason why the program could not be started."""
        ...

    def look(self, pane: PaneAddress, *, settle_seconds: float = 0.0) -> PaneView:
        """Prove the pane's identity and read its screen, after `settle_seconds`."""
        ...

    def paste(self, pane: PaneAddress, text: str, *, settle_seconds: float) -> PaneView:
        """Put `text`, one line of printable characters, into the pane as one bracketed paste without
        Enter, wait, and look again.

        Presses nothing where the pane is dead, in a mode or another server's: raises instead
        (`PaneBusy` for a mode)."""
        ...

    def press_enter(self, pane: PaneAddress, *, settle_seconds: float) -> PaneView:
        """Press Enter once, wait, and look again. Raises like `paste`."""
        ...

    def capture(self, pane: PaneAddress, *, lines: int, ansi: bool = False) -> str:
        """The pane's last `lines` lines, history included, wrapped lines joined."""
        ...

    def list_panes(self, server: str | None) -> dict[str, PaneStatus]:
        """Every pane of `server` by pane id; empty where that server is gone."""
        ...

    def kill_pane(self, pane: PaneAddress) -> bool:
        """End everything that runs in the pane (grace, then KILL) and close the pane.

        False where it was already gone; never touches a pane whose identity is not proven. A caller
        that runs in that very pane is spared: the pane closes a moment after this returns."""
        ...

    def focus(self, pane: PaneAddress) -> None:
        """Show the pane to the attached client."""
        ...


def is_one_line(text: str) -> bool:
    """Whether `text` can be pasted: not empty, and nothing in it ends a line or controls a terminal.

    Not `str.isprintable`: that also refuses joiners, wide blanks and characters newer than Python.
    """
    return bool(text) and not any(
        character < " " or "\x7f" <= character <= "\x9f" or character in "\u2028\u2029" for character in text
    )


def check_pasted(text: str) -> None:
    """Raises MultiplexerError: `text` is not one line that can be pasted."""
    if not is_one_line(text):
        raise MultiplexerError("only one line without control characters can be pasted")
