"""`completion`: scripts for shells, and the ids that these ask for while somebody types."""

from cafleet.cli.arguments import Command, Values, positional
from cafleet.cli.output import Output
from cafleet.errors import UsageError
from cafleet.runtime import Runtime

SHELLS = ("bash", "zsh", "fish")
LISTS = ("fleets", "members", "agents")
"""What the scripts ask for: one candidate a line, with a tab before its explanation."""


def completion(runtime: Runtime, values: Values, out: Output) -> int:
    """`completion SHELL`: the script; with the name of a list, its candidates for a Tab."""
    wanted = values.text("shell")
    if wanted in SHELLS:
        from cafleet.cli import completion_script  # Heavy: only whoever wants a script pays for it.

        out.write(completion_script.script(wanted))
    elif wanted in LISTS:
        from cafleet.cli import candidates

        for line in candidates.lines(runtime, wanted):
            out.write(line)
    else:
        raise UsageError(f"SHELL must be one of {', '.join(SHELLS)} (got '{wanted}')")
    return 0


COMMANDS = {
    "completion": Command(
        completion,
        positional("shell", "SHELL", "bash, zsh or fish"),
        description="Commands, options, files, and the ids of live fleets and of their members with their "
        "names. Write the script to where the shell looks for it: for bash a file cafleet in "
        "~/.local/share/bash-completion/completions, for zsh a file _cafleet in a folder of fpath, for "
        "fish a file cafleet.fish in ~/.config/fish/completions.",
        examples=("cafleet completion bash", "cafleet completion zsh", "cafleet completion fish"),
        json=False,
    ),
}
