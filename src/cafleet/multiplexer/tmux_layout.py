"""Where a new tmux pane has space for an agent's screen."""

from collections.abc import Sequence

from cafleet.multiplexer.base import LEAST_COLUMNS, LEAST_ROWS, SplitSide, split_side
from cafleet.multiplexer.tmux_formats import OPENED_FORMAT, Target, Where


def placings(target: Target, where: Where, argv: Sequence[str]) -> list[tuple[str, ...]]:
    """The commands that open a pane, best place first; the last one needs no space.

    A pane that is too small for an agent's screen is no place: its state could not be read.
    """
    made = ("-d", "-P", "-F", OPENED_FORMAT)
    side = split_side(where.width, where.height)
    sideways = ("-h",) if side is SplitSide.RIGHT else ()
    split = ("split-window", *made, *sideways, "-t", target.pane, "--", *argv)
    tile = ("select-layout", "-t", target.pane, "tiled")
    placings = []
    if where.zoomed:
        pass  # Whoever zoomed a pane wants to see it alone: a split would end that.
    elif side is not SplitSide.NONE:
        placings.append(split)
    elif _tiles_are_usable(where):
        placings.append((*tile, ";", *split, ";", *tile))
    placings.append(("new-window", *made, "-t", f"{where.session}:", "--", *argv))
    return placings


def _tiles_are_usable(where: Where) -> bool:
    """Whether the window's panes and one more, tiled, each have the least size."""
    rows = columns = 1
    while rows * columns < where.window_panes + 1:  # as tmux lays out its tiles
        rows += 1
        if rows * columns < where.window_panes + 1:
            columns += 1
    height = (where.window_height - (rows - 1)) // rows
    width = (where.window_width - (columns - 1)) // columns
    return height >= LEAST_ROWS and width >= LEAST_COLUMNS
