"""Commands that touch panes, broken at each of their steps: which these are, and what is left then."""

from collections.abc import Callable
from itertools import count

from tests.faults.conftest import Team
from tests.support.breaking import Breaker, Broken

STEPS = r"^(spawn|file|end)|^sql (BEGIN IMMEDIATE|SELECT|INSERT|UPDATE|DELETE|COMMIT)"
"""Every statement of their own; what opens a connection and begins or ends a look leaves nothing behind."""

FAILING = "^(sql|spawn|file (?!os.remove))"
"""What can fail before there is something to clean up."""

CREATE = ("member", "create", "--fleet-id", "1", "--name", "new", "--description", "d", "--coding-agent")


def broken_runs(breaker: Breaker, *command: str, only: str = STEPS) -> Callable[[], Broken | None]:
    """A function that runs the command once more, broken one step later; None: it was not broken."""
    numbers = count(1)

    def run() -> Broken | None:
        done = breaker.run(*command, at=next(numbers), only=only)
        return done if done.step is not None else None

    return run


class Rows:
    """What the file and the server hold besides the team that every test starts with."""

    def __init__(self, team: Team) -> None:
        self.team, self._panes = team, set(team.server.panes())
        ((self._last_member,),) = team.query("SELECT max(member_id) FROM members")

    def active(self) -> list[tuple[int, str | None]]:
        """New active members and their panes."""
        found = self.team.query(
            f"""SELECT m.member_id, p.mux_pane_id FROM members m LEFT JOIN member_placements p
            ON p.member_id = m.member_id WHERE m.status = 'active' AND m.member_id > {self._last_member}"""  # noqa: S608
        )
        return [(int(str(member)), None if pane is None else str(pane)) for member, pane in found]

    def panes(self) -> set[str]:
        """New panes."""
        return set(self.team.server.panes()) - self._panes

    def close_panes(self) -> None:
        for pane in self.panes():
            self.team.server.run("kill-pane", "-t", pane, check=False)


def quick_agent(team: Team) -> str:
    """An agent that only lives, and needs no time to start."""
    config = team.program.home / ".config" / "cafleet" / "config.toml"
    table = '[agents.quick]\ncommand = ["sh", "-c", "exec sleep 1000", "{prompt}"]\nstart_seconds = 0\n'
    config.write_text(config.read_text() + "\n" + table)
    return "quick"


def second_fleet(breaker: Breaker, agent: str) -> str:
    """A new fleet of the Director's pane and one member: its id."""
    made = breaker.run("fleet", "create", "--name", "second", "--coding-agent", agent)
    fleet_id = made.stdout.split()[0]
    create = ("member", "create", "--fleet-id", fleet_id, "--name", "new", "--description", "d")
    assert breaker.run(*create, "--coding-agent", agent, "Go").code == 0
    return fleet_id
