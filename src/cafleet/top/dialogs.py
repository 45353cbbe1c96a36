"""Windows above the dashboard: write a message, read one."""

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Label, Static, TextArea


class Composer(ModalScreen[str | None]):
    """Asks for a text. Its result is the text, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "send", "Send", priority=True),
        Binding("escape", "leave", "Cancel", priority=True),
    ]

    def __init__(self, title: str, draft: str = "", error: str = "") -> None:
        """`draft`: to begin with. `error`: why it was not sent before."""
        super().__init__()
        self._title, self._draft, self._error = title, draft, error

    def compose(self) -> ComposeResult:
        with Vertical(id="composer", classes="window"):
            yield Label(Text(self._title, "bold"))
            if self._error:
                yield Label(Text(f"Not sent: {self._error}"), classes="error")
            yield TextArea(self._draft, id="text", show_line_numbers=False)
            yield Label("[@click=screen.send]^s send[/]   [@click=screen.leave]esc cancel[/]")

    def on_mount(self) -> None:
        area = self.query_one(TextArea)
        area.focus()
        area.move_cursor(area.document.end)

    def action_send(self) -> None:
        text = self.query_one(TextArea).text
        self.dismiss(text if text.strip() else None)

    def action_leave(self) -> None:
        self.dismiss(None)


class Reader(ModalScreen[None]):
    """Shows one text in full."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,enter,q,space", "leave", "Close")]

    def __init__(self, title: str, text: Text) -> None:
        super().__init__()
        self._title, self._text = title, text

    def compose(self) -> ComposeResult:
        with Vertical(id="reader", classes="window"):
            yield Label(Text(self._title, "bold"))
            with VerticalScroll():
                yield Static(self._text)
            yield Label("[@click=screen.leave]esc close[/]")

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()

    def action_leave(self) -> None:
        self.dismiss(None)
