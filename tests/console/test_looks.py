"""What the person sets for a browser, and what a phone shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.console.conftest import Running, Window

if TYPE_CHECKING:
    from playwright.sync_api import Browser

GROUND = "getComputedStyle(document.body).backgroundColor"


def test_the_chosen_look_is_there_before_the_page_is_drawn(shared: Running, browser: Browser) -> None:
    """On the next page, too, and while the script that keeps pages live has not run; the system's is the default."""
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
    assert not page.get_by_label("ask for an ack").is_visible()
    assert page.locator(".compose").bounding_box()["height"] < 844 / 6  # type: ignore[index]
    page.locator("#body").fill("x")
    assert page.get_by_label("ask for an ack").is_visible()
    page.get_by_role("link", name="Menu").click()
    assert page.locator("#rail").get_by_role("link", name="Agents").is_visible()
    page.get_by_role("link", name="Close").click()
    assert not page.locator("#rail").is_visible()
