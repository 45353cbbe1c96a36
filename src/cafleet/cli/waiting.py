"""`message wait` and `message listen`: commands that last until something happens."""

import select
import signal
import threading

from cafleet.cli.arguments import Command, Values, integer, option, positional, seconds
from cafleet.cli.envelope import TEXT_LIMIT, message_record, show_inbox
from cafleet.cli.output import Output
from cafleet.delivery import inbox
from cafleet.delivery.line import render_line
from cafleet.runtime import Runtime


def wait(runtime: Runtime, values: Values, out: Output) -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # Both ends are "interrupted", with clean-up.
    _interrupt_when_reader_goes(out)
    messages = inbox.wait(runtime, values.integer("member_id"), values.optional_seconds("timeout"))
    shown = messages if out.as_json else messages[:TEXT_LIMIT]
    show_inbox(shown, out, len(messages) - len(shown))
    return 0


def listen(runtime: Runtime, values: Values, out: Output) -> int:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    _interrupt_when_reader_goes(out)
    try:
        for message in inbox.listen(runtime, values.integer("member_id")):
            if out.as_json:
                out.json(message_record(message))
            else:
                out.write(render_line(message, runtime.config.max_text_len))
            out.flush()
    except KeyboardInterrupt:
        pass  # The ordinary end of a stream (SPEC 4.5).
    return 0


def _interrupt_when_reader_goes(out: Output) -> None:
    """End also while nothing is written: whoever started this may have been stopped long ago.

    A pipe without a reader is in an error state, for which one sleeping thread waits at no cost.
    """
    descriptor = out.pipe()
    if descriptor is None:
        return
    main_thread = threading.main_thread().ident
    assert main_thread is not None

    def watch() -> None:
        poller = select.poll()
        poller.register(descriptor, 0)
        poller.poll()
        signal.pthread_kill(main_thread, signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


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
