"""`message wait` and `message listen`: commands that last until something happens."""

import select
import signal
import sys
import threading
from contextlib import suppress

from cafleet.cli.arguments import Command, Values, integer, option, positional, seconds
from cafleet.cli.envelope import TEXT_LIMIT, message_record, show_inbox
from cafleet.cli.output import Output
from cafleet.delivery import inbox
from cafleet.delivery.line import render_line
from cafleet.runtime import Runtime


def wait(runtime: Runtime, values: Values, out: Output) -> int:
    """`message wait`: the inbox once it is not empty, or nothing after the timeout (exit 0, SPEC 4.5)."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # Both ends are "interrupted", with clean-up.
    reader = _Reader(out)
    try:
        messages = inbox.wait(runtime, values.integer("member_id"), values.optional_seconds("timeout"))
        reader.forget()
    except KeyboardInterrupt:
        if reader.gone:
            return 0  # A closed pipe is not an error (SPEC 7.1).
        raise
    shown = messages if out.as_json else messages[:TEXT_LIMIT]
    show_inbox(shown, out, len(messages) - len(shown))
    return 0


def listen(runtime: Runtime, values: Values, out: Output) -> int:
    """`message listen`: a line per message until the reader goes or a signal comes (exit 0, SPEC 4.5)."""
    if sys.stdout is None:
        return 0  # Started with it closed: nobody will ever read, and nobody would ever end this.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    reader = _Reader(out)
    with suppress(KeyboardInterrupt):  # The ordinary end of a stream (SPEC 4.5).
        try:
            _stream(runtime, values.integer("member_id"), out)
        finally:
            reader.forget()
    return 0


def _stream(runtime: Runtime, member_id: int, out: Output) -> None:
    for message in inbox.listen(runtime, member_id):
        if out.as_json:
            out.json(message_record(message))
        else:
            out.write(render_line(message, runtime.config.max_text_len))
        out.flush()


class _Reader:
    """Whoever reads standard output. When it goes, this process is interrupted, also while nothing is
    written: whoever started it may have been stopped long ago.

    A pipe without a reader is in an error state, for which one sleeping thread waits at no cost.
    """

    def __init__(self, out: Output) -> None:
        self.gone = False
        """It went while it was watched."""
        self._watched = True
        self._deciding = threading.Lock()
        descriptor = out.pipe()
        if descriptor is not None:
            threading.Thread(target=self._watch, args=(descriptor,), daemon=True).start()

    def forget(self) -> None:
        """From now on a write tells soon enough that nobody reads."""
        with self._deciding:
            self._watched = False

    def _watch(self, descriptor: int) -> None:
        poller = select.poll()
        poller.register(descriptor, 0)
        poller.poll()
        main_thread = threading.main_thread().ident
        assert main_thread is not None
        with self._deciding:
            if self._watched:
                self.gone = True
                signal.pthread_kill(main_thread, signal.SIGTERM)


COMMANDS = {
    "message wait": Command(
        wait,
        positional("member_id", "MEMBER_ID", "whose inbox", integer),
        option("--timeout", "S", "give up after S seconds; the answer is then empty", seconds),
        description="Returns at once where messages are waiting. Changes no message.",
        examples=("cafleet message wait 1", "cafleet message wait 1 --timeout 100 --json"),
    ),
    "message listen": Command(
        listen,
        positional("member_id", "MEMBER_ID", "whose inbox", integer),
        description="For programs that watch a stream: what is pending first, oldest first, then each "
        "message as it is stored, each once. Runs until its reader goes, it is interrupted, or the member is "
        "gone. Changes no message.",
        examples=("cafleet message listen 1", "cafleet message listen 1 --json"),
    ),
}
