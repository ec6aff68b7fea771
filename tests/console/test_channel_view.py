"""A channel as one reads it: receipts by exception, folded texts, topics, and whom an answer reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.console.conftest import Running, Window
from tests.helpers import Post, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

PLACE = "/channel?to=project:x"


@pytest.fixture(scope="module")
def channel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A console of a project with three agents; the tests use other words, and other agents that come and go."""
    post = Post(tmp_path_factory.mktemp("channel"))
    for name in ("Ada", "Bo", "Cleo"):
        post.register(name.lower(), "--name", name, "--tags", "project:x")
    with Running(post) as console:
        yield console.enter()


def receipts(page: Page) -> list[Any]:
    """What each row says of its readers, and how it is shown."""
    rows: list[Any] = page.evaluate(
        "[...document.querySelectorAll('.list .message')].map((row) => [row.querySelector('.body').textContent.trim(),"
        " row.querySelector('.receipt').textContent.replace(/\\s+/g, ' ').trim(),"
        " row.querySelector('.receipt').matches('.quiet'), row.matches('.told')])"
    )
    return rows


def test_a_row_says_who_has_not_seen_it_live_as_on_reload(channel: Running, browser: Browser) -> None:
    """A message that came in says at each moment what a reload says: who has not seen it, and nothing once all have."""
    post = channel.post
    window = Window(browser, channel)
    page = window.go(PLACE)
    post.register("dan", "--name", "Dan", "--tags", "project:x")
    first, second = post.send("ada", "project:x", "RECEIPT_1"), post.send("ada", "project:x", "RECEIPT_2")
    rows = page.locator(".list .message")
    rows.nth(1).wait_for()
    late = Window(browser, channel)

    def agree(*said: str) -> None:
        until(lambda: [row[1] for row in receipts(page)] == [*said])
        late.go(f"{PLACE}&open={first}")
        assert receipts(page) == receipts(late.page)

    agree("○ Bo, Cleo and Dan have not seen it", "○ Bo, Cleo and Dan have not seen it")
    assert [row[3] for row in receipts(page)] == [True, False]
    beside = Window(browser, channel).go(f"{PLACE}&open={first}").locator(".of-receipts")
    assert beside.get_by_role("row").filter(has_text="not seen yet").count() == 3
    post.ok("check", "--session", "bo")
    agree("◐ Cleo and Dan have not seen it", "◐ Cleo and Dan have not seen it")
    until(lambda: beside.get_by_role("row").filter(has_text="not seen yet").count() == 2)
    post.ok("check", "--session", "cleo")
    post.register("eve", "--name", "Eve", "--tags", "project:x")
    post.ok("roster", "retire", "dan")
    agree("◐ Dan ended without seeing it", "◐ Dan ended without seeing it")
    third = post.send("bo", "project:x", "RECEIPT_3")
    for who in ("ada", "cleo", "eve"):
        post.ok("check", "--session", who)
    agree(*["◐ Dan ended without seeing it"] * 2, "✓ seen by Ada, Cleo and Eve")
    last = page.locator(f"#m-{third}")
    assert last.locator(".receipt .words").bounding_box()["width"] <= 1  # type: ignore[index]
    assert "Bo" not in last.locator(".receipt").inner_text()
    assert page.locator(f"#m-{second} .receipt .words").bounding_box()["width"] > 50  # type: ignore[index]
    assert window.problems == []


def test_a_long_text_is_folded_and_opens_without_script(channel: Running, browser: Browser) -> None:
    """A list shows the first lines; the rest is a press away. What the stream brings is folded as on a reload."""
    page = Window(browser, channel).go(PLACE)
    sent = channel.post.send("ada", "project:x", "\n".join(f"FOLDED {n}" for n in range(40)))
    row = page.locator(f"#m-{sent}")
    row.get_by_text("28 more lines").wait_for()
    assert not row.get_by_text("FOLDED 30").is_visible()
    plain = Window(browser, channel, java_script_enabled=False).go(f"{PLACE}&open=", live=False).locator(f"#m-{sent}")
    plain.get_by_text("28 more lines").click()
    assert plain.get_by_text("FOLDED 30").is_visible()
    plain.get_by_text("Fewer lines").click()
    assert not plain.get_by_text("FOLDED 30").is_visible()


def test_what_a_search_finds_in_a_folded_text_is_shown_open(channel: Running) -> None:
    """The fold is open where it has the word, and the lines around a word are there that the list leaves out."""
    post = channel.post
    lines = [f"line {n}" for n in range(2000)]
    lines[30], lines[1900] = "NEARBY word", "FARAWAY <b>word</b>"
    post.send("ada", "project:x", "SEARCHED at once\n" + "\n".join(lines))
    for word, is_open, is_far in (("SEARCHED", False, False), ("nearby", True, False), ("faraw", True, True)):
        page = channel.ask(f"/search?q={word}").text
        assert page.count("fold") > 0
        assert ('<details class="fold" open>' in page) == is_open, word
        assert ("FARAWAY &lt;b&gt;word" in page) == is_far
        assert "<summary>" in page
        assert "more lines" in page
    assert "line 1902" in page
    assert "line 1903" not in page
