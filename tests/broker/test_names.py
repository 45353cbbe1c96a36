import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cafleet.broker.names import check_description, check_name, check_skill
from cafleet.errors import InvalidInput

UNSAFE = ("Cc", "Cf", "Cs", "Zl", "Zp")


@given(st.text(max_size=70))
def test_a_name_is_accepted_exactly_by_the_rules(name: str) -> None:
    acceptable = (
        1 <= len(name) <= 64
        and not any(unicodedata.category(character) in UNSAFE for character in name)
        and name == name.strip()
        and name.casefold() not in ("*", "all")
    )
    if acceptable:
        assert check_name(name) == name
    else:
        with pytest.raises(InvalidInput):
            check_name(name)


@pytest.mark.parametrize("name", ["*", "all", "All", "ALL"])
def test_reserved_names_are_refused_in_any_case(name: str) -> None:
    with pytest.raises(InvalidInput, match="reserved"):
        check_name(name)


@pytest.mark.parametrize("name", ["x\x1b]0;t\x07", "a\u200bb", "a\u2028b", "\u202eevil", "a\nb", "a\ud800b"])
def test_the_offending_character_is_named_and_not_shown(name: str) -> None:
    with pytest.raises(InvalidInput, match=r"\(U\+[0-9A-F]{4,}\)") as caught:
        check_name(name)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", [" a", "a ", "\u3000a", "a\xa0"])
def test_blanks_at_the_ends_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="blank"):
        check_name(name)


@pytest.mark.parametrize("name", ["-x", "; touch Z", "日本 語", "é" * 64, "allison"])
def test_unusual_names_are_names(name: str) -> None:
    assert check_name(name) == name


def test_a_description_may_be_empty_and_has_500_characters_at_most() -> None:
    assert check_description("") == ""
    assert check_description("d" * 500)
    with pytest.raises(InvalidInput, match="501"):
        check_description("d" * 501)
    with pytest.raises(InvalidInput):
        check_description("two\nlines")


@pytest.mark.parametrize("skill", ["", " x", "x\n", "y" * 65])
def test_a_skill_obeys_the_rules_of_a_name(skill: str) -> None:
    with pytest.raises(InvalidInput):
        check_skill(skill)
