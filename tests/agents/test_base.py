"""What every agent module shares."""

import pytest

from cafleet.agents.base import AgentState, Extent, Reading, find_binary, option, utf16_length


def test_the_texts_that_a_composer_can_hold() -> None:
    assert Reading(AgentState.UNKNOWN, None).texts() == []
    assert Reading(AgentState.AT_REST, "").texts() == [""]
    reading = Reading(AgentState.AT_REST, "a", Extent.WHOLE, ("b", "c"))
    assert reading.texts() == ["a", "a\nb", "a\nb\nc"]


def test_length_is_counted_as_the_programs_count_it() -> None:
    assert utf16_length("a日👩") == 4


def test_option() -> None:
    assert option("--name", "ada") == ["--name", "ada"]
    assert option("--name", "-x") == ["--name=-x"]


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
