"""Whether somebody could bring a stopped dashboard back."""

import os


def can_be_resumed() -> bool:
    """Whether a shell with job control has started this process: as the leader of a session, for instance a
    terminal's only program, it would stand still for ever."""
    try:
        parent = os.getppid()
        return os.getsid(parent) == os.getsid(0) and os.getpgid(parent) != os.getpgrp()
    except OSError:  # The parent is gone, or of another user.
        return False
