"""Channels as conversations: the index gives what a scan gives; topics stay together; a step is bounded."""

from __future__ import annotations

import random
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.console import topics
from agent_mailbox.console.desk import FollowedNotes
from agent_mailbox.core import conversations
from agent_mailbox.core.compose import Draft
from agent_mailbox.mailbox import mail_pages
from agent_mailbox.mailbox.mail_pages import Digest, MailPages
from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.mailbox.noting import Noting
from tests.console.conftest import Running, Window
from tests.helpers import MESSAGES, Post, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest
    from playwright.sync_api import Browser, Locator, Page

    from agent_mailbox.core.records import Message
    from tests.helpers import Post


WHERE = ("project:x", "role:r", "all", "ada", "bo")


class Scanning(MailPages):
    """The same queries without an index."""

    def _ask(self, question: object) -> None:  # type: ignore[override]
        """There is none."""


def filled(post: Post, seed: int, count: int) -> tuple[Mailbox, list[Message]]:
    """A mailbox with random threads: some messages have subjects, some answers leave their channel."""
    chance, at = random.Random(seed), [1_700_000_000_000]
    for name in ("ada", "bo"):
        post.register(name, "--tags", "project:x")
    mailbox = Mailbox(str(post.box), clock=lambda: at[0])
    sent: list[Message] = []
    for number in range(count):
        at[0] += chance.choice((0, 1, 1000))
        parent = chance.choice(sent).id if sent and chance.random() < 0.6 else None
        subject = chance.choice((None, None, "Plan", "re: plan", "Plan B"))
        to = (chance.choice(WHERE),)
        draft = Draft(
            sender=chance.choice(("ada", "bo", "user")), to=to, content=f"{number}", subject=subject, thread=parent
        )
        sent.append(mailbox.send(draft).message)
    return mailbox, sent


def test_the_index_and_a_scan_give_the_same_channel(post: Post) -> None:
    """Page by page, with and without a topic; answers that went elsewhere are there."""
    mailbox, sent = filled(post, 5, 90)
    by_id = {m.id: m for m in sent}
    roster = mailbox.logs.read_roster()
    for address in WHERE[:3]:
        for topic in (None, "PLAN", ""):
            pages: list[list[list[str]]] = []
            for queries in (MailPages(mailbox), Scanning(mailbox)):
                before, found = None, list[list[str]]()
                while True:
                    page = queries.channel(address, before, 7, topic)
                    found.append([m.id for m in page.messages])
                    before = page.before
                    if before is None:
                        break
                pages.append(found)
            assert pages[0] == pages[1]
            whole = {m.id for m in sent if conversations.belongs(m, address, roster, by_id.get)}
            for queries in (MailPages(mailbox), Scanning(mailbox)):
                inside = {m.id for m in sent if queries.is_in(m, address, topic)}
                assert inside == {i for page in pages[0] for i in page}
            of_it = {i: conversations.topic(by_id[i], by_id.get) for i in whole}
            wanted = [i for i, one in of_it.items() if topic in (None, conversations.folded(one).upper())]
            assert sorted(i for page in pages[0] for i in page) == sorted(wanted)
            if topic is None:
                assert any(address not in by_id[i].recipients for i in whole)
        digests = [queries.newest(address) for queries in (MailPages(mailbox), Scanning(mailbox))]
        assert sorted(d.id for d in digests[0]) == sorted(d.id for d in digests[1])
        assert set(digests[0]) == set(digests[1])


def test_an_answer_that_comes_first_gets_its_topic_once_that_is_known(post: Post) -> None:
    """It may come from elsewhere, ahead of what it answers. Whoever looked meanwhile looks again."""
    mailbox = Mailbox(str(post.box))
    for queries in (MailPages(mailbox), Scanning(mailbox)):
        asked = str(uuid.uuid4())
        post.send("ada", "project:x", "yes", "--thread", asked)
        assert queries.newest("project:x")[0].topic == ""
        post.send("ada", "project:x", "Shall we?", "--subject", "Plan", "--id", asked)
        assert [one.topic for one in queries.newest("project:x")[:2]] == ["Plan", "Plan"]
        page = queries.channel("project:x", None, 9, "plan")
        assert [one.content for one in page.messages[-2:]] == ["yes", "Shall we?"]


def test_a_look_is_bounded_and_goes_on_behind_a_link(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic whose last word is far back is found page by page; no page reads more than its part."""
    monkeypatch.setattr(mail_pages, "LOOK", 10)
    mailbox, _ = filled(post, 1, 1)
    drafts = [
        Draft(sender="ada", to=("project:x",), content=f"{n}", subject="Old" if n < 2 else "New") for n in range(35)
    ]
    mailbox.send_all(drafts)
    queries = MailPages(mailbox)
    page, looks = queries.channel("project:x", None, 50, "old"), 1
    while page.before is not None and not page.messages:
        page, looks = queries.channel("project:x", page.before, 50, "old"), looks + 1
    assert [m.content for m in page.messages] == ["0", "1"]
    assert looks == 4


def test_a_circular_or_endless_thread_ends(post: Post) -> None:
    """Neither one that is its own ancestor nor one that is endless."""
    post.register("ada", "--tags", "project:x")
    ids = [f"00000000-0000-4000-8000-{n:012}" for n in range(200)]
    for number, message_id in enumerate(ids):
        above = ids[(number + 1) % len(ids)]
        post.append(
            "agent-mailbox.jsonl",
            {
                "id": message_id,
                "sender": "ada",
                "recipient": "bo",
                "timestamp": "2026-03-16T14:30:00Z",
                "content": "x",
                "thread": above,
            },
        )
    mailbox = Mailbox(str(post.box))
    for queries in (MailPages(mailbox), Scanning(mailbox)):
        assert queries.channel("project:x", None, 50).messages == ()
        assert queries.channel("all", None, 50, "t").messages == ()


def test_a_page_of_an_old_topic_is_that_topic_s_however_many_there_are() -> None:
    """Without it in the list the page has no name, and what one writes there begins elsewhere."""
    digests = [
        Digest(f"m{number}", "ada", number, f"Topic {number}") for number in range(topics.MOST_TOPICS + 5, 0, -1)
    ]
    for chosen in ("Topic 1", "of none"):
        listed = topics.list_topics("project:x", digests, (), chosen)
        assert [one.title for one in listed if one.is_chosen] == [chosen]
        assert len(listed) == topics.MOST_TOPICS + 1


def test_a_topic_is_a_subject_and_its_answers() -> None:
    """However it is spelt; an answer with a subject of its own begins another."""
    assert conversations.folded("Re:  RE: Schema   4") == conversations.folded("schema 4") == "schema 4"


def test_a_tag_that_is_no_address_hinders_no_page(post: Post) -> None:
    """Another program may have written it into the roster."""
    mailbox, _ = filled(post, 2, 5)
    assert set(MailPages(mailbox).newer({"team:x/": -1, "all": -1}, mailbox.now(), 9)) == {"all"}
    assert MailPages(mailbox).newest("team:x/") == []


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


def width_of(place: Locator) -> float:
    """The pixels that something on the page takes from left to right."""
    box = place.bounding_box()
    assert box is not None
    return box["width"]


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
    agree(*["◐ Dan ended without seeing it"] * 2, "✓ read by Ada, Cleo and Eve")
    last = page.locator(f"#m-{third}")
    assert width_of(last.locator(".receipt .words")) <= 1
    assert "Bo" not in last.locator(".receipt").inner_text()
    assert width_of(page.locator(f"#m-{second} .receipt .words")) > 50
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


def column(page: Page) -> list[str]:
    """The topics as they are listed: each one's name and figures."""
    return [" ".join(one.split()) for one in page.locator("#topics li a").all_inner_texts()]


def test_topics_and_reach_follow_what_happens(post: Post, browser: Browser) -> None:
    """The column counts each topic's mail as it comes; the composer names whom it reaches at this moment."""
    post.register("ada", "--name", "Ada", "--tags", "project:x")
    with Running(post) as console:
        console.enter().ask("/")
        window = Window(browser, console, viewport={"width": 1440, "height": 900})
        page = window.go(PLACE)
        assert page.locator("#reach").inner_text() == "reaches 1 session: Ada"
        assert page.get_by_text("Write to #x").is_visible()
        post.register("bo", "--name", "Bo", "--tags", "project:x")
        page.get_by_text("reaches 2 sessions: Ada, Bo").wait_for()
        plan = post.send("ada", "project:x", "The plan.", "--subject", "Schema 4")
        page.locator("#topics").get_by_role("link", name="Schema 4").wait_for()
        post.send("bo", "project:x", "Mine.", "--thread", plan)
        post.send("bo", "project:x", "Lunch?", "--subject", "<b>Lunch</b>")
        page.locator("#topics").get_by_role("link", name="Lunch").wait_for()
        until(lambda: column(page)[0].startswith("All messages"))
        assert next(one for one in column(page) if "Schema 4" in one).endswith("2 messages")
        assert page.locator("#topics b").count() == 0
        post.ok("roster", "freeze", "bo")
        page.get_by_text("reaches 1 session: Ada; waits for Bo").wait_for()
        assert window.problems == []


def test_the_composer_answers_the_topic_that_is_shown(channel: Running, browser: Browser) -> None:
    """An answer belongs to the newest message of its topic, also to one that came in; it has no field for another
    subject. A new topic asks for its name."""
    post = channel.post
    first = post.send("ada", "project:x", "ANSWERED", "--subject", "Release 12")
    window = Window(browser, channel, viewport={"width": 1440, "height": 900})
    page = window.go(PLACE)
    page.locator("#topics").get_by_role("link", name="Release 12").click()
    page.get_by_text("Answer in #x › Release 12").wait_for()
    page.wait_for_selector(".link-state.live")
    assert page.get_by_label("Subject").count() == 0
    form = channel.form(f"{PLACE}&topic=release+12", "/send")
    assert (form["thread"], form["subject"], form["to"]) == (first, "Release 12", "project:x")
    second = post.send("bo", "project:x", "and this", "--subject", "re: Release 12")
    page.locator(f"#m-{second}").wait_for()
    page.locator("#body").fill("THE_ANSWER")
    page.get_by_role("button", name="Send").click()
    page.locator(".list .message", has_text="THE_ANSWER").wait_for()
    sent = post.objects(MESSAGES)[-1]
    assert (sent["thread"], sent["recipient"]) == (second, "project:x")
    page.get_by_role("link", name="New topic").click()
    page.get_by_text("Begin a topic in #x").wait_for()
    assert page.evaluate("document.activeElement.id") == "subject"
    page.locator("#body").fill("nameless")
    page.get_by_role("button", name="Send").click()
    assert page.evaluate("document.activeElement.matches(':invalid')")
    assert post.objects(MESSAGES)[-1]["content"] == "THE_ANSWER"
    assert window.problems == []


def test_a_name_in_a_text_tells_that_agent_too(channel: Running, browser: Browser) -> None:
    """A name is completed while one writes, and the page says who is told; code and strange words name nobody."""
    post = channel.post
    post.register("gil", "--name", "Gil")
    post.register("gillian", "--name", "Gillian")
    window = Window(browser, channel, viewport={"width": 1440, "height": 900})
    page = window.go(PLACE)
    page.locator("#body").press_sequentially("Ask @gilL")
    assert page.locator("#named").get_by_role("button").all_inner_texts() == ["@Gillian"]
    page.keyboard.press("Tab")
    assert page.input_value("#body") == "Ask @Gillian "
    page.get_by_text("; tells Gillian directly").wait_for()
    page.keyboard.type("about `@Gil` and x@Gil.org, @nobody.")
    page.keyboard.press("Control+Enter")
    page.locator(".list .message", has_text="x@Gil.org").wait_for()
    assert post.objects(MESSAGES)[-1]["recipient"] == ["project:x", "gillian"]
    sent = channel.submit(PLACE, "/send", body="@gil, and @Gil: look, @ADA.")
    assert sent["kind"] == "done", sent
    assert post.objects(MESSAGES)[-1]["recipient"] == ["project:x", "gil", "ada"]
    assert window.problems == []


def test_members_notes_and_tasks_are_beside_the_mail_and_folded_on_a_phone(
    channel: Running, browser: Browser, axe: Path
) -> None:
    """The column says what each member does, and has the notes and tasks of the tag. On a phone a button shows it."""
    channel.post.register("ivy", "--name", "Ivy", "--tags", "project:y")
    channel.post.send("ivy", "project:y", "One line.", "--subject", "Short")
    channel.submit("/notes", "/add-note", to="project:y", subject="House <i>rules</i>", body="none")
    channel.submit("/tasks", "/assign", to="project:y", subject="Count the plates", body="all")
    window = Window(browser, channel, reduced_motion="reduce")
    page = window.page

    def has_no_fault(part: str) -> bool:
        found = []
        for look, rules in (("light", ()), ("dark", ("color-contrast",))):
            page.emulate_media(color_scheme=look, reduced_motion="reduce")
            found += window.axe(axe, rules, part)
        return found == []

    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 844})
        window.go("/channel?to=project:y")
        members = page.get_by_role("complementary", name="Members, notes and tasks")
        if width == 390:
            assert not page.locator("#topics").is_visible()
            assert members.count() == 0
            page.get_by_role("link", name="Members").click()
        assert "seen" in members.locator(".members li", has_text="Ivy").inner_text()
        assert members.get_by_role("link", name="House <i>rules</i>").is_visible()
        assert members.get_by_role("link", name="Count the plates").is_visible()
        assert has_no_fault("#members")
    members.get_by_role("link", name="Close").click()
    assert not page.locator("#members").is_visible()
    page.get_by_role("link", name="Topics").click()
    topics = page.get_by_role("navigation", name="Topics")
    assert topics.is_visible()
    assert has_no_fault("#topics")
    topics.get_by_role("link", name="All messages").click()
    page.wait_for_selector(".link-state.live")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert window.problems == []


def test_followed_notes_are_those_that_a_whole_look_finds(post: Post) -> None:
    """Added, replaced and dropped ones, and those that the steward kept when it moved the rest."""
    post.register("ada", "--name", "Ada", "--tags", "project:x")
    mailbox = Mailbox(str(post.box))
    followed, noting = FollowedNotes(mailbox.logs), Noting(mailbox)

    def agree(*titles: str) -> None:
        found = followed.list_current(mailbox.logs.read_roster())
        assert [one.message.subject for one in found] == [*titles]
        assert [one.message.id for one in found] == [one.message.id for one in noting.notes()]

    agree()
    first = noting.add_note("ada", ["project:x"], "One", "1", "")
    noting.add_note("ada", ["project:x"], "Two", "2", "")
    agree("One", "Two")
    post.send("ada", "project:x", "mail")
    noting.drop_note("ada", first.id)
    agree("Two")
    post.ok("steward", "run", "--max-live", "0")
    agree("Two")
