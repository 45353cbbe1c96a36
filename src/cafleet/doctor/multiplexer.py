"""Where this process runs, and whether panes can be opened here."""

from cafleet.agents.base import find_binary
from cafleet.broker.identity import calling_pane
from cafleet.doctor.records import Finding, Row, Section, issue, note
from cafleet.errors import MultiplexerError, NotInMultiplexer
from cafleet.multiplexer.select import known_backends
from cafleet.runtime import Runtime

NAME = "multiplexer"


def check_multiplexer(runtime: Runtime) -> Section:
    """Backend, server, session, window and pane of this process."""
    path = runtime.config.environ.get("PATH", "")
    installed = [name for name in known_backends() if find_binary(name, path)]
    try:
        backend, address = calling_pane(runtime)
    except NotInMultiplexer:
        return Section(NAME, [{"backend": None}], [_outside(installed)])
    except MultiplexerError as error:
        mend = "unset the variable that the message names, or run this in a pane of a running multiplexer"
        return Section(NAME, [{"backend": None}], [issue(str(error), mend)])
    row: Row = {"backend": backend, "server": address.server, "session": address.session}
    return Section(NAME, [{**row, "window": address.window, "pane": address.pane}], [])


def _outside(installed: list[str]) -> Finding:
    if not installed:
        return issue("no terminal multiplexer is installed", "install tmux, and start it before a fleet")
    return note(
        "this is no pane of a multiplexer: fleets are created, and members started, from inside one",
        f"start {installed[0]} first",
    )
