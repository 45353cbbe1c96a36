from pathlib import Path

from tests.support.database import fresh_database

from cafleet.db import asset_installs
from cafleet.models import AssetInstall


def test_there_is_one_row_per_agent_and_path(tmp_path: Path) -> None:
    database = fresh_database(tmp_path)
    first = AssetInstall("b", "/x", "1", "t1")
    with database.write() as conn:
        assert asset_installs.list_all(conn) == []
        for install in (first, AssetInstall("a", "/x", "1", "t1"), AssetInstall("b", "/w", "1", "t1")):
            asset_installs.upsert(conn, install)
        asset_installs.upsert(conn, first._replace(cafleet_version="2", installed_at="t2"))
        assert asset_installs.list_all(conn) == [
            AssetInstall("a", "/x", "1", "t1"),
            AssetInstall("b", "/w", "1", "t1"),
            AssetInstall("b", "/x", "2", "t2"),
        ]
    database.close()
