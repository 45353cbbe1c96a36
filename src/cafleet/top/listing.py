"""A table of the dashboard: as wide as its place, with its cursor where the person left it."""

from collections.abc import Sequence

from rich.text import Text
from textual import events
from textual.widgets import DataTable

from cafleet.top.columns import PADDING, Column, Fitted, fit
from cafleet.top.rows import Row


class Listing(DataTable[Text]):
    """Rows of text in columns that are fitted to it."""

    def __init__(
        self, columns: Sequence[Column], *, id: str, follows: bool = False, marks: bool = False
    ) -> None:
        """`follows`: a cursor at the top stays there when rows appear above it, instead of on its row.
        `marks`: its cursor is seen without the focus, too.
        """
        super().__init__(
            id=id,
            cursor_type="row",
            cell_padding=PADDING // 2,
            cursor_foreground_priority="css" if marks else "renderable",
        )
        self._marks = marks
        self._wanted_columns, self._follows = columns, follows
        self._shown: Sequence[Row] = ()
        self._fitted: list[Fitted] = []

    def on_focus(self) -> None:
        self.cursor_foreground_priority = "css"

    def on_blur(self) -> None:
        """A cursor that is not drawn leaves its row its colours."""
        if not self._marks:
            self.cursor_foreground_priority = "renderable"

    def on_resize(self, _event: events.Resize) -> None:
        self.show_rows(self._shown)

    @property
    def chosen(self) -> str | None:
        """The key of the row under the cursor."""
        if not 0 <= self.cursor_row < self.row_count:
            return None
        return self.coordinate_to_cell_key(self.cursor_coordinate).row_key.value

    def show_rows(self, rows: Sequence[Row], chosen: str | None = None) -> None:
        """Show these. `chosen`: the key of the row for the cursor; None: it stays on the row that it is on,
        or, where that has gone, at its height."""
        before, top = self.cursor_row, self.scroll_offset.y
        if chosen is None and not (self._follows and before == 0):
            chosen = self.chosen
        old, self._shown = self._shown, rows
        fitted = fit(self._wanted_columns, [row.cells for row in rows], self._room())
        keys = [row.key for row in rows]
        if fitted == self._fitted and keys == [key.value for key in self.rows]:
            self._update([row for row, shown in zip(rows, old, strict=True) if row != shown])
        else:
            self._rebuild(rows, fitted)
            self.scroll_to(y=top, animate=False)
        at = keys.index(chosen) if chosen in keys else min(before, len(keys) - 1)
        if at >= 0 and self.cursor_row != at:
            self.move_cursor(row=at, animate=False)

    def _room(self) -> int:
        """Cells for columns, with place for a scroll bar kept free. On a tab that was not shown yet a table
        has no size: it will be as wide as all."""
        if not self.is_attached:
            return 0
        return (self.outer_size.width or self.app.size.width) - self.styles.scrollbar_size_vertical

    def _update(self, rows: Sequence[Row]) -> None:
        for row in rows:
            shown, cells = self.get_row(row.key), _cells(row, self._fitted)
            for column, old, cell in zip(self.columns, shown, cells, strict=True):
                if old != cell:
                    self.update_cell(row.key, column, cell)

    def _rebuild(self, rows: Sequence[Row], fitted: list[Fitted]) -> None:
        # Columns are made anew, with their width: the table's own measuring comes after it has
        # painted, keeps what it has painted, and never makes a column narrower again.
        self._fitted = fitted
        self.clear(columns=True)
        for column in fitted:
            self.add_column(column.label, width=column.width, key=column.label)
        for row in rows:
            self.add_row(*_cells(row, fitted), key=row.key)


def _cells(row: Row, fitted: Sequence[Fitted]) -> list[Text]:
    cells = []
    for column in fitted:
        cell = row.cells[column.cell].copy()
        cell.truncate(column.width, overflow="ellipsis")
        cells.append(cell)
    return cells
