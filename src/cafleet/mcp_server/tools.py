"""The tools: each one broker call, as the command line makes it, and its answer (SPEC 11)."""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from cafleet.broker import caller, fleets, inbox, members, messages
from cafleet.delivery.inbox import wait
from cafleet.errors import CafleetError
from cafleet.mcp_server import answers
from cafleet.mcp_server.answers import Answer
from cafleet.mcp_server.arguments import (
    MAX_WAIT_SECONDS,
    AckMessage,
    Arguments,
    Broadcast,
    BroadcastFrom,
    FleetStatus,
    ListMembers,
    ListOwnMembers,
    OwnFleet,
    PollInbox,
    PollInboxOf,
    SendMessage,
    SendMessageFrom,
    ShowMessage,
    WaitForMessage,
    WaitForMessageTo,
)
from cafleet.mcp_server.fleet_state import fleet_states
from cafleet.mcp_server.mailbox import read_inbox
from cafleet.models import Member, Message
from cafleet.runtime import Runtime

MAX_WARNINGS = 20


class Call(NamedTuple):
    """What a tool's function works with."""

    runtime: Runtime
    member_id: int | None
    """Whom the server speaks for; None: whoever the arguments name."""
    stopped: Callable[[], bool]
    """Nobody waits for the answer any more."""


class Tool(NamedTuple):
    """One tool. Its two shapes have the same function."""

    name: str
    title: str
    description: str
    fixed: type[Arguments]
    """What it takes where the server speaks for one member."""
    open: type[Arguments]
    """What it takes otherwise."""
    answer: type[Answer]
    run: Callable[[Call, Any], Answer]
    reads_only: bool = False
    repeatable: bool = False
    """Repeating a call changes nothing more."""
    waits: bool = False


class NothingDone(CafleetError):
    """A call for several, of which each one failed."""


# -- writing -----------------------------------------------------------------------------------


def send_message(call: Call, arguments: SendMessage) -> answers.SendAnswer:
    sender = _member(call, arguments, "from_member_id")
    # Before anything is stored: a look that failed afterwards would make it look unstored.
    warning = caller.other_identity(call.runtime, sender)
    results = messages.send_each(call.runtime, sender, arguments.to_member_ids, arguments.text, arguments.key)
    outcomes = [_outcome(result) for result in results]
    _require_one([outcome.error for outcome in outcomes])
    return answers.SendAnswer(results=outcomes, warning=warning)


def _outcome(result: messages.SendResult) -> answers.SendOutcome:
    if result.sent is None:
        return answers.SendOutcome(to_member_id=result.to_member_id, error=str(result.error))
    sent = result.sent
    return answers.SendOutcome(
        to_member_id=result.to_member_id,
        message_id=sent.message.message_id,
        notification=answers.told(sent.notification),
        repeated=sent.repeated,
        warning=messages.untold(sent.message.message_id, sent.notification),
    )


def broadcast(call: Call, arguments: Broadcast) -> answers.BroadcastAnswer:
    sender = _member(call, arguments, "from_member_id")
    warnings = [caller.other_identity(call.runtime, sender)]
    result = messages.broadcast(call.runtime, sender, arguments.text, arguments.key)
    warnings += [messages.untold(told.message_id, told.notification) for told in result.results]
    found = [warning for warning in warnings if warning is not None]
    if len(found) > MAX_WARNINGS:
        found[MAX_WARNINGS:] = [f"{len(found) - MAX_WARNINGS} more"]
    return answers.BroadcastAnswer(
        message_id=result.summary.message_id,
        recipients=result.recipients,
        notified=result.notified,
        repeated=result.repeated,
        warnings=found,
    )


def ack_message(call: Call, arguments: AckMessage) -> answers.AckAnswer:
    done: list[int] = []
    failed: list[answers.AckFailure] = []
    for message_id in dict.fromkeys(arguments.message_ids):
        try:
            inbox.ack(call.runtime, message_id)
            done.append(message_id)
        except CafleetError as error:  # One that fails is its own; the others stand.
            failed.append(answers.AckFailure(message_id=message_id, error=str(error)))
    if not done:
        _require_one([failure.error for failure in failed])
    return answers.AckAnswer(acknowledged=done, failed=failed)


def _require_one(errors: Sequence[str | None]) -> None:
    """Raises NothingDone: there is an error for every part of the call."""
    if errors and all(errors):
        raise NothingDone("\n".join(dict.fromkeys(str(error) for error in errors)))


# -- reading -----------------------------------------------------------------------------------


def poll_inbox(call: Call, arguments: PollInbox) -> answers.Inbox:
    return read_inbox(call.runtime, _member(call, arguments, "member_id"), arguments.limit)


def wait_for_message(call: Call, arguments: WaitForMessage) -> answers.Inbox:
    member_id = _member(call, arguments, "member_id")
    started = time.monotonic()
    wait(call.runtime, member_id, arguments.capped_seconds, limit=1, stopped=call.stopped)
    answer = read_inbox(call.runtime, member_id, arguments.limit)
    if not answer.messages:
        answer.hint = (
            f"nothing within {time.monotonic() - started:.0f} s; wait again, or go on with other work"
        )
    return answer


def show_message(call: Call, arguments: ShowMessage) -> answers.StoredMessage:
    message = inbox.show(call.runtime, arguments.message_id)
    return answers.stored_message(message, _names(call.runtime, [message]), offset=arguments.offset)


def list_members(call: Call, arguments: ListOwnMembers) -> answers.Members:
    fleet_id = arguments.fleet_id if isinstance(arguments, ListMembers) else _own(call).fleet_id
    roster = members.list_members(call.runtime, fleet_id)
    return answers.members_answer(
        fleet_id, [entry for entry in roster if entry.member.member_id > arguments.after_member_id]
    )


def fleet_status(call: Call, arguments: Arguments) -> answers.FleetStates:
    if not isinstance(arguments, FleetStatus):
        wanted = [_own(call).fleet_id]
    elif arguments.fleet_id is not None:
        wanted = [arguments.fleet_id]
    else:
        wanted = [overview.fleet.fleet_id for overview in fleets.list_fleets(call.runtime)]
    return fleet_states(call.runtime, wanted)


# -- who and whose -----------------------------------------------------------------------------


def _member(call: Call, arguments: Arguments, field: str) -> int:
    if call.member_id is not None:
        return call.member_id
    named = getattr(arguments, field)
    assert isinstance(named, int)  # the open shape of the tool has this field
    return named


def _own(call: Call) -> Member:
    assert call.member_id is not None  # only the fixed shape of a tool comes here
    return members.get_member(call.runtime, call.member_id)


def _names(runtime: Runtime, found: Sequence[Message]) -> dict[int, str]:
    return members.names_of(runtime, answers.senders(found)) if found else {}


TOOLS = (
    Tool(
        "send_message",
        "Send a message",
        "Send a message to one or more members of your fleet. It is stored first, then its recipient is "
        "notified; a warning about the notification is no reason to send again.",
        SendMessage,
        SendMessageFrom,
        answers.SendAnswer,
        send_message,
    ),
    Tool(
        "broadcast",
        "Broadcast",
        "Send a message to every other active member of your fleet.",
        Broadcast,
        BroadcastFrom,
        answers.BroadcastAnswer,
        broadcast,
    ),
    Tool(
        "poll_inbox",
        "Poll the inbox",
        "Unacknowledged messages, newest first. Changes nothing: acknowledge what you have dealt with. "
        "Texts come from other members, not from your user.",
        PollInbox,
        PollInboxOf,
        answers.Inbox,
        poll_inbox,
        reads_only=True,
        repeatable=True,
    ),
    Tool(
        "wait_for_message",
        "Wait for a message",
        "The inbox as soon as there is a message in it, at once if there already is; empty after the timeout "
        f"({MAX_WAIT_SECONDS:g} s at most).",
        WaitForMessage,
        WaitForMessageTo,
        answers.Inbox,
        wait_for_message,
        reads_only=True,
        repeatable=True,
        waits=True,
    ),
    Tool(
        "ack_message",
        "Acknowledge messages",
        "Mark messages as dealt with; they leave the inbox.",
        AckMessage,
        AckMessage,
        answers.AckAnswer,
        ack_message,
    ),
    Tool(
        "show_message",
        "Show a message",
        "Any message by id; with an offset, more of a long text.",
        ShowMessage,
        ShowMessage,
        answers.StoredMessage,
        show_message,
        reads_only=True,
        repeatable=True,
    ),
    Tool(
        "list_members",
        "List members",
        "The fleet's active members: ids, names, what they do, unread messages, idle time.",
        ListOwnMembers,
        ListMembers,
        answers.Members,
        list_members,
        reads_only=True,
        repeatable=True,
    ),
    Tool(
        "fleet_status",
        "Fleet status",
        "How the fleet is: members, unread messages, its monitor, panes that are gone, notifications that "
        "could not be typed and why.",
        OwnFleet,
        FleetStatus,
        answers.FleetStates,
        fleet_status,
        reads_only=True,
        repeatable=True,
    ),
)
