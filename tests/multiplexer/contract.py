"""What every multiplexer backend must do, the one in memory included.

A test module makes a subclass with a `stage` fixture: the backend, and hands that reach behind it.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest
from tests.support.waiting import wait_until

from cafleet.errors import MultiplexerError, PaneBusy, PaneDead, PaneGone
from cafleet.multiplexer.base import LaunchSpec, Multiplexer, PaneAddress


class Stage(Protocol):
    """A backend and what a test can do and see without it."""

    multiplexer: Multiplexer
    here: PaneAddress
    """The pane of the calling process."""
    has_dead_panes: bool
    has_modes: bool

    def add_pane(self) -> PaneAddress:
        """A pane whose program collects what it is sent; no shell."""
        ...

    def pasted(self, pane: PaneAddress) -> list[str]:
        """Each bracketed paste that arrived."""
        ...

    def enters(self, pane: PaneAddress) -> int:
        """How many times Enter arrived."""
        ...

    def close(self, pane: PaneAddress) -> None:
        """The pane disappears."""
        ...

    def end_program(self, pane: PaneAddress, exit_status: int) -> None:
        """The program ends, the pane stays."""
        ...

    def enter_mode(self, pane: PaneAddress) -> None:
        """Somebody scrolls back in the pane."""
        ...

    def restart_server(self, pane: PaneAddress) -> PaneAddress:
        """The server ends and another one takes its place; returns its pane with the same id."""
        ...

    def stop_server(self) -> None:
        """The server ends."""
        ...


HOSTILE_LINES = [
    "--help",
    "-x",
    "semi;",
    ";",
    "back\\;",
    "$(touch planted); `touch planted` && ${HOME} #{pid} #(touch planted) %1 ~ !!",
    "'single' \"double\" {brace} [bracket] |pipe > file",
    "日本語 👩‍👩‍👧 é ﷺ שלום",
    "[cafleet msg 7 from 3 2026-11-29T10:00:00.000000+00:00] " + "x" * 640,
]


UNCLEAN_LINES = ["", "two\nlines", "a\rb", "\x1b[201~\r", "bell\x07", "c1\x9b", "nul\0", "\u2028"]
WRONG_PANE_IDS = ["", "%", "%999999", "-X", "%1;kill-server", "%1'", ":", "main", "=", "%1 ", "%١"]


class MultiplexerContract:
    """The suite. Every test gets a fresh `stage`."""

    # -- looking -----------------------------------------------------------------------------------

    def test_the_calling_pane_is_its_own(self, stage: Stage) -> None:
        stage.add_pane()
        assert stage.multiplexer.current_pane() == stage.here

    def test_a_look_shows_the_whole_screen(self, stage: Stage) -> None:
        view = stage.multiplexer.look(stage.add_pane())
        assert len(view.rows) == view.height > 1
        assert view.width > 1
        assert 0 <= view.cursor_y < view.height
        assert 0 <= view.cursor_x <= view.width
        assert view.command
        assert not view.shell
        assert view.mode == ""

    def test_a_look_types_nothing(self, stage: Stage) -> None:
        pane = stage.add_pane()
        stage.multiplexer.look(pane, settle_seconds=0.01)
        assert stage.pasted(pane) == []
        assert stage.enters(pane) == 0

    # -- typing ------------------------------------------------------------------------------------

    @pytest.mark.parametrize("line", HOSTILE_LINES)
    def test_a_paste_arrives_as_it_is_and_presses_nothing(self, stage: Stage, line: str) -> None:
        pane, other = stage.add_pane(), stage.add_pane()
        stage.multiplexer.paste(pane, line, settle_seconds=0.0)
        wait_until(lambda: stage.pasted(pane))
        assert stage.pasted(pane) == [line]
        assert stage.enters(pane) == 0
        assert stage.pasted(other) == []
        assert not Path("planted").exists()

    def test_the_view_after_a_paste_has_settled(self, stage: Stage) -> None:
        pane = stage.add_pane()
        view = stage.multiplexer.paste(pane, "look at me", settle_seconds=0.5)
        assert any("look at me" in row for row in view.rows)

    def test_enter_is_pressed_once(self, stage: Stage) -> None:
        pane, other = stage.add_pane(), stage.add_pane()
        stage.multiplexer.paste(pane, "first", settle_seconds=0.0)
        stage.multiplexer.press_enter(pane, settle_seconds=0.05)
        wait_until(lambda: stage.enters(pane))
        assert stage.enters(pane) == 1
        assert stage.pasted(pane) == ["first"]
        assert stage.enters(other) == 0

    @pytest.mark.parametrize(
        "text", ["", "two\nlines", "a\rb", "\x1b[201~\r", "bell\x07", "c1\x9b", "nul\0", "\u2028"]
    )
    def test_only_one_clean_line_is_pasted(self, stage: Stage, text: str) -> None:
        pane = stage.add_pane()
        with pytest.raises(MultiplexerError, match="one line"):
            stage.multiplexer.paste(pane, text, settle_seconds=0.0)
        assert stage.pasted(pane) == []

    def test_nothing_is_typed_into_a_mode(self, stage: Stage) -> None:
        if not stage.has_modes:
            pytest.skip("this multiplexer has no modes")
        pane = stage.add_pane()
        stage.enter_mode(pane)
        assert stage.multiplexer.look(pane).mode != ""
        with pytest.raises(PaneBusy):
            stage.multiplexer.paste(pane, "text", settle_seconds=0.0)
        with pytest.raises(PaneBusy):
            stage.multiplexer.press_enter(pane, settle_seconds=0.0)
        assert stage.multiplexer.look(pane).mode != ""
        assert stage.pasted(pane) == []
        assert stage.enters(pane) == 0

    def test_nothing_is_typed_into_a_dead_pane(self, stage: Stage) -> None:
        if not stage.has_dead_panes:
            pytest.skip("this multiplexer closes a pane with its program")
        pane, other = stage.add_pane(), stage.add_pane()
        stage.end_program(pane, 3)
        for act in _typing_and_looking(stage.multiplexer):
            with pytest.raises(PaneDead):
                act(pane)
        assert stage.multiplexer.list_panes(pane.server)[pane.pane].dead
        # tmux 3.3 now and then does not learn the status of a program that has ended.
        assert stage.multiplexer.list_panes(pane.server)[pane.pane].exit_status in (3, None)
        assert stage.multiplexer.look(other).command  # the server is well

    # -- panes and servers that are gone -----------------------------------------------------------

    def test_a_closed_pane_is_gone(self, stage: Stage) -> None:
        pane, other = stage.add_pane(), stage.add_pane()
        stage.close(pane)
        _assert_gone(stage.multiplexer, pane)
        assert pane.pane not in stage.multiplexer.list_panes(pane.server)
        assert stage.pasted(other) == []
        assert stage.enters(other) == 0

    def test_a_stopped_server_is_gone(self, stage: Stage) -> None:
        pane = stage.add_pane()
        stage.stop_server()
        _assert_gone(stage.multiplexer, pane)
        assert stage.multiplexer.list_panes(pane.server) == {}

    def test_a_stranger_with_the_same_id_is_left_alone(self, stage: Stage) -> None:
        pane = stage.add_pane()
        stranger = stage.restart_server(pane)
        assert stranger.pane == pane.pane
        _assert_gone(stage.multiplexer, pane)
        assert stage.multiplexer.list_panes(pane.server) == {}
        assert stage.pasted(stranger) == []
        assert stage.enters(stranger) == 0
        assert stage.multiplexer.look(stranger).command

    @pytest.mark.parametrize("server", [None, "", "nonsense", "a|b", "elsewhere|/nonexistent/socket|1"])
    def test_a_server_that_cannot_be_reached_is_gone(self, stage: Stage, server: str | None) -> None:
        pane = stage.add_pane()._replace(server=server)
        _assert_gone(stage.multiplexer, pane)
        assert stage.multiplexer.list_panes(server) == {}

    @pytest.mark.parametrize(
        "name", ["", "%", "%999999", "-X", "%1;kill-server", "%1'", ":", "main", "=", "%1 "]
    )
    def test_a_pane_id_that_is_none_is_gone(self, stage: Stage, name: str) -> None:
        real = stage.add_pane()
        _assert_gone(stage.multiplexer, real._replace(pane=name))
        assert stage.multiplexer.look(real).command
        assert stage.pasted(real) == []
        assert stage.enters(real) == 0

    # -- opening and ending ------------------------------------------------------------------------

    def test_a_new_pane_is_another_one(self, stage: Stage, launch: LaunchSpec) -> None:
        before = set(stage.multiplexer.list_panes(stage.here.server))
        made = stage.multiplexer.open_pane(stage.here, launch)
        assert made.server == stage.here.server
        assert set(stage.multiplexer.list_panes(stage.here.server)) == before | {made.pane}
        assert made.pane not in before

    def test_beside_a_pane_that_is_gone_nothing_opens(self, stage: Stage, launch: LaunchSpec) -> None:
        beside = stage.add_pane()
        stage.close(beside)
        before = set(stage.multiplexer.list_panes(stage.here.server))
        with pytest.raises(PaneGone):
            stage.multiplexer.open_pane(beside, launch)
        assert set(stage.multiplexer.list_panes(stage.here.server)) == before

    def test_a_launch_with_a_nul_opens_nothing(self, stage: Stage, launch: LaunchSpec) -> None:
        before = set(stage.multiplexer.list_panes(stage.here.server))
        with pytest.raises(MultiplexerError, match="NUL"):
            stage.multiplexer.open_pane(stage.here, launch._replace(argv=[*launch.argv, "a\0b"]))
        assert set(stage.multiplexer.list_panes(stage.here.server)) == before

    def test_killing_ends_that_pane_alone(self, stage: Stage) -> None:
        pane, other = stage.add_pane(), stage.add_pane()
        assert stage.multiplexer.kill_pane(pane) is True
        assert stage.multiplexer.kill_pane(pane) is False
        left = stage.multiplexer.list_panes(pane.server)
        assert pane.pane not in left
        assert {other.pane, stage.here.pane} <= set(left)

    # -- the rest ----------------------------------------------------------------------------------

    def test_a_capture_is_the_last_lines(self, stage: Stage) -> None:
        pane = stage.add_pane()
        for line in ("one", "two", "three"):
            stage.multiplexer.paste(pane, line, settle_seconds=0.0)
            stage.multiplexer.press_enter(pane, settle_seconds=0.0)
        wait_until(lambda: "three" in stage.multiplexer.capture(pane, lines=50))
        whole = wait_until(lambda: self._settled_capture(stage, pane))
        assert not whole.endswith("\n")
        assert "\x1b" not in whole
        assert stage.multiplexer.capture(pane, lines=1) == whole.split("\n")[-1]
        assert stage.multiplexer.capture(pane, lines=2) == "\n".join(whole.split("\n")[-2:])

    def _settled_capture(self, stage: Stage, pane: PaneAddress) -> str:
        """The whole capture once the program has drawn its answer to the last Enter."""
        whole = stage.multiplexer.capture(pane, lines=50)
        return whole if "three\n>" in whole else ""

    def test_listed_panes_are_alive(self, stage: Stage) -> None:
        pane = stage.add_pane()
        listed = stage.multiplexer.list_panes(pane.server)
        assert {pane.pane, stage.here.pane} <= set(listed)
        assert listed[pane.pane].pane == pane.pane
        assert not listed[pane.pane].dead
        assert listed[pane.pane].exit_status is None

    def test_focus_needs_no_client(self, stage: Stage) -> None:
        stage.multiplexer.focus(stage.add_pane())


def _typing_and_looking(multiplexer: Multiplexer) -> list[Callable[[PaneAddress], object]]:
    return [
        multiplexer.look,
        lambda pane: multiplexer.paste(pane, "text", settle_seconds=0.0),
        lambda pane: multiplexer.press_enter(pane, settle_seconds=0.0),
    ]


def _assert_gone(multiplexer: Multiplexer, pane: PaneAddress) -> None:
    acts = [
        *_typing_and_looking(multiplexer),
        lambda pane: multiplexer.capture(pane, lines=10),
        multiplexer.focus,
    ]
    for act in acts:
        with pytest.raises(PaneGone):
            act(pane)
    with contextlib.suppress(PaneGone):
        assert multiplexer.kill_pane(pane) is False
