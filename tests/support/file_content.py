"""All that a database file says, looked at without touching it."""

import re
import shutil
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

TIME = re.compile(r"^\d{4}-\d\d-\d\dT")
TABLES = ("fleets", "members", "member_placements", "messages", "monitor_runtime", "asset_installs")

Content = tuple[tuple[object, ...], ...]


def content(
    folder: Path, scratch: Path, *, name: str = "cafleet_v8.db", tables: Iterable[str] = TABLES
) -> Content:
    """All rows of the file `name` in `folder`, without times. The file must be whole.

    It is looked at in the copy `scratch` of its folder, so that whoever comes next finds what a kill left.
    """
    shutil.rmtree(scratch, ignore_errors=True)
    shutil.copytree(folder, scratch)
    with closing(sqlite3.connect(scratch / name)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        found: list[tuple[object, ...]] = []
        for table in tables:
            rows = connection.execute(f"SELECT * FROM {table}")  # noqa: S608  # own names
            found += [(table, *("T" if TIME.match(str(cell)) else cell for cell in row)) for row in rows]
        for row in connection.execute(
            """SELECT s.message_id, s.text, count(d.message_id) FROM messages s LEFT JOIN messages d
            ON d.origin_message_id = s.message_id AND d.type = 'unicast'
            WHERE s.type = 'broadcast_summary' GROUP BY s.message_id"""
        ):
            assert row[1] == f"Broadcast sent to {row[2]} recipients", "half a broadcast"
    return tuple(found)
