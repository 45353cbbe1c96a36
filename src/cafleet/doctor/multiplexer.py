"""Where this process runs, and whether panes can be opened here."""

from cafleet.agents.base import find_binary
from cafleet.broker.identity import calling_pane
from cafleet.doctor.records import Finding, Row, Section, issue, note
from cafleet.errors import MultiplexerError, MultiplexerTimeout, NotInMultiplexer, PaneGone
from cafleet.multiplexer.own_pane import SETTING
from cafleet.multiplexer.select import UnknownMultiplexer, known_backends
from cafleet.runtime import Runtime

NAME = "multiplexer"


def check_multiplexer(runtime: Runtime) -> Section:
    """Backend, server, session, window and pane of this process."""
    path = runtime.config.environ.get("PATH", "")
    installed = [name for name in known_backends() if find_binary(name, path)]
    try:
        backend, address = calling_pane(runtime)
    except NotInMultiplexer:
        chosen = runtime.config.environ.get(SETTING)
        return Section(NAME, [{"backend": chosen or None}], [_outside(installed, chosen)])
    except MultiplexerError as error:
        return Section(NAME, [{"backend": None}], [issue(str(error), mend_of(error))])
    row: Row = {"backend": backend, "server": address.server, "session": address.session}
    return Section(NAME, [{**row, "window": address.window, "pane": address.pane}], [])


def mend_of(error: MultiplexerError) -> str:
    """What to do about a multiplexer that cannot be used."""
    if isinstance(error, UnknownMultiplexer):
        return f"set {SETTING} to one of those, or unset it"
    if isinstance(error, MultiplexerTimeout):
        return "wait until it answers, or end it and start it again"
    if isinstance(error, PaneGone):
        return "run this in a pane of a running multiplexer"
    return "unset the variable that the message names, or run this in a pane of a running multiplexer"


def _outside(installed: list[str], chosen: str | None) -> Finding:
    if chosen and chosen not in installed:
        return issue(f"{SETTING} names {chosen}, which is not on PATH", f"install it, or unset {SETTING}")
    if not installed:
        return issue("no terminal multiplexer is installed", "install tmux, and start it before a fleet")
    return note(
        "this is no pane of a multiplexer: fleets are created, and members started, from inside one",
        f"start {chosen or installed[0]} first",
    )
