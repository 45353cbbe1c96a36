"""Make the picture of `cafleet top` in docs/images: the small team of the web page's pictures.

    .venv/bin/python scripts/top_picture.py [FOLDER]

Needs Chromium (`scripts/system-packages.sh chromium`) and the development environment.
"""

import asyncio
import os
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from playwright.sync_api import sync_playwright  # noqa: E402
from tests.support.browser import ARGUMENTS, CHROMIUM  # noqa: E402
from tests.support.memory_multiplexer import MemoryMultiplexer  # noqa: E402
from tests.support.web_fleet import DEAD_SERVER, WebFleet, new_database, story  # noqa: E402
from textual.widgets import DataTable  # noqa: E402

from cafleet import config  # noqa: E402
from cafleet.broker import messages  # noqa: E402
from cafleet.clock import utc_now  # noqa: E402
from cafleet.db.database import Database  # noqa: E402
from cafleet.runtime import Runtime  # noqa: E402
from cafleet.top.app import Dashboard  # noqa: E402

SIZE = (100, 30)
STORY_SECONDS = 2870
"""How long ago the story begins, so that its last message is a few seconds old."""
PANES = 8


def main(folder: Path) -> None:
    """Write `top.png` into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        database = new_database(Path(scratch))
        fleet = WebFleet(database, ago_seconds=STORY_SECONDS)
        ids = story(fleet)
        fleet.claim_monitor(os.getpid())
        WebFleet(database, "docs-sprint", ago_seconds=90)
        runtime = _runtime(scratch, database, ids["docs"])
        messages.send(runtime, ids["boss"], ids["docs"], "Please add the new error codes to chapter 4.")
        drawing = asyncio.run(_draw(runtime, fleet.fleet_id, ids))
        database.close()
    _render(drawing, folder / "top.png")
    print("top.png")


def _runtime(home: str, database: Database, reading: int) -> Runtime:
    """A runtime whose panes are in memory; somebody reads in the pane of the member `reading`."""
    multiplexer = MemoryMultiplexer()
    for number in range(1, PANES + 1):
        pane = multiplexer.pane(multiplexer.add_pane(server=DEAD_SERVER, pane=f"%{number}"))
        pane.mode = "copy-mode" if number == reading else ""
    environ = {"HOME": home, "CAFLEET_DATABASE_URL": f"sqlite:///{database.path}"}
    return Runtime(config.load(environ), database, lambda _name: multiplexer, utc_now)


async def _draw(runtime: Runtime, fleet_id: int, ids: dict[str, int]) -> str:
    app = Dashboard(runtime.for_another_thread, fleet_id)
    async with app.run_test(size=SIZE) as pilot:
        roster = app.query_one("#roster", DataTable)
        async with asyncio.timeout(30):
            while not roster.row_count:
                await pilot.pause(0.05)
            row = next(at for at, key in enumerate(roster.rows) if key.value == str(ids["docs"]))
            roster.move_cursor(row=row)
            while app._view is None or app._view.member_id != ids["docs"]:
                await pilot.pause(0.05)
        await pilot.pause(0.5)
        return app.export_screenshot(title="cafleet top")


def _render(drawing: str, target: Path) -> None:
    """The drawing as a picture, with a font of this machine instead of one from the network."""
    drawing = re.sub(r"@font-face\s*{[^}]*}", "", drawing)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        page = browser.new_page(viewport={"width": 1240, "height": 800})
        page.set_content(f"<style>body {{ margin: 0; }} svg {{ width: 1240px; }}</style>{drawing}")
        page.locator("svg").screenshot(path=target, omit_background=True)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images")
