"""Whether a delivery's line is still to be typed, by what the database says (SPEC 4.1, 4.4)."""

from cafleet.db.notifications import Delivery
from cafleet.models import Notification, NotificationState

NOTIFIED = Notification(NotificationState.NOTIFIED, None)


def verdict(delivery: Delivery | None) -> Notification | None:
    """What a sender is told where nothing needs to be typed; None: the delivery is pending."""
    if delivery is None:
        return _skipped("not a delivery")
    if delivery.from_member_id == delivery.member_id:
        return _skipped("a message to oneself is not typed")
    if delivery.settled:
        return NOTIFIED
    if delivery.director:
        return _skipped("the Director reads by wait, listen or poll")
    if not delivery.active:
        return _skipped(f"member {delivery.member_id} is no longer active")
    if delivery.placement is None or delivery.placement.mux_pane_id is None:
        yet = " yet" if delivery.placement else ""
        return _skipped(f"member {delivery.member_id} has no pane{yet}")
    return None


def _skipped(reason: str) -> Notification:
    return Notification(NotificationState.SKIPPED, reason)
