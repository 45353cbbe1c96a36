import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from cafleet.monitor.stopping import StopSignals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_long_pause_at_once(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with StopSignals() as signals:
        assert not signals.stopping()
        threading.Timer(0.05, os.kill, (os.getpid(), number)).start()
        started = time.monotonic()
        assert signals.pause(100)
        assert time.monotonic() - started < 50
        assert signals.stopped_by == number.name
        assert signals.pause(100), "and every later one"
    assert signal.getsignal(number) == before


def test_a_pause_ends_by_itself() -> None:
    with StopSignals() as signals:
        assert not signals.pause(0.01)
        assert not signals.pause(-1)
        assert signals.stopped_by is None


def test_a_signal_right_before_the_pause_is_not_slept_over() -> None:
    with StopSignals() as signals:
        os.kill(os.getpid(), signal.SIGTERM)
        assert signals.pause(100)


def test_another_signal_ends_no_pause_for_good() -> None:
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        with StopSignals() as signals:
            os.kill(os.getpid(), signal.SIGUSR1)
            assert not signals.pause(0.01)
            assert not signals.pause(0.01)
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_second_one_interrupts() -> None:
    with StopSignals() as signals:
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
        assert signals.stopped_by == "SIGTERM"


def test_who_was_started_to_survive_its_terminal_does() -> None:
    script = (
        "import os, signal\n"
        "from cafleet.monitor.stopping import StopSignals\n"
        "with StopSignals() as signals:\n"
        "    os.kill(os.getpid(), signal.SIGHUP)\n"
        "    assert not signals.pause(0.01)\n"
    )
    subprocess.run(["nohup", sys.executable, "-c", script], check=True, stdin=subprocess.DEVNULL)
