"""Conversations that one can follow: answers stay where the question was, channels show threads whole."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.console.conftest import Running, Window
from tests.helpers import MESSAGES, ROOT, Post, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser


@pytest.fixture
def talk(running: Running) -> Iterator[Running]:
    """A console with three agents, two of them in a project."""
    post = running.post
    post.register("ada", "--name", "Ada", "--tags", "project:x")
    post.register("bo", "--name", "Bo", "--tags", "project:x")
    post.register("cy", "--name", "Cy")
    return running


def last(post: Post) -> tuple[str, list[str]]:
    """The newest message: its text and recipients."""
    message = post.objects(MESSAGES)[-1]
    to = message.get("recipients") or message["recipient"]
    return message["content"], [to] if isinstance(to, str) else to


# -- answers ----------------------------------------------------------------------------------------------------------


def test_an_answer_reaches_the_whole_conversation_unless_the_person_chooses_its_sender(talk: Running) -> None:
    """In a channel it stays there; within a talk of two agents it reaches both; one's own message has the same way."""
    post = talk.post
    asked = post.send("ada", "project:x", "QUESTION")
    talk.does("/reply", id=asked, body="to all")
    assert last(post) == ("to all", ["ada", "project:x"])
    talk.does("/reply", id=asked, body="to one", answers="sender")
    assert last(post) == ("to one", ["ada"])
    between = post.send("ada", "bo", "BETWEEN")
    talk.does("/reply", id=between, body="I step in")
    assert last(post) == ("I step in", ["ada", "bo"])
    assert (post.unread("ada")[-1:], post.unread("bo")[-1:]) == ([post.objects(MESSAGES)[-1]["id"]],) * 2
    talk.does("/reply", id=post.objects(MESSAGES)[-1]["id"], body="once more")
    assert last(post) == ("once more", ["ada", "bo"])


def test_the_page_shows_to_whom_before_it_sends(talk: Running, browser: Browser) -> None:
    """With the choice where there is one; a draft keeps the choice, so that a private word stays private."""
    post = talk.post
    asked, private = post.send("ada", "project:x", "QUESTION"), post.send("cy", "user", "PRIVATE")
    window = Window(browser, talk)
    page = window.go(f"/channel?to=project:x&open={asked}")
    assert page.get_by_label("Ada, #x (2 agents)", exact=True).is_checked()
    page.get_by_label("Only Ada").check()
    page.get_by_label("Reply to Ada").fill("for you alone")
    page = window.go(f"/channel?to=project:x&open={asked}")
    assert page.get_by_label("Reply to Ada").input_value() == "for you alone"
    assert page.get_by_label("Only Ada").is_checked()
    page.get_by_role("button", name="Reply", exact=True).click()
    until(lambda: last(post) == ("for you alone", ["ada"]))
    page = window.go(f"/archive?open={private}")
    page.get_by_text("The answer goes to Cy.").wait_for()
    assert page.get_by_role("radio").count() == 0
    assert window.problems == []
    page = Window(browser, talk, java_script_enabled=False).go(f"/archive?open={asked}", live=False)
    page.get_by_label("Reply to Ada").fill("without script")
    page.get_by_role("button", name="Reply", exact=True).click()
    page.get_by_text("Sent to Ada, project:x.").wait_for()
    assert last(post) == ("without script", ["ada", "project:x"])


# -- channels -----------------------------------------------------------------------------------------------------


def test_a_channel_shows_its_threads_whole_and_by_topic(talk: Running, browser: Browser) -> None:
    """Answers that went to one agent are there, as they come and after a reload; a topic shows its own alone."""
    post = talk.post
    plan = post.send("ada", "project:x", "The plan.", "--subject", "Schema 4")
    aside = post.send("bo", "ada", "ASIDE to Ada alone", "--thread", plan)
    post.send("bo", "project:x", "Lunch?", "--subject", "Lunch")
    window = Window(browser, talk)
    page = window.go("/channel?to=project:x")
    assert page.locator(".list .message").count() == 3
    post.send("ada", "bo", "DEEPER aside", "--thread", aside)
    page.locator(".list .message", has_text="DEEPER aside").wait_for()
    page.get_by_role("navigation", name="Topics").get_by_role("link", name="Schema 4").click()
    page.get_by_role("heading", name="#x › Schema 4").wait_for()
    page.wait_for_selector(".link-state.live")
    assert page.locator(".list .message").count() == 3
    assert page.get_by_text("Lunch?").count() == 0
    post.send("bo", "project:x", "More lunch", "--subject", "lunch")
    page.locator("#body").fill("It stays in the topic.")
    page.get_by_role("button", name="Send").click()
    page.locator(".list .message", has_text="It stays in the topic.").wait_for()
    assert page.get_by_text("More lunch").count() == 0
    assert post.objects(MESSAGES)[-1]["subject"] == "schema 4"
    page.locator(f"#m-{aside} .open").click()
    panel = page.locator("#details")
    panel.locator(".whole", has_text="ASIDE").wait_for()
    assert "The plan." in panel.get_by_role("list", name="Earlier").inner_text()
    assert "DEEPER" in panel.get_by_role("list", name="Later").inner_text()
    assert window.problems == []


# -- the page's script ------------------------------------------------------------------------------------------------


def test_each_module_of_the_script_imports_only_those_above_it() -> None:
    """As the entry lists them; each begins by saying what it is for, and fits a few screens."""
    static = ROOT / "agent_mailbox/console/static"
    entry = (static / "console.js").read_text()
    listed = re.search(r"above it: ([\w, \n/]+)\.", entry)
    assert listed is not None
    order = [*re.findall(r"\w+", listed[1]), "console"]
    found = {path.stem for path in static.glob("*.js")} - {"sign_in"}
    assert found == set(order)
    for place, name in enumerate(order):
        text = (static / f"{name}.js").read_text()
        assert text.startswith("// ")
        assert len(text.splitlines()) < 200
        assert set(re.findall(r'(?:from|import) "\./(\w+)\.js"', text)) <= set(order[:place]), name
        assert max(map(len, text.splitlines())) <= 130, name


def test_an_upgrade_brings_every_module_anew(running: Running) -> None:
    """Browsers keep the files for ever; a script's imports are relative, so the hash is in the directory's name."""
    page = running.ask("/").text
    script = re.search(r'src="(/static/[0-9a-f]{12}/)console\.js" type="module"', page)
    assert script is not None
    answer = running.ask(f"{script[1]}dom.js")
    assert (answer.status, "immutable" in answer.headers["cache-control"]) == (200, True)
    assert running.ask("/static/dom.js").status == 404
