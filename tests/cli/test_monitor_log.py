"""The log of a monitor loop, which outlives whoever reads it."""

import errno
import io

from cafleet.cli.monitor import Log
from cafleet.cli.output import Output


class _Device(io.StringIO):
    """A stream that fails with `error` as long as that is set."""

    error: OSError | None = None

    def write(self, text: str) -> int:
        if self.error is not None:
            raise self.error
        return super().write(text)


def test_a_full_disk_costs_the_lines_of_that_time_only() -> None:
    device = _Device()
    log = Log(Output(device, None))
    log.write("one")
    device.error = OSError(errno.ENOSPC, "full")
    log.write("two")
    device.error = None
    log.write("three")
    assert device.getvalue() == "one\nthree\n"


def test_a_reader_that_has_gone_is_not_written_to_again() -> None:
    device = _Device()
    log = Log(Output(device, None))
    device.error = BrokenPipeError()
    log.write("one")
    device.error = None
    log.write("two")
    assert device.getvalue() == ""


def test_what_a_log_holds_cannot_control_a_terminal() -> None:
    device = _Device()
    Log(Output(device, None)).write("member 3 is not told: \x1b]0;x\x07")
    assert device.getvalue() == "member 3 is not told: \\x1b]0;x\\x07\n"
