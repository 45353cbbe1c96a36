"""The rows of titles: the fleets, and the lists of one."""

from rich.text import Text
from textual.message import Message
from textual.widgets import Tab, Tabs


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


def label_tab(tab: Tab, text: str) -> None:
    """Name a tab anew; the same name again would lay out the whole screen again."""
    if tab.label_text != text:
        tab.label = Text(text)
