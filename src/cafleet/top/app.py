"""The dashboard itself: fleets, roster, inbox, timeline, what is held, and what one can do about it."""

import asyncio
import signal
from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.notifications import SeverityLevel
from textual.widgets import DataTable, Footer, Static, TabbedContent, TabPane

from cafleet.runtime import Runtime
from cafleet.top import actions, rows
from cafleet.top.dialogs import Composer, Reader
from cafleet.top.follow import Follower
from cafleet.top.job_control import can_be_resumed
from cafleet.top.listing import Listing
from cafleet.top.snapshot import FleetView, Snapshot, Wanted
from cafleet.top.styles import STYLES
from cafleet.top.tabs import FleetTab, FleetTabs, label_tab

BESIDE_NAME = 37
"""Cells of the row with the lists' titles beside the name in it."""
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""What ends the dashboard from outside: the terminal is given back as it was."""


class Taken(Message):
    """There is a new snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__()
        self.snapshot = snapshot


class Done(Message):
    """Something that the person asked for has ended."""

    def __init__(self, text: str, well: bool, again: Callable[[str], None] | None) -> None:
        """`again`: asks the person again, with the reason why it failed."""
        super().__init__()
        self.text, self.well, self.again = text, well, again


class Failed(Message):
    """The database cannot be followed any more."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class Dashboard(App[BaseException | None]):
    """Runs until the person leaves, or until an error or a signal ends it: then that is its result."""

    TITLE = "cafleet top"
    CSS = STYLES
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "send", "Send"),
        Binding("b", "broadcast", "All"),
        Binding("a", "acknowledge", "Ack"),
        Binding("g", "focus_pane", "Go"),
        Binding("w", "wake", "Wake"),
        Binding("q,ctrl+c", "quit", "Quit"),  # Here it is seen in the narrowest pane, too.
        Binding("f", "next_fleet", "Fleet"),
        Binding("i", "show('inbox')", "Inbox"),
        Binding("t", "show('timeline')", "Timeline"),
        Binding("h", "show('held')", "Held"),
        Binding("r", "look", "Refresh", show=False),
        Binding("ctrl+z", "suspend", "Suspend", show=False),
    ]

    def __init__(self, open_runtime: Callable[[], Runtime], fleet_id: int | None) -> None:
        """`open_runtime` is called in each thread that needs one."""
        # The terminal's own colours, of which sixteen are enough. Said at once, or else `NO_COLOR` makes
        # all of them black.
        super().__init__(ansi_color=True)
        self.theme = "ansi-dark"
        self._open_runtime = open_runtime
        self._wanted = Wanted(fleet_id)
        self._marked: str | None = None
        """The row of the roster on which the last drawing left the cursor."""
        self._snapshot: Snapshot | None = None
        self._fleets = FleetTabs(id="fleets")
        self._status = Static("", id="status")
        self._lists = TabbedContent(id="lists", initial="timeline")
        self._tables = {
            "roster": Listing(rows.ROSTER, id="roster", marks=True),
            "timeline-table": Listing(rows.TIMELINE, id="timeline-table", follows=True),
            "inbox-table": Listing(rows.INBOX, id="inbox-table"),
            "held-table": Listing(rows.HELD, id="held-table"),
        }
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
        self._tables["roster"].focus()
        self._follower.start()
        self.app_resume_signal.subscribe(self, lambda _: self.refresh(layout=True))  # The shell wrote on it.
        if not self.is_headless:
            loop = asyncio.get_running_loop()
            for number in STOPS:
                loop.add_signal_handler(number, self._interrupt)

    def on_resize(self) -> None:
        self._follower.want(self._wanted)

    def on_unmount(self) -> None:
        self._follower.stop()

    def _interrupt(self) -> None:
        self.exit(KeyboardInterrupt())

    def _handle_exception(self, error: Exception) -> None:
        """Instead of Textual's page with the values of all variables: an error like any other command's."""
        if self.is_headless:  # A test is to see it.
            super()._handle_exception(error)
        else:
            self.exit(error)
            self._close_messages_no_wait()

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
        self._want(self._wanted, look=True)
        if event.again is not None and not event.well and len(self.screen_stack) == 1:
            event.again(event.text)
        else:
            severity: SeverityLevel = "information" if event.well else "error"
            self.notify(event.text, severity=severity, markup=False, timeout=4)

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
                label_tab(tab, label.plain)
            else:  # Ids only grow, so whatever is new is newer.
                await tabs.add_tab(FleetTab(label, fleet_id), before=first)
        if snapshot.view is not None:
            chosen = self._wanted.fleet_id
            tabs.active = f"fleet-{chosen if chosen in wanted else snapshot.view.fleet.fleet_id}"

    def _draw_nothing(self) -> None:
        for table in self._tables.values():
            table.show_rows(())
        self._label_lists("Inbox", "Held")
        hint = "No live fleet. 'cafleet fleet create' starts one; it appears here."
        self._status.update(Text(hint), layout=False)

    def _draw_view(self, view: FleetView, snapshot: Snapshot) -> None:
        now = snapshot.at
        self._status.update(rows.status_line(view, now), layout=False)
        self._heed_cursor(view)
        roster = self._tables["roster"]
        roster.show_rows(rows.roster_rows(view), chosen=str(self._member_of(view)))
        self._marked = roster.chosen
        self._tables["inbox-table"].show_rows(rows.inbox_rows(view, now))
        self._tables["timeline-table"].show_rows(rows.timeline_rows(view, now))
        self._tables["held-table"].show_rows(rows.held_rows(view))
        whose = rows.title(view.names.get(view.member_id), self.size.width - BESIDE_NAME)
        self._label_lists(f"Inbox of {whose} ({view.unread})", f"Held ({view.held})")

    def _heed_cursor(self, view: FleetView) -> None:
        """Want the member to whom the cursor was moved since the last drawing: the event that tells of it
        may still be under way, and drawing would undo the move."""
        chosen, here = self._tables["roster"].chosen, view.fleet.fleet_id
        if chosen is None or chosen == self._marked or self._wanted.fleet_id not in (None, here):
            return
        member_id = int(chosen)
        if member_id != self._member_of(view) and any(e.member.member_id == member_id for e in view.roster):
            self._want(Wanted(here, member_id))

    def _label_lists(self, inbox: str, held: str) -> None:
        label_tab(self._lists.get_tab("inbox"), inbox)
        label_tab(self._lists.get_tab("held"), held)

    # -- what the person chooses -----------------------------------------------------------------

    def on_fleet_tab_chosen(self, event: FleetTab.Chosen) -> None:
        self._want(Wanted(event.fleet_id))

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        # Such an event may be old: where the cursor is now is what counts.
        chosen, view = self._tables["roster"].chosen, self._view
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
            found = view.message(int(key))
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

    def action_suspend(self) -> None:
        if can_be_resumed():
            self.action_suspend_process()
        else:
            self.notify("no shell to come back from", severity="error", timeout=4)

    def action_next_fleet(self) -> None:
        if self._snapshot is not None and self._view is not None:
            ids = [overview.fleet.fleet_id for overview in self._snapshot.fleets]
            shown = self._wanted.fleet_id
            now = shown if shown in ids else self._view.fleet.fleet_id
            if len(ids) == 1:
                self.notify("this is the only live fleet", timeout=2)
                return
            self._want(Wanted(ids[(ids.index(now) + 1) % len(ids)]))

    def action_send(self) -> None:
        """As the Director, to the chosen member."""
        view = self._view
        if view is not None:
            member_id = self._member_of(view)
            who = rows.title(view.names.get(member_id))
            self._compose(f"To {who} ({member_id}), as the Director", view, member_id)

    def action_broadcast(self) -> None:
        view = self._view
        if view is not None:
            self._compose("To everybody in the fleet, as the Director", view, None)

    def _compose(self, title: str, view: FleetView, to_member_id: int | None) -> None:
        director = view.director_id
        if director is None:
            return

        def ask(draft: str = "", error: str = "") -> None:
            self.push_screen(Composer(title, draft, error), send)

        def send(text: str | None) -> None:
            if text is not None:
                self._act(actions.send(director, to_member_id, text), lambda error: ask(text, error))

        ask()

    def action_acknowledge(self) -> None:
        """The message under the cursor of the inbox, which is shown first where it is not."""
        if self._lists.active != "inbox":
            self.action_show("inbox")
            return
        chosen = self._tables["inbox-table"].chosen
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

    def _act(self, action: actions.Action, again: Callable[[str], None] | None = None) -> None:
        actions.run(action, self._open_runtime, lambda text, well: self._tell(Done(text, well, again)))


def show(open_runtime: Callable[[], Runtime], fleet_id: int | None) -> None:
    """Run the dashboard in this terminal until the person leaves.

    Raises:
        CafleetError: the database cannot be used any more.
        KeyboardInterrupt: a signal has ended it.
    """
    error = Dashboard(open_runtime, fleet_id).run()
    if error is not None:
        raise error
