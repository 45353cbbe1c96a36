"""Our cheap named tuples behave as those of `typing`, which type checkers take them for."""

import copy
import pickle
import subprocess
import sys
import typing
from collections.abc import Callable
from typing import Any

import pytest

from cafleet import light_typing


class Ours(light_typing.NamedTuple):
    """A point."""

    x: int
    y: int
    name: str | None = None
    """What it is called."""

    @property
    def total(self) -> int:
        """Both coordinates."""
        return self.x + self.y


class Theirs(typing.NamedTuple):
    """A point."""

    x: int
    y: int
    name: str | None = None

    @property
    def total(self) -> int:
        """Both coordinates."""
        return self.x + self.y


USES: dict[str, Callable[[Any], object]] = {
    "by place": lambda kind: tuple(kind(1, 2, "a")),
    "by name": lambda kind: tuple(kind(y=2, x=1, name="a")),
    "mixed": lambda kind: tuple(kind(1, y=2)),
    "default": lambda kind: kind(1, 2).name,
    "fields": lambda kind: (kind(1, 2).x, kind(1, 2).y, kind(1, 2, "a").name),
    "property": lambda kind: kind(1, 2).total,
    "repr": lambda kind: repr(kind(1, 2, "a")).partition("(")[2],
    "dictionary": lambda kind: list(kind(1, 2)._asdict().items()),
    "replaced": lambda kind: tuple(kind(1, 2)._replace(y=3, name="b")),
    "made": lambda kind: tuple(kind._make(iter([1, 2, None]))),
    "kind kept": lambda kind: type(kind(1, 2)._replace(x=0)) is type(kind._make([1, 2, 3])) is kind,
    "equal to a tuple": lambda kind: kind(1, 2) == (1, 2, None),
    "hash": lambda kind: hash(kind(1, 2)),
    "ordered": lambda kind: sorted([kind(2, 1), kind(1, 2)]) == [(1, 2, None), (2, 1, None)],
    "unpacked": lambda kind: [*kind(1, 2)],
    "names": lambda kind: (kind._fields, kind.__match_args__),
    "defaults": lambda kind: kind._field_defaults,
    "annotations": lambda kind: kind.__annotations__,
    "documentation": lambda kind: kind.__doc__,
    "no dictionary": lambda kind: hasattr(kind(1, 2), "__dict__"),
    "copied": lambda kind: copy.deepcopy(kind(1, 2)) == kind(1, 2),
    "pickled": lambda kind: pickle.loads(pickle.dumps(kind(1, 2))) == kind(1, 2),
    "size": lambda kind: sys.getsizeof(kind(1, 2)),
}

REFUSALS: dict[str, Callable[[Any], object]] = {
    "too few": lambda kind: kind(1),
    "too many": lambda kind: kind(1, 2, "a", 4),
    "unknown name": lambda kind: kind(1, 2, z=3),
    "given twice": lambda kind: kind(1, 2, x=3),
    "too few to make": lambda kind: kind._make([1]),
    "set": lambda kind: setattr(kind(1, 2), "x", 3),
    "another attribute": lambda kind: setattr(kind(1, 2), "z", 3),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_it_is_used_like_that_of_typing(use: Callable[[Any], object]) -> None:
    assert use(Ours) == use(Theirs)


@pytest.mark.parametrize("misuse", REFUSALS.values(), ids=REFUSALS)
def test_it_refuses_what_that_of_typing_refuses(misuse: Callable[[Any], object]) -> None:
    with pytest.raises((TypeError, AttributeError)) as theirs:
        misuse(Theirs)
    with pytest.raises(theirs.type):
        misuse(Ours)


def test_an_unknown_name_is_not_replaced() -> None:
    with pytest.raises(TypeError, match="unexpected field names: \\['z'\\]"):
        Ours(1, 2)._replace(z=3)  # type: ignore[call-arg]


def test_it_is_matched_by_place() -> None:
    match Ours(1, 2, "a"):
        case Ours(x, y, name=name):
            assert (x, y, name) == (1, 2, "a")


def test_the_annotations_of_newer_interpreters_are_found() -> None:
    base: Any = light_typing.NamedTuple
    made = type(base)("Made", (base,), {"__annotate_func__": lambda _format: {"a": int, "b": str}})
    assert made(1, b="c")._asdict() == {"a": 1, "b": "c"}


def test_it_does_not_load_typing() -> None:
    script = "import sys; import cafleet.light_typing; sys.exit('typing' in sys.modules)"
    assert subprocess.run([sys.executable, "-I", "-c", script], check=False).returncode == 0
