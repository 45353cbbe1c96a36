"""A line into a pane: read the state, paste, look again, press Enter, look once more (SPEC 4.3).

Enter is pressed only while the line, and nothing else, stands in the composer. Escape is never sent,
a mode is never left, and no text is ever typed a second time.

What is under way is noted in the pane's lock. A line that its sender did not live to see in the
composer, or had no more patience for, may still appear there: whoever comes next waits for it, lest
its own be pasted behind. A line of a person's or of the monitor's is in no database: a mark in the lock
tells it from a draft.
"""

from enum import Enum, auto

from cafleet.agents import screen
from cafleet.agents.base import Agent, Extent
from cafleet.delivery.channel import Recognise, Told
from cafleet.delivery.line import SHORTEST_TAIL, OwnLine, comparable, fingerprint, is_tail_of, own_line
from cafleet.delivery.pane_state import FREE, PaneReading, PaneState, classify, why_not
from cafleet.errors import MultiplexerError, MultiplexerTimeout
from cafleet.models import Notification, NotificationState
from cafleet.multiplexer.base import Multiplexer, PaneAddress, PaneView
from cafleet.multiplexer.pane_lock import PaneLock

MOST_ENTERS = 3
NOT_SHOWN = "its agent did not show the line"
"""The one deferral after which a further try is a further paste: a loop must not repeat it at once."""
_PASTE_PAUSES_SECONDS = (0.15, 1.2)
"""Pauses before each further look at an agent that has not drawn the paste yet: few looks, since each
is a process, and the last one late, since a loaded machine draws late."""
_ENTER_PAUSES_SECONDS = (0.3, 0.7, 2.0)
"""Pauses before each further look at a line that seems to have outlived its Enter, which is pressed
again after the last: a needless Enter could answer a question that the turn brings up."""
PASTED, ENTERED = "pasted", "entered"
"""Notes in the pane's lock: the line, or the Enter, may not have been shown yet."""
_PASTED_SECONDS, _ENTERED_SECONDS = 3.0, 3.5
"""How long a killed sender's paste, or Enter, is waited for."""
UNSEEN_SECONDS = 30.0
"""How long a paste that tmux took, but the agent did not show, bars further ones."""
_LATE_PAUSES_SECONDS = (0.15, 0.35, 1.0, 1.5)
"""Pauses before each further look for it; in all, as long as a killed sender's is waited for."""
_VISIBLE_ROWS = 15
_HEADER_LENGTH = 24
"""Characters, blanks not counted, by which the start of a line is known inside altered text."""
_COMPLETION_MARKS = ("@", "/", "#", "$", "!")


class _Seen(Enum):
    """What a look says about a line that was pasted."""

    ALONE = auto()
    """In the composer, and nothing else is."""
    ABSENT = auto()
    PARTLY = auto()
    """Not drawn yet, or not all of it."""
    ALTERED = auto()
    """In the composer, with something else."""


class PaneChannel:
    """The pane of one member, whose lock the caller holds."""

    def __init__(
        self,
        multiplexer: Multiplexer,
        address: PaneAddress,
        agent: Agent,
        member_id: int,
        *,
        starting: bool,
        lock: PaneLock,
    ) -> None:
        """`starting`: the agent may still be on its way to its first screen. `lock`: the pane's, held."""
        self.line_limit = agent.line_limit
        self._multiplexer = multiplexer
        self._address = address
        self._agent = agent
        self._member_id = member_id
        self._starting = starting
        self._lock = lock
        self._settle_seconds = agent.settle_seconds

    def tell(self, line: str, recognise: Recognise) -> Told:
        """See `Channel.tell`. Costs three calls of the multiplexer for a pane at rest."""
        view = self._multiplexer.look(self._address)
        reading = classify(view, self._agent)
        if self._lock.note == PASTED:
            view, reading = self._look_for_late_paste(view, reading)
        if reading.state is PaneState.DRAFT:
            for text in reading.texts:
                if left_over := recognise(text) or self._marked(text):
                    return Told(self._submit(text, view, entered=self._lock.note == ENTERED), left_over)
        if reading.composer is not None and self._lock.mark and self._lock.note != PASTED:
            self._lock.drop_note()  # That line has left the composer: the same words are a person's now.
        if reason := why_not(reading, view, self._member_id):
            return Told(_deferred(reason))
        if self._starting and reading.state is PaneState.NOT_RECOGNISED:
            # The terminal would echo the line, and the agent would never see it.
            return Told(_deferred("its agent is still starting"))
        if self._lock.note == PASTED:  # Unseen in a free pane, be it empty or one that cannot be read.
            return Told(_deferred(NOT_SHOWN))
        return Told(self._paste_and_submit(line, view))

    def _look_for_late_paste(self, view: PaneView, reading: PaneReading) -> tuple[PaneView, PaneReading]:
        """Look again, for a while, for a line that an earlier holder of the lock pasted."""
        for pause in _LATE_PAUSES_SECONDS:
            if reading.state not in FREE or self._lock.note != PASTED:
                break
            view = self._multiplexer.look(self._address, settle_seconds=pause)
            reading = classify(view, self._agent)
        return view, reading

    def _marked(self, text: str) -> OwnLine | None:
        """`text` as the plain line that an earlier holder of the lock pasted, if it is that one."""
        return OwnLine(None, comparable(text)) if self._lock.mark == fingerprint(text) else None

    def _paste_and_submit(self, line: str, before: PaneView) -> Notification:
        # The cursor right behind `@name` opens a completion list in some agents, which takes the Enter.
        text = f"{line} " if line.split(" ")[-1].startswith(_COMPLETION_MARKS) else line
        if own_line(line) is None:
            self._lock.leave_mark(fingerprint(line))
        with _Step(self._lock, PASTED, _PASTED_SECONDS):
            view = self._multiplexer.paste(self._address, text, settle_seconds=self._settle_seconds)
        for pause in (*_PASTE_PAUSES_SECONDS, None):
            reading = classify(view, self._agent)
            if reading.state not in _PASTED and (reason := why_not(reading, view, self._member_id)):
                if reading.state is PaneState.AWAITING_USER:  # It ignored the paste, or has it already.
                    self._lock.end_note()
                return _deferred(reason)
            seen = self._seen(line, reading, view, before)
            if seen is _Seen.ALONE:
                return self._submit(line, view)
            if seen is _Seen.ALTERED:
                self._lock.drop_note()
                return _deferred("someone typed into its composer meanwhile")
            if pause is not None:
                view = self._look_later(pause)
        self._lock.leave_note(PASTED, UNSEEN_SECONDS)
        return _deferred(NOT_SHOWN)

    def _submit(self, line: str, view: PaneView, *, entered: bool = False) -> Notification:
        """Press Enter until `line`, now alone in the composer, has left it. `entered`: an earlier holder
        of the lock has pressed it a moment ago."""
        for _ in range(MOST_ENTERS):
            before = view
            if not entered:
                with _Step(self._lock, ENTERED, _ENTERED_SECONDS):
                    view = self._multiplexer.press_enter(self._address, settle_seconds=self._settle_seconds)
            entered = False
            seen = self._after_enter(line, view, before)
            for pause in _ENTER_PAUSES_SECONDS:
                if seen is _Seen.ALONE:
                    view = self._multiplexer.look(self._address, settle_seconds=pause)
                    seen = self._after_enter(line, view, before)
            if seen is _Seen.ABSENT:
                self._lock.drop_note()
                return _submitted(classify(view, self._agent))
            if seen is not _Seen.ALONE:
                break
        self._lock.end_note()
        return Notification(
            NotificationState.FAILED, "its agent did not take the Enter; the line stands in its composer"
        )

    def _look_later(self, seconds: float) -> PaneView:
        """Look after a pause; the agent is slow, so it gets as long from now on."""
        self._settle_seconds = max(self._settle_seconds, seconds)
        return self._multiplexer.look(self._address, settle_seconds=self._settle_seconds)

    def _seen(self, line: str, reading: PaneReading, view: PaneView, before: PaneView) -> _Seen:
        if reading.composer is None:
            fresh = view.rows != before.rows
            return _Seen.ALONE if fresh and _is_visible(line, view) else _Seen.PARTLY
        if _holds(reading, line):
            return _Seen.ALONE
        shown = comparable(reading.composer)
        return _Seen.PARTLY if comparable(line).startswith(shown) else _Seen.ALTERED

    def _after_enter(self, line: str, view: PaneView, before: PaneView) -> _Seen:
        reading = classify(view, self._agent)
        if reading.state in (PaneState.MODE, PaneState.SHELL, PaneState.AWAITING_USER):
            # The turn has begun, and more: whatever is there now, it is not ours to press.
            return _Seen.ABSENT
        if reading.composer is None:
            same = view.rows == before.rows and view.cursor_y == before.cursor_y
            return _Seen.ALONE if same and _is_visible(line, view) else _Seen.ABSENT
        if _holds(reading, line):
            return _Seen.ALONE
        # A completion list may have changed the text instead of submitting it.
        altered = comparable(line)[:_HEADER_LENGTH] in comparable(reading.composer)
        return _Seen.ALTERED if altered else _Seen.ABSENT


class _Step:
    """A step that changes the pane: proves before it that the lock still keeps others out, and leaves
    a note in it; an error that says that nothing was done ends the note."""

    def __init__(self, lock: PaneLock, note: str, seconds: float) -> None:
        self._lock, self._note, self._seconds = lock, note, seconds

    def __enter__(self) -> None:
        self._lock.require_held()
        self._lock.leave_note(self._note, self._seconds)

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, MultiplexerTimeout):  # The multiplexer may yet come to it.
            self._lock.leave_note(self._note, UNSEEN_SECONDS)
        elif isinstance(error, MultiplexerError):
            self._lock.drop_note()


_PASTED = frozenset({PaneState.AT_REST, PaneState.WORKING, PaneState.NOT_RECOGNISED, PaneState.DRAFT})
"""What a free pane can look like with our line in it."""


def _holds(reading: PaneReading, line: str) -> bool:
    """Whether the composer, empty before `line` was pasted, holds it and nothing else."""
    if not reading.composer:
        return False
    if reading.extent is Extent.FOLDED or comparable(line) in map(comparable, reading.texts):
        return True
    # In a small pane the end is all that can be seen, whether the agent's screen says so or not.
    shortest = 1 if reading.extent is Extent.TAIL else SHORTEST_TAIL
    return is_tail_of(reading.composer, line, shortest=shortest)


def _is_visible(line: str, view: PaneView) -> bool:
    rows = [row for row in screen.parse(view.rows).rows if row][-_VISIBLE_ROWS:]
    shown, wanted = comparable("".join(rows)), comparable(line)
    return wanted in shown or is_tail_of(shown, line)


def _submitted(reading: PaneReading) -> Notification:
    if reading.state is PaneState.SHELL:  # Whether the agent read the line before it ended, nobody knows.
        return Notification(NotificationState.FAILED, "its agent has exited meanwhile")
    return Notification(NotificationState.NOTIFIED, None)


def _deferred(reason: str) -> Notification:
    return Notification(NotificationState.DEFERRED, reason)
