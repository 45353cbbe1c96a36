"""An upgrade under a running loop: whatever a tick needs was loaded before (field case J5)."""

import subprocess
import sys

from tests.end_to_end.conftest import World
from tests.support.waiting import wait_until

_SCRIPT = """
import sys
from cafleet import config
from cafleet.clock import utc_now
from cafleet.db.database import Database
from cafleet.monitor.journal import Journal
from cafleet.monitor.lease import Cadence, claim
from cafleet.monitor.loop import Loop
from cafleet.monitor.preload import preload
from cafleet.multiplexer.select import multiplexer
from cafleet.broker.monitors import request_wake
from cafleet.runtime import Runtime

settings = config.load()
database = Database(settings.database_path)
runtime = Runtime(settings, database, lambda name: multiplexer(name, settings), utc_now)
lease = claim(runtime, 1, Cadence(5, 0))
preload(runtime, 1)
request_wake(runtime, 1)
before = set(sys.modules)
Loop(runtime, lease, Journal(utc_now, print)).tick()
print("late:", sorted(name for name in set(sys.modules) - before if name.startswith("cafleet")))
"""


def test_a_tick_that_types_and_wakes_loads_nothing(fleet: World) -> None:
    ann, pane = fleet.member("ann")
    fleet.agent("watch")
    assert fleet.run(*fleet.creation("watch"), "--role", "monitor").code == 0
    fleet.server.run("copy-mode", "-t", pane)
    assert fleet.run("message", "send", "--from", "1", "--to", str(ann), "hello").code == 0
    fleet.server.run("send-keys", "-t", pane, "-X", "cancel")
    wait_until(lambda: fleet.server.show("#{pane_in_mode}", pane) == "0", what="the end of the mode")
    script = fleet.home / "tick.py"
    script.write_text(_SCRIPT)
    done = subprocess.run(
        [sys.executable, script], env=fleet.program.environ, capture_output=True, text=True, check=True
    )
    assert [line.split(" ", 1)[-1] for line in done.stdout.splitlines()] == [
        f"member {ann} was told of message 1",
        "member 3 was woken",
        "[]",
    ]
