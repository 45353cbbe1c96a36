"""Fleets for the web face, written straight into a database: no multiplexer and no agent is needed."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.support.shown_panes import Shown, ShownPanes

from cafleet.clock import format_timestamp
from cafleet.db import fleets, members, messages, monitor_runtime
from cafleet.db.database import Database
from cafleet.db.migrate import setup_database
from cafleet.models import Placement
from cafleet.multiplexer.base import Multiplexer

AGENTS = ("claude", "codex", "opencode")
DEAD_SERVER = "nowhere|/run/none|1"
"""A multiplexer server that does not exist: nothing can be typed anywhere."""


def no_multiplexer(_name: str) -> Multiplexer:
    """For a runtime that touches no pane."""
    raise AssertionError("nothing here touches a pane")


class WebFleet:
    """One fleet and a clock that the builder moves."""

    def __init__(
        self, database: Database, name: str = "parser-rewrite", *, ago_seconds: float = 3600
    ) -> None:
        self.database = database
        self.moment = datetime.now(UTC) - timedelta(seconds=ago_seconds)
        with database.write() as conn:
            self.fleet_id = fleets.insert(conn, name, self._now())
        self.director = self.member("director", "Leads the team")
        with database.write() as conn:
            fleets.set_director(conn, self.fleet_id, self.director)

    def _now(self) -> str:
        self.moment += timedelta(milliseconds=1)
        return format_timestamp(self.moment)

    def pass_time(self, seconds: float) -> "WebFleet":
        self.moment += timedelta(seconds=seconds)
        return self

    def member(
        self,
        name: str,
        description: str = "",
        *,
        monitor: bool = False,
        agent: str = "claude",
        pane: str | None = "auto",
        skills: str = "",
        shown: Shown | None = None,
    ) -> int:
        """An active, placed member. `pane` None: pending; `skills`: JSON list without brackets; `shown`: a
        real pane."""
        marker = ', "cafleet": {"kind": "monitor"}' if monitor else ""
        card = f'{{"skills": [{skills}]{marker}}}'
        with self.database.write() as conn:
            member_id = members.insert(conn, self.fleet_id, name, description, card, self._now())
            named = f"%{member_id}" if pane == "auto" else pane
            placement = Placement(member_id, "team", "@0", named, "tmux", agent, self._now(), DEAD_SERVER)
            members.insert_placement(conn, placement if shown is None else _placed(placement, shown))
        return member_id

    def move(self, member_id: int, shown: Shown) -> None:
        """Give the member a real pane."""
        with self.database.write() as conn:
            placement = members.get_placement(conn, member_id)
            assert placement is not None
            members.delete_placement(conn, member_id)
            members.insert_placement(conn, _placed(placement, shown))

    def send(
        self, sender: int, recipient: int, text: str, *, ack: bool = False, notified: bool = True
    ) -> int:
        """A delivery, and ACKed a little later where wanted. `notified`: its line was typed."""
        with self.database.write() as conn:
            now = self._now()
            message_id = messages.insert(
                conn,
                from_member_id=sender,
                to_member_id=recipient,
                text=text,
                created_at=now,
                notified_at=now if notified else None,
            )
            if ack:
                messages.complete(conn, message_id, self._now())
        return message_id

    def ack(self, message_id: int) -> None:
        with self.database.write() as conn:
            messages.complete(conn, message_id, self._now())

    def broadcast(self, sender: int, recipients: Sequence[int], text: str, *, acked: int = 0) -> list[int]:
        """A summary and its deliveries, of which the first `acked` are ACKed; ids of the deliveries."""
        with self.database.write() as conn:
            now = self._now()
            summary = messages.insert_summary(
                conn,
                from_member_id=sender,
                text=f"Broadcast sent to {len(recipients)} recipients",
                created_at=now,
            )
            messages.link_summary(conn, summary)
            ids = [
                messages.insert(
                    conn,
                    from_member_id=sender,
                    to_member_id=recipient,
                    text=text,
                    created_at=now,
                    notified_at=now,
                    origin_message_id=summary,
                )
                for recipient in recipients
            ]
            for message_id in ids[:acked]:
                messages.complete(conn, message_id, self._now())
        return ids

    def deregister(self, member_id: int) -> None:
        with self.database.write() as conn:
            members.delete_placement(conn, member_id)
            members.deregister(conn, member_id, self._now())

    def delete(self) -> None:
        with self.database.write() as conn:
            now = self._now()
            members.delete_fleet_placements(conn, self.fleet_id)
            monitor_runtime.delete(conn, self.fleet_id)
            members.deregister_fleet(conn, self.fleet_id, now)
            fleets.mark_deleted(conn, self.fleet_id, now)

    def claim_monitor(self, pid: int, *, interval_seconds: int = 600) -> None:
        """A monitor loop as if process `pid` ran it; its heartbeat is now."""
        with self.database.write() as conn:
            monitor_runtime.claim(
                conn,
                self.fleet_id,
                pid=pid,
                at=format_timestamp(datetime.now(UTC)),
                tick_seconds=3600,
                wake_interval_seconds=interval_seconds,
            )


def _placed(placement: Placement, shown: Shown) -> Placement:
    at = shown.address
    return placement._replace(
        mux_session=at.session,
        mux_window_id=at.window,
        mux_pane_id=at.pane,
        coding_agent=shown.agent,
        mux_server=at.server,
    )


def new_database(directory: Path) -> Database:
    """A database at the head version; the caller closes it."""
    path = str(directory / "team.db")
    setup_database(path, datetime(2026, 1, 1, tzinfo=UTC))
    return Database(path)


def story(fleet: WebFleet, panes: ShownPanes | None = None) -> dict[str, int]:
    """A small team at work, with everything that the page can show; ids by name.

    With `panes`, two work, one is at a question and was therefore not told of its last messages.
    """
    boss = fleet.director
    monitor = fleet.member("monitor", "Looks after the others", monitor=True)
    lexer = fleet.member(
        "lexer", "Rewrites the lexer as a table", agent="codex", skills='"parsing", "performance"'
    )
    parser = fleet.member("parser", "Error recovery in the parser", agent="claude", skills='"parsing"')
    docs = fleet.member("docs", "Keeps the manual in step", agent="opencode")
    tests = fleet.member("test-runner", "Runs the suite on every change", agent="codex")
    scout = fleet.member("scout", "Looked for prior art")
    fleet.pass_time(60)
    fleet.send(boss, scout, "Which table-driven lexers are worth a look? Three at most, please.", ack=True)
    fleet.pass_time(240)
    fleet.send(
        scout,
        boss,
        "Three candidates:\n\n1. re2c – fastest, generates C\n2. ragel – state charts, good errors\n"
        "3. a hand-written table – 400 lines, no dependency\n\nI would take 3.",
        ack=True,
    )
    fleet.deregister(scout)
    fleet.pass_time(120)
    everyone = [monitor, lexer, parser, docs, tests]
    fleet.broadcast(
        boss,
        everyone,
        "We go with the hand-written table. lexer starts, parser keeps its interface frozen until the table "
        "is in. Report blockers at once.",
        acked=5,
    )
    fleet.pass_time(600)
    fleet.send(lexer, boss, "Table is in on branch lexer-table: 31 % faster, 2 tests red.", ack=True)
    fleet.pass_time(200)
    fleet.send(boss, tests, "Please run the whole suite on lexer-table and tell lexer what fails.", ack=True)
    fleet.pass_time(420)
    fleet.send(
        tests,
        lexer,
        "FAILED tests/test_strings.py::test_raw_prefix - AssertionError\n"
        "FAILED tests/test_numbers.py::test_underscores - ValueError: invalid literal\n\n"
        "2 failed, 1184 passed in 41.20s",
        ack=True,
    )
    fleet.pass_time(300)
    fleet.send(lexer, parser, "May a number token keep its underscores, or shall I strip them?", ack=True)
    fleet.pass_time(200)
    fleet.send(parser, lexer, "Keep them; I need the original text for messages.", ack=True)
    fleet.pass_time(400)
    told = panes is None
    fleet.send(
        parser, docs, "Error messages changed: please look at chapter 4, examples 2 and 5.", notified=told
    )
    fleet.pass_time(240)
    fleet.broadcast(
        boss, everyone, "Merging lexer-table at noon. Speak up now if anything of yours is open.", acked=3
    )
    fleet.pass_time(45)
    fleet.send(lexer, boss, "Both red tests are fixed. Suite is green, please review.")
    if panes is not None:
        for member, agent, scene in (
            (boss, "claude", "idle"),
            (monitor, "claude", "idle"),
            (lexer, "codex", "working"),
            (parser, "claude", "working"),
            (docs, "opencode", "permission"),
            (tests, "codex", "idle"),
        ):
            fleet.move(member, panes.show(agent, scene))
    return {
        "boss": boss,
        "monitor": monitor,
        "lexer": lexer,
        "parser": parser,
        "docs": docs,
        "tests": tests,
        "scout": scout,
    }
