"""Which multiplexer: by environment for the calling pane, by name for a placement (SPEC 5.1)."""

import importlib
from typing import cast

from cafleet.config import Config
from cafleet.errors import MultiplexerError, NotInMultiplexer
from cafleet.multiplexer.base import Multiplexer
from cafleet.multiplexer.own_pane import SETTING, marked_backends

ENTRY_POINT_GROUP = "cafleet.multiplexers"
_BUILT_IN = {
    "tmux": ("cafleet.multiplexer.tmux", "Tmux"),
    "herdr": ("cafleet.multiplexer.herdr", "Herdr"),
}


class UnknownMultiplexer(MultiplexerError):
    """A backend name that is neither built in nor registered by an installed package."""

    def __init__(self, name: str, known: list[str], *, variable: str | None = None) -> None:
        self.name, self.known = name, known
        source = f"{variable} names an unknown" if variable else "unknown"
        super().__init__(f"{source} multiplexer '{name}'; known: {', '.join(known)}")


def current_backend(config: Config) -> str:
    """Name of the backend whose pane this process runs in.

    Raises:
        NotInMultiplexer: neither `TMUX` nor `HERDR_ENV` is set.
        MultiplexerError: both are set, or `CAFLEET_MULTIPLEXER` names an unknown backend.
    """
    chosen = config.environ.get(SETTING)
    if chosen:
        if chosen not in _BUILT_IN and chosen not in _registered():
            raise UnknownMultiplexer(chosen, known_backends(), variable=SETTING)
        return chosen
    found = marked_backends(config.environ)
    if len(found) > 1:
        raise MultiplexerError(
            f"both TMUX and HERDR_ENV are set; set {SETTING} to 'tmux' or 'herdr' to choose one"
        )
    if not found:
        raise NotInMultiplexer(
            f"not inside a tmux or herdr pane: neither TMUX nor HERDR_ENV is set ({SETTING} chooses)"
        )
    return found[0]


def multiplexer(name: str, config: Config) -> Multiplexer:
    """The backend `name`; every backend is made from the settings alone.

    Raises:
        UnknownMultiplexer: no such backend, built in or registered.
        MultiplexerError: a registered one cannot be loaded.
    """
    if name in _BUILT_IN:
        module, attribute = _BUILT_IN[name]
        factory = getattr(importlib.import_module(module), attribute)
    else:
        point = _registered().get(name)
        if point is None:
            raise UnknownMultiplexer(name, known_backends())
        factory = _load(name, point)
    return cast("Multiplexer", factory(config.environ))


def known_backends() -> list[str]:
    """Every backend name that `multiplexer` accepts."""
    return sorted({*_BUILT_IN, *_registered()})


def _registered() -> dict[str, object]:
    """Entry points by name. The metadata module is slow to load: only unknown names come here."""
    metadata = importlib.import_module("importlib.metadata")
    return {point.name: point for point in metadata.entry_points(group=ENTRY_POINT_GROUP)}


def _load(name: str, point: object) -> object:
    try:
        return point.load()  # type: ignore[attr-defined]
    except Exception as error:  # Foreign code: whatever it raises is one clear line here.
        raise MultiplexerError(f"multiplexer '{name}' cannot be loaded: {error}") from error
