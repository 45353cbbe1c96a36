"""What a person does in the dashboard: the same broker calls as everywhere, in threads of their own."""

import threading
from collections.abc import Callable

from cafleet.broker import inbox, messages, monitors, panes
from cafleet.errors import CafleetError
from cafleet.models import Notification
from cafleet.runtime import Runtime

Action = Callable[[Runtime], str]
"""Does something and says what it did."""


def send(from_member_id: int, to_member_id: int | None, text: str) -> Action:
    """To one member, or to everybody (None)."""

    def act(runtime: Runtime) -> str:
        if to_member_id is None:
            result = messages.broadcast(runtime, from_member_id, text)
            return f"broadcast to {result.recipients}, {result.notified} notified"
        sent = messages.send(runtime, from_member_id, to_member_id, text)
        return f"message {sent.message.message_id} stored, {_told(sent.notification)}"

    return act


def acknowledge(message_id: int) -> Action:
    def act(runtime: Runtime) -> str:
        inbox.ack(runtime, message_id)
        return f"message {message_id} acknowledged"

    return act


def focus(member_id: int) -> Action:
    def act(runtime: Runtime) -> str:
        return f"switched to the pane of {panes.focus_member(runtime, member_id).name}"

    return act


def wake(fleet_id: int) -> Action:
    def act(runtime: Runtime) -> str:
        monitors.request_wake(runtime, fleet_id)
        return "the monitor is woken with the next tick"

    return act


def run(
    action: Action,
    open_runtime: Callable[[], Runtime],
    on_end: Callable[[str, bool], None],
) -> None:
    """Start it. `on_end` is called in its thread, with what to say and whether it went well."""

    def work() -> None:
        runtime = open_runtime()
        try:
            on_end(action(runtime), True)
        except CafleetError as error:
            on_end(str(error), False)
        except Exception as error:  # Else a traceback would be written across the screen.
            on_end(f"internal error: {type(error).__name__}: {error}", False)
        finally:
            runtime.database.close()

    threading.Thread(target=work, name="cafleet-top-action", daemon=True).start()


def _told(notification: Notification) -> str:
    reason = f" ({notification.reason})" if notification.reason else ""
    return f"{notification.state}{reason}"
