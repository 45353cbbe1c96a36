"""What the tools take, strictly typed: nothing is coerced, nothing unknown is passed over.

Each tool exists in two shapes: for a server that speaks for one member, and, with one field more, for
one that speaks for whoever its client says.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

MAX_ID = 2**63 - 1
MAX_IDS = 100
"""Recipients or messages of one call."""
MAX_WAIT_SECONDS = 50.0
"""Clients give up a call after 60 s, unless they are told otherwise."""
DEFAULT_MESSAGES = 20
MAX_MESSAGES = 200

Id = Annotated[int, Field(ge=1, le=MAX_ID)]
MemberId = Annotated[int, Field(ge=1, le=MAX_ID, description="whose inbox")]
SenderId = Annotated[int, Field(ge=1, le=MAX_ID, description="the sending member")]
FleetId = Annotated[int, Field(ge=1, le=MAX_ID, description="the fleet")]
Text = Annotated[str, Field(description="stored exactly as given; at most 1 MiB")]
Key = Annotated[
    str | None,
    Field(description="your own name for this message: repeating the call with it stores it only once"),
]
Limit = Annotated[int, Field(ge=1, le=MAX_MESSAGES, description="messages at most")]


class Arguments(BaseModel):
    """The arguments of a tool."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class SendMessage(Arguments):
    to_member_ids: Annotated[
        list[Id], Field(min_length=1, max_length=MAX_IDS, description="one or more recipients")
    ]
    text: Text
    key: Key = None


class SendMessageFrom(SendMessage):
    from_member_id: SenderId


class Broadcast(Arguments):
    text: Text
    key: Key = None


class BroadcastFrom(Broadcast):
    from_member_id: SenderId


class PollInbox(Arguments):
    limit: Limit = DEFAULT_MESSAGES


class PollInboxOf(PollInbox):
    member_id: MemberId


class WaitForMessage(Arguments):
    timeout_seconds: Annotated[
        float,
        Field(ge=0, description=f"how long to wait; more than {MAX_WAIT_SECONDS:g} counts as that"),
    ] = MAX_WAIT_SECONDS
    limit: Limit = DEFAULT_MESSAGES

    @property
    def capped_seconds(self) -> float:
        """How long is waited at most."""
        return min(self.timeout_seconds, MAX_WAIT_SECONDS)


class WaitForMessageTo(WaitForMessage):
    member_id: MemberId


class AckMessage(Arguments):
    message_ids: Annotated[list[Id], Field(min_length=1, max_length=MAX_IDS)]


class ShowMessage(Arguments):
    message_id: Id
    offset: Annotated[
        int,
        Field(ge=0, le=MAX_ID, description="where in the text to begin, in characters"),
    ] = 0


class OwnFleet(Arguments):
    """Nothing: the fleet is that of the server's member."""


class ListOwnMembers(Arguments):
    after_member_id: Annotated[
        int, Field(ge=0, le=MAX_ID, description="only members with a higher id: more of a long list")
    ] = 0


class ListMembers(ListOwnMembers):
    fleet_id: FleetId


class FleetStatus(Arguments):
    fleet_id: Annotated[
        int | None, Field(ge=1, le=MAX_ID, description="one fleet; without it every live one")
    ] = None
