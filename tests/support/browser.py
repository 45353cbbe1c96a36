"""A real Chromium, driven by Playwright."""

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright
from tests.support.waiting import DEADLINE_MILLISECONDS

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or "/usr/bin/chromium"
ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
DESKTOP: ViewportSize = {"width": 1360, "height": 820}
PHONE: ViewportSize = {"width": 390, "height": 780}
expect.set_options(timeout=DEADLINE_MILLISECONDS)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser per module, not per process: while Playwright is open nobody else can run an event loop."""
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield launched
        launched.close()


def new_page(browser: Browser, problems: list[str], viewport: ViewportSize = DESKTOP) -> Page:
    """A page in a context of its own. Uncaught errors and refused content end up in `problems`."""
    context = browser.new_context(viewport=viewport, locale="en-GB", timezone_id="UTC")
    context.set_default_timeout(DEADLINE_MILLISECONDS)
    page = context.new_page()
    page.on("pageerror", lambda error: problems.append(f"uncaught: {error}"))
    page.on(
        "console",
        lambda message: (
            problems.append(message.text)
            if message.type == "error" and "Failed to load resource" not in message.text
            else None
        ),
    )
    return page


@pytest.fixture
def problems() -> Iterator[list[str]]:
    """What the page complained about; must stay empty."""
    found: list[str] = []
    yield found
    assert found == []


@pytest.fixture
def page(browser: Browser, problems: list[str]) -> Iterator[Page]:
    """A page of desktop size."""
    opened = new_page(browser, problems)
    yield opened
    opened.context.close()


@pytest.fixture
def phone(browser: Browser, problems: list[str]) -> Iterator[Page]:
    """A page of phone size."""
    opened = new_page(browser, problems, PHONE)
    yield opened
    opened.context.close()
