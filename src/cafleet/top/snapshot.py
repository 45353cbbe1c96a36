"""Everything that the dashboard shows at one moment, read with the broker's own calls."""

from datetime import datetime
from typing import NamedTuple

from cafleet.broker import fleets, inbox, members, monitors
from cafleet.broker.fleets import FleetOverview
from cafleet.broker.members import RosterEntry
from cafleet.broker.monitors import MonitorOverview
from cafleet.broker.survey import PaneReport, survey
from cafleet.broker.timeline import TimelineEntry, group, timeline
from cafleet.errors import FleetDeleted, FleetNotFound, FleetNotLive
from cafleet.models import Fleet, MemberKind, Message
from cafleet.runtime import Runtime

INBOX_LIMIT = 200


class Wanted(NamedTuple):
    """What the person looks at."""

    fleet_id: int | None = None
    """None: the newest fleet."""
    member_id: int | None = None
    """Whose inbox; None: the Director's."""


class FleetView(NamedTuple):
    """One fleet, as far as it is shown."""

    fleet: Fleet
    roster: tuple[RosterEntry, ...]
    monitor: MonitorOverview
    panes: dict[int, PaneReport]
    """By member; members without a placement have none."""
    timeline: tuple[TimelineEntry, ...]
    member_id: int
    """Whose inbox it is."""
    inbox: tuple[Message, ...]
    """Newest first, at most `INBOX_LIMIT`."""
    unread: int
    """Of that member, all of them."""
    names: dict[int, str]

    @property
    def director_id(self) -> int | None:
        return self.fleet.director_member_id

    @property
    def monitor_member_id(self) -> int | None:
        """The active monitor."""
        found = (entry.member for entry in self.roster if entry.member.kind is MemberKind.MONITOR)
        return next((member.member_id for member in found), None)

    @property
    def held(self) -> int:
        """Notifications that could not be typed so far."""
        return sum(report.held for report in self.panes.values())

    def message(self, message_id: int) -> Message | None:
        """One that is shown."""
        shown = (delivery for entry in self.timeline for delivery in entry.deliveries)
        return next((found for found in (*self.inbox, *shown) if found.message_id == message_id), None)


class Snapshot(NamedTuple):
    """The dashboard's state."""

    at: datetime
    fleets: tuple[FleetOverview, ...]
    """Live ones, newest first."""
    view: FleetView | None
    """None: there is no live fleet."""


def take(runtime: Runtime, wanted: Wanted, surveyed: dict[int, PaneReport] | None) -> Snapshot:
    """What there is now. `surveyed`: the panes as they were a moment ago; None: look at them.

    A fleet or a member that has ended meanwhile gives way to the first one that lives.

    Raises:
        DatabaseError.
    """
    found = tuple(fleets.list_fleets(runtime))
    ids = [overview.fleet.fleet_id for overview in found]
    ids.sort(key=lambda fleet_id: fleet_id != wanted.fleet_id)
    for fleet_id in ids:
        try:
            return Snapshot(runtime.now(), found, _view(runtime, fleet_id, wanted.member_id, surveyed))
        except (FleetDeleted, FleetNotFound, FleetNotLive):
            continue  # It has ended since it was listed.
    return Snapshot(runtime.now(), found, None)


def _view(
    runtime: Runtime, fleet_id: int, member_id: int | None, surveyed: dict[int, PaneReport] | None
) -> FleetView:
    monitor = monitors.monitor_overview(runtime, fleet_id)
    fleet = fleets.get_fleet(runtime, fleet_id)
    roster = tuple(members.list_members(runtime, fleet_id))
    known = [entry.member.member_id for entry in roster]
    if member_id not in known:
        member_id = fleet.director_member_id if fleet.director_member_id in known else known[0]
    assert member_id is not None  # a live fleet has a Director
    if surveyed is None:
        surveyed = survey(runtime, fleet_id, [entry.member for entry in roster])
    deliveries = timeline(runtime, fleet_id)
    mail = tuple(inbox.poll(runtime, member_id, INBOX_LIMIT))
    people = {message.from_member_id for message in (*deliveries, *mail)}
    people |= {message.owner_member_id for message in deliveries}
    return FleetView(
        fleet=fleet,
        roster=roster,
        monitor=monitor,
        panes=surveyed,
        timeline=tuple(group(deliveries)),
        member_id=member_id,
        inbox=mail,
        unread=inbox.count_unread(runtime, member_id),
        names=members.names_of(runtime, {*people, *known}),
    )
