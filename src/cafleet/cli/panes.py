"""`member prompt`, `ping`, `capture`, `focus`, `respawn`: what a Director does with members' panes."""

from hashlib import sha256

from cafleet.broker import panes
from cafleet.broker.member_respawn import RespawnRequest, respawn_member
from cafleet.broker.panes import DEFAULT_CAPTURE_LINES, Capture, Typed
from cafleet.cli.arguments import Command, Values, count, flag, integer, option, positional
from cafleet.cli.bodies import body, body_arguments
from cafleet.cli.escapes import escape
from cafleet.cli.member import pane_of, show_started
from cafleet.cli.output import Output
from cafleet.cli.roster import warn_of_start
from cafleet.models import NotificationState
from cafleet.runtime import Runtime


def prompt(runtime: Runtime, values: Values, out: Output) -> int:
    """`member prompt`: exit 1 where the line was not submitted."""
    return _show_typed(panes.prompt_member(runtime, values.integer("member_id"), values.text("text")), out)


def ping(runtime: Runtime, values: Values, out: Output) -> int:
    """`member ping`: exit 1 where the line was not submitted."""
    return _show_typed(panes.ping_member(runtime, values.integer("member_id")), out)


def _show_typed(typed: Typed, out: Output) -> int:
    """Unlike a message, a line that was not typed is stored nowhere: that is a failure."""
    member_id, (state, reason) = typed.member.member_id, typed.notification
    if out.as_json:
        out.json(
            {
                "member_id": member_id,
                "line": typed.line,
                "notification": {"state": state, "reason": reason},
            }
        )
    if state is not NotificationState.NOTIFIED:
        then = "try again" if state is NotificationState.DEFERRED else "'cafleet doctor' names the mend"
        out.error(f"nothing was submitted to member {member_id} ({state}): {reason}; {then}")
        return 1
    if not out.as_json:
        out.write(f"Typed for member {member_id}: {escape(typed.line)}")
    return 0


def capture(runtime: Runtime, values: Values, out: Output) -> int:
    """`member capture`: the end of one pane as it is, or with its hash as JSON."""
    member_id = values.integer("member_id")
    lines = values.optional_integer("lines") or DEFAULT_CAPTURE_LINES
    captured = panes.capture_member(runtime, member_id, lines, ansi=values.flag("ansi"))
    if out.as_json:
        out.json({"member_id": member_id, **capture_record(captured)})
    else:
        out.write(captured.content)
    return 0


def capture_record(captured: Capture) -> dict[str, object]:
    """A capture with the hash of its content, by which two are told apart cheaply."""
    return {
        "captured_at": captured.captured_at,
        "content_sha256": sha256(captured.content.encode()).hexdigest(),
        "content": captured.content,
    }


def focus(runtime: Runtime, values: Values, out: Output) -> int:
    """`member focus`: which pane has the focus now."""
    member = panes.focus_member(runtime, values.integer("member_id"))
    out.write(f"Pane {pane_of(member)} of member {member.member_id} has the focus.")
    return 0


def respawn(runtime: Runtime, values: Values, out: Output) -> int:
    """`member respawn`: the member with its new pane; an old one that stays open is a warning."""
    request = RespawnRequest(
        member_id=values.integer("member_id"),
        prompt=body(values, "PROMPT"),
        directory=values.optional_text("cwd") or ".",
        model=values.optional_text("model"),
        effort=values.optional_text("effort"),
    )
    member, start, left_open = respawn_member(runtime, request)
    if left_open is not None:
        out.warn(f"pane {left_open}, its old one, is left open: a shell is there.")
    warn_of_start(member, start, out)
    show_started(member, out)
    return 0


_MEMBER_ID = positional("member_id", "MEMBER_ID", "the member", integer)

LINES = option("--lines", "N", f"how many lines, history included ({DEFAULT_CAPTURE_LINES})", count)
ANSI = flag("--ansi", "keep colours as escape sequences")

COMMANDS = {
    "member prompt": Command(
        prompt,
        _MEMBER_ID,
        positional("text", "TEXT", "one line; after -- when it starts with a dash"),
        description="For what no message can do, such as a command of the agent itself; a message is "
        "stored and repeated, this line is not. Nothing is typed at a question, into a person's half-typed "
        "words or into a shell: then the exit code is 1 and the reason is on standard error.",
        examples=(
            "cafleet member prompt 3 'Please go on with the tests.'",
            "cafleet member prompt 3 /compact",
        ),
    ),
    "member ping": Command(
        ping,
        _MEMBER_ID,
        description="Types one fixed line, under the same conditions as 'member prompt'.",
        examples=("cafleet member ping 3",),
    ),
    "member capture": Command(
        capture,
        _MEMBER_ID,
        LINES,
        ANSI,
        description="Wrapped lines are joined; blanks at line ends and blank lines at the end are cut.",
        examples=("cafleet member capture 3", "cafleet member capture 3 --lines 100 --json"),
    ),
    "member focus": Command(
        focus,
        _MEMBER_ID,
        description="Makes it the active pane, and shows it where a client is attached.",
        examples=("cafleet member focus 3",),
        json=False,
    ),
    "member respawn": Command(
        respawn,
        _MEMBER_ID,
        *body_arguments("PROMPT", "what its agent is told first"),
        option("--model", "M", "passed on to the program"),
        option("--effort", "E", "passed on to the program"),
        option("--cwd", "DIR", "where its program starts; the caller's folder by default"),
        description="For an active member whose pane is gone, or whose agent has exited to a shell: that "
        "pane is left open. Its id, inbox and history stay. The prompt may use {fleet_id}, {member_id}, "
        "{director_member_id} and {coding_agent}.",
        examples=("cafleet member respawn 3 'You are member {member_id} again. Poll your inbox.'",),
    ),
}
