"""The dashboard itself: fleets, roster, inbox, timeline, what is held, and what one can do about it."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import DataTable, Footer, Static, Tab, TabbedContent, TabPane, Tabs

from cafleet.errors import CafleetError
from cafleet.models import Message as StoredMessage
from cafleet.runtime import Runtime
from cafleet.top import actions, rows
from cafleet.top.dialogs import Composer, Reader
from cafleet.top.follow import Follower
from cafleet.top.rows import Row
from cafleet.top.snapshot import FleetView, Snapshot, Wanted

Table = DataTable[Text]

STYLES = """
Screen { layout: vertical; }
#fleets { height: 1; }
#fleets Underline { display: none; }
#status { height: 1; padding: 0 1; }
#roster { height: auto; min-height: 4; max-height: 40%; border-top: solid $primary; }
#lists { height: 1fr; border-top: solid $primary; }
#lists Underline { display: none; }
#lists Tabs { height: 1; }
TabPane { padding: 0; }
DataTable { height: 1fr; overflow-x: hidden; }
DataTable:focus { background-tint: initial; }
DataTable > .datatable--header { background: ansi_default; color: ansi_blue; text-style: bold; }
.window { border: round $primary; padding: 0 1; width: 90%; max-width: 100; background: ansi_default; }
#composer { height: 12; }
#reader { height: 80%; }
Composer, Reader { align: center middle; background: ansi_default; }
TextArea { height: 1fr; border: none; }
"""


COLUMNS = {
    "roster": rows.ROSTER,
    "timeline-table": rows.TIMELINE,
    "inbox-table": rows.INBOX,
    "held-table": rows.HELD,
}
"""The tables, by id."""


class Taken(Message):
    """There is a new snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__()
        self.snapshot = snapshot


class Done(Message):
    """Something that the person asked for has ended."""

    def __init__(self, text: str, well: bool) -> None:
        super().__init__()
        self.text, self.well = text, well


class Failed(Message):
    """The database cannot be followed any more."""

    def __init__(self, error: CafleetError) -> None:
        super().__init__()
        self.error = error


class FleetTab(Tab):
    """A fleet to be chosen with the mouse."""

    class Chosen(Message):
        """The person wants to see this fleet."""

        def __init__(self, fleet_id: int) -> None:
            super().__init__()
            self.fleet_id = fleet_id

    def __init__(self, label: Text, fleet_id: int) -> None:
        super().__init__(label, id=f"fleet-{fleet_id}")
        self._fleet_id = fleet_id

    def on_click(self) -> None:
        self.post_message(self.Chosen(self._fleet_id))


class FleetTabs(Tabs, can_focus=False):
    """The fleets. Which one is active follows what is shown, and is no choice of its own."""


class Dashboard(App[CafleetError | None]):
    """Runs until the person leaves, or the database cannot be used any more: then that is its result."""

    TITLE = "cafleet top"
    CSS = STYLES
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "send", "Send"),
        Binding("b", "broadcast", "All"),
        Binding("a", "acknowledge", "Ack"),
        Binding("g", "focus_pane", "Go"),
        Binding("w", "wake", "Wake"),
        Binding("f", "next_fleet", "Fleet"),
        Binding("i", "show('inbox')", "Inbox"),
        Binding("t", "show('timeline')", "Timeline"),
        Binding("h", "show('held')", "Held"),
        Binding("r", "look", "Refresh", show=False),
        Binding("q,ctrl+c", "quit", "Quit"),
    ]

    def __init__(self, open_runtime: Callable[[], Runtime], fleet_id: int | None) -> None:
        """`open_runtime` is called in each thread that needs one."""
        super().__init__()
        self.theme = "ansi-dark"  # The terminal's own colours, of which sixteen are enough.
        self._open_runtime = open_runtime
        self._wanted = Wanted(fleet_id)
        self._snapshot: Snapshot | None = None
        self._fleets = FleetTabs(id="fleets")
        self._status = Static("", id="status")
        self._lists = TabbedContent(id="lists", initial="timeline")
        self._tables: dict[str, Table] = {name: DataTable(id=name, cursor_type="row") for name in COLUMNS}
        self._follower = Follower(
            open_runtime,
            self._wanted,
            lambda snapshot: self._tell(Taken(snapshot)),
            lambda error: self._tell(Failed(error)),
        )

    def compose(self) -> ComposeResult:
        yield self._fleets
        yield self._status
        yield self._tables["roster"]
        with self._lists:
            for pane in ("timeline", "inbox", "held"):
                with TabPane(pane.title(), id=pane):
                    yield self._tables[f"{pane}-table"]
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        for name, columns in COLUMNS.items():
            for column in columns:
                self._tables[name].add_column(column, key=column)
        self._tables["roster"].focus()
        self._follower.start()

    def on_unmount(self) -> None:
        self._follower.stop()

    # -- what comes in ---------------------------------------------------------------------------

    def _tell(self, message: Message) -> None:
        """From another thread."""
        if self._running:
            self.post_message(message)

    async def on_taken(self, event: Taken) -> None:
        if self._fleets.is_attached:  # Not on the way out.
            self._snapshot = event.snapshot
            await self._draw(event.snapshot)

    def on_failed(self, event: Failed) -> None:
        self.exit(event.error)

    def on_done(self, event: Done) -> None:
        self.notify(event.text, severity="information" if event.well else "error", markup=False, timeout=4)
        self._follower.want(self._wanted)

    # -- drawing ---------------------------------------------------------------------------------

    async def _draw(self, snapshot: Snapshot) -> None:
        await self._draw_fleets(snapshot)
        if snapshot.view is None:
            self._draw_nothing()
        else:
            self._draw_view(snapshot.view, snapshot)

    async def _draw_fleets(self, snapshot: Snapshot) -> None:
        tabs = self._fleets
        wanted = {o.fleet.fleet_id: Text(rows.tab_label(o)) for o in snapshot.fleets}
        shown = {str(tab.id): tab for tab in tabs.query(FleetTab)}
        for key in shown.keys() - {f"fleet-{fleet_id}" for fleet_id in wanted}:
            await tabs.remove_tab(key)
            del shown[key]
        first = next(iter(shown), None)
        for fleet_id, label in wanted.items():
            tab = shown.get(f"fleet-{fleet_id}")
            if tab is not None:
                tab.label = label
            else:  # Ids only grow, so whatever is new is newer.
                await tabs.add_tab(FleetTab(label, fleet_id), before=first)
        if snapshot.view is not None:
            chosen = self._wanted.fleet_id
            tabs.active = f"fleet-{chosen if chosen in wanted else snapshot.view.fleet.fleet_id}"

    def _draw_nothing(self) -> None:
        for table in self._tables.values():
            table.clear()
        hint = "No live fleet. 'cafleet fleet create' starts one; it appears here."
        self._status.update(Text(hint))

    def _draw_view(self, view: FleetView, snapshot: Snapshot) -> None:
        now = snapshot.at
        self._status.update(rows.status_line(view, now))
        self._fill("roster", rows.roster_rows(view), chosen=str(self._member_of(view)))
        self._fill("inbox-table", rows.inbox_rows(view, now))
        self._fill("timeline-table", rows.timeline_rows(view, now))
        self._fill("held-table", rows.held_rows(view))
        lists = self._lists
        whose = rows.name(view.names.get(view.member_id))
        lists.get_tab("inbox").label = Text(f"Inbox of {whose} ({view.unread})")
        lists.get_tab("held").label = Text(f"Held ({view.held})")

    def _fill(self, name: str, wanted: Sequence[Row], chosen: str | None = None) -> None:
        """Make a table show these rows; the cursor stays on the row that it is on."""
        table = self._tables[name]
        if chosen is None:
            chosen = self._chosen(name)
        keys = [row.key for row in wanted]
        if [key.value for key in table.rows] != keys:
            table.clear()
            for row in wanted:
                table.add_row(*row.cells, key=row.key)
        else:
            for row in wanted:
                if table.get_row(row.key) != list(row.cells):
                    for column, cell in zip(table.columns, row.cells, strict=True):
                        table.update_cell(row.key, column, cell, update_width=True)
        if chosen in keys and table.cursor_row != keys.index(chosen):
            table.move_cursor(row=keys.index(chosen), animate=False)

    def _chosen(self, name: str) -> str | None:
        """The key of the row under a table's cursor."""
        table = self._tables[name]
        if not 0 <= table.cursor_row < table.row_count:
            return None
        return table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value

    # -- what the person chooses -----------------------------------------------------------------

    def on_fleet_tab_chosen(self, event: FleetTab.Chosen) -> None:
        self._want(Wanted(event.fleet_id))

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        # Such an event may be old: where the cursor is now is what counts.
        chosen, view = self._chosen("roster"), self._view
        if event.data_table.id == "roster" and view is not None and chosen == event.row_key.value:
            member_id = int(chosen or 0)
            if member_id and member_id != self._member_of(view):
                self._want(Wanted(view.fleet.fleet_id, member_id))

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Enter, or a click on the row under the cursor."""
        view, key = self._view, event.row_key.value
        if view is None or key is None:
            return
        if event.data_table.id == "roster":
            self.action_show("inbox")
        elif event.data_table.id == "held-table":
            self._want(Wanted(view.fleet.fleet_id, int(key)))
        else:
            found = _find(view, int(key))
            if found is not None:
                self.push_screen(Reader(f"message {found.message_id}", rows.full_text(found, view.names)))

    @property
    def _view(self) -> FleetView | None:
        return None if self._snapshot is None else self._snapshot.view

    def _member_of(self, view: FleetView) -> int:
        """The chosen member, of whom `view` may not know yet that it is."""
        chosen = self._wanted.member_id
        known = any(entry.member.member_id == chosen for entry in view.roster)
        return chosen if chosen is not None and known else view.member_id

    def _want(self, wanted: Wanted, *, look: bool = False) -> None:
        self._wanted = wanted
        self._follower.want(wanted, look=look)

    # -- actions ---------------------------------------------------------------------------------

    def action_show(self, pane: str) -> None:
        self._lists.active = pane
        self._tables[f"{pane}-table"].focus()

    def action_look(self) -> None:
        self._want(self._wanted, look=True)

    def action_next_fleet(self) -> None:
        if self._snapshot is not None and self._view is not None:
            ids = [overview.fleet.fleet_id for overview in self._snapshot.fleets]
            shown = self._wanted.fleet_id
            now = shown if shown in ids else self._view.fleet.fleet_id
            self._want(Wanted(ids[(ids.index(now) + 1) % len(ids)]))

    def action_send(self) -> None:
        """As the Director, to the chosen member."""
        view = self._view
        if view is not None:
            member_id = self._member_of(view)
            who = rows.name(view.names.get(member_id))
            self._compose(f"To {who} ({member_id}), as the Director", view, member_id)

    def action_broadcast(self) -> None:
        view = self._view
        if view is not None:
            self._compose("To everybody in the fleet, as the Director", view, None)

    def _compose(self, title: str, view: FleetView, to_member_id: int | None) -> None:
        director = view.director_id
        if director is None:
            return

        def send(text: str | None) -> None:
            if text is not None:
                self._act(actions.send(director, to_member_id, text))

        self.push_screen(Composer(title), send)

    def action_acknowledge(self) -> None:
        """The message under the cursor of the inbox, which is shown first where it is not."""
        if self._lists.active != "inbox":
            self.action_show("inbox")
            return
        chosen = self._chosen("inbox-table")
        if chosen is not None:
            self._act(actions.acknowledge(int(chosen)))

    def action_focus_pane(self) -> None:
        view = self._view
        if view is not None:
            self._act(actions.focus(self._member_of(view)))

    def action_wake(self) -> None:
        view = self._view
        if view is not None:
            self._act(actions.wake(view.fleet.fleet_id))

    def _act(self, action: actions.Action) -> None:
        actions.run(action, self._open_runtime, lambda text, well: self._tell(Done(text, well)))


def _find(view: FleetView, message_id: int) -> StoredMessage | None:
    shown = [delivery for entry in view.timeline for delivery in entry.deliveries]
    return next((found for found in (*view.inbox, *shown) if found.message_id == message_id), None)


def show(open_runtime: Callable[[], Runtime], fleet_id: int | None) -> None:
    """Run the dashboard in this terminal until the person leaves.

    Raises:
        CafleetError: the database cannot be used any more.
    """
    error = Dashboard(open_runtime, fleet_id).run()
    if error is not None:
        raise error
