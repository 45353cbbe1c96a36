from pathlib import Path

import pytest
from tests.support.database import fresh_database

from cafleet.db import fleets, members
from cafleet.errors import MonitorExists
from cafleet.models import Placement

MONITOR = '{"skills":[],"cafleet":{"kind":"monitor"}}'


def test_the_index_has_the_last_word_on_a_second_monitor(tmp_path: Path) -> None:
    database = fresh_database(tmp_path)
    with database.write() as conn:
        fleet, other = (fleets.insert(conn, name, "t") for name in "ab")
        first = members.insert(conn, fleet, "m", "", MONITOR, "t")
        with pytest.raises(MonitorExists, match=rf"\(member {first}\)$"):
            members.insert(conn, fleet, "n", "", MONITOR, "t")
        assert members.insert(conn, other, "m", "", MONITOR, "t")
        assert members.deregister(conn, first, "t")
        assert members.insert(conn, fleet, "n", "", MONITOR, "t")
    database.close()


def test_deregistering_happens_once(tmp_path: Path) -> None:
    database = fresh_database(tmp_path)
    with database.write() as conn:
        fleet = fleets.insert(conn, "a", "t")
        one, two = (members.insert(conn, fleet, name, "", "{}", "t") for name in "ab")
        assert members.deregister(conn, one, "t1")
        assert not members.deregister(conn, one, "t2")
        assert members.deregister_fleet(conn, fleet, "t3") == 1
        found = members.get(conn, one), members.get(conn, two)
        assert [member and member.deregistered_at for member in found] == ["t1", "t3"]
        assert members.count_active(conn, fleet) == 0
    database.close()


def test_a_placement_is_pending_placed_and_removed(tmp_path: Path) -> None:
    database = fresh_database(tmp_path)
    with database.write() as conn:
        fleet = fleets.insert(conn, "a", "t")
        one = members.insert(conn, fleet, "a", "", "{}", "t")
        pending = Placement(one, "s", "@1", None, "tmux", "claude", "t", "server")
        placed = Placement(one, "s2", "@2", "%3", "herdr", "claude", "t2", None)
        assert not members.move_placement(conn, placed)
        members.insert_placement(conn, pending)
        assert members.get_placement(conn, one) == pending
        assert members.move_placement(conn, placed)
        member = members.get(conn, one)
        assert member is not None
        assert member.placement == placed
        assert members.list_placements(conn, fleet) == [placed]
        assert members.by_pane(conn, None, "%3") == member
        assert members.by_pane(conn, "server", "%3") is None
        assert members.lives_in_pane(conn, one, None, "%3")
        assert members.delete_placement(conn, one)
        assert not members.delete_placement(conn, one)
        assert members.delete_fleet_placements(conn, fleet) == 0
    database.close()
