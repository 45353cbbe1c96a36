"""How the demo shows what happens."""

from cafleet.demo.transcript import Transcript


def test_a_table_is_aligned_however_long_its_cells_are() -> None:
    shown: list[str] = []
    transcript = Transcript(shown.append, lambda text, _style: text)
    transcript.answer("id\tname\tpane\n1\tdirector\t%0 (exited: a shell is there)\n2\t日本\t%1\nand a line")
    assert shown == [
        "     id  name      pane",
        "     1   director  %0 (exited: a shell is there)",
        "     2   日本      %1",
        "     and a line",
    ]
