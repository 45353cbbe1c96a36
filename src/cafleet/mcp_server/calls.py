"""Broker calls in threads, so that a client's calls run beside each other and can be given up.

Every call has a thread and a database object of its own, both for as long as it runs. A call that is
given up (cancelled, or its client has gone) is answered by nobody at once; its thread is told and ends
at the next moment at which nothing is half done.
"""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Generic, TypeVar

import anyio

from cafleet.errors import CafleetError
from cafleet.runtime import Runtime

T = TypeVar("T")

PROGRESS_SECONDS = 5.0
"""How often a caller hears that its call is still under way."""
LIMIT = 16
"""Calls of one kind at once."""

Stopped = Callable[[], bool]
Progress = Callable[[float], Awaitable[None]]
"""Takes the seconds since the start."""


class TooManyCalls(CafleetError):
    def __init__(self, limit: int) -> None:
        self.limit = limit
        super().__init__(f"{limit} calls are waiting already; end one of them first")


class _Job(Generic[T]):
    """One call in its thread."""

    def __init__(
        self, function: Callable[[Runtime, Stopped], T], open_runtime: Callable[[], Runtime]
    ) -> None:
        self._function, self._open_runtime = function, open_runtime
        self.done = anyio.Event()
        self.stop = threading.Event()
        self._result: list[T] = []
        self._error: BaseException | None = None
        self._loop = asyncio.get_running_loop()
        self.thread = threading.Thread(target=self._run, name="cafleet-mcp-call", daemon=True)

    def result(self) -> T:
        """What the function returned, or raises what it raised."""
        if self._error is not None:
            raise self._error
        return self._result[0]

    def _run(self) -> None:
        try:
            runtime = self._open_runtime()
            try:
                self._result.append(self._function(runtime, self.stop.is_set))
            finally:
                runtime.database.close()
        except BaseException as error:  # Whatever it is, it belongs to the caller, not to this thread.
            self._error = error
        with suppress(RuntimeError):  # The loop has ended; nobody asks any more.
            self._loop.call_soon_threadsafe(self.done.set)


class Calls:
    """All calls of one kind that are under way."""

    def __init__(self, open_runtime: Callable[[], Runtime], *, queueing: bool) -> None:
        """`open_runtime` is called in the thread of each call. `queueing`: what to do with one call too
        many, let it wait for its turn or refuse it."""
        self._open_runtime = open_runtime
        self._queueing = queueing
        self._room = anyio.Semaphore(LIMIT)
        self._jobs: set[_Job[object]] = set()

    async def run(self, function: Callable[[Runtime, Stopped], T], progress: Progress) -> T:
        """What `function` returns or raises, computed in a thread.

        Raises:
            TooManyCalls: there is no room and calls of this kind do not queue.
        """
        if self._queueing:
            await self._room.acquire()
        else:
            try:
                self._room.acquire_nowait()
            except anyio.WouldBlock:
                raise TooManyCalls(LIMIT) from None
        try:
            return await self._follow(function, progress)
        finally:
            self._room.release()

    async def _follow(self, function: Callable[[Runtime, Stopped], T], progress: Progress) -> T:
        job = _Job(function, self._open_runtime)
        self._jobs = {other for other in self._jobs if other.thread.is_alive()} | {job}  # type: ignore[arg-type]
        started = time.monotonic()
        job.thread.start()
        try:
            while True:
                with anyio.move_on_after(PROGRESS_SECONDS):
                    await job.done.wait()
                    return job.result()
                await progress(time.monotonic() - started)
        finally:
            job.stop.set()

    def close(self, timeout_seconds: float) -> None:
        """Tell every thread to end, and wait for those that do."""
        deadline = time.monotonic() + timeout_seconds
        for job in self._jobs:
            job.stop.set()
        for job in self._jobs:
            if job.thread.is_alive():
                job.thread.join(max(0.0, deadline - time.monotonic()))
