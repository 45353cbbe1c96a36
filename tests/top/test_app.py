"""The dashboard under Textual's own pilot, over panes in memory."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest
from rich.text import Text
from tests.support.database import run_sql
from tests.support.fleet_builder import World
from tests.support.memory_multiplexer import ComposerProgram
from tests.support.waiting import DEADLINE_SECONDS
from textual.pilot import Pilot
from textual.widgets import DataTable, Static, Tab, TabbedContent, Tabs, TextArea

from cafleet.broker import fleets, inbox, messages
from cafleet.broker.member_deletion import delete_member
from cafleet.broker.members import get_member
from cafleet.errors import DatabaseNewer
from cafleet.models import Member
from cafleet.runtime import Runtime
from cafleet.top.app import Dashboard, Taken
from cafleet.top.dialogs import Composer, Reader

Scenario = Callable[[Dashboard, "Pilot[BaseException | None]"], Awaitable[None]]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


@pytest.fixture
def director(world: World) -> Member:
    """Of a fleet with two members, ann and bob, whose agents are at rest."""
    made = world.fleet()
    world.member(made.fleet_id, "ann")
    world.member(made.fleet_id, "bob")
    return made


def watch(
    world: World,
    scenario: Scenario,
    *,
    fleet_id: int | None = None,
    size: tuple[int, int] = (80, 24),
    open_runtime: Callable[[], Runtime] | None = None,
) -> Dashboard:
    """Run a scenario with the dashboard of somebody in the Director's pane."""

    async def run() -> Dashboard:
        app = Dashboard(open_runtime or world.runtime.for_another_thread, fleet_id)
        async with app.run_test(size=size, notifications=True) as pilot:
            await until(pilot, lambda: bool(cells(app, "roster")))
            await scenario(app, pilot)
        return app

    return asyncio.run(run())


async def until(pilot: "Pilot[BaseException | None]", probe: Callable[[], bool]) -> None:
    """Wait for something to become true."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not probe():
            await pilot.pause(0.02)


def cells(app: Dashboard, name: str) -> list[list[str]]:
    """What a table shows."""
    table: DataTable[Text] = app.query_one(f"#{name}", DataTable)
    return [[cell.plain for cell in table.get_row_at(row)] for row in range(table.row_count)]


def status(app: Dashboard) -> str:
    return str(app.query_one("#status", Static).content)


def said(app: Dashboard) -> list[str]:
    """The notices so far."""
    return [notice.message for notice in app._notifications]


def test_it_shows_the_fleet(world: World, director: Member) -> None:
    messages.send(world.runtime, director.member_id, 2, "one\x1b[31m\ntwo")
    messages.broadcast(world.runtime, director.member_id, "to all")
    world.multiplexer.end_program(world.pane(_member(world, 3)), 7)

    async def scenario(app: Dashboard, _pilot: "Pilot[BaseException | None]") -> None:
        assert [row[:6] for row in cells(app, "roster")] == [
            ["1", "director", "director", "claude", "%0 alive", "0"],
            ["2", "ann", "", "claude", "%1 alive", "2"],
            ["3", "bob", "", "claude", "%2 exited 7", "1"],
        ]
        assert [[row[1], row[2], row[4], row[5]] for row in cells(app, "timeline-table")] == [
            ["director", "all (2)", "0/2", "to all"],
            ["director", "ann", "·", "one⏎two"],
        ]
        assert status(app) == "3 members, 3 unread, 0 held · monitor: not running, no monitor member"
        assert app.query_one("#fleet-1", Tab).label_text == "1 team (3)"

    watch(world, scenario)


def test_it_follows_what_happens(world: World, director: Member) -> None:
    async def scenario(app: Dashboard, pilot: "Pilot[BaseException | None]") -> None:
        assert cells(app, "timeline-table") == []
        messages.send(world.runtime, 2, 3, "news")
        await until(pilot, lambda: [row[5] for row in cells(app, "timeline-table")] == ["news"])
        await until(pilot, lambda: cells(app, "roster")[2][5] == "1")
        inbox.ack(world.runtime, 1)
        await until(pilot, lambda: cells(app, "timeline-table")[0][4] == "✓")

    watch(world, scenario)


def test_the_chosen_members_inbox(world: World, director: Member) -> None:
    messages.send(world.runtime, 2, 3, "for bob")

    async def scenario(app: Dashboard, pilot: "Pilot[BaseException | None]") -> None:
        assert cells(app, "inbox-table") == []
        await pilot.press("down", "down")
        await until(pilot, lambda: [row[3] for row in cells(app, "inbox-table")] == ["for bob"])
        assert app.query_one(TabbedContent).get_tab("inbox").label_text == "Inbox of bob (1)"
        await pilot.press("enter")
        assert app.query_one(TabbedContent).active == "inbox"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Reader))
        shown = str(app.screen.query_one("VerticalScroll Static", Static).content)
        assert shown.startswith("from ann (2) to bob (3)\n")
        assert shown.endswith("\nfor bob")
        await pilot.press("escape")
        await pilot.press("a")
        await until(pilot, lambda: said(app) == ["message 1 acknowledged"])
        await until(pilot, lambda: cells(app, "inbox-table") == [])

    watch(world, scenario)


def test_a_move_of_the_cursor_outlives_what_comes_in_meanwhile(world: World, director: Member) -> None:
    """News that are drawn before the move is heard of do not undo it."""
    messages.send(world.runtime, 2, 3, "for bob")

    async def scenario(app: Dashboard, pilot: "Pilot[BaseException | None]") -> None:
        assert app._snapshot is not None
        app.query_one("#roster", DataTable).move_cursor(row=2)
        await app.on_taken(Taken(app._snapshot))
        await until(pilot, lambda: [row[3] for row in cells(app, "inbox-table")] == ["for bob"])

    watch(world, scenario)


def test_a_message_is_sent_as_the_director_and_announced(world: World, director: Member) -> None:
    pane = world.multiplexer.pane(world.pane(_member(world, 2)))

    async def scenario(app: Dashboard, pilot: "Pilot[BaseException | None]") -> None:
        await pilot.press("down")
        await until(pilot, lambda: app._view is not None and app._view.member_id == 2)
        await pilot.press("s")
        await until(pilot, lambda: isinstance(app.screen, Composer))
        app.screen.query_one(TextArea).text = "two\nlines"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: said(app) == ["message 1 stored, notified"])

    watch(world, scenario)
    (message,) = inbox.poll(world.runtime, 2)
    assert (message.from_member_id, message.text) == (director.member_id, "two\nlines")
    assert isinstance(pane.program, ComposerProgram)
    assert len(pane.program.submitted) == 1


def test_a_broadcast_and_one_that_is_given_up(world: World, director: Member) -> None:
    async def scenario(app: Dashboard, pilot: "Pilot[BaseException | None]") -> None:
        for keys in (("escape",), ("ctrl+s",), ("x", "ctrl+s")):
            await pilot.press("b")
            await until(pilot, lambda: isinstance(app.screen, Composer))
            await pilot.press(*keys)
            await until(pilot, lambda: not isinstance(app.screen, Composer))
        await until(pilot, lambda: said(app) == ["broadcast to 2, 2 notified"])

    watch(world, scenario)
    assert [message.text for message in inbox.poll(world.runtime, 3)] == ["x"]


def test_what_is_held_says_why(world: World, director: Member) -> None:
    world.multiplexer.pane(world.pane(_member(world, 2))).mode = "copy-mode"
    messages.send(world.runtime, director.member_id, 2, "not now")

    async def scenario(app: Dashboard, pilot: "Pilot[BaseException | None]") -> None:
        await pilot.press("h")
        (row,) = cells(app, "held-table")
        assert row[:3] == ["2", "ann", "1"]
        assert "copy-mode" in row[3]
        assert app.query_one(TabbedContent).get_tab("held").label_text == "Held (1)"
        await pilot.press("enter")
        await until(pilot, lambda: len(cells(app, "inbox-table")) == 1)

    watch(world, scenario)


def test_to_a_pane_and_a_wake(world: World, director: Member) -> None:
    async def scenario(app: Dashboard, pilot: "Pilot[BaseException | None]") -> None:
        await pilot.press("down")
        await until(pilot, lambda: app._view is not None and app._view.member_id == 2)
        await pilot.press("g")
        await until(pilot, lambda: said(app) == ["switched to the pane of ann"])
        await pilot.press("w")
        await until(pilot, lambda: len(said(app)) == 2)
        assert said(app)[1] == "no monitor is running for fleet 1; start one with 'cafleet monitor run 1'"

    watch(world, scenario)
    assert world.multiplexer.focused == world.pane(_member(world, 2))


def test_several_fleets(world: World, director: Member) -> None:
    world.fleet("second")

    async def scenario(app: Dashboard, pilot: "Pilot[BaseException | None]") -> None:
        tabs = app.query_one("#fleets", Tabs)
        await until(pilot, lambda: tabs.active == "fleet-1")
        assert len(cells(app, "roster")) == 3
        await pilot.press("f")
        await until(pilot, lambda: tabs.active == "fleet-2" and len(cells(app, "roster")) == 1)
        await pilot.click("#fleet-1")
        await until(pilot, lambda: len(cells(app, "roster")) == 3)
        fleets.delete_fleet(world.runtime, 1)
        await until(pilot, lambda: tabs.active == "fleet-2" and tabs.tab_count == 1)
        fleets.delete_fleet(world.runtime, 2)
        await until(pilot, lambda: status(app).startswith("No live fleet."))
        world.fleet("third")
        await until(pilot, lambda: len(cells(app, "roster")) == 1)

    watch(world, scenario, fleet_id=1)


def test_a_mouse_is_enough(world: World, director: Member) -> None:
    messages.send(world.runtime, 3, 2, "hi ann")

    async def scenario(app: Dashboard, pilot: "Pilot[BaseException | None]") -> None:
        await pilot.click("#roster", offset=(8, 3))
        await until(pilot, lambda: app._view is not None and app._view.member_id == 2)
        await pilot.click("#--content-tab-inbox")
        assert app.query_one(TabbedContent).active == "inbox"
        await until(pilot, lambda: len(cells(app, "inbox-table")) == 1)
        for _ in range(2):  # To the row, then the row itself.
            await pilot.click("#inbox-table", offset=(8, 1))
        await until(pilot, lambda: isinstance(app.screen, Reader))

    watch(world, scenario)


def test_the_cursor_stays_on_its_message(world: World, director: Member) -> None:
    for number in range(3):
        messages.send(world.runtime, 2, 3, f"text {number}")

    async def scenario(app: Dashboard, pilot: "Pilot[BaseException | None]") -> None:
        await pilot.press("t", "down")
        table = app.query_one("#timeline-table", DataTable)
        assert cells(app, "timeline-table")[table.cursor_row][5] == "text 1"
        messages.send(world.runtime, 2, 3, "text 3")
        await until(pilot, lambda: table.row_count == 4)
        assert cells(app, "timeline-table")[table.cursor_row][5] == "text 1"

    watch(world, scenario)


def test_newest_messages_stay_in_sight(world: World, director: Member) -> None:
    messages.send(world.runtime, 2, 3, "first")

    async def scenario(app: Dashboard, pilot: "Pilot[BaseException | None]") -> None:
        await pilot.press("t")
        table = app.query_one("#timeline-table", DataTable)
        for number in range(30):
            messages.send(world.runtime, 2, 3, f"text {number}")
        await until(pilot, lambda: table.row_count == 31)
        assert (table.cursor_row, table.scroll_offset.y) == (0, 0)

    watch(world, scenario)


def test_the_next_message_after_an_acknowledged_one(world: World, director: Member) -> None:
    for number in range(4):
        messages.send(world.runtime, 2, 1, f"text {number}")

    async def scenario(app: Dashboard, pilot: "Pilot[BaseException | None]") -> None:
        table = app.query_one("#inbox-table", DataTable)
        await pilot.press("i", "down", "down", "a")
        await until(pilot, lambda: table.row_count == 3)
        assert cells(app, "inbox-table")[table.cursor_row][3] == "text 0"

    watch(world, scenario)


def test_a_cursor_without_the_focus_leaves_its_row_its_colours(world: World, director: Member) -> None:
    messages.send(world.runtime, 2, 3, "first")

    async def scenario(app: Dashboard, pilot: "Pilot[BaseException | None]") -> None:
        table = app.query_one("#timeline-table", DataTable)

        def colour() -> str:
            segments = [segment for segment in table.render_line(1) if segment.text.strip() == "·"]
            style = segments[0].style if segments else None
            return "" if style is None or style.color is None else style.color.name

        await until(pilot, lambda: colour() == "yellow")
        await pilot.press("t")
        await until(pilot, lambda: colour() == "default")
        await pilot.press("tab")
        await until(pilot, lambda: colour() == "yellow")

    watch(world, scenario)


def test_names_leave_room_for_the_rest(world: World) -> None:
    director = world.fleet()
    world.member(director.fleet_id, "漢" * 64)
    world.member(director.fleet_id, "n" * 64)
    messages.send(world.runtime, 2, 3, "x" * 1000)

    async def scenario(app: Dashboard, pilot: "Pilot[BaseException | None]") -> None:
        for name, last in (("roster", "held"), ("timeline-table", "text")):
            table: DataTable[Text] = app.query_one(f"#{name}", DataTable)
            assert [str(column.label) for column in table.ordered_columns][-1] == last
            await until(pilot, lambda table=table: table.virtual_size.width > 60)  # type: ignore[misc]
            assert table.virtual_size.width < 80
        await pilot.resize_terminal(40, 12)
        roster: DataTable[Text] = app.query_one("#roster", DataTable)
        await until(pilot, lambda: len(roster.columns) < 8)
        labels = [str(column.label) for column in roster.ordered_columns]
        assert labels == ["id", "name", "pane", "unread", "held"]
        await until(pilot, lambda: roster.virtual_size.width < 40)

    watch(world, scenario)


def test_a_text_that_could_not_be_sent_comes_back(world: World, director: Member) -> None:
    async def scenario(app: Dashboard, pilot: "Pilot[BaseException | None]") -> None:
        await pilot.press("down")
        await until(pilot, lambda: app._view is not None and app._view.member_id == 2)
        await pilot.press("s")
        await until(pilot, lambda: isinstance(app.screen, Composer))
        app.screen.query_one(TextArea).text = "long thought"
        delete_member(world.runtime, 2)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: bool(app.screen.query(".error")))
        assert str(app.screen.query_one(".error", Static).content) == "Not sent: member 2 is not active"
        assert app.screen.query_one(TextArea).text == "long thought"
        assert said(app) == []
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, Composer))

    watch(world, scenario)


def test_the_only_fleet_stays_as_it_is(world: World, director: Member) -> None:
    async def scenario(app: Dashboard, pilot: "Pilot[BaseException | None]") -> None:
        await pilot.press("down")
        await until(pilot, lambda: app._view is not None and app._view.member_id == 2)
        await pilot.press("f")
        await until(pilot, lambda: said(app) == ["this is the only live fleet"])
        assert app._wanted.member_id == 2
        fleets.delete_fleet(world.runtime, 1)
        await until(pilot, lambda: status(app).startswith("No live fleet."))
        titles = [app.query_one(TabbedContent).get_tab(tab).label_text for tab in ("inbox", "held")]
        assert titles == ["Inbox", "Held"]

    watch(world, scenario)


def test_a_bug_ends_it_instead_of_a_picture_that_stands_still(world: World, director: Member) -> None:
    broken: list[bool] = []

    def now() -> datetime:
        if broken:
            raise RuntimeError("a bug")
        return world.clock()

    def open_runtime() -> Runtime:
        runtime = world.runtime.for_another_thread()
        runtime.now = now
        return runtime

    async def scenario(app: Dashboard, pilot: "Pilot[BaseException | None]") -> None:
        broken.append(True)
        messages.send(world.runtime, 2, 3, "news")
        await until(pilot, lambda: not app.is_running or app.return_value is not None)

    assert str(watch(world, scenario, open_runtime=open_runtime).return_value) == "a bug"


def test_it_ends_when_the_database_is_upgraded(world: World, director: Member) -> None:
    async def scenario(app: Dashboard, pilot: "Pilot[BaseException | None]") -> None:
        run_sql(
            Path(world.database.path),
            "BEGIN IMMEDIATE",
            "CREATE TABLE later (a)",
            "INSERT INTO refinery_schema_history VALUES (99, 'later', '2027-01-01', 'x')",
            "COMMIT",
        )
        await until(pilot, lambda: not app.is_running or app.return_value is not None)

    assert isinstance(watch(world, scenario).return_value, DatabaseNewer)


def _member(world: World, member_id: int) -> Member:
    return get_member(world.runtime, member_id)
