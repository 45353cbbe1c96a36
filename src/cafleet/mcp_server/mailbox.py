"""An inbox as tools and resources show it, and no more of it read than is shown."""

from cafleet.broker import inbox, members
from cafleet.mcp_server import answers
from cafleet.runtime import Runtime


def read_inbox(runtime: Runtime, member_id: int, limit: int) -> answers.Inbox:
    """The member's unacknowledged messages, newest first, and how many more there are.

    Raises:
        MemberNotFound: no such member.
    """
    found = inbox.poll(runtime, member_id, limit, characters=answers.MAX_CHARACTERS)
    names = members.names_of(runtime, answers.senders(found)) if found else {}
    return answers.inbox(member_id, found, inbox.count_unread(runtime, member_id), names)
