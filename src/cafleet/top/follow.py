"""The thread that follows the database and hands on what has changed."""

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from cafleet.broker.survey import PaneReport
from cafleet.errors import DatabaseBusy
from cafleet.runtime import Runtime
from cafleet.top.snapshot import FleetView, Snapshot, Wanted, take

CHECK_SECONDS = 0.25
"""How soon the person's own choices are noticed."""
GATHER_SECONDS = 0.2
"""Between two snapshots, however much is going on."""
PATIENCE_SECONDS = 10.0
"""Panes change without a word, and so does the time: how old a snapshot may become."""
SURVEY_SECONDS = 2.0
"""How often the panes are looked at, at most."""


class _Survey(NamedTuple):
    """The panes, when they were last looked at."""

    fleet_id: int
    at: float
    panes: dict[int, PaneReport]

    def covers(self, view: FleetView) -> bool:
        """Whether it has all that is shown: another fleet may be shown than a moment ago, or somebody new."""
        placed = (e.member.member_id for e in view.roster if e.member.placement is not None)
        return view.fleet.fleet_id == self.fleet_id and all(member in self.panes for member in placed)


class Follower:
    """Takes snapshots until it is stopped."""

    def __init__(
        self,
        open_runtime: Callable[[], Runtime],
        wanted: Wanted,
        on_snapshot: Callable[[Snapshot], None],
        on_failure: Callable[[Exception], None],
    ) -> None:
        """The callbacks run in the thread. `on_failure`: it has ended, most likely because the database
        cannot be used any more."""
        self._open_runtime, self._wanted = open_runtime, wanted
        self._on_snapshot, self._on_failure = on_snapshot, on_failure
        self._stop, self._asked = threading.Event(), threading.Event()
        self._asked.set()
        self._survey: _Survey | None = None
        self._due = 0.0
        """When to take a snapshot although nothing has changed; on the monotonic clock."""
        self._thread = threading.Thread(target=self._follow, name="cafleet-top", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_seconds: float = 1.0) -> None:
        """End the thread; one that waits for a multiplexer is left to itself."""
        self._stop.set()
        self._thread.join(timeout_seconds)

    def want(self, wanted: Wanted, *, look: bool = False) -> None:
        """Show this from now on. `look`: and look at the panes again, too."""
        self._wanted = wanted
        if look:
            self._survey = None
        self._asked.set()

    def _follow(self) -> None:
        runtime = self._open_runtime()
        try:
            while not self._stop.is_set():
                try:
                    changed = runtime.database.wait_for_change(CHECK_SECONDS)
                    if changed or self._asked.is_set() or time.monotonic() >= self._due:
                        self._asked.clear()
                        self._on_snapshot(self._take(runtime))
                        self._stop.wait(GATHER_SECONDS)
                except DatabaseBusy:  # Somebody holds the file: again in a moment.
                    self._asked.set()
                    self._stop.wait(GATHER_SECONDS)
        except Exception as error:  # A picture that stands still without a word would be believed.
            self._on_failure(error)
        finally:
            runtime.database.close()

    def _take(self, runtime: Runtime) -> Snapshot:
        wanted, now = self._wanted, time.monotonic()
        survey = self._survey
        if survey is not None and now - survey.at >= SURVEY_SECONDS:
            survey = None
        snapshot = take(runtime, wanted, None if survey is None else survey.panes)
        if survey is not None and snapshot.view is not None and not survey.covers(snapshot.view):
            survey, snapshot = None, take(runtime, wanted, None)
        if survey is not None:
            self._due = survey.at + SURVEY_SECONDS  # What was held or lost since is still to be seen.
        else:
            self._due = now + PATIENCE_SECONDS
            if snapshot.view is not None:
                self._survey = _Survey(snapshot.view.fleet.fleet_id, time.monotonic(), snapshot.view.panes)
        return snapshot
