"""The page in a real Chromium (SPEC 10)."""

import os
import re
import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect
from tests.support.browser import new_page
from tests.support.shown_panes import ShownPanes
from tests.support.web_fleet import WebFleet, story
from tests.support.web_server import WebServer

from cafleet.broker.text import MAX_BODY_BYTES
from cafleet.db.database import Database

OwnServer = Callable[[], tuple[WebServer, Database]]


def _open(page: Page, server: WebServer, route: str, *, live: bool = True) -> None:
    """Go to a route; `live`: that of a fleet, which is shown and followed then."""
    page.goto(f"{server.url}#{route}")
    if live:
        expect(page.locator(".connection")).to_have_attribute("data-state", "live")
        # The stream is opened before the listings are read, and every fleet has a Director.
        expect(page.locator(".members .member-row").first).to_be_attached()


def _entry(page: Page, text: str) -> Locator:
    return page.locator(".entry").filter(has_text=text)


def _write(page: Page, text: str) -> None:
    page.get_by_label("Message, sent as the Director").fill(text)
    page.get_by_role("button", name="Send").click()


def _path(page: Page) -> str:
    return page.evaluate("location.hash") or ""


# -- first load and empty states ---------------------------------------------------------------


def test_the_first_load_shows_who_is_there_and_what_was_said(
    server: WebServer, fleet: WebFleet, page: Page
) -> None:
    story(fleet)
    _open(page, server, f"/fleets/{fleet.fleet_id}")
    expect(page.locator(".members").first.locator(".member-row")).to_have_count(6)
    docs = page.get_by_role("link", name=re.compile("docs"))
    expect(docs.first).to_contain_text("2 unread")
    expect(docs.first).to_contain_text("opencode")
    expect(page.get_by_text("Left the fleet (1)")).to_be_visible()
    expect(_entry(page, "31 % faster")).to_contain_text("seen")
    expect(_entry(page, "Suite is green")).to_contain_text("not seen yet")
    expect(_entry(page, "Suite is green")).to_be_in_viewport()
    expect(page.locator(".entry").last).to_contain_text("Suite is green")
    expect(page).to_have_title("(4) parser-rewrite · cafleet")


def test_a_fleet_without_messages_says_so(server: WebServer, fleet: WebFleet, page: Page) -> None:
    _open(page, server, f"/fleets/{fleet.fleet_id}")
    expect(page.get_by_text("Nothing was said yet")).to_be_visible()
    page.get_by_role("link", name=re.compile("director")).click()
    expect(page.get_by_text("director has received nothing yet.")).to_be_visible()
    page.get_by_role("link", name="Sent").click()
    expect(page.get_by_text("director has sent nothing yet.")).to_be_visible()


def test_a_database_without_fleets_says_how_to_begin(own_server: OwnServer, page: Page) -> None:
    server, _ = own_server()
    server.start()
    page.goto(server.url)
    expect(page.get_by_text("No fleet is running")).to_be_visible()
    expect(page.get_by_text("cafleet fleet create")).to_be_visible()


def test_the_only_fleet_is_opened_at_once(own_server: OwnServer, page: Page) -> None:
    server, database = own_server()
    fleet = WebFleet(database, "lonely")
    server.start()
    page.goto(server.url)
    expect(page).to_have_title("lonely · cafleet")
    assert _path(page) == f"#/fleets/{fleet.fleet_id}"


def test_fleets_are_chosen_from_the_list_and_the_picker(
    server: WebServer, fleet: WebFleet, page: Page
) -> None:
    other = WebFleet(fleet.database, "the other one")
    _open(page, server, "/", live=False)
    page.locator(".fleet-card").filter(has_text=f"fleet {fleet.fleet_id} ").click()
    assert _path(page) == f"#/fleets/{fleet.fleet_id}"
    page.get_by_label("Fleet", exact=True).select_option(str(other.fleet_id))
    expect(page).to_have_title("the other one · cafleet")
    assert _path(page) == f"#/fleets/{other.fleet_id}"


def test_the_list_of_fleets_is_live(own_server: OwnServer, page: Page) -> None:
    server, database = own_server()
    server.start()
    page.goto(f"{server.url}#/")
    expect(page.get_by_text("No fleet is running")).to_be_visible()
    first = WebFleet(database, "first")
    expect(page.locator(".fleet-card")).to_have_text(re.compile("first.*1 member"))
    page.locator(".fleet-card").focus()
    server.stop()
    expect(page.locator(".notice")).to_contain_text("Disconnected")
    first.member("helper")
    WebFleet(database, "second")
    server.start()
    expect(page.locator(".notice")).to_be_hidden()
    expect(page.locator(".fleet-name")).to_have_text(["second", "first"])
    expect(page.locator(".fleet-card").last).to_contain_text("2 members")
    expect(page.locator(".fleet-card").last).to_be_focused()
    first.delete()
    expect(page.locator(".fleet-name")).to_have_text(["second"])
    assert _path(page) == "#/", "a list that was asked for stays"


def test_an_unknown_fleet_and_an_unknown_address_are_explained(server: WebServer, page: Page) -> None:
    _open(page, server, "/fleets/999999", live=False)
    expect(page.get_by_role("alert")).to_contain_text("fleet 999999 not found")
    _open(page, server, "/nowhere", live=False)
    expect(page.get_by_text("There is no page at this address.")).to_be_visible()


def test_a_failed_first_load_is_shown_and_can_be_tried_again(
    server: WebServer, fleet: WebFleet, page: Page
) -> None:
    story(fleet)
    page.route("**/api/timeline", lambda route: route.fulfill(status=500, json={"detail": "disk on fire"}))
    _open(page, server, f"/fleets/{fleet.fleet_id}", live=False)
    expect(page.get_by_role("alert").filter(has_text="disk on fire")).to_be_visible()
    page.unroute("**/api/timeline")
    page.get_by_role("button", name="Try again").click()
    expect(_entry(page, "Suite is green")).to_be_visible()


# -- one look ----------------------------------------------------------------------------------


def test_one_look_tells_who_works_and_who_waits(
    server: WebServer, fleet: WebFleet, page: Page, panes: ShownPanes
) -> None:
    busy = fleet.member("busy", shown=panes.show("claude", "working"))
    question = panes.show("opencode", "permission")
    asking = fleet.member("asking", shown=question)
    typing = fleet.member("typing", shown=panes.show("codex", "draft"))
    fleet.member("lost")
    fleet.send(fleet.director, busy, "when you are done")
    fleet.send(fleet.director, asking, "and then?", notified=False)
    _open(page, server, f"/fleets/{fleet.fleet_id}/members/{typing}")
    rows = page.locator(".member-row")
    expect(rows.filter(has_text="busy")).to_contain_text("working, 1 unread")
    expect(rows.filter(has_text="asking")).to_contain_text("waits for you")
    expect(rows.filter(has_text="asking").locator(".member-held")).to_have_text("1 not shown yet")
    expect(rows.filter(has_text="lost")).to_contain_text("pane is gone")
    # The Director's pane is gone, too.
    expect(page.locator(".roster-summary")).to_have_text("1 working · 1 waiting · 2 in trouble · 2 unread")
    expect(page.locator(".facts")).to_contain_text("a half-typed text stands there")
    page.keyboard.press("w")
    expect(page.locator(".pending")).to_contain_text(f"member {asking} is at a question")
    panes.change(question, "idle")
    expect(rows.filter(has_text="asking")).to_contain_text("1 unread")
    expect(rows.filter(has_text="asking").locator(".member-held")).to_have_text(
        "1 not shown yet: nobody has typed it yet; its pane is free"
    )


def test_a_broadcast_that_the_timeline_cuts_says_so_and_is_completed_when_opened(
    server: WebServer, fleet: WebFleet, page: Page
) -> None:
    workers = [fleet.member(f"worker {number}", pane=None) for number in range(150)]
    first = fleet.broadcast(fleet.director, workers, "the first", acked=10)
    fleet.broadcast(fleet.director, workers, "the second", acked=150)
    _open(page, server, f"/fleets/{fleet.fleet_id}")
    expect(_entry(page, "the second")).to_contain_text("150 of 150 seen")
    cut = _entry(page, "the first")
    expect(cut).to_contain_text("10 of 50+ seen")
    cut.locator("summary").click()
    expect(cut).to_contain_text("10 of 150 seen")
    expect(cut.locator(".recipients li")).to_have_count(150)
    fleet.ack(first[149])
    expect(cut).to_contain_text("11 of 150 seen")


# -- live --------------------------------------------------------------------------------------


def test_another_process_sends_and_it_appears(server: WebServer, fleet: WebFleet, page: Page) -> None:
    worker = fleet.member("worker", pane=None)
    _open(page, server, f"/fleets/{fleet.fleet_id}")
    assert server.run("setup").returncode == 0
    sent = server.run("message", "send", "--from", str(worker), "--to", str(fleet.director), "I am done")
    assert sent.returncode == 0, sent.stderr
    expect(_entry(page, "I am done")).to_contain_text("not seen yet")
    expect(page.get_by_role("link", name=re.compile("director")).first).to_contain_text("1 unread")
    expect(page.locator("#announcer")).to_contain_text("Message from worker to director")


def test_a_broadcast_is_one_entry_with_a_mark_for_each_recipient(
    server: WebServer, fleet: WebFleet, page: Page
) -> None:
    workers = [fleet.member(f"worker {number}") for number in range(3)]
    _open(page, server, f"/fleets/{fleet.fleet_id}")
    deliveries = fleet.broadcast(fleet.director, workers, "stop everything")
    entry = _entry(page, "stop everything")
    expect(entry).to_have_count(1)
    expect(entry).to_contain_text("everyone")
    expect(entry).to_contain_text("0 of 3 seen")
    fleet.ack(deliveries[1])
    expect(entry).to_contain_text("1 of 3 seen")
    entry.locator("summary").click()
    names = entry.locator(".recipients li")
    expect(names).to_have_count(3)
    expect(names.nth(1)).to_contain_text(re.compile("worker 1.*seen"))
    expect(names.nth(2)).to_contain_text("not seen yet")
    fleet.ack(deliveries[2])
    expect(names.nth(2)).not_to_contain_text("not seen yet")


def test_members_come_and_go(server: WebServer, fleet: WebFleet, page: Page) -> None:
    _open(page, server, f"/fleets/{fleet.fleet_id}")
    worker = fleet.member("newcomer")
    expect(page.locator(".members").first).to_contain_text("newcomer")
    silent = fleet.member("mistake")
    expect(page.locator(".members").first).to_contain_text("mistake")
    fleet.send(fleet.director, worker, "hello")
    fleet.deregister(worker)
    expect(page.get_by_text("Left the fleet (1)")).to_be_visible()
    fleet.deregister(silent)
    expect(page.locator(".members").first).not_to_contain_text("mistake")
    expect(page.locator(".members").first).not_to_contain_text("newcomer")


def test_a_deleted_fleet_is_said_to_be_closed(server: WebServer, fleet: WebFleet, page: Page) -> None:
    _open(page, server, f"/fleets/{fleet.fleet_id}")
    fleet.delete()
    expect(page.locator(".notice")).to_contain_text(f"fleet {fleet.fleet_id} is deleted")
    expect(page.get_by_label("Message, sent as the Director")).to_be_disabled()


def test_new_messages_do_not_pull_a_reader_away(server: WebServer, fleet: WebFleet, page: Page) -> None:
    worker = fleet.member("worker")
    for number in range(40):
        fleet.send(fleet.director, worker, f"line {number}\nand more")
    _open(page, server, f"/fleets/{fleet.fleet_id}")
    page.locator(".scroller").hover()
    page.mouse.wheel(0, -5000)
    expect(_entry(page, "line 0\n")).to_be_in_viewport()
    fleet.send(fleet.director, worker, "brand new")
    newer = page.get_by_role("button", name="1 new message")
    expect(newer).to_be_visible()
    expect(_entry(page, "brand new")).not_to_be_in_viewport()
    newer.click()
    expect(_entry(page, "brand new")).to_be_in_viewport()
    expect(newer).to_be_hidden()


# -- connection --------------------------------------------------------------------------------


def test_nothing_is_lost_or_doubled_over_a_restart_and_the_cut_is_visible(
    own_server: OwnServer, page: Page
) -> None:
    server, database = own_server()
    fleet = WebFleet(database)
    worker = fleet.member("worker")
    before = fleet.send(fleet.director, worker, "before the cut")
    server.start()
    _open(page, server, f"/fleets/{fleet.fleet_id}")
    expect(_entry(page, "before the cut")).to_contain_text("not seen yet")
    server.stop()
    expect(page.locator(".notice")).to_contain_text("Disconnected – reconnecting")
    expect(page.locator(".connection")).to_contain_text("Disconnected")
    missed = [fleet.send(fleet.director, worker, f"missed {number}") for number in range(5)]
    fleet.ack(before)
    server.start()
    expect(page.locator(".connection")).to_have_attribute("data-state", "live")
    expect(page.locator(".notice")).to_be_hidden()
    expect(_entry(page, "before the cut")).not_to_contain_text("not seen yet")
    fleet.send(fleet.director, worker, "after the cut")
    expect(page.locator(".entry")).to_have_count(7)
    keys = page.locator(".entry").evaluate_all("items => items.map(item => Number(item.dataset.key))")
    assert keys == [before, *missed, missed[-1] + 1]
    expect(page.get_by_role("link", name=re.compile("worker")).first).to_contain_text("6 unread")


def test_the_page_starts_over_when_the_stream_cannot_be_resumed(
    server: WebServer, fleet: WebFleet, page: Page
) -> None:
    worker = fleet.member("worker")
    first = fleet.send(fleet.director, worker, "acked by a clock that was set back")
    fleet.send(fleet.director, worker, "acked before", ack=True)
    _open(page, server, f"/fleets/{fleet.fleet_id}")
    expect(page.locator(".entry")).to_have_count(2)
    fleet.pass_time(-7200)
    fleet.ack(first)
    expect(_entry(page, "set back")).not_to_contain_text("not seen yet")
    expect(page.locator(".entry")).to_have_count(2)


def test_nothing_falls_between_the_listing_and_the_stream(
    server: WebServer, fleet: WebFleet, page: Page
) -> None:
    worker = fleet.member("worker")
    fleet.send(fleet.director, worker, "before")

    def late(route: Route) -> None:
        time.sleep(0.5)  # Time for a page that does not wait to read its listings.
        fleet.send(fleet.director, worker, "in between")
        route.continue_()

    page.route("**/api/events?*", late)
    _open(page, server, f"/fleets/{fleet.fleet_id}")
    expect(_entry(page, "in between")).to_be_visible()
    expect(page.locator(".entry")).to_have_count(2)


@pytest.mark.parametrize("goes_on_writing", [False, True])
@pytest.mark.parametrize("cut", ["before the answer", "within it", "by an error of the server"])
def test_a_send_whose_answer_is_lost_is_stored_once(
    server: WebServer, fleet: WebFleet, page: Page, goes_on_writing: bool, cut: str
) -> None:
    worker = fleet.member("worker", pane=None)
    _open(page, server, f"/fleets/{fleet.fleet_id}")
    expect(page.get_by_role("link", name=re.compile("worker"))).to_be_visible()
    field = page.get_by_label("Message, sent as the Director")

    def lose(route: Route) -> None:
        route.fetch()
        if goes_on_writing:
            field.fill("@worker another")
        if cut == "within it":
            route.fulfill(status=200, body='{"message_id":', content_type="application/json")
        elif cut == "by an error of the server":
            route.fulfill(status=500, body='{"detail":"internal error"}', content_type="application/json")
        else:
            route.abort()

    page.route("**/api/messages/send", lose)
    _write(page, "@worker precious")
    expect(page.locator(".composer-status").first).to_contain_text("Not sent")
    page.unroute("**/api/messages/send")
    if goes_on_writing:
        page.get_by_role("button", name="Put the text back").click()
    expect(field).to_have_value("@worker precious")
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".composer-status").first).to_contain_text("Sent to worker")
    rows = server.call("GET", f"/api/members/{worker}/inbox", fleet=fleet.fleet_id).json()
    assert [row["body"] for row in rows] == ["precious"]


def test_a_server_that_is_down_is_reported_by_the_composer_and_the_text_is_kept(
    own_server: OwnServer, page: Page
) -> None:
    server, database = own_server()
    fleet = WebFleet(database)
    fleet.member("worker", pane=None)
    server.start()
    _open(page, server, f"/fleets/{fleet.fleet_id}")
    expect(page.get_by_role("link", name=re.compile("worker"))).to_be_visible()
    server.stop()
    _write(page, "@worker precious")
    expect(page.locator(".composer-status").first).to_contain_text("Not sent")
    expect(page.get_by_label("Message, sent as the Director")).to_have_value("@worker precious")
    server.start()
    expect(page.locator(".connection")).to_have_attribute("data-state", "live")
    page.get_by_role("button", name="Send").click()
    expect(_entry(page, "precious")).to_have_count(1)


# -- writing -----------------------------------------------------------------------------------


def test_a_message_is_written_with_completion_and_sent_as_the_director(
    server: WebServer, fleet: WebFleet, page: Page
) -> None:
    fleet.member("worker one", pane=None)
    worker = fleet.member("worker two", pane=None)
    _open(page, server, f"/fleets/{fleet.fleet_id}")
    field = page.get_by_label("Message, sent as the Director")
    field.click()
    field.press_sequentially("@two")
    expect(page.locator(".suggestions li")).to_have_count(1)
    field.press("Enter")
    expect(field).to_have_value("@worker two ")
    field.press_sequentially("first line")
    field.press("Shift+Enter")
    field.press_sequentially("second line")
    field.press("Enter")
    expect(_entry(page, "second line")).to_contain_text("worker two")
    expect(field).to_have_value("")
    expect(page.locator(".composer-status").first).to_contain_text("Sent to worker two")
    rows = server.call("GET", f"/api/members/{worker}/inbox", fleet=fleet.fleet_id).json()
    assert [(row["from_member_id"], row["body"]) for row in rows] == [
        (fleet.director, "first line\nsecond line")
    ]


def test_everyone_is_addressed_with_all(server: WebServer, fleet: WebFleet, page: Page) -> None:
    for number in range(2):
        fleet.member(f"worker {number}", pane=None)
    _open(page, server, f"/fleets/{fleet.fleet_id}")
    expect(page.locator(".members").first.locator("li")).to_have_count(3)
    _write(page, "@all listen")
    expect(_entry(page, "listen")).to_contain_text("0 of 2 seen")
    expect(page.locator(".composer-status").first).to_contain_text("Sent to 2 members")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("hello", "Begin with @"),
        ("@nobody hello", "No active member has that name"),
        ("@worker", "Write something after the name"),
        ("@twin hello", "Several members have that name"),
        ("@workers hello", "No active member has that name"),
    ],
)
def test_a_text_without_a_clear_recipient_is_not_sent(
    server: WebServer, fleet: WebFleet, page: Page, text: str, complaint: str
) -> None:
    for name in ("worker", "twin", "twin"):
        fleet.member(name, pane=None)
    _open(page, server, f"/fleets/{fleet.fleet_id}")
    expect(page.locator(".members").first.locator("li")).to_have_count(4)
    _write(page, text)
    expect(page.locator(".composer-status").first).to_contain_text(complaint)
    expect(page.get_by_label("Message, sent as the Director")).to_have_value(text)
    assert server.call("GET", "/api/timeline", fleet=fleet.fleet_id).json() == []


def test_members_of_one_name_are_told_apart(server: WebServer, fleet: WebFleet, page: Page) -> None:
    fleet.member("twin", pane=None)
    second = fleet.member("twin", pane=None)
    fleet.member("twin sister", pane=None)
    _open(page, server, f"/fleets/{fleet.fleet_id}")
    expect(page.locator(".members").first.locator("li")).to_have_count(4)
    _write(page, f"@twin#{second} hello")
    expect(_entry(page, "hello")).to_have_count(1)
    _write(page, "@twin sister you too")
    expect(_entry(page, "you too")).to_contain_text("twin sister")
    rows = server.call("GET", f"/api/members/{second}/inbox", fleet=fleet.fleet_id).json()
    assert [row["body"] for row in rows] == ["hello"]


def test_a_message_that_no_pane_showed_is_said_to_be_stored(
    server: WebServer, fleet: WebFleet, page: Page
) -> None:
    fleet.member("worker")
    _open(page, server, f"/fleets/{fleet.fleet_id}")
    expect(page.get_by_role("link", name=re.compile("worker"))).to_be_visible()
    _write(page, "@worker hello")
    expect(page.locator(".composer-status").first).to_contain_text("Stored for worker, not shown")
    expect(page.locator(".pending")).to_contain_text("worker 1 waiting")


# -- monitor -----------------------------------------------------------------------------------


def test_the_monitor_is_woken_and_its_interval_changed(
    server: WebServer, fleet: WebFleet, page: Page
) -> None:
    fleet.member("watch", monitor=True)
    _open(page, server, f"/fleets/{fleet.fleet_id}/monitor")
    expect(page.get_by_text("No monitor has run in this fleet")).to_be_visible()
    expect(page.get_by_role("button", name="Wake now")).to_be_hidden()
    fleet.claim_monitor(os.getpid())
    expect(page.locator(".monitor-state")).to_have_text("Running")
    page.get_by_role("button", name="Wake now").click()
    expect(page.get_by_text("requested, on the next tick")).to_be_visible()
    page.get_by_label("Seconds between wakes").fill("90")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("The interval was saved.")).to_be_visible()
    shown = server.call("GET", "/api/monitor", fleet=fleet.fleet_id).json()
    assert shown["wake_interval_seconds"] == 90
    assert shown["wake_requested_at"] is not None


# -- member detail and addresses ---------------------------------------------------------------


def test_a_member_is_shown_with_inbox_and_sent_live(server: WebServer, fleet: WebFleet, page: Page) -> None:
    ids = story(fleet)
    _open(page, server, f"/fleets/{fleet.fleet_id}")
    page.get_by_role("link", name=re.compile("parser")).first.click()
    detail = page.locator(".inspector")
    expect(detail.get_by_role("heading", name="parser")).to_be_focused()
    expect(detail).to_contain_text("Error recovery in the parser")
    expect(detail).to_contain_text("parsing")
    expect(detail.locator(".mail")).to_have_count(3)
    message = fleet.send(ids["boss"], ids["parser"], "one more thing")
    expect(detail.locator(".mail").first).to_contain_text("one more thing")
    expect(detail.locator(".mail").first).to_contain_text("not seen yet")
    fleet.ack(message)
    expect(detail.locator(".mail").first).not_to_contain_text("not seen yet")
    detail.get_by_role("link", name="Sent").click()
    expect(detail.locator(".mail")).to_have_count(2)
    detail.get_by_role("button", name="Write").click()
    expect(page.get_by_label("Message, sent as the Director")).to_have_value("@parser ")


def test_the_director_acknowledges_its_own_mail_and_nobody_elses(
    server: WebServer, fleet: WebFleet, page: Page
) -> None:
    worker = fleet.member("worker")
    message = fleet.send(worker, fleet.director, "done")
    fleet.send(fleet.director, worker, "more")
    _open(page, server, f"/fleets/{fleet.fleet_id}/members/{worker}")
    expect(page.locator(".mail")).to_have_count(1)
    expect(page.get_by_role("button", name="Acknowledge")).to_have_count(0)
    _open(page, server, f"/fleets/{fleet.fleet_id}/members/{fleet.director}")
    page.get_by_role("button", name="Acknowledge").click()
    expect(_entry(page, "done")).not_to_contain_text("not seen yet")
    rows = server.call("GET", f"/api/members/{fleet.director}/inbox", fleet=fleet.fleet_id).json()
    assert [(row["message_id"], row["status"]) for row in rows] == [(message, "completed")]


def test_a_member_that_left_keeps_its_history(server: WebServer, fleet: WebFleet, page: Page) -> None:
    story(fleet)
    _open(page, server, f"/fleets/{fleet.fleet_id}")
    page.get_by_text("Left the fleet (1)").click()
    page.get_by_role("link", name=re.compile("scout")).first.click()
    detail = page.locator(".inspector")
    expect(detail).to_contain_text("left the fleet")
    expect(detail.locator(".mail")).to_contain_text("Which table-driven lexers")
    expect(detail.get_by_role("button", name="Write")).to_have_count(0)


def test_every_address_survives_reload_back_and_forward(
    server: WebServer, fleet: WebFleet, page: Page
) -> None:
    ids = story(fleet)
    base = f"/fleets/{fleet.fleet_id}"
    marks: list[tuple[str, str]] = [
        ("/", ".fleets h1"),
        (base, ".entry"),
        (f"{base}/members", ".roster"),
        (f"{base}/members/{ids['lexer']}", ".switch [aria-current]:text('Inbox')"),
        (f"{base}/members/{ids['lexer']}/sent", ".switch [aria-current]:text('Sent')"),
        (f"{base}/members/{ids['scout']}", ".inspector :text('left the fleet')"),
        (f"{base}/monitor", ".monitor-state"),
    ]

    def check(index: int) -> None:
        route, mark = marks[index]
        expect(page.locator(mark).first).to_be_visible()
        assert _path(page) == f"#{route}"

    for index, (route, _) in enumerate(marks):
        page.goto(f"{server.url}#{route}")
        check(index)
        page.reload()
        check(index)
    for index in reversed(range(len(marks) - 1)):
        page.go_back()
        check(index)
    for index in range(1, len(marks)):
        page.go_forward()
        check(index)


# -- hostile and large -------------------------------------------------------------------------

HOSTILE = [
    "<img src=x onerror=\"document.title='owned'\">",
    "</script><script>document.title='owned'</script>",
    "javascript:alert(1) [x](javascript:alert(1))",
    "\u202eevil\u202c \u200frtl",
    "👩‍👩‍👧 Z̸̡͎a̶l̵g̷o̴",
    "{{7*7}} ${7*7} <svg/onload=alert(1)>",
    "\x1b[31mred\x07 \x00".replace("\x00", ""),
]


def test_hostile_names_and_bodies_are_text(server: WebServer, fleet: WebFleet, page: Page) -> None:
    members = [fleet.member(text[:60], text, skills='"<b>bold</b>"') for text in HOSTILE]
    for member, text in zip(members, HOSTILE, strict=True):
        fleet.send(member, fleet.director, text)
        fleet.send(fleet.director, member, text)
    fleet.broadcast(fleet.director, members, HOSTILE[0])
    _open(page, server, f"/fleets/{fleet.fleet_id}/members/{members[0]}")
    expect(page.locator(".entry")).to_have_count(2 * len(HOSTILE) + 1)
    expect(page.locator(".mail")).to_have_count(2)
    page.get_by_label("Message, sent as the Director").fill("@")
    expect(page.locator(".suggestions li")).to_have_count(7)
    shown = page.locator(".entry .text").evaluate_all("items => items.map(item => item.textContent)")
    assert shown == [text for text in HOSTILE for _ in range(2)] + [HOSTILE[0]]
    assert page.locator("#app script, #app iframe, .entry img, .mail img, .member-row img").count() == 0
    hrefs = page.locator("a").evaluate_all("items => items.map(item => item.getAttribute('href'))")
    assert all(re.fullmatch(r"#(/[a-z0-9/]*|main)", href) for href in hrefs)
    expect(page).not_to_have_title(re.compile("owned"))


def test_a_body_of_a_mebibyte_is_cut_until_it_is_wanted(
    server: WebServer, fleet: WebFleet, page: Page
) -> None:
    worker = fleet.member("worker")
    fleet.send(fleet.director, worker, "x" * MAX_BODY_BYTES)
    _open(page, server, f"/fleets/{fleet.fleet_id}")
    text = page.locator(".entry .text")
    expect(text).to_be_visible()
    assert text.evaluate("item => item.textContent.length") < 2000
    page.get_by_role("button", name=re.compile("Show all")).click()
    assert text.evaluate("item => item.textContent.length") == MAX_BODY_BYTES
    page.get_by_role("button", name="Show less").click()
    assert text.evaluate("item => item.textContent.length") < 2000
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_two_hundred_members_and_ten_thousand_messages(own_server: OwnServer, page: Page) -> None:
    server, database = own_server()
    fleet = WebFleet(database, "crowd", ago_seconds=86400)
    members = [fleet.member(f"member {number}") for number in range(199)]
    for _ in range(50):
        fleet.broadcast(fleet.director, members, "to everyone", acked=150)
    for number in range(100):
        fleet.send(members[number % 7], fleet.director, f"report {number}")
    server.start()
    _open(page, server, f"/fleets/{fleet.fleet_id}")
    expect(page.locator(".members").first.locator("li")).to_have_count(200)
    newest = page.locator(".entry").last  # By text, every one of the many entries would be asked.
    expect(newest).to_contain_text("report 99")
    expect(newest).to_be_in_viewport()
    fleet.broadcast(fleet.director, members, "one more to everyone")
    expect(newest).to_contain_text("one more to everyone")
    expect(newest).to_contain_text("0 of 199 seen")
    for number in range(950):
        fleet.send(members[number % 5], fleet.director, f"burst {number}")
    expect(newest).to_contain_text("burst 949")
    expect(newest).to_be_in_viewport()
    page.get_by_label("Message, sent as the Director").fill("@member 19")
    expect(page.locator(".suggestions li").first).to_contain_text("member 19")
    page.goto(f"{server.url}#/fleets/{fleet.fleet_id}/members/{fleet.director}")
    more = page.locator(".mailbox-note button")  # By role, all the thousands of nodes would be asked.
    for _ in range(3):
        more.click()
    expect(page.get_by_text("The newest 1000 are shown.")).to_be_visible()
    expect(page.locator(".mail")).to_have_count(1000)


# -- keyboard, phone, themes -------------------------------------------------------------------


def test_everything_is_reached_by_keyboard(server: WebServer, fleet: WebFleet, page: Page) -> None:
    worker = fleet.member("worker", pane=None)
    fleet.member("watch", monitor=True, pane=None)
    fleet.claim_monitor(os.getpid())
    for number in range(3):
        fleet.send(worker, fleet.director, f"report {number}")
    _open(page, server, f"/fleets/{fleet.fleet_id}")
    expect(page.locator(".entry")).to_have_count(3)
    keys = page.keyboard
    keys.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    keys.press("Enter")
    expect(page.locator("main")).to_be_focused()
    keys.press("k")
    expect(page.locator(".entry").last).to_be_focused()
    keys.press("k")
    expect(_entry(page, "report 1")).to_be_focused()
    keys.press("Tab")
    keys.press("Tab")
    keys.press("Tab")
    expect(_entry(page, "report 1").get_by_role("button", name="Write to worker")).to_be_focused()
    keys.press("Enter")
    expect(page.get_by_label("Message, sent as the Director")).to_have_value("@worker ")
    keys.type("thanks")
    keys.press("Enter")
    expect(_entry(page, "thanks")).to_be_visible()
    keys.press("Escape")
    keys.press("m")
    keys.press("ArrowDown")
    keys.press("ArrowDown")
    keys.press("Enter")
    expect(page.locator(".inspector").get_by_role("heading", name="worker")).to_be_focused()
    keys.press("Escape")
    expect(page.locator(".member-row").nth(2)).to_be_focused()
    assert _path(page) == f"#/fleets/{fleet.fleet_id}"
    keys.press("w")
    assert _path(page) == f"#/fleets/{fleet.fleet_id}/monitor"
    keys.press("c")
    keys.type("al")
    expect(page.locator(".suggestions li").first).to_have_attribute("aria-selected", "true")
    keys.press("Tab")
    expect(page.get_by_label("Message, sent as the Director")).to_have_value("@all ")
    keys.press("Escape")
    keys.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    keys.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_single_key_shortcuts_can_be_switched_off(server: WebServer, fleet: WebFleet, page: Page) -> None:
    _open(page, server, f"/fleets/{fleet.fleet_id}")
    page.keyboard.press("?")
    page.get_by_label("Single-key shortcuts").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("f")
    page.reload()
    page.keyboard.press("f")
    assert _path(page) == f"#/fleets/{fleet.fleet_id}"


def test_a_phone_shows_one_thing_at_a_time_without_scrolling_sideways(
    server: WebServer, fleet: WebFleet, phone: Page
) -> None:
    story(fleet)
    _open(phone, server, f"/fleets/{fleet.fleet_id}")
    expect(_entry(phone, "Suite is green")).to_be_in_viewport()
    expect(phone.locator(".roster")).to_be_hidden()
    phone.get_by_role("link", name="Members", exact=True).click()
    expect(phone.locator(".timeline")).to_be_hidden()
    phone.get_by_role("link", name=re.compile("lexer")).first.click()
    expect(phone.locator(".mail").first).to_be_visible()
    phone.get_by_role("button", name="Write").click()
    expect(phone.get_by_label("Message, sent as the Director")).to_be_focused()
    expect(phone.get_by_label("Message, sent as the Director")).to_have_value("@lexer ")
    for route in ("", "/members", "/monitor", f"/members/{fleet.director}"):
        _open(phone, server, f"/fleets/{fleet.fleet_id}{route}")
        assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth"), route


def test_the_theme_follows_the_system_until_it_is_chosen(
    server: WebServer, fleet: WebFleet, page: Page
) -> None:
    def background() -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    _open(page, server, f"/fleets/{fleet.fleet_id}")
    light = background()
    page.emulate_media(color_scheme="dark")
    dark = background()
    assert dark != light
    page.get_by_role("button", name="Theme: as the system").click()
    assert background() == light
    page.reload()
    expect(page.get_by_role("button", name="Theme: light")).to_be_visible()
    assert background() == light
    page.get_by_role("button", name="Theme: light").click()
    assert background() == dark


def test_nothing_is_asked_of_the_network(server: WebServer, fleet: WebFleet, browser: Browser) -> None:
    story(fleet)
    page = new_page(browser, [])
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    _open(page, server, f"/fleets/{fleet.fleet_id}")
    expect(page.locator(".entry").last).to_be_visible()
    page.context.close()
    assert asked
    assert all(url.startswith(server.url) for url in asked)
