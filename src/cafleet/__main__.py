"""`python -m cafleet` is the same program as the `cafleet` command."""

import sys

from cafleet.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
