"""When a composer holds a line."""

import pytest

from cafleet.agents.base import AgentState, Extent, Reading, find_binary, holds, utf16_length

LINE = "[cafleet msg 7 from 3 …] please look at tests/agents"


def reading(composer: str | None, extent: Extent = Extent.WHOLE) -> Reading:
    return Reading(AgentState.AT_REST, composer, extent)


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (reading(LINE), True),
        (reading(LINE.replace(" ", "\n  ")), True),
        (reading(LINE.replace("tests/", "tests/\n")), True),
        (reading(f"mine {LINE}"), False),
        (reading(f"{LINE} mine"), False),
        (reading(LINE[:20]), False),
        (reading(""), False),
        (reading(None), False),
        (reading(LINE[-20:], Extent.TAIL), True),
        (reading(LINE[:20], Extent.TAIL), False),
        (reading(f"{LINE[-20:]} mine", Extent.TAIL), False),
    ],
)
@pytest.mark.parametrize("just_pasted", [True, False])
def test_holds(shown: Reading, expected: bool, just_pasted: bool) -> None:
    assert holds(shown, LINE, just_pasted=just_pasted) is expected


def test_a_folded_paste_is_only_known_by_whoever_pasted_it() -> None:
    shown = reading("[Pasted ~1 lines]", Extent.FOLDED)
    assert holds(shown, LINE, just_pasted=True)
    assert not holds(shown, LINE, just_pasted=False)


def test_length_is_counted_as_the_programs_count_it() -> None:
    assert utf16_length("a日👩") == 4


def test_find_binary(tmp_path_factory: pytest.TempPathFactory) -> None:
    first, second = tmp_path_factory.mktemp("a"), tmp_path_factory.mktemp("b")
    (first / "tool").write_text("not executable")
    (second / "tool").write_text("#!/bin/sh\n")
    (second / "tool").chmod(0o755)
    path = f"{first}:{second}"
    assert find_binary("tool", path) == str(second / "tool")
    assert find_binary("other", path) is None
    assert find_binary(str(second / "tool"), "") == str(second / "tool")
    assert find_binary(str(first / "tool"), path) is None
