"""A multiplexer in memory that passes the same contract suite as the real ones.

Give it panes with `add_pane`, set what they show (`pane(address).rows = …`) or give them a program
(`ComposerProgram`), and let calls fail or be watched with `fail` and `before`.
"""

from collections.abc import Callable
from typing import Protocol

from cafleet.errors import MultiplexerError, NotInMultiplexer, PaneBusy, PaneDead, PaneGone
from cafleet.multiplexer.base import LaunchSpec, PaneAddress, PaneStatus, PaneView, is_one_line

DEFAULT_SERVER = "host|/run/memory/default|100"


class Program(Protocol):
    """What runs in a pane. It changes the pane it is handed."""

    def paste(self, pane: "MemoryPane", text: str) -> None: ...

    def enter(self, pane: "MemoryPane") -> None: ...


class MemoryPane:
    """One pane; tests read and set its attributes freely."""

    def __init__(self, address: PaneAddress, *, width: int = 120, height: int = 40) -> None:
        self.address = address
        self.width, self.height = width, height
        self.rows: list[str] = []
        """What is drawn, top to bottom; blank rows up to `height` are added when it is looked at."""
        self.history: list[str] = []
        self.command = "agent"
        self.shell = False
        self.mode = ""
        self.title = ""
        self.dead = False
        self.exit_status: int | None = None
        self.program: Program | None = None
        self.launch: LaunchSpec | None = None
        """What `open_pane` was asked to run here."""
        self.pasted: list[str] = []
        self.enters = 0
        self.cursor = (0, 0)

    @property
    def touched(self) -> bool:
        """Whether anything was ever typed into this pane."""
        return bool(self.pasted or self.enters)


class ComposerProgram:
    """An agent-like program: a composer at the bottom that collects pastes and submits on Enter.

    `draw` makes the rows from the composer's text, so that a test can mimic any product's screen.
    """

    def __init__(
        self,
        draw: Callable[[str], list[str]] = lambda composer: [f"> {composer}"],
        *,
        draft: str = "",
        eat_enters: int = 0,
        ignore_pastes: bool = False,
    ) -> None:
        """`draft`: half-typed text that is already there. `eat_enters`: ignore the first n Enters.
        `ignore_pastes`: like an agent that shows a question."""
        self.draw = draw
        self.composer = draft
        self.eat_enters = eat_enters
        self.ignore_pastes = ignore_pastes
        self.submitted: list[str] = []
        self.blank_enters = 0
        """Enters that met an empty composer: at a question they would have answered it."""

    def show(self, pane: MemoryPane) -> None:
        """Draw the screen."""
        pane.rows = self.draw(self.composer)

    def paste(self, pane: MemoryPane, text: str) -> None:
        if not self.ignore_pastes:
            self.composer += text
        self.show(pane)

    def enter(self, pane: MemoryPane) -> None:
        if self.eat_enters > 0:
            self.eat_enters -= 1
        elif self.composer:
            self.submitted.append(self.composer)
            pane.history.append(self.composer)
            self.composer = ""
        else:
            self.blank_enters += 1
        self.show(pane)


class MemoryMultiplexer:
    """Fulfils `Multiplexer`; `name` is `tmux` by default so that placements look as usual."""

    def __init__(self, name: str = "tmux") -> None:
        self.name = name
        self.here: PaneAddress | None = None
        """The pane that the calling process "runs in"; None: outside a multiplexer."""
        self.calls: list[tuple[str, str]] = []
        """Every call so far: method name and pane id (or server)."""
        self.before: Callable[[str, str], None] = lambda method, pane: None
        """Called at the start of each call with method and pane id, to change things at that moment."""
        self.settled: list[float] = []
        self.focused: PaneAddress | None = None
        self.killed: list[PaneAddress] = []
        self._servers: dict[str, dict[str, MemoryPane]] = {}
        self._faults: dict[str, list[tuple[MultiplexerError, int | None]]] = {}
        self._next_pane = 0

    # -- for tests -------------------------------------------------------------------------------

    def add_pane(
        self,
        *,
        server: str = DEFAULT_SERVER,
        session: str = "main",
        window: str = "@0",
        pane: str | None = None,
        program: Program | None = None,
    ) -> PaneAddress:
        """A new live pane with an empty screen."""
        if pane is None:
            pane = f"%{self._next_pane}"
        self._next_pane = max(self._next_pane, int(pane[1:])) + 1
        address = PaneAddress(server, session, window, pane)
        made = MemoryPane(address)
        made.program = program
        if isinstance(program, ComposerProgram):
            program.show(made)
        self._servers.setdefault(server, {})[pane] = made
        return address

    def add_composer(self, program: ComposerProgram | None = None) -> tuple[PaneAddress, ComposerProgram]:
        """A pane with a `ComposerProgram`, and that program."""
        program = program or ComposerProgram()
        return self.add_pane(program=program), program

    def pane(self, address: PaneAddress) -> MemoryPane:
        """The pane at an address, to be read or changed."""
        return self._servers[address.server or ""][address.pane]

    def panes(self, server: str = DEFAULT_SERVER) -> list[MemoryPane]:
        """Every pane of a server, oldest first."""
        return list(self._servers.get(server, {}).values())

    def remove_pane(self, address: PaneAddress) -> None:
        """The pane closes, as when its program ends."""
        del self._servers[address.server or ""][address.pane]

    def end_program(self, address: PaneAddress, exit_status: int | None = 0) -> None:
        """The program ends and the pane stays, as under remain-on-exit."""
        pane = self.pane(address)
        pane.dead, pane.exit_status = True, exit_status

    def stop_server(self, server: str = DEFAULT_SERVER) -> None:
        """The server and its panes are gone."""
        self._servers.pop(server, None)

    def fail(self, method: str, error: MultiplexerError, *, times: int | None = 1) -> None:
        """Let the next `times` calls of `method` raise `error`; None: every one."""
        self._faults.setdefault(method, []).append((error, times))

    # -- Multiplexer -----------------------------------------------------------------------------

    def current_pane(self) -> PaneAddress:
        self._called("current_pane", "")
        if self.here is None:
            raise NotInMultiplexer
        return self._live(self.here).address

    def open_pane(self, beside: PaneAddress, launch: LaunchSpec) -> PaneAddress:
        self._called("open_pane", beside.pane)
        neighbour = self._known(beside)
        if not launch.argv or any("\0" in part for part in launch.argv):
            raise MultiplexerError("a program's arguments and environment cannot hold a NUL")
        address = self.add_pane(
            server=beside.server or "", session=neighbour.address.session, window=neighbour.address.window
        )
        self.pane(address).launch = launch
        self.pane(address).title = launch.title
        return address

    def look(self, pane: PaneAddress, *, settle_seconds: float = 0.0) -> PaneView:
        self.settled.append(settle_seconds)
        self._called("look", pane.pane)
        return self._view(pane)

    def paste(self, pane: PaneAddress, text: str, *, settle_seconds: float) -> PaneView:
        if not is_one_line(text):
            raise MultiplexerError("only one line without control characters can be pasted")
        self.settled.append(settle_seconds)
        self._called("paste", pane.pane)
        target = self._ready(pane)
        target.pasted.append(text)
        if target.program is not None:
            target.program.paste(target, text)
        return self._view(pane)

    def press_enter(self, pane: PaneAddress, *, settle_seconds: float) -> PaneView:
        self.settled.append(settle_seconds)
        self._called("press_enter", pane.pane)
        target = self._ready(pane)
        target.enters += 1
        if target.program is not None:
            target.program.enter(target)
        return self._view(pane)

    def capture(self, pane: PaneAddress, *, lines: int, ansi: bool = False) -> str:
        self._called("capture", pane.pane)
        target = self._known(pane)
        rows = [*target.history, *target.rows]
        while rows and not rows[-1].strip():
            rows.pop()
        return "\n".join(rows[-max(1, lines) :])

    def list_panes(self, server: str | None) -> dict[str, PaneStatus]:
        self._called("list_panes", server or "")
        return {
            name: PaneStatus(
                pane=name,
                dead=pane.dead,
                exit_status=pane.exit_status if pane.dead else None,
                command=pane.command,
                shell=pane.shell and not pane.dead,
            )
            for name, pane in self._servers.get(server or "", {}).items()
        }

    def kill_pane(self, pane: PaneAddress) -> bool:
        self._called("kill_pane", pane.pane)
        try:
            self._known(pane)
        except PaneGone:
            return False
        self.remove_pane(pane)
        self.killed.append(pane)
        return True

    def focus(self, pane: PaneAddress) -> None:
        self._called("focus", pane.pane)
        self.focused = self._known(pane).address

    # -- steps -----------------------------------------------------------------------------------

    def _called(self, method: str, pane: str) -> None:
        self.calls.append((method, pane))
        self.before(method, pane)
        faults = self._faults.get(method, [])
        if faults:
            error, times = faults[0]
            if times is not None:
                faults[0] = (error, times - 1)
                if times <= 1:
                    faults.pop(0)
            raise error

    def _known(self, address: PaneAddress) -> MemoryPane:
        if address.server is None:
            raise PaneGone("its multiplexer server was not recorded")
        panes = self._servers.get(address.server)
        if panes is None:
            raise PaneGone(f"its multiplexer server ({address.server}) is gone")
        if address.pane not in panes:
            raise PaneGone(f"pane {address.pane} is gone")
        return panes[address.pane]

    def _live(self, address: PaneAddress) -> MemoryPane:
        pane = self._known(address)
        if pane.dead:
            raise PaneDead(address.pane)
        return pane

    def _ready(self, address: PaneAddress) -> MemoryPane:
        pane = self._live(address)
        if pane.mode:
            raise PaneBusy(f"pane is in {pane.mode}")
        return pane

    def _view(self, address: PaneAddress) -> PaneView:
        pane = self._live(address)
        rows = pane.rows[-pane.height :]
        return PaneView(
            rows=(*rows, *[""] * (pane.height - len(rows))),
            command=pane.command,
            shell=pane.shell,
            mode=pane.mode,
            title=pane.title,
            width=pane.width,
            height=pane.height,
            cursor_x=pane.cursor[0],
            cursor_y=pane.cursor[1],
        )
