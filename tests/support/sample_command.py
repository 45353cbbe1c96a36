"""A command of every kind of argument, which does nothing."""

from cafleet.cli.arguments import Command, Values, flag, integer, option, positional
from cafleet.cli.output import Output
from cafleet.runtime import Runtime


def nothing(_runtime: Runtime, _values: Values, _out: Output) -> int:
    """A command's function."""
    return 0


SEND = Command(
    nothing,
    positional("body", "TEXT", "the message", required=False),
    option("--from --from-member-id", "MEMBER_ID", "the sender", integer, required=True),
    option("--to", "MEMBER_ID", "a recipient", integer, required=True, many=True),
    option("--name", "N", "a name"),
    flag("--ansi", "with colours"),
    examples=("cafleet send --from 1 --to 2 hello",),
)
