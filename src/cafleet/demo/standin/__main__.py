"""A stand-in for a coding agent: `python -m cafleet.demo.standin [options] [-- PROMPT]`.

It has what cafleet needs of an agent: a composer, a screen that tells rest, work and questions apart,
bracketed paste, a queue for what is submitted while it works, and tool calls: for a notification it
runs `cafleet` (`turns.py`). Its faults are those that real agents were seen to have.
"""

import sys

from cafleet import config
from cafleet.demo.standin.options import parse
from cafleet.demo.standin.session import run
from cafleet.errors import CafleetError


def main() -> int:
    """Start from the command line."""
    try:
        environ = config.load().environ
    except CafleetError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    return run(parse(sys.argv[1:], environ))


if __name__ == "__main__":
    sys.exit(main())
