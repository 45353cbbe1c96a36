"""`message poll`, `message ack`, `message show`: the reader's side, which types into no pane."""

from cafleet.broker import inbox
from cafleet.cli.arguments import Command, Values, count, integer, option, positional
from cafleet.cli.envelope import TEXT_LIMIT, envelope, message_record, show_inbox
from cafleet.cli.output import Output
from cafleet.errors import CafleetError
from cafleet.models import Message
from cafleet.runtime import Runtime


def poll(runtime: Runtime, values: Values, out: Output) -> int:
    """`message poll`: as text the newest only, with how many more there are; changes nothing."""
    member_id, limit = values.integer("member_id"), values.optional_integer("limit")
    if out.as_json or limit is not None:
        show_inbox(inbox.poll(runtime, member_id, limit), out)
        return 0
    messages = inbox.poll(runtime, member_id, TEXT_LIMIT + 1)
    more = inbox.count_unread(runtime, member_id) - TEXT_LIMIT if len(messages) > TEXT_LIMIT else 0
    show_inbox(messages[:TEXT_LIMIT], out, more)
    return 0


def ack(runtime: Runtime, values: Values, out: Output) -> int:
    """`message ack`: one raises where it is refused; of several each is reported (exit 1 if any was)."""
    message_ids = values.integers("message_ids")
    if len(message_ids) == 1:
        message = inbox.ack(runtime, message_ids[0])
        if out.as_json:
            out.json({"message": message_record(message)})
        else:
            out.write(f"Message acknowledged.\n{envelope(message, out)}")
        return 0
    return _ack_several(runtime, message_ids, out)


def _ack_several(runtime: Runtime, message_ids: list[int], out: Output) -> int:
    """Each on its own: one that fails is reported and the others stand. All before anything is said: a
    reader that goes after the first must not keep the last from its ACK."""
    results: list[Message | CafleetError] = []
    for message_id in message_ids:
        try:
            results.append(inbox.ack(runtime, message_id))
        except CafleetError as error:
            results.append(error)
    for result in results:
        if isinstance(result, CafleetError):
            out.error(str(result))
        elif not out.as_json:
            out.write(f"Message acknowledged.\n{envelope(result, out)}")
    if out.as_json:
        out.json([_acked_record(result) for result in results])
    return 1 if any(isinstance(result, CafleetError) for result in results) else 0


def _acked_record(result: Message | CafleetError) -> dict[str, object]:
    if isinstance(result, CafleetError):
        return {"message": None, "error": str(result)}
    return {"message": message_record(result)}


def show(runtime: Runtime, values: Values, out: Output) -> int:
    """`message show`: one message, whosever it is."""
    message = inbox.show(runtime, values.integer("message_id"))
    if out.as_json:
        out.json({"message": message_record(message)})
    else:
        out.write(envelope(message, out))
    return 0


COMMANDS = {
    "message poll": Command(
        poll,
        positional("member_id", "MEMBER_ID", "whose inbox", integer),
        option("--limit", "N", "show at most the newest N", count),
        description="Changes nothing: a message stays in the inbox until it is acknowledged. Text shows 50 "
        "messages at most unless --limit says otherwise; --json gives all of them.",
        examples=("cafleet message poll 3", "cafleet message poll 3 --limit 5 --json"),
    ),
    "message ack": Command(
        ack,
        positional("message_ids", "MESSAGE_ID", "a message that has been dealt with", integer, many=True),
        description="Takes each message out of its recipient's inbox, once.",
        examples=("cafleet message ack 17", "cafleet message ack 17 18 19"),
    ),
    "message show": Command(
        show,
        positional("message_id", "MESSAGE_ID", "the message", integer),
        description="Shows any message, acknowledged or not, and the summary of a broadcast.",
        examples=("cafleet message show 17", "cafleet message show 17 --json"),
    ),
}
