"""`cafleet demo`: watch a small fleet work (SPEC 12)."""

from cafleet.cli import commands
from cafleet.cli.arguments import Command, Values, flag
from cafleet.cli.output import Output
from cafleet.runtime import Runtime


def demo(runtime: Runtime, values: Values, out: Output) -> int:
    """Play the demo; its lines appear as they are written."""
    from cafleet.demo.run import run

    def write(text: str) -> None:
        out.write(text)
        out.flush()

    return run(
        runtime.config.environ,
        keep=values.flag("keep"),
        web="server" in commands.COMMANDS,
        write=write,
        paint=out.paint,
    )


COMMANDS = {
    "demo": Command(
        demo,
        flag("--keep", "leave the fleet running and say how to look at it and how to end it"),
        examples=("cafleet demo", "cafleet demo --keep"),
        description=(
            "Needs tmux and nothing else: no account, no model, no running multiplexer. In a temporary "
            "folder and a private tmux server it starts two members that run a small stand-in for a coding "
            "agent, passes real messages through the real broker and panes, and removes everything again."
        ),
        json=False,
    ),
}
