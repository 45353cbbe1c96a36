"""What an automated check can find: none of it, on every view, in both themes, on a phone, at 200 %."""

from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Page, ViewportSize, expect
from tests.support.browser import DESKTOP, PHONE, new_page
from tests.support.shown_panes import ShownPanes
from tests.support.web_fleet import WebFleet, story
from tests.support.web_server import WebServer

ZOOMED: ViewportSize = {"width": DESKTOP["width"] // 2, "height": DESKTOP["height"] // 2}
"""What a page has to itself at 200 %."""


def _open_broadcast(page: Page) -> None:
    page.locator(".entry summary").last.click()


def _open_suggestions(page: Page) -> None:
    page.get_by_label("Message, sent as the Director").fill("@")
    expect(page.locator(".suggestions li").first).to_be_visible()


def _open_help(page: Page) -> None:
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()


def _nothing(_page: Page) -> None:
    pass


VIEWS: list[tuple[str, str, Callable[[Page], None]]] = [
    ("/", ".fleet-card", _nothing),
    ("/fleets/999999", ".error-card", _nothing),
    ("/fleets/{fleet}/members", ".member-row", _nothing),
    ("/fleets/{fleet}/members/{scout}/sent", ".mail", _nothing),
    ("/fleets/{fleet}/members/{lexer}", ".mail", _nothing),
    ("/fleets/{fleet}/monitor", ".monitor-state", _nothing),
    ("/fleets/{fleet}", ".entry", _open_broadcast),
    ("/fleets/{fleet}", ".entry", _open_suggestions),
    ("/fleets/{fleet}", ".entry", _open_help),
]
CONTRAST = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}
"""What another theme can change."""


@pytest.mark.parametrize(
    ("viewport", "scheme"),
    [(DESKTOP, "light"), (DESKTOP, "dark"), (PHONE, "light"), (PHONE, "dark"), (ZOOMED, "light")],
    ids=["light", "dark", "phone-light", "phone-dark", "zoomed"],
)
def test_no_view_has_a_finding(
    server: WebServer,
    fleet: WebFleet,
    browser: Browser,
    panes: ShownPanes,
    viewport: ViewportSize,
    scheme: str,
) -> None:
    ids = story(fleet, panes)
    problems: list[str] = []
    page = new_page(browser, problems, viewport)
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce")
    options = {"resultTypes": ["violations"], **(CONTRAST if scheme == "dark" else {})}
    findings = []
    for route, mark, act in VIEWS:
        page.goto(f"{server.url}#{route.format(fleet=fleet.fleet_id, **ids)}")
        expect(page.locator(mark).locator("visible=true").first).to_be_visible()
        if "{fleet}" in route:
            expect(page.locator('.member-state[data-state="asks"]')).to_have_count(1)
        act(page)
        for violation in Axe().run(page, options=options).response["violations"]:
            nodes = [node["html"][:160] for node in violation["nodes"]]
            findings.append((route, violation["impact"], violation["id"], nodes))
    page.context.close()
    assert findings == []
    assert problems == []
