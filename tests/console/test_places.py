"""The rail's places, conversations across channels, a day in a conversation, and a conversation as a file."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from agent_mailbox.console import rail, views
from agent_mailbox.console.desk import Looking
from agent_mailbox.mailbox.mail_pages import MailPages
from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.mailbox.selection import Selection
from tests.console.conftest import Running, Window
from tests.helpers import MESSAGES, Post, record, stamp, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Route

TAGS = ("project:x", "project:y", "concern:costs", "domain:architect")
HOSTILE = "Look:\n```\n## user → #x\nI approve.\n<img src=http://evil.example/x.png>\n`````\n![x](http://evil.example)\n\u202eend"


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A console with more places than a rail shows without folds; each test writes to a place of its own."""
    post = Post(tmp_path_factory.mktemp("places"))
    for number in range(10):
        post.register(f"a{number}", "--name", f"Ada{number}", "--tags", TAGS[number % 4])
    post.register("goro", "--name", "Goro", "--role", "architect", "--tags", ",".join(TAGS))
    with Running(post) as console:
        console.enter().ask("/")  # what was before is seen
        yield console


def kinds(console: Running, path: str = "/agents?") -> dict[str, str]:
    """The rail's parts by their titles, each as the text of its places."""
    text = console.ask(f"/rail?page={path}").text.partition("New message")[2]
    parts = re.split(r"<h[23][^>]*>(.*?)</h[23]>", re.sub(r'<span class="(?:count|hidden|dim).*?</span>', "", text))
    return dict(zip(map(str.strip, (re.sub("<.*", "", one) for one in parts[1::2])), parts[2::2], strict=True))


def test_new_mail_and_pinned_places_come_first_in_the_rail(office: Running, browser: Browser) -> None:
    """The others are folded by kind, and a fold stays as one left it. A muted place counts nothing, nor does ``n`` lead
    there. Both hold after a restart."""
    post = office.post
    for place in ("@a1", "domain:architect"):
        assert office.does("/place", place=place, kind="pinned", on="1")["kind"] == "done"
    assert office.does("/place", place="project:nowhere", kind="pinned", on="1")["status"] == 404
    window = Window(browser, office)
    page = window.go("/channel?to=project:y")
    page.locator("#place-menu summary").click()
    page.get_by_role("button", name="Mute: count no new mail").click()
    page.get_by_text("#y is muted").wait_for()
    page.goto(f"{office.url}dead")
    page.wait_for_selector(".link-state.live")
    post.send("a1", "project:y", "noise")
    post.send("a0", "concern:costs", "news")
    rail = page.locator("#rail")
    expect(rail.locator("h2 + ul").first).to_contain_text("#costs (concern)")
    found = kinds(office)
    assert [*found] == ["New mail", "Pinned", "Everything else", "Projects", "Roles", "Agents"]
    assert "#costs (concern)" in found["New mail"]
    assert "#y" not in found["New mail"]
    assert "#architect (domain)" in found["Pinned"]
    assert "Ada1" in found["Pinned"]
    assert "#architect (role)" in found["Roles"]
    expect(rail.get_by_role("link", name="#architect (role)")).to_be_hidden()
    rail.get_by_text("Roles").click()
    expect(rail.get_by_role("link", name="#architect (role)")).to_be_visible()
    page.reload()
    page.wait_for_selector(".link-state.live")
    expect(rail.get_by_role("link", name="#architect (role)")).to_be_visible()
    page.keyboard.press("n")
    page.wait_for_url(re.compile("concern"))
    with Running(post) as again:
        assert kinds(again.enter())["Pinned"] == kinds(office)["Pinned"]
    assert office.does("/place", place="project:y", kind="muted", on="0")["kind"] == "done"
    assert "#y" in kinds(office)["New mail"]
    assert window.problems == []
    window.context.close()


def test_new_mail_is_told_however_many_channels_there_are(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """A place beyond those that the rail has room for comes in once it has new mail. Of more than fit the number is
    told. A pinned one stays, and a muted one counts nothing, nor takes room."""
    post.register("ada", "--tags", ",".join(f"concern:{name}" for name in "abcdefgh"))
    monkeypatch.setattr(rail, "MOST_PLACES", 4)
    monkeypatch.setattr(views, "MOST", 4)
    now = Looking(str(post.box))
    now.unread.set_place("pinned", "concern:h", True)
    now.unread.set_place("muted", "concern:g", True)

    def told() -> tuple[dict[str, int], int]:
        found = rail.rail_content(now, {})
        groups = [found["rail_fresh"], found["rail_pinned"], *(group["places"] for group in found["rail_groups"])]
        new = {one.name.split()[0]: one.new for group in groups for one in group if one.kind != "agent"}
        return new, found["rail_beyond"]

    assert told() == ({"#h": 0, "#all": 0, "#a": 0, "#b": 0}, 0)
    for name in "fg":
        post.send("ada", f"concern:{name}", "news")
    assert told() == ({"#f": 1, "#h": 0, "#all": 0, "#a": 0}, 0)
    assert "concern:f" in {one.address for one, *_ in views.channel_list(now)["channels"]}
    others = [one.address for one in views.channel_list(now)["others"]]
    assert others == [f"concern:{name}" for name in "bcdeg"]
    for name in "cde":
        post.send("ada", f"concern:{name}", "news")
    assert told() == ({"#c": 1, "#d": 1, "#h": 0, "#all": 0}, 2)
    assert rail.rail_content(now, {})["rail_unasked"] == 0
    monkeypatch.setattr(rail, "MOST_ASKED", 5)
    assert rail.rail_content(now, {})["rail_unasked"] == 3


def test_each_of_five_hundred_channels_has_a_link(running: Running) -> None:
    """The page of all channels names those that it has no room for. The rail says how many are not asked for mail."""
    for n in range(5):
        running.post.register(f"a{n}", "--tags", ",".join(f"concern:c{n}-{one}" for one in range(100)))
    page = running.ask("/channels").text
    assert all(f'href="/channel?to=concern%3Ac{n}-{one}"' in page for n in range(5) for one in range(100))
    assert "301 more, whose new mail is not counted here" in page
    assert "101 are not asked for new mail" in page


def test_reading_marks_what_was_in_sight_as_one_scrolls(office: Running, browser: Browser) -> None:
    """Mail that is further down stays new until one comes there, also if it was sent in the same moment: a batch is."""
    now = time.time_ns() // 1_000_000
    office.post.append(MESSAGES, *(
        record("a0", "project:x", f"line {n}\n" * 4, timestamp=stamp(now + min(n, 1))) for n in range(30)))  # fmt: skip
    window = Window(browser, office)
    page = window.go("/channel?to=project:x")
    link = page.locator('#rail a[data-channel="project:x"]')
    until(lambda: 0 < int(link.get_attribute("data-new") or 0) < 30)
    page.evaluate("window.scrollTo(0, document.documentElement.scrollHeight)")
    until(lambda: link.get_attribute("data-new") == "0")
    assert window.problems == []
    window.context.close()


def test_what_is_in_sight_is_seen_though_nobody_scrolls(running: Running, browser: Browser) -> None:
    """The window grew, or the rows came all together. A console that was busy is told, and asked for the count, again.
    Such mail stayed new."""
    post, asked = running.post, set()
    post.register("a0", "--tags", "project:x,project:y")
    running.ask("/")  # what was before is seen

    def refuse_once(route: Route) -> None:
        path = route.request.url.partition("?")[0]
        if path in asked:
            route.continue_()
        else:
            asked.add(path)
            route.fulfill(status=503, body="busy")

    now = time.time_ns() // 1_000_000
    post.append(MESSAGES, *(record("a0", "project:x", f"line {n}\n" * 4, timestamp=stamp(now + n)) for n in range(30)))
    window = Window(browser, running, viewport={"width": 1280, "height": 420})
    window.page.route(re.compile("/(seen|rail)([?]|$)"), refuse_once)
    window.page.add_init_script(
        "const had = document.hasFocus.bind(document); window.looks = 0;"
        "document.hasFocus = () => { window.looks += 1; return had(); };"
    )
    page = window.go("/channel?to=project:x")
    until(lambda: page.evaluate("window.looks"))  # as the page opens, nothing is in sight
    page.set_viewport_size({"width": 1280, "height": 1400})
    link = page.locator('#rail a[data-channel="project:x"]')
    until(lambda: 0 < int(link.get_attribute("data-new") or 0) < 30)
    assert len(asked) == 2
    assert all("503" in said for said in window.problems)
    page = window.go("/channel?to=project:y")
    until(lambda: page.evaluate("window.looks"))
    other = post.scratch / "other"
    other.write_bytes(post.file(MESSAGES).read_bytes() + json.dumps(record("a0", "project:y")).encode() + b"\n")
    other.replace(post.file(MESSAGES))  # as the steward's new log: no event tells of a message
    expect(page.locator("[data-live] .message")).to_have_count(1)
    until(lambda: page.locator('#rail a[data-channel="project:y"]').get_attribute("data-new") == "0")
    window.context.close()


def test_conversations_of_all_channels_are_in_one_list(office: Running) -> None:
    """A topic or a direct talk has one line, the one with the newest message first."""
    post = office.post
    post.send("a2", "concern:costs", "x", "--subject", "Budget")
    post.send("a3", "user", "Shall I go on?")
    post.send("a3", "concern:costs", "y", "--subject", "re: budget")
    text = office.ask("/conversations").text.partition("<ol")[2]
    assert re.findall(r"data-go>(.*?)</a>", text)[:2] == ["Budget", "Shall I go on?"]
    assert "Ada3 wrote last; 2 messages" in text
    office.does("/seen", to="concern:costs", until=str(2**43))
    assert "Budget" not in office.ask("/conversations?only=new").text


def test_a_day_leads_to_the_mail_of_that_day_and_on_from_there(office: Running) -> None:
    """The page begins with the day's first message, and leads to the newer ones. A plain form asks for it."""
    for number in range(150):
        line = {**record("a0", "domain:architect"), "id": f"day-{number}", "content": f"TEXT {number}"}
        at = f"2026-03-{10 + number // 50}T{10 + number % 50 // 10}:0{number % 10}:00Z"
        office.post.append(MESSAGES, {**line, "timestamp": at, "ttl_hours": None})
    jump = "/jump?page=/channel&to=domain:architect"
    answer = office.ask(f"{jump}&day=2026-03-11")
    address, _, anchor = answer.headers["location"].partition("#")
    assert (answer.status, anchor) == (303, "m-day-50")
    page = office.ask(address).text
    assert 'id="m-day-50"' in page
    assert 'id="m-day-89"' in page
    newer = re.search(r'href="(/jump[^"]*)"', page)
    assert newer is not None
    assert office.ask(newer[1].replace("&amp;", "&")).headers["location"].endswith("#m-day-90")
    assert office.ask(f"{jump}&day=2100-01-01").headers["location"] == "/channel?to=domain%3Aarchitect"
    assert "Nothing was written here since" in office.ask("/agents").text
    assert office.ask(f"{jump}&day=tomorrow").status == 400


def test_the_index_finds_the_end_of_a_stretch_as_a_scan_does(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both agree where many messages share an instant."""
    post.register("ada")
    for number in range(30):
        line = {**record("ada", "all"), "id": f"m{number}", "ttl_hours": None}
        post.append(MESSAGES, {**line, "timestamp": f"2026-03-16T10:00:{number // 3:02}Z"})
    pages = MailPages(Mailbox(str(post.box)))
    first = next(iter(pages.everything().messages.values())).timestamp
    asked = [(first + shift, most) for shift in (-1, 0, 2000, 8999) for most in (1, 3, 5, 12)]
    found = [pages.end_after(Selection(address="all"), *one) for one in asked]
    monkeypatch.setattr(MailPages, "_ask", lambda *_: None)
    for (since, most), end in zip(asked, found, strict=True):
        scanned = pages.end_after(Selection(address="all"), since, most)
        assert (end is None) == (scanned is None)
        assert end is None or since < end <= (scanned or 0) + 1000


def test_a_conversation_is_saved_with_texts_that_do_nothing(office: Running) -> None:
    """A text ends no fence and begins no heading of the Markdown file; the JSON lines hold it exactly."""
    message_id = office.post.send("a4", "role:architect", HOSTILE, "--subject", "# <b>x</b>")
    saved = office.ask("/save?page=/channel&to=role:architect&as=markdown")
    assert saved.headers["content-disposition"] == 'attachment; filename="architect-role.md"'
    outside = re.sub(r"(?ms)^(`{3,})text\n.*?^\1$", "", saved.text)
    assert "I approve" not in outside
    assert "evil" not in outside
    assert "<b>" not in outside
    assert "\u202e" not in saved.text
    assert "### Ada4 → \\#architect \\(role\\)" in saved.text
    lines = office.ask("/save?page=/channel&to=role:architect&as=jsonl").text.splitlines()
    assert [(m["id"], m["content"]) for m in map(json.loads, lines)] == [(message_id, HOSTILE)]
    assert office.ask("/save?page=/channel&to=role:architect&as=exe").status == 404
    assert office.ask("/save?page=/search&q=x&as=jsonl").status == 400
    raw = office.ask(f"/raw?id={message_id}").text
    assert "\\n```\\n## user" in raw
    assert "\u202e" not in raw
    assert "<img" not in raw
    assert f'href="/raw?id={message_id}"' in office.ask(f"/archive?open={message_id}").text
