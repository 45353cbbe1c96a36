"""Which commands exist: the one table that `cafleet --help`, the parser, the reference page and the shell
completion start from. Importing it imports no command.
"""

import sys

from cafleet.light_typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cafleet.cli.arguments import Command

NO_GUARD = "none"
"""Runs whatever state the database is in."""
FORMAT = "format"
"""Needs a database of the current format (SPEC 2.4)."""
ASSETS = "assets"
"""Needs, besides, skills and presets of this version (SPEC 8)."""

COMMANDS: dict[str, tuple[str, str, str]] = {
    "setup": ("setup", NO_GUARD, "create or upgrade the database, install skills and presets"),
    "doctor": ("doctor", NO_GUARD, "say what would not work here, and what mends it"),
    "fleet create": ("fleet", ASSETS, "start a fleet with this pane as its Director"),
    "fleet list": ("fleet", ASSETS, "list live fleets, newest first"),
    "fleet show": ("fleet", ASSETS, "show one fleet, deleted or not"),
    "fleet delete": ("fleet", ASSETS, "delete a fleet and deregister its members; messages stay"),
    "member create": ("member", ASSETS, "register a member and start its agent in a new pane"),
    "member list": ("member", ASSETS, "list a fleet's active members"),
    "member show": ("member", ASSETS, "show one member"),
    "member delete": ("member", ASSETS, "close a member's pane and deregister it"),
    "member prompt": ("panes", ASSETS, "type one line into a member's pane as a user's turn"),
    "member ping": ("panes", ASSETS, "tell a member, in its pane, to poll its inbox"),
    "member respawn": ("panes", ASSETS, "start a member whose pane is gone in a new one"),
    "member capture": ("panes", ASSETS, "show the last lines of a member's pane"),
    "member focus": ("panes", ASSETS, "switch the terminal multiplexer to a member's pane"),
    "message send": ("message", ASSETS, "store a message for one or more members and notify them"),
    "message broadcast": ("message", ASSETS, "send to every other active member of the fleet"),
    "message poll": ("inbox", ASSETS, "show a member's unacknowledged messages, newest first"),
    "message wait": ("waiting", ASSETS, "block until a member has messages, then show them"),
    "message listen": ("waiting", ASSETS, "print a line for each message as it arrives"),
    "message ack": ("inbox", ASSETS, "acknowledge messages"),
    "message show": ("inbox", ASSETS, "show one message"),
    "monitor run": ("monitor", ASSETS, "run a fleet's monitor loop in the foreground"),
    "monitor status": ("monitor", ASSETS, "show a fleet's monitor loop, lost panes and held notifications"),
    "monitor wake": ("monitor", ASSETS, "wake a fleet's monitor with the next tick"),
    "monitor scan": ("monitor", ASSETS, "show the last lines of every member's pane"),
    "import": ("import_", NO_GUARD, "bring over a database file of an earlier cafleet"),
    "backup": ("backup", FORMAT, "write a consistent copy of the database"),
    "demo": ("demo", NO_GUARD, "watch a small fleet work, in a terminal of its own"),
    "server": ("server", FORMAT, "show fleets in a web page and serve its API"),
    "mcp": ("mcp", FORMAT, "serve tools and resources to an MCP client"),
    "top": ("top", FORMAT, "show fleets live in the terminal, and act on them"),
    "completion": ("completion", NO_GUARD, "print a shell's completion script"),
    "whoami": ("whoami", FORMAT, "say which member the calling pane is"),
}
"""Full name to: module in this package, guard, summary (a clause without a full stop).

The module has a dictionary `COMMANDS` with the command's description under the same name.
"""


def groups() -> dict[str, list[str]]:
    """First words that are followed by a second one, with those."""
    found: dict[str, list[str]] = {}
    for name in COMMANDS:
        noun, _, verb = name.partition(" ")
        if verb:
            found.setdefault(noun, []).append(verb)
    return found


def load(name: str) -> "Command":
    """The description of one command. Imports its module, and no other command's."""
    full_name = f"cafleet.cli.{COMMANDS[name][0]}"
    __import__(full_name)
    command: Command = sys.modules[full_name].COMMANDS[name]
    return command
