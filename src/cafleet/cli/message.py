"""`message send` and `message broadcast`."""

from collections.abc import Callable

from cafleet.broker import caller, messages
from cafleet.broker.messages import SendResult, Sent
from cafleet.cli.arguments import Command, Values, integer, option
from cafleet.cli.bodies import body, body_arguments
from cafleet.cli.envelope import envelope, message_record, notification_record
from cafleet.cli.output import Output, OutputFailed
from cafleet.models import Notification
from cafleet.runtime import Runtime


def send(runtime: Runtime, values: Values, out: Output) -> int:
    """`message send`: a stored message is no error, told or not (SPEC 4.4)."""
    from_id, to_ids = values.integer("from"), values.integers("to")
    text, key = body(values, "TEXT"), values.optional_text("key")
    _warn_of_another_identity(runtime, from_id, out)
    if len(to_ids) > 1:
        return _show_each(messages.send_each(runtime, from_id, to_ids, text, key), out)
    sent = messages.send(runtime, from_id, to_ids[0], text, key)

    def reply() -> None:
        _show_sent(sent, out)
        if out.as_json:
            out.json(_sent_record(sent))

    _reply(reply, [sent.message.message_id], out)
    return 0


def _show_each(results: list[SendResult], out: Output) -> int:
    """Several sends, each stored on its own: one that failed is reported and the others stand."""

    def reply() -> None:
        records: list[dict[str, object]] = []
        for result in results:
            if result.sent is not None:
                _show_sent(result.sent, out)
                records.append(_sent_record(result.sent))
            else:
                out.error(str(result.error))
                records.append({"message": None, "notification": None, "error": str(result.error)})
        if out.as_json:
            out.json(records)

    _reply(reply, [result.sent.message.message_id for result in results if result.sent], out)
    return 1 if any(result.error for result in results) else 0


def _reply(reply: Callable[[], None], stored: list[int], out: Output) -> None:
    """Say what was done. A reply that cannot be written makes no error of what is stored (SPEC 4.4)."""
    try:
        reply()
        out.flush()
    except OutputFailed as error:
        if not stored:
            raise
        out.give_up()
        ids = ", ".join(map(str, stored))
        out.warn(f"{error}. Stored all the same: {ids}; do not send again.")


def _show_sent(sent: Sent, out: Output) -> None:
    if not out.as_json:
        earlier = " (An earlier send with this key had stored it.)" if sent.repeated else ""
        out.write(f"Message sent.{earlier}\n{envelope(sent.message, out)}")
    _warn_unless_told(sent.message.message_id, sent.notification, out)


def _warn_unless_told(message_id: int, notification: Notification, out: Output) -> None:
    warning = messages.untold(message_id, notification)
    if warning is not None:
        out.warn(warning)


def _sent_record(sent: Sent) -> dict[str, object]:
    record: dict[str, object] = {
        "message": message_record(sent.message),
        "notification": notification_record(sent.notification),
    }
    if sent.repeated:
        record["repeated"] = True
    return record


def broadcast(runtime: Runtime, values: Values, out: Output) -> int:
    """`message broadcast`: one summary, and a warning for each recipient that was not told."""
    from_id, text = values.integer("from"), body(values, "TEXT")
    _warn_of_another_identity(runtime, from_id, out)
    result = messages.broadcast(runtime, from_id, text, values.optional_text("key"))
    summary = result.summary.message_id

    def reply() -> None:
        if out.as_json:
            record: dict[str, object] = {
                "message": message_record(result.summary),
                "recipients": result.recipients,
                "notified": result.notified,
            }
            out.json({**record, "repeated": True} if result.repeated else record)
        else:
            out.write(f"broadcast id={summary} recipients={result.recipients} notified={result.notified}")
        for told in result.results:
            _warn_unless_told(told.message_id, told.notification, out)

    _reply(reply, [summary], out)
    return 0


def _warn_of_another_identity(runtime: Runtime, from_id: int, out: Output) -> None:
    warning = caller.other_identity(runtime, from_id)
    if warning is not None:
        out.warn(warning)


_FROM = option("--from --from-member-id", "MEMBER_ID", "the sender", integer, required=True)
_KEY = option(
    "--key", "K", "the sender's own name for this message: repeating the command stores it only once"
)

COMMANDS = {
    "message send": Command(
        send,
        *body_arguments("TEXT", "the message"),
        _FROM,
        option("--to --to-member-id", "MEMBER_ID", "a recipient", integer, required=True, many=True),
        _KEY,
        description="The message is stored first, exactly as given; then one line that names it is typed "
        "into the recipient's pane, unless that would disturb somebody. A warning says when that was so: "
        "the message is stored all the same and must not be sent again.",
        examples=(
            "cafleet message send --from 1 --to 2 'please review the parser'",
            "cafleet message send --from 1 --to 2 --to 3 --file notes.md",
            "cafleet message send --from 1 --to 2 --key build-41 -- '- a text that starts with a dash'",
        ),
    ),
    "message broadcast": Command(
        broadcast,
        *body_arguments("TEXT", "the message"),
        _FROM,
        _KEY,
        examples=(
            "cafleet message broadcast --from 1 'stop: main is broken'",
            "cafleet message broadcast --from 1 --file plan.md --json",
        ),
    ),
}
