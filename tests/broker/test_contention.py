"""Many processes at once: nothing is lost, nothing is doubled, nobody sees an error (SPEC 13, 14)."""

import subprocess
import sys

from tests.support.fleet_builder import World

from cafleet.broker import inbox

PROCESSES = 32
EACH = 25

_SETTING_UP = """
import sys
from cafleet import clock, config
from cafleet.broker import inbox, messages
from cafleet.db.database import Database
from cafleet.errors import AlreadyAcknowledged
from cafleet.runtime import Runtime

path, member_id, number, each = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])

def multiplexer_for(name):
    raise AssertionError("nothing is typed here")

settings = config.load({"HOME": "/nonexistent", "CAFLEET_DATABASE_URL": "sqlite:///" + path})
# How long the slowest waits for its turn depends on what else the machine does; `make bench` looks at that.
database = Database(path, busy_timeout_seconds=90)
runtime = Runtime(settings, database, multiplexer_for, clock.utc_now)
"""

SEND = (
    _SETTING_UP
    + """
for i in range(each):
    messages.send(runtime, member_id, member_id, f"{number}-{i}", key=f"{number}-{i}")
"""
)

SEND_THE_SAME = (
    _SETTING_UP
    + """
for i in range(each):
    messages.send(runtime, member_id, member_id, f"{i}", key=f"{i}")
"""
)

ACK_ALL = (
    _SETTING_UP
    + """
mine = 0
for message in inbox.poll(runtime, member_id):
    try:
        inbox.ack(runtime, message.message_id)
        mine += 1
    except AlreadyAcknowledged:
        pass
print(mine)
"""
)


def run_together(world: World, script: str, member_id: int, processes: int, each: int) -> list[str]:
    """What each of several processes printed; every one must succeed without a word on stderr."""
    command = [sys.executable, "-W", "error", "-c", script, world.database.path, str(member_id)]
    running = [
        subprocess.Popen(
            [*command, str(number), str(each)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for number in range(processes)
    ]
    finished = [process.communicate(timeout=100) for process in running]
    assert [process.returncode for process in running] == [0] * processes, finished
    assert [errors for _, errors in finished] == [""] * processes
    return [output for output, _ in finished]


def test_32_processes_send_25_messages_each_to_one_inbox(world: World) -> None:
    director = world.fleet()
    run_together(world, SEND, director.member_id, PROCESSES, EACH)
    texts = [message.text for message in inbox.poll(world.runtime, director.member_id)]
    assert sorted(texts) == sorted(f"{number}-{i}" for number in range(PROCESSES) for i in range(EACH))


def test_a_key_is_stored_once_however_many_send_it_at_the_same_time(world: World) -> None:
    director = world.fleet()
    run_together(world, SEND_THE_SAME, director.member_id, 6, 20)
    texts = [message.text for message in inbox.poll(world.runtime, director.member_id)]
    assert sorted(texts) == sorted(str(i) for i in range(20))


def test_each_message_is_acknowledged_by_exactly_one_of_many(world: World) -> None:
    director = world.fleet()
    run_together(world, SEND, director.member_id, 1, 60)
    outputs = run_together(world, ACK_ALL, director.member_id, 6, 0)
    assert sum(int(output) for output in outputs) == 60
    assert inbox.poll(world.runtime, director.member_id) == []
