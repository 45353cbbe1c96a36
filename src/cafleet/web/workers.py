"""Threads that make broker calls, so that the event loop never waits for a disk or a pane.

A database object belongs to one thread, so each worker has a `Runtime` of its own for as long as it
lives. (The pool of the standard library cannot close what its threads hold.)
"""

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from cafleet.runtime import Runtime

T = TypeVar("T")


class _Job(NamedTuple):
    function: Callable[[Runtime], object]
    loop: asyncio.AbstractEventLoop
    future: "asyncio.Future[object]"


class Workers:
    """A fixed number of threads over one queue."""

    def __init__(self, open_runtime: Callable[[], Runtime], count: int, name: str) -> None:
        """`open_runtime` is called once in each thread."""
        self._open_runtime = open_runtime
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, name=f"{name}-{number}", daemon=True)
            for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    async def run(self, function: Callable[[Runtime], T]) -> T:
        """What `function` returns or raises, computed in one of the threads."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._jobs.put(_Job(function, loop, future))  # type: ignore[arg-type]  # a future of any type
        return await future

    def close(self, timeout_seconds: float = 2.0) -> None:
        """End the threads, all within that time. One that is still typing into a pane is left to finish on
        its own."""
        for _ in self._threads:
            self._jobs.put(None)
        deadline = time.monotonic() + timeout_seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _work(self) -> None:
        runtime = self._open_runtime()
        try:
            while (job := self._jobs.get()) is not None:
                if not job.future.cancelled():
                    _carry_out(job, runtime)
        finally:
            runtime.database.close()


def _carry_out(job: _Job, runtime: Runtime) -> None:
    result: object = None
    error: BaseException | None = None
    try:
        result = job.function(runtime)
    except BaseException as problem:  # Whatever it is, it belongs to the caller, not to this thread.
        error = problem
    if not job.loop.is_closed():
        job.loop.call_soon_threadsafe(_settle, job.future, result, error)


def _settle(future: "asyncio.Future[object]", result: object, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
