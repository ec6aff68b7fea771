"""Conversations that one can follow: answers stay where the question was, channels show threads whole."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.console import actions
from agent_mailbox.console.desk import Desk
from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.store.archive.archive import Archive
from agent_mailbox.store.projection import archived_mail
from tests.console.conftest import Running, Window
from tests.e2e.client import npm_file
from tests.helpers import MESSAGES, READS, ROOT, Post, record, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page


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
    """The person's answer goes to the sender and to the channel, or to both agents of a talk. The person can choose the
    sender alone."""
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
    """The page shows whom an answer reaches, with a choice if there is one. A draft keeps the choice."""
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
    page.get_by_text("Sent to Ada.").wait_for()
    assert last(post) == ("for you alone", ["ada"])
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
    assert post.objects(MESSAGES)[-1]["subject"] == "Schema 4"
    page.locator(f"#m-{aside} .open").click()
    panel = page.locator("#details")
    panel.locator(".whole", has_text="ASIDE").wait_for()
    assert "The plan." in panel.get_by_role("list", name="Earlier").inner_text()
    assert "DEEPER" in panel.get_by_role("list", name="Later").inner_text()
    assert window.problems == []


def test_the_messages_of_one_speaker_are_joined_below_one_head(talk: Running, browser: Browser) -> None:
    """A second message of a speaker has a time but no head; so it is without script, and for one that comes in. One
    below another speaker's keeps its head."""
    post = talk.post
    for speaker, text in (("ada", "ONE"), ("ada", "TWO"), ("bo", "THREE")):
        post.send(speaker, "project:x", text)
    shown = Window(browser, talk, java_script_enabled=False).go("/channel?to=project:x", live=False)
    heads = [one.locator(".who").is_visible() for one in shown.locator(".list .message").all()]
    assert heads == [True, False, True]
    assert shown.locator(".message.joined .open time").is_visible()
    assert shown.locator(".message > .face").first.inner_text() == "A"
    window = Window(browser, talk)
    page = window.go("/channel?to=project:x")
    for speaker, text in (("bo", "FOUR"), ("ada", "FIVE")):
        post.send(speaker, "project:x", text)
    page.locator(".list .message", has_text="FIVE").wait_for()
    joined = page.locator(".list .message.joined .body").all_inner_texts()
    assert joined == ["TWO", "FOUR"]
    assert window.problems == []


def test_a_message_of_another_thread_or_to_others_keeps_its_head(talk: Running) -> None:
    """A message is joined to the one above it only if both are of one thread and for the same readers."""
    post = talk.post
    first = post.send("ada", "project:x", "FIRST")
    post.send("ada", "project:x", "ANSWER", "--thread", first)
    post.send("ada", "bo", "ASIDE", "--thread", first)
    joined = post.send("ada", "bo", "MORE OF IT", "--thread", first)
    page = talk.ask("/channel?to=project:x").text
    assert all(word in page for word in ("FIRST", "ANSWER", "ASIDE", "MORE OF IT"))
    assert re.findall(r'<article class="message joined[^>]*id="m-([^"]+)"', page, re.DOTALL) == [joined]


# -- what is new ----------------------------------------------------------------------------------------------------


def count(page: Page, name: str) -> str:
    """What the rail says is new in a channel or from an agent."""
    number = page.locator("#rail").get_by_role("link", name=name).locator(".number")
    return number.inner_text() if number.is_visible() else ""


def test_what_is_new_is_kept_by_the_server_until_it_was_in_sight(talk: Running, browser: Browser) -> None:
    """Counted by channel, for every window and after a restart, one's own words aside; no agent hears of it."""
    post = talk.post
    away = Window(browser, talk).go("/agents")
    for number in range(3):
        post.send("ada", "project:x", f"NEW {number}")
    post.send("user", "project:x", "my own")
    until(lambda: count(away, "#x") == "3")
    away.goto(f"{talk.url}dead")
    assert count(away, "#x") == "3"
    window = Window(browser, talk)
    page = window.go("/channel?to=project:x")
    assert page.locator("#news + .message").inner_text().count("NEW 0") == 1
    until(lambda: count(page, "#x") == count(away, "#x") == "")
    page.reload()
    assert page.locator("#news").count() == 0
    post.send("ada", "project:x", "SEEN at once")
    page.locator(".message", has_text="SEEN at once").wait_for()
    until(lambda: 'data-new="0"' in rail(talk, "project:x"))
    assert post.objects(READS) == []
    window.context.close()
    with Running(post) as again:
        post.send("ada", "project:x", "while away")
        assert 'data-new="1"' in rail(again.enter(), "project:x")
    assert window.problems == []


def rail(console: Running, address: str) -> str:
    """The channel's link in the rail."""
    found = re.search(f'<a [^>]*data-channel="{address}"[^>]*>', console.ask("/rail?page=/agents").text)
    assert found is not None
    return found[0]


def test_seeing_a_topic_leaves_other_topics_new(talk: Running) -> None:
    """The other topics of its channel stay new; without script a button says it."""
    post = talk.post
    talk.ask("/")
    for subject in ("One", "Two", "two"):
        post.send("ada", "project:x", "x", "--subject", subject)
    until_ms = str(2**43)
    assert talk.does("/seen", to="project:x", topic="two", until=until_ms)["kind"] == "done"
    assert 'data-new="1"' in rail(talk, "project:x")
    assert ">Mark as seen</button>" in talk.ask("/channel?to=project:x").text
    assert talk.does("/seen", to="project:x", until=until_ms)["kind"] == "done"
    assert 'data-new="0"' in rail(talk, "project:x")
    assert talk.does("/seen", to="project:nowhere", until="1")["status"] == 404
    assert talk.does("/seen", to="all", until="-1")["status"] == 400


def test_a_message_of_the_future_hides_nothing(talk: Running) -> None:
    """A mark ends at the present: what comes after a line of the year 9999 is new."""
    post = talk.post
    talk.ask("/")
    post.append(MESSAGES, {**record("ada", "project:x"), "timestamp": "9999-01-01T00:00:00Z"})
    talk.does("/seen", to="project:x", until=str(253370764800000))
    post.send("ada", "project:x", "after")
    assert 'data-new="1"' in rail(talk, "project:x")


def test_new_mail_is_announced_while_one_reads_above_and_n_leads_to_it(talk: Running, browser: Browser) -> None:
    """A button says how many came below; the key goes from channel to channel with new mail."""
    post = talk.post
    post.ok("send", "--from", "ada", "--jsonl", "-", stdin="".join(
        json.dumps({"recipient": "project:x", "content": f"line {n}\n" * 3}) + "\n" for n in range(30)))  # fmt: skip
    window = Window(browser, talk)
    page = window.go("/channel?to=project:x")
    page.evaluate("window.scrollTo(0, 0)")
    post.send("ada", "project:x", "BELOW")
    page.get_by_role("button", name="↓ 1 new").click()
    page.get_by_role("button", name="↓ 1 new").wait_for(state="hidden")
    post.send("ada", "all", "ELSEWHERE")
    until(lambda: count(page, "#all") == "1")
    page.keyboard.press("n")
    page.wait_for_url("**/channel?to=all")
    assert window.problems == []


def test_a_burst_leaves_the_reader_s_place(talk: Running, browser: Browser) -> None:
    """After more messages than come one by one, who reads further up has the same line before them, and a button tells
    of the new ones."""
    post = talk.post
    lines = [json.dumps({"recipient": "project:x", "content": f"line {n}\n" * 3}) + "\n" for n in range(130)]
    post.ok("send", "--from", "ada", "--jsonl", "-", stdin="".join(lines[:30]))
    window = Window(browser, talk)
    page = window.go("/channel?to=project:x")
    page.evaluate("window.scrollTo(0, 300)")
    row = page.locator(".message", has_text="line 5")
    before = row.bounding_box()
    post.ok("send", "--from", "ada", "--jsonl", "-", stdin="".join(lines[30:]))
    page.get_by_role("button", name=re.compile(r"↓ \d+ new")).wait_for()
    assert row.bounding_box() == before
    assert window.problems == []


def test_a_new_message_goes_to_anyone_with_completion(talk: Running, browser: Browser) -> None:
    """Each address of several is completed; a draft survives with its addresses."""
    window = Window(browser, talk)
    window.go("/agents").keyboard.press("c")
    page = window.page
    page.wait_for_url("**/new")
    page.wait_for_selector(".link-state.live")
    page.get_by_label("To", exact=True).fill("Ada, ")
    options = page.locator("#addresses option")
    assert "Ada, project:x" in options.evaluate_all("all => all.filter(o => !o.disabled).map(o => o.value)")
    assert "Ada, Ada" not in options.evaluate_all("all => all.filter(o => !o.disabled).map(o => o.value)")
    page.get_by_label("To", exact=True).fill("Ada, project:x")
    page.get_by_label("Text").fill("to several")
    page = window.go("/new")
    assert page.get_by_label("To", exact=True).input_value() == "Ada, project:x"
    page.get_by_role("button", name="Send").click()
    page.get_by_text("Sent to Ada, project:x.").wait_for()
    assert last(talk.post) == ("to several", ["ada", "project:x"])
    assert window.problems == []
    window.context.close()  # a page that is loaded again would have what was written
    answer = talk.ask("/send", {"to": "nobody-at-all", "body": "kept", "next": "/new"})
    assert answer.status == 303
    assert 'value="nobody-at-all"' in talk.ask("/new").text


# -- the page's script ------------------------------------------------------------------------------------------------


def test_what_the_page_sends_reads_no_archive(talk: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """The forms name an id for what they send. It is looked up in the index, so none is slow by a large archive,
    whether one writes, answers or sends again."""
    post = talk.post
    asked = post.send("ada", "user", "asked")
    for name in ("cleo", "dora"):
        post.register(name)
        post.send("ada", name, "read and archived")
        post.check(name)
    post.ok("steward", "run", "--max-live", "0")
    desk = Desk(str(post.box))
    assert desk.warm_caches()
    monkeypatch.setattr(archived_mail, "NEAR", 0)
    monkeypatch.setattr(Mailbox, "is_large", lambda _: True)
    monkeypatch.setattr(Archive, "lines", lambda *_: pytest.fail("the archive was scanned"))
    forms = {
        "/send": talk.form("/new", "/send", to="bo", body="SENT"),
        "/reply": talk.form(f"/direct?with=ada&open={asked}", "/reply", body="ANSWERED"),
        "/resend": talk.form(f"/archive?open={asked}", "/resend", to="bo", body="AGAIN"),
    }
    for path, fields in forms.items():
        with desk.lock_for_acting() as now:
            actions.ACTS[path](now, fields)
        assert post.objects(MESSAGES)[-1]["id"] == fields["message_id"]


def test_who_wrote_last_is_who_answered_whomever_the_answer_went_to(talk: Running) -> None:
    """Mail to a role has its holder's answer below it, though that went to the sender alone; it is not new in there."""
    post = talk.post
    post.register("di", "--name", "Di", "--role", "architect")
    asked = post.send("ada", "role:architect", "May I?", "--subject", "Schema")
    talk.does("/seen", to="role:architect", until=str(2**43))
    assert "Ada wrote last; 1 message" in talk.ask("/conversations").text
    post.check("di")
    post.ok("reply", asked, "--from", "di", "--body", "Go ahead.")
    for path in ("/conversations", "/channels"):
        text = talk.ask(path).text
        assert "Di wrote last; 2 messages" in text or path == "/channels"
        assert "fresh" not in text
    assert re.search(r"Di\b(?s:.)*?Schema", talk.ask("/channels").text.partition("architect")[2])


def test_a_muted_conversation_is_listed_and_counts_nothing(running: Running) -> None:
    """Muting takes the count, not the conversation: neither a channel's nor a direct one."""
    post = running.post
    post.register("ada", "--name", "Ada", "--tags", "project:x")
    running.ask("/conversations")
    post.send("ada", "project:x", "one", "--subject", "Plates")
    post.send("ada", "user", "two", "--subject", "Hosts")
    assert len(re.findall("talk-line fresh", running.ask("/conversations").text)) == 2
    for place in ("project:x", "@ada"):
        running.does("/place", place=place, kind="muted", on="1")
    page = running.ask("/conversations").text
    assert ("Plates" in page, "Hosts" in page, "talk-line fresh" in page) == (True, True, False)


def test_the_list_of_conversations_tells_how_many_it_leaves_out(running: Running) -> None:
    """The newest hundred are listed; of the others the page says where they are."""
    post = running.post
    for channel in range(3):
        post.register(f"agent{channel}", "--tags", f"project:p{channel}")
        for number in range(36):
            running.does("/send", to=f"project:p{channel}", body="x", subject=f"Topic {channel}.{number}")
    page = running.ask("/conversations").text
    assert page.count('class="entry talk-line') == 100
    assert "8 older ones are not shown here." in page
    assert "Looked at:" not in page
    for number in range(4):
        running.does("/send", to="project:p0", body="x", subject=f"More {number}")
    assert "Looked at: the newest 40 messages of each" in running.ask("/conversations").text


def test_each_module_of_the_script_imports_only_those_above_it() -> None:
    """Each module of the script imports only modules above it in the entry's list. It says first what it is for."""
    static = ROOT / "agent_mailbox/console/static"
    entry = (static / "console.js").read_text()
    listed = re.search(r"above it: ([\w, \n/]+)\.", entry)
    assert listed is not None
    order = [*re.findall(r"\w+", listed[1]), "console"]
    found = {path.stem for path in static.glob("*.js")} - {"sign_in", "look"}
    assert found == set(order)
    for place, name in enumerate(order):
        text = (static / f"{name}.js").read_text()
        assert text.startswith("// ")
        assert len(text.splitlines()) < 200
        assert set(re.findall(r'(?:from|import) "\./(\w+)\.js"', text)) <= set(order[:place]), name
        assert max(map(len, text.splitlines())) <= 130, name


def test_lines_of_templates_are_short() -> None:
    """No line is longer than a reader's window."""
    for path in (ROOT / "agent_mailbox/console/templates").glob("*.html"):
        assert max(map(len, path.read_text().splitlines())) <= 130, path.name


def test_a_linter_finds_nothing_in_script_and_style() -> None:
    """The linter biome has no objection to any script or style of the page."""
    biome = npm_file("@biomejs/biome", "2.6.8", "@biomejs/biome/bin/biome", "--version")
    files = [*ROOT.glob("agent_mailbox/console/static/*.js"), *ROOT.glob("agent_mailbox/console/static/*.css")]
    words = ("lint", "--error-on-warnings", f"--config-path={ROOT / 'tests/console/biome.json'}")
    looked = subprocess.run([biome, *words, *files], capture_output=True, text=True, check=False)
    assert looked.returncode == 0, looked.stdout + looked.stderr
    assert f"Checked {len(files)} files" in looked.stdout + looked.stderr


def test_an_upgrade_brings_every_module_anew(running: Running) -> None:
    """Browsers keep the files for ever; a script's imports are relative, so the hash is in the directory's name."""
    page = running.ask("/").text
    script = re.search(r'src="(/static/[0-9a-f]{12}/)console\.js" type="module"', page)
    assert script is not None
    answer = running.ask(f"{script[1]}dom.js")
    assert (answer.status, "immutable" in answer.headers["cache-control"]) == (200, True)
    assert running.ask("/static/dom.js").status == 404
