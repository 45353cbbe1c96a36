"""When the server must end although its client has not said so: its parent is gone, or the database is
not one that this release can use any more, or not the one in which its member is."""

import os
import threading
from collections.abc import Callable

from cafleet.broker.members import get_member, names_of
from cafleet.errors import CafleetError, Conflict, DatabaseBusy, MemberNotFound
from cafleet.models import Member
from cafleet.runtime import Runtime

CHECK_SECONDS = 0.5


class AnotherDatabase(Conflict):
    def __init__(self, member_id: int) -> None:
        self.member_id = member_id
        super().__init__(
            f"the database was replaced, and member {member_id} is not in it any more; start the server anew"
        )


class Watch:
    """One thread that looks at both."""

    def __init__(
        self,
        open_runtime: Callable[[], Runtime],
        parent: int,
        member: Member | None,
        on_end: Callable[[CafleetError | None], None],
    ) -> None:
        """`parent`: the parent process at the start. `member`: whom the server speaks for. `on_end` is called
        once, in the thread: with the error, or None where the parent is gone."""
        self._open_runtime, self._on_end = open_runtime, on_end
        self._parent, self._member = parent, member
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="cafleet-mcp-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self, timeout_seconds: float) -> None:
        """End the thread."""
        self._closing.set()
        self._thread.join(timeout_seconds)

    def _watch(self) -> None:
        runtime = self._open_runtime()
        try:
            while not self._closing.is_set():
                if os.getppid() != self._parent:
                    self._on_end(None)
                    return
                self._look(runtime)
        except CafleetError as error:
            self._on_end(error)
        finally:
            runtime.database.close()

    def _look(self, runtime: Runtime) -> None:
        """Wait for a change of the file, and see whether it still is what it was."""
        try:
            if runtime.database.wait_for_change(CHECK_SECONDS):
                self._check(runtime)
        except DatabaseBusy:
            self._closing.wait(CHECK_SECONDS)

    def _check(self, runtime: Runtime) -> None:
        """Any read looks at the format. In another file the member's id may be somebody else's."""
        if self._member is None:
            names_of(runtime, [0])
            return
        try:
            found = get_member(runtime, self._member.member_id)
        except MemberNotFound:
            raise AnotherDatabase(self._member.member_id) from None
        if (found.name, found.registered_at) != (self._member.name, self._member.registered_at):
            raise AnotherDatabase(self._member.member_id)
