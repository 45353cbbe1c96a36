"""`whoami`: for an agent that lost its context (SPEC 7.2)."""

from cafleet.broker import identity
from cafleet.cli.arguments import Command, Values
from cafleet.cli.escapes import escape
from cafleet.cli.output import Output
from cafleet.cli.roster import member_record
from cafleet.runtime import Runtime


def whoami(runtime: Runtime, _values: Values, out: Output) -> int:
    """`whoami`: the calling pane's member. Raises NotAMember, NotInMultiplexer."""
    member, director_id = identity.whoami(runtime)
    if out.as_json:
        out.json({**member_record(member), "director_member_id": director_id})
    else:
        out.write(
            f"fleet={member.fleet_id} member={member.member_id} name={escape(member.name)} "
            f"kind={member.kind} director={director_id}"
        )
    return 0


COMMANDS = {
    "whoami": Command(
        whoami,
        description="Tells by the pane in which it is called, and so works only inside a member's pane.",
        examples=("cafleet whoami", "cafleet whoami --json"),
    ),
}
