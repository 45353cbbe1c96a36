"""Which columns a table shows, and how wide."""

from rich.text import Text

from cafleet.top.columns import PADDING, Column, fit

COLUMNS = (
    Column("id"),
    Column("from", least=6, share=6),
    Column("age", dropped=1),
    Column("ack", dropped=2),
    Column("text", least=12, stretch=True),
)


def _row(*cells: str) -> list[Text]:
    return [Text(cell) for cell in cells]


def _widths(rows: list[list[Text]], width: int) -> dict[str, int]:
    fitted = fit(COLUMNS, rows, width)
    assert [column.label for column in fitted] == [COLUMNS[column.cell].label for column in fitted]
    return {column.label: column.width for column in fitted}


def test_without_rows_the_labels_count() -> None:
    assert _widths([], 80) == {"id": 2, "from": 4, "age": 3, "ack": 3, "text": 80 - 12 - 5 * PADDING}


def test_a_long_wide_name_leaves_room_for_the_rest() -> None:
    widths = _widths([_row("1", "漢" * 30, "5m", "✓", "x" * 300)], 80)
    assert widths["from"] == 80 // 6
    assert sum(widths.values()) + len(widths) * PADDING == 80


def test_a_name_is_whole_where_the_text_leaves_room() -> None:
    widths = _widths([_row("1", "漢" * 10, "5m", "✓", "hi")], 80)
    assert widths["from"] == 20


def test_where_it_is_narrow_columns_go_in_their_order() -> None:
    rows = [_row("1", "somebody", "5m", "✓", "x" * 300)]
    assert "age" in _widths(rows, 36)
    assert list(_widths(rows, 35)) == ["id", "from", "ack", "text"]
    assert list(_widths(rows, 30)) == ["id", "from", "text"]


def test_what_must_be_shown_is_shown_in_no_room_at_all() -> None:
    assert list(_widths([_row("1", "a", "5m", "✓", "b")], 0)) == ["id", "from", "text"]
