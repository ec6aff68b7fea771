"""What the person sets for a browser, and what a phone shows."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from tests.console.conftest import Running, Window
from tests.helpers import MESSAGES, Post

if TYPE_CHECKING:
    from playwright.sync_api import Browser

GROUND = "getComputedStyle(document.body).backgroundColor"


def test_the_chosen_look_is_there_before_the_page_is_drawn(shared: Running, browser: Browser) -> None:
    """A page has the chosen look before it is drawn, even without its main script. The system's look is the default."""
    window = Window(browser, shared, color_scheme="dark")
    page = window.go("/agents")
    dark = page.evaluate(GROUND)
    page.keyboard.press("?")
    page.get_by_label("Look").select_option("light")
    light = page.evaluate(GROUND)
    assert light != dark
    page.route("**/console.js", lambda route: route.abort())
    page = window.go("/tasks", live=False)
    assert page.evaluate(GROUND) == light
    window.problems.clear()


def test_on_a_phone_the_mail_has_the_screen(shared: Running, browser: Browser) -> None:
    """The menu covers the page and closes; a writer's further fields come once one writes."""
    shared.post.send("ada", "project:inscription", "PHONE_WORD")
    page = Window(browser, shared, viewport={"width": 390, "height": 844}).go("/channel?to=project:inscription")
    assert not page.locator("#rail").is_visible()
    assert not page.get_by_label("needs an answer").is_visible()
    assert page.locator(".compose").bounding_box()["height"] < 844 / 6  # type: ignore[index]
    page.locator("#body").fill("x")
    assert page.get_by_label("needs an answer").is_visible()
    page.get_by_role("link", name="Menu").click()
    assert page.locator("#rail").get_by_role("link", name="Fleet").is_visible()
    page.get_by_role("link", name="Close").click()
    assert not page.locator("#rail").is_visible()


def test_no_row_of_the_inbox_is_beside_its_group_s_hint(post: Post, browser: Browser) -> None:
    """The hint is below its heading in a narrow list, and the first row is as wide as the second."""
    post.register("ada")
    for plan in ("one", "two"):
        post.ok("control", "request", "plan", "--session", "ada", "--body", plan)
    with Running(post) as console:
        page = Window(browser, console.enter(), viewport={"width": 1000, "height": 800}).go("/")
        widths = page.locator(".group.stops ol > li").evaluate_all(
            "rows => rows.map(row => row.getBoundingClientRect().width)"
        )
        assert len(widths) == 2
        assert widths[0] == widths[1]


def test_times_are_those_of_the_browser_s_zone(post: Post, browser: Browser) -> None:
    """A page shows times and days in the browser's zone, also for rows that come in later."""
    post.register("ada", "--name", "Ada", "--tags", "project:x")
    line = {"sender": "ada", "recipient": "project:x", "content": "EARLY"}
    post.append(MESSAGES, {**line, "id": str(uuid.uuid4()), "timestamp": "2026-03-16T22:30:00Z"})
    with Running(post, env={"TZ": "UTC"}) as console:
        window = Window(browser, console.enter(), timezone_id="Asia/Tokyo")
        page = window.go("/channel?to=project:x")
        assert page.locator(".message .open time").inner_text() == "07:30"
        assert page.locator(".day").inner_text() == "Tuesday, 17 March 2026"
        post.append(MESSAGES, {**line, "id": str(uuid.uuid4()), "timestamp": "2026-03-16T23:45:00Z", "content": "LATE"})
        page.locator(".message", has_text="LATE").wait_for()
        assert page.locator(".message .open time").all_inner_texts() == ["07:30", "08:45"]
        assert page.locator(".day").count() == 1
        assert "GMT+9" in str(page.locator(".message .open time").first.get_attribute("title"))
        page.locator(".message .open").first.click()
        page.locator("#details .head time").get_by_text("Tuesday, 17 March 2026, 07:30").wait_for()
        assert page.locator(".message.opened").count() == 1
        same = Window(browser, console, timezone_id="UTC").go("/channel?to=project:x")
        assert same.locator(".day").inner_text() == "Monday, 16 March 2026"


def test_the_copied_link_opens_its_message(shared: Running, browser: Browser) -> None:
    """It opens that message, wherever it is by then."""
    sent = shared.post.send("ada", "project:inscription", "LINKED")
    window = Window(browser, shared, permissions=["clipboard-read", "clipboard-write"])
    page = window.go(f"/channel?to=project:inscription&open={sent}")
    page.get_by_role("button", name="Copy a link").click()
    page.get_by_text("The link is copied").wait_for()
    assert shared.ask(f"/archive?open={sent}").text.count("LINKED") >= 1
