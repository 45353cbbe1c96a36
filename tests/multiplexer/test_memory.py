"""The multiplexer that other tests use in place of a real one is held to the same contract."""

from collections.abc import Callable

import pytest
from tests.multiplexer.contract import MultiplexerContract
from tests.support.memory_multiplexer import ComposerProgram, MemoryMultiplexer

from cafleet.errors import MultiplexerError, MultiplexerTimeout
from cafleet.multiplexer.base import Multiplexer, PaneAddress


class MemoryStage:
    has_dead_panes = True
    has_modes = True

    def __init__(self) -> None:
        self.memory = MemoryMultiplexer()
        self.multiplexer: Multiplexer = self.memory
        self.here = self.memory.here = self.memory.add_pane()

    def add_pane(self) -> PaneAddress:
        return self.memory.add_composer()[0]

    def pasted(self, pane: PaneAddress) -> list[str]:
        return self.memory.pane(pane).pasted

    def enters(self, pane: PaneAddress) -> int:
        return self.memory.pane(pane).enters

    def close(self, pane: PaneAddress) -> None:
        self.memory.remove_pane(pane)

    def end_program(self, pane: PaneAddress, exit_status: int) -> None:
        self.memory.end_program(pane, exit_status)

    def enter_mode(self, pane: PaneAddress) -> None:
        self.memory.pane(pane).mode = "copy-mode"

    def restart_server(self, pane: PaneAddress) -> PaneAddress:
        self.memory.stop_server()
        return self.memory.add_pane(server="host|/run/memory/default|200", pane=pane.pane)

    def stop_server(self) -> None:
        self.memory.stop_server()


class TestMemory(MultiplexerContract):
    @pytest.fixture
    def stage(self) -> MemoryStage:
        return MemoryStage()


def test_a_failure_happens_as_often_as_ordered() -> None:
    memory = MemoryMultiplexer()
    pane, program = memory.add_composer()
    memory.fail("press_enter", MultiplexerTimeout("tmux", 5.0), times=2)
    for _ in range(2):
        with pytest.raises(MultiplexerTimeout):
            memory.press_enter(pane, settle_seconds=0.0)
    assert memory.pane(pane).enters == 0
    memory.press_enter(pane, settle_seconds=0.0)
    assert program.blank_enters == 1


def test_a_failure_can_be_for_ever() -> None:
    memory = MemoryMultiplexer()
    pane = memory.add_pane()
    memory.fail("look", MultiplexerError("no"), times=None)
    for _ in range(3):
        with pytest.raises(MultiplexerError, match="no"):
            memory.look(pane)


def test_something_can_happen_just_before_a_call() -> None:
    memory = MemoryMultiplexer()
    pane, program = memory.add_composer()

    def question_opens(method: str, name: str) -> None:
        program.ignore_pastes = method == "paste"

    memory.before = question_opens
    view = memory.paste(pane, "text", settle_seconds=0.0)
    assert not any("text" in row for row in view.rows)


@pytest.mark.parametrize(
    ("make", "enters", "submitted"),
    [
        (ComposerProgram, 1, ["hello"]),
        (lambda: ComposerProgram(eat_enters=2), 3, ["hello"]),
        (lambda: ComposerProgram(draft="half "), 1, ["half hello"]),
        (lambda: ComposerProgram(ignore_pastes=True), 1, []),
    ],
)
def test_the_stand_in_program(make: Callable[[], ComposerProgram], enters: int, submitted: list[str]) -> None:
    memory = MemoryMultiplexer()
    pane, program = memory.add_composer(make())
    memory.paste(pane, "hello", settle_seconds=0.0)
    for _ in range(enters):
        memory.press_enter(pane, settle_seconds=0.0)
    assert program.submitted == submitted
