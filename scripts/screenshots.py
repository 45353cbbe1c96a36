"""Make the pictures of the web page in docs/images: a small team at work, light, dark, and on a phone.

    .venv/bin/python scripts/screenshots.py [FOLDER]

Needs Chromium (`scripts/system-packages.sh chromium`) and the development environment.
"""

import os
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from playwright.sync_api import Page, ViewportSize, sync_playwright  # noqa: E402
from tests.support.browser import ARGUMENTS, CHROMIUM  # noqa: E402
from tests.support.shown_panes import ShownPanes  # noqa: E402
from tests.support.tmux_server import TmuxServer  # noqa: E402
from tests.support.web_fleet import WebFleet, new_database, story  # noqa: E402
from tests.support.web_server import WebServer  # noqa: E402

DESKTOP: ViewportSize = {"width": 1280, "height": 780}
PHONE: ViewportSize = {"width": 390, "height": 780}
STORY_SECONDS = 2870
"""How long ago the story begins, so that its last message is a few seconds old."""


def main(folder: Path) -> None:
    """Write one PNG per view into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        database = new_database(Path(scratch))
        fleet = WebFleet(database, ago_seconds=STORY_SECONDS)
        tmux = TmuxServer()
        ids = story(fleet, ShownPanes(tmux, Path(scratch)))
        fleet.claim_monitor(os.getpid())
        WebFleet(database, "docs-sprint", ago_seconds=90)
        server = WebServer(database.path, Path(scratch)).start()
        base = f"{server.url}#/fleets/{fleet.fleet_id}"
        try:
            _shoot(folder / "web-light.png", base, DESKTOP, "light", opened=".entry summary")
            _shoot(folder / "web-dark.png", f"{base}/members/{ids['lexer']}", DESKTOP, "dark")
            _shoot(folder / "web-phone.png", base, PHONE, "light")
            _shoot(folder / "web-phone-members.png", f"{base}/members", PHONE, "dark")
        finally:
            server.stop()
            tmux.stop()
            database.close()


def _shoot(target: Path, address: str, size: ViewportSize, scheme: str, opened: str = "") -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        context = browser.new_context(viewport=size, locale="en-GB", timezone_id=_where_it_is_noon())
        page = context.new_page()
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        page.goto(address)
        _settle(page)
        if opened:
            page.locator(opened).last.click()
            page.locator(".scroller").evaluate("item => { item.scrollTop = item.scrollHeight; }")
            page.mouse.move(0, 0)
            page.wait_for_timeout(300)
        page.screenshot(path=target)
        browser.close()
    print(target.name)


def _where_it_is_noon() -> str:
    """A time zone in which the story does not cross midnight, whenever this runs."""
    hours = 12 - datetime.now(UTC).hour
    return f"Etc/GMT{-hours:+d}" if hours else "UTC"


def _settle(page: Page) -> None:
    page.locator('.connection[data-state="live"]').wait_for()
    page.locator(".member-row, .entry").locator("visible=true").first.wait_for()
    page.locator('.member-state[data-state="working"]').first.wait_for(state="attached")
    page.wait_for_timeout(300)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images")
