"""The web face: a thousand events a second to twenty readers, and what that costs the server."""

import re
import selectors
import socket
import subprocess
import threading
import time
from collections.abc import Iterator

from benchmarks.measure import cpu_seconds
from benchmarks.place import MEMBERS, PROGRAM, Place
from benchmarks.table import Row
from cafleet.clock import format_timestamp, utc_now
from cafleet.db import messages
from cafleet.db.database import Database

CLIENTS = 20
SECONDS = 10
BATCHES_PER_SECOND = 100
PER_BATCH = 5
"""New messages in one commit, and as many ACKs: 1,000 events a second together."""
EVENTS = SECONDS * BATCHES_PER_SECOND * PER_BATCH * 2
LAST_SECONDS = 10.0
BODY = "x" * 100
ACK_AFTER_BATCHES = 50


def rows() -> Iterator[Row]:
    """Loss and cost of the event stream."""
    with Place() as place:
        server = subprocess.Popen(
            [PROGRAM, "server", "--port", "0"], env=place.environ, stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout is not None
            match = re.search(r":(\d+)/", server.stdout.readline())
            if match is None:
                raise RuntimeError("the server did not start")
            yield _stream(place, server.pid, int(match[1]))
        finally:
            server.terminate()
            server.communicate()


def _stream(place: Place, pid: int, port: int) -> Row:
    readers = [_open(port) for _ in range(CLIENTS)]
    counts = dict.fromkeys(readers, 0)
    counting = threading.Thread(target=_count, args=(counts,))
    counting.start()
    before, started = cpu_seconds(pid), time.perf_counter()
    _write(place)
    seconds = time.perf_counter() - started
    counting.join()
    cores = (cpu_seconds(pid) - before) / seconds
    lost = sum(EVENTS - count for count in counts.values())
    for reader in readers:
        reader.close()
    return Row(
        f"web: {EVENTS // SECONDS} events/s to {CLIENTS} clients, for {SECONDS} s",
        "none lost, under one core",
        f"{lost} of {EVENTS * CLIENTS} lost, {cores:.2f} of a core"
        + (f" (written in {seconds:.1f} s)" if seconds > SECONDS * 1.1 else ""),
        "",
        lost == 0 and cores < 1,
    )


def _open(port: int) -> socket.socket:
    reader = socket.create_connection(("127.0.0.1", port))
    reader.sendall(b"GET /api/events?fleet_id=1 HTTP/1.0\r\nHost: localhost\r\n\r\n")
    received = b""
    while b"event: hello" not in received:
        received += reader.recv(4096)
    return reader


def _count(counts: dict[socket.socket, int]) -> None:
    """Count events until every reader has all of them, or none has come for a while."""
    tails = dict.fromkeys(counts, b"")
    merged = dict.fromkeys(counts, False)
    with selectors.DefaultSelector() as selector:
        for reader in counts:
            selector.register(reader, selectors.EVENT_READ, reader)
        while min(counts.values()) < EVENTS:
            ready = selector.select(LAST_SECONDS)
            if not ready:
                return
            for key, _ in ready:
                source: socket.socket = key.data
                chunk = source.recv(1 << 20)
                if not chunk:
                    selector.unregister(source)
                    continue
                *lines, tails[source] = (tails[source] + chunk).split(b"\n")
                for line in lines:
                    if line in (b"event: message", b"event: ack"):
                        counts[source] += 1
                        merged[source] = line == b"event: message"
                    elif merged[source] and b'"status":"completed"' in line:
                        counts[source] += 1  # ACKed before it was read: told once, with its ACK.
                        merged[source] = False


def _write(place: Place) -> None:
    """Messages and ACKs in an even flow, several to a commit, with the hints that real senders give."""
    database = Database(place.database_path)
    opened: list[int] = []
    started = time.perf_counter()
    for batch in range(SECONDS * BATCHES_PER_SECOND):
        with database.write() as conn:
            for number in range(PER_BATCH):
                recipient = 2 + (batch + number) % (MEMBERS - 1)
                now = format_timestamp(utc_now())
                opened.append(
                    messages.insert(conn, from_member_id=1, to_member_id=recipient, text=BODY, created_at=now)
                )
        if batch >= ACK_AFTER_BATCHES:
            _acknowledge(database, opened)
        time.sleep(max(0.0, started + (batch + 1) / BATCHES_PER_SECOND - time.perf_counter()))
    while opened:
        _acknowledge(database, opened)
        time.sleep(1 / BATCHES_PER_SECOND)
    database.close()


def _acknowledge(database: Database, opened: list[int]) -> None:
    with database.write() as conn:
        for _ in range(PER_BATCH):
            messages.complete(conn, opened.pop(0), format_timestamp(utc_now()))
