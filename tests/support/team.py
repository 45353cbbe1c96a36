"""A fleet written straight into a temporary database, for tests of delivery: no broker, no command."""

from pathlib import Path

from tests.support.database import fresh_database
from tests.support.standin import AGENT, write_configuration

from cafleet import config
from cafleet.clock import Now, format_timestamp, utc_now
from cafleet.db import fleets, members, messages
from cafleet.db.database import Database
from cafleet.models import Member, Message, Placement
from cafleet.multiplexer.base import Multiplexer, PaneAddress
from cafleet.runtime import Runtime

LONG_AGO = "2026-01-01T00:00:00.000000+00:00"
"""When members were placed: their agents have started."""


class Team:
    """One fleet with a Director, members where they are put, and the runtime of any process."""

    def __init__(
        self, directory: Path, multiplexer: Multiplexer, *, now: Now = utc_now, **environ: str
    ) -> None:
        self.directory, self.multiplexer, self._now = directory, multiplexer, now
        self.database = fresh_database(directory)
        write_configuration(directory)
        self.environ = {
            "HOME": str(directory),
            "CAFLEET_DATABASE_URL": f"sqlite:///{self.database.path}",
            **environ,
        }
        with self.database.write() as connection:
            self.fleet_id = fleets.insert(connection, "team", self.moment())
        self.director = self.add("director", PaneAddress("elsewhere|/none|1", "main", "@0", "%0"))
        with self.database.write() as connection:
            fleets.set_director(connection, self.fleet_id, self.director)

    @property
    def runtime(self) -> Runtime:
        """As a new process has it, but with the team's own database object."""
        return self.runtime_with(self.database)

    def runtime_with(self, database: Database) -> Runtime:
        """As another process has it."""
        return Runtime(config.load(self.environ), database, self._multiplexer_for, self._now)

    def another_database(self) -> Database:
        """The same file, opened by "another process"; the caller closes it."""
        return Database(self.database.path)

    def moment(self) -> str:
        """The next timestamp."""
        return format_timestamp(self._now())

    def add(
        self,
        name: str,
        pane: PaneAddress | None,
        *,
        agent: str = AGENT,
        pending: bool = False,
        placed_at: str = LONG_AGO,
    ) -> int:
        """A member in `pane`; None: without a placement, or with one whose pane is still to come."""
        at = self.moment()
        with self.database.write() as connection:
            member_id = members.insert(connection, self.fleet_id, name, name, "{}", at)
            if pane is not None or pending:
                address = pane or PaneAddress(None, "main", "@0", "")
                placement = Placement(
                    member_id=member_id,
                    mux_session=address.session,
                    mux_window_id=address.window,
                    mux_pane_id=address.pane or None,
                    backend="tmux",
                    coding_agent=agent,
                    created_at=placed_at,
                    mux_server=address.server,
                )
                members.insert_placement(connection, placement)
        return member_id

    def member(self, member_id: int) -> Member:
        """As it is now."""
        with self.database.read() as connection:
            found = members.get(connection, member_id)
        assert found is not None
        return found

    def move(self, member_id: int, pane: PaneAddress, database: Database | None = None) -> None:
        """Point the member's placement at another pane."""
        with (database or self.database).write() as connection:
            placement = members.get_placement(connection, member_id)
            assert placement is not None
            moved = placement._replace(
                mux_server=pane.server,
                mux_session=pane.session,
                mux_window_id=pane.window,
                mux_pane_id=pane.pane,
            )
            members.move_placement(connection, moved)

    def deregister(self, member_id: int, database: Database | None = None) -> None:
        """End the member."""
        with (database or self.database).write() as connection:
            members.deregister(connection, member_id, self.moment())
            members.delete_placement(connection, member_id)

    def store(
        self,
        to: int,
        text: str = "hello",
        *,
        sender: int | None = None,
        at: str | None = None,
        database: Database | None = None,
    ) -> int:
        """A delivery that nobody was told of yet. `database`: of the process that stores it."""
        with (database or self.database).write() as connection:
            return messages.insert(
                connection,
                from_member_id=sender or self.director,
                to_member_id=to,
                text=text,
                created_at=at or self.moment(),
            )

    def acknowledge(self, message_id: int, database: Database | None = None) -> None:
        """The recipient has dealt with it."""
        with (database or self.database).write() as connection:
            assert messages.complete(connection, message_id, self.moment())

    def message(self, message_id: int) -> Message:
        """As it is stored."""
        with self.database.read() as connection:
            found = messages.get(connection, message_id)
        assert found is not None
        return found

    def notified_at(self, message_id: int) -> str | None:
        """The stamp."""
        with self.database.read() as connection:
            found: str | None = connection.execute(
                "SELECT notified_at FROM messages WHERE message_id = ?", (message_id,)
            ).fetchone()[0]
        return found

    def is_notified(self, message_id: int) -> bool:
        """Whether it carries a stamp."""
        return self.notified_at(message_id) is not None

    def _multiplexer_for(self, name: str) -> Multiplexer:
        assert name == "tmux"
        return self.multiplexer
