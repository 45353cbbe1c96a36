"""Only collected where the real programs are installed: `make test-agents`."""

import os

PROGRAMS = os.environ.get("REAL_AGENTS_FOLDER", "")

collect_ignore_glob = [] if PROGRAMS else ["test_*.py"]
