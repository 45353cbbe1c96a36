"""The resources: inboxes and timelines, as JSON (SPEC 11)."""

import re
from typing import NamedTuple

from cafleet.broker import fleets, members
from cafleet.broker.timeline import group, previews
from cafleet.errors import NotFound
from cafleet.mcp_server import answers
from cafleet.mcp_server.answers import Answer
from cafleet.mcp_server.arguments import DEFAULT_MESSAGES, MAX_ID
from cafleet.mcp_server.mailbox import read_inbox
from cafleet.runtime import Runtime

INBOX = "cafleet://members/{member_id}/inbox"
TIMELINE = "cafleet://fleets/{fleet_id}/timeline"
MEDIA_TYPE = "application/json"

_ADDRESS = re.compile(r"cafleet://(members|fleets)/([1-9][0-9]{0,18})/(inbox|timeline)")
_KINDS = {("members", "inbox"), ("fleets", "timeline")}


class Resource(NamedTuple):
    """A resource that exists, or a template with a placeholder in its address."""

    uri: str
    name: str
    description: str


class UnknownResource(NotFound):
    def __init__(self, uri: str) -> None:
        self.uri = uri
        super().__init__(f"unknown resource {uri[:200]}")


TEMPLATES = (
    Resource(INBOX, "inbox", "a member's unacknowledged messages, newest first"),
    Resource(TIMELINE, "timeline", "what was sent in a fleet and what is acknowledged, newest first"),
)


def list_resources(runtime: Runtime, member_id: int | None) -> list[Resource]:
    """A member's own inbox and timeline; without a member the timelines of the live fleets."""
    if member_id is None:
        overviews = fleets.list_fleets(runtime)[: answers.MAX_ROWS]
        return [_timeline(o.fleet.fleet_id, o.fleet.name) for o in overviews]
    member = members.get_member(runtime, member_id)
    fleet = fleets.get_fleet(runtime, member.fleet_id)
    own = Resource(INBOX.format(member_id=member_id), "inbox", "your unacknowledged messages, newest first")
    return [own, _timeline(fleet.fleet_id, fleet.name)]


def _timeline(fleet_id: int, name: str | None) -> Resource:
    return Resource(TIMELINE.format(fleet_id=fleet_id), f"timeline of fleet {fleet_id}", f"fleet {name}")


def read(runtime: Runtime, uri: str) -> Answer:
    """The resource's content.

    Raises:
        UnknownResource: not an address of ours.
        MemberNotFound, FleetNotFound: an address of nothing.
    """
    match = _ADDRESS.fullmatch(uri)
    if match is None or (match[1], match[3]) not in _KINDS or int(match[2]) > MAX_ID:
        raise UnknownResource(uri)
    number = int(match[2])
    if match[3] == "inbox":
        return read_inbox(runtime, number, DEFAULT_MESSAGES)
    return _read_timeline(runtime, number)


def _read_timeline(runtime: Runtime, fleet_id: int) -> Answer:
    found = previews(runtime, fleet_id, answers.PREVIEW_CHARACTERS)
    names = members.names_of(runtime, answers.senders(found.deliveries)) if found.deliveries else {}
    return answers.timeline_answer(fleet_id, group(found.deliveries), names, found.lengths)
