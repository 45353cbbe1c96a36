from cafleet.monitor.backoff import Backoff


def _tries(tick_seconds: int, ticks: int) -> list[int]:
    backoff: Backoff[str] = Backoff(tick_seconds)
    tried = []
    for number in range(ticks):
        backoff.tick()
        if not backoff.waiting():
            tried.append(number)
            backoff.failed("pane")
    return tried


def test_pauses_double_up_to_a_minute() -> None:
    assert _tries(5, 52) == [0, 1, 3, 7, 15, 27, 39, 51]
    assert _tries(60, 4) == [0, 1, 2, 3]
    assert _tries(1, 130) == [0, 1, 3, 7, 15, 31, 63, 123]


def test_a_success_starts_anew_and_keys_are_apart() -> None:
    backoff: Backoff[str] = Backoff(5)
    for _ in range(4):
        backoff.failed("one")
    backoff.failed("two")
    backoff.tick()
    assert (backoff.waiting(), backoff.failing()) == (["one"], ["one", "two"])
    backoff.forget("one")
    assert (backoff.waiting(), backoff.failing()) == ([], ["two"])
    backoff.failed("one")
    backoff.tick()
    assert backoff.waiting() == []
