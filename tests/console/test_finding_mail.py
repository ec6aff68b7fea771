"""Finding: what is typed into the search field, agents and channels in an order, control messages left out."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.console import channel_page, desk, fleet_page, views
from agent_mailbox.console.consoles import Consoles
from agent_mailbox.console.desk import Looking
from agent_mailbox.console.guard import AllowedHosts
from agent_mailbox.console.mail_lists import parse_query
from agent_mailbox.errors import Malformed
from agent_mailbox.mailbox import mail_pages
from agent_mailbox.store.locks.lock import FileLock
from agent_mailbox.store.projection import index_keys
from tests.console.conftest import Running, Window
from tests.helpers import MESSAGES, PATIENCE, Post, record, until

if TYPE_CHECKING:
    import pytest
    from playwright.sync_api import Browser


@pytest.fixture
def mail(running: Running) -> Running:
    """Some mail between two agents and the person."""
    post = running.post
    post.register("ada", "--name", "Ada", "--tags", "project:x")
    post.register("bo", "--name", "Bo", "--tags", "project:x")
    post.send("ada", "project:x", "the terraform plan", "--subject", "Index")
    post.send("bo", "ada", "terraform again, and a question", "--ack")
    post.send("bo", "all", "nothing of that")
    asked = (
        "control",
        "request",
        "permission",
        "--tool",
        "Bash",
        "--session",
        "ada",
        "--input",
        '{"command": "terraform"}',
    )
    post.ok(*asked, "--request-id", "perm-1")
    return running


def found(console: Running, query: str, path: str = "/search?q=") -> list[str]:
    """The texts that a page lists."""
    text = console.ask(path + query.replace(" ", "%20").replace('"', "%22").replace(":", "%3A")).text
    return re.findall(r'<div class="body"><p>(.*?)</p>|<p class="control">([a-z ]+)', text)  # type: ignore[return-value]


def test_each_search_filter_narrows_the_result(mail: Running) -> None:
    """A word finds longer ones; in quotes, itself alone."""
    for query, texts in (
        ("terra", ["the terraform plan", "terraform again, and a question", "permission request"]),
        ('terra"', []),
        ("terra is:mail from:Ada", ["the terraform plan"]),
        ("to:project:x", ["the terraform plan"]),
        ("to:Ada", ["terraform again, and a question"]),
        ("is:ack", ["terraform again, and a question"]),
        ("is:control", ["permission request"]),
        ("from:Bo to:all", ["nothing of that"]),
        ("from:user", []),
    ):
        assert [one or other for one, other in found(mail, query)] == texts, query


def test_an_unknown_search_filter_is_refused() -> None:
    """It would narrow to nothing, or to everything. An address without a name is a word."""
    with pytest.raises(Malformed):
        parse_query("is:red")
    assert parse_query("from: ab abc").query == "from:* ab abc*"


def test_all_mail_leaves_control_messages_out_if_told(mail: Running) -> None:
    """The page of all mail leaves control messages out with ``control=off``."""
    assert ("", "permission request") in found(mail, "", "/archive")
    assert ("", "permission request") not in found(mail, "", "/archive?control=off")


def test_agents_have_an_order_and_channels_their_last_word(mail: Running) -> None:
    """The page of agents sorts by each column. The page of channels shows who wrote last, and about what."""
    for by, names in (
        ("name", ["Ada", "Bo"]),
        ("unread", ["Ada", "Bo"]),
        ("requests", ["Ada", "Bo"]),
        ("x", ["Ada", "Bo"]),
    ):
        page = mail.ask(f"/agents?by={by}").text
        assert re.findall(r"data-go>(\w+)<", page) == names, by
        assert ("aria-sort" in page) == (by != "x")
    assert re.search(r"#x</a>.*?Ada: Index, <time", mail.ask("/channels").text, re.DOTALL)


def test_the_page_of_channels_says_that_one_agent_gets_the_mail_of_a_role(running: Running) -> None:
    """Two agents hold a role and a tag: the tag's mail reaches both, the role's one, and the page says both."""
    post = running.post
    for session in ("ada", "bo"):
        post.register(session, "--role", "worker", "--tags", "project:x")
    post.register("cleo")
    for address in ("role:worker", "project:x"):
        post.send("cleo", address, f"for {address}")
    read = [post.ok("check", "--session", session) for session in ("ada", "bo")]
    assert [sum(f"for {address}" in str(text) for text in read) for address in ("role:worker", "project:x")] == [1, 2]
    words = " ".join(running.ask("/channels").text.split())
    assert "Mail to a role reaches one agent that has it when it checks." in words
    assert "Mail to another channel reaches each of them." in words


def test_of_more_agents_than_a_page_has_those_are_there_who_come_first(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fleet leaves out nobody who waits, for one that rests; a table in an order has the first of all."""
    for name in ("Abe", "Zoe"):
        post.register(name.lower(), "--name", name, "--tags", "project:x")
    post.ok("control", "request", "permission", "--tool", "T", "--input", "{}", "--session", "zoe")
    for most in ("MOST", "MOST_ROWS"):
        monkeypatch.setattr(fleet_page, most, 1)
    monkeypatch.setattr(channel_page, "MOST_MEMBERS", 1)
    now = Looking(str(post.box))
    ways = (
        [one for *_, cards in fleet_page.view_fleet(now, {})["columns"] for one in cards],
        channel_page.describe_columns(now, {"to": "project:x"})["members"],
        fleet_page.list_agents(now, {"by": "requests"})["agents"],
    )
    made, make_row = [], fleet_page.agent_row

    def agent_row(now: Looking, agent: Any) -> Any:
        made.append(agent.session_id)
        return make_row(now, agent)

    monkeypatch.setattr(fleet_page, "agent_row", agent_row)
    fleet_page.list_agents(now, {"by": "name"})
    assert made == ["abe"], "a row is dear: none is made that is not shown"
    assert [[one["name"] for one in shown] for shown in ways] == [["Zoe"]] * 3
    assert [one["name"] for one in fleet_page.list_agents(now, {})["agents"]] == ["Abe"]


def test_the_person_s_own_mail_goes_on_to_older_pages(running: Running) -> None:
    """Each page has messages of its own, and none comes again."""
    lines = [record(id=f"m{number:02}", sender="user", content="x") for number in range(60)]
    running.post.append(MESSAGES, *lines)
    page = running.ask("/agent?id=user").text
    older = re.findall(r'href="([^"]*)" data-older', page)[0].replace("&amp;", "&")
    newest, before = (re.findall(r'id="m-(m\d\d)"', text) for text in (page, running.ask(older).text))
    assert sorted(newest + before) == [f"m{number:02}" for number in range(60)]


def test_by_ctrl_k_one_goes_anywhere_and_finds_marked_words(mail: Running, browser: Browser) -> None:
    """Ctrl+K opens any page by a part of its name. A search marks the found words without changing the text."""
    window = Window(browser, mail)
    page = window.go("/")
    for typed, url in (("x", "/channel.*project"), ("bo", "/direct.*bo"), ("time", "/timeline")):
        page.keyboard.press("Control+k")
        page.locator("#go").fill(typed)
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile(url))
    page = window.go("/search?q=terraf")
    marks = "[...CSS.highlights.get('found')].map(String)"
    until(lambda: len(page.evaluate(marks)) == 2)
    assert page.evaluate(marks) == ["terraf", "terraf"]
    assert page.locator("#main mark").count() == 0
    assert window.problems == []


def test_rules_are_listed_and_revoked_and_reasons_offered(mail: Running) -> None:
    """Each agent's beside the past decisions; the person's last reasons are there for the next denial."""
    post = mail.post
    post.ok("control", "policy", "ada", "--deny", "Bash(rm:*)", "--allow", "Read", "--session", "user")
    page = mail.ask("/decided").text
    assert re.search(r"Rules in force.*Ada.*deny\s+Bash\(rm:\*\).*allow\s+Read", page, re.DOTALL)
    assert mail.does("/revoke", agent="ada", kind="allow", rule="Read")["kind"] == "done"
    assert "allow\n  Read" not in mail.ask("/decided").text
    assert mail.does("/decide", request="perm-1", decision="deny", reason="ask me <first>")["kind"] == "done"
    assert '<option value="ask me &lt;first&gt;">' in mail.ask("/").text


def test_an_address_may_have_any_parameter(mail: Running) -> None:
    """One that a page does not know changes nothing, though a function of ours may have that name."""
    mail.post.send("ada", "all", "FIRST")
    odd = "path=x&page=x&after=x&template=x&params=x&self=x"
    for path in ("/fleet?", "/archive?before=99999999999999.z&", "/channel?to=all&open=x&", "/rail?", "/details?"):
        assert mail.ask(f"{path}{odd}").status == 200, path


@pytest.mark.parametrize("path", ["/search", "/decided", "/timeline"])
def test_a_page_that_looks_through_much_holds_up_no_other(
    post: Post, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """It has a reader of its own: the inbox is made amid its look."""
    console = Consoles(str(post.box), AllowedHosts("127.0.0.1", 1), lambda _: str, "").first
    template, view = views.PAGES[path]
    made: list[int] = []

    def make(at: str) -> int:
        session = SimpleNamespace(said=[], written={})
        request: Any = SimpleNamespace(state=SimpleNamespace(session=session), headers={})
        return console._make_page(at, {}, request).status_code

    def look(*given: Any) -> dict[str, Any]:
        with ThreadPoolExecutor(1) as other:
            made.append(other.submit(make, "/").result(PATIENCE))
        return view(*given)

    monkeypatch.setitem(views.PAGES, path, (template, look))
    assert (make(path), made) == (200, [200])


BUILDING = "The search index is being built"


def test_pages_cover_the_newest_mail_until_the_index_is_there(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """They say so, and find the rest once it is built; here another process is building, which holds the lock.

    Much mail is less of it in this process, from which the console is forked."""
    monkeypatch.setattr(desk, "MUCH", 2 << 20)
    monkeypatch.setattr(mail_pages, "NEWS", 1 << 20)
    long = "x" * 60_000
    lines = [
        {
            "id": f"long-{n}",
            "sender": "zed",
            "recipient": "all",
            "timestamp": "2026-03-16T12:00:00.000Z",
            "content": text,
        }
        for n, text in enumerate(["oldest word", *[long] * (desk.MUCH // len(long) + 1), "newest word"])
    ]
    post.append(MESSAGES, "".join(f"{json.dumps(line)}\n" for line in lines).encode())
    lock = FileLock(str(post.file(".cache", index_keys.LOCK)), 0)
    post.file(".cache").mkdir(exist_ok=True)
    with lock.take(), Running(post) as console:
        console.enter()
        page = " ".join(console.ask("/search?q=word").text.split())
        assert BUILDING in page
        assert "newest 1 of 2 MB" in page
        assert "newest word" in page
        assert "oldest word" not in page
        assert console.ask("/timeline").status == 200
        newest = lines[-1]["id"]
        assert "No agent was shown this message yet" in console.ask(f"/?open={newest}").text
        assert "in the newest mail" in console.ask("/?open=long-0").text
        lock.release()
        until(lambda: BUILDING not in console.ask("/").text)
        page = console.ask("/search?q=word").text
        assert "newest word" in page
        assert "oldest word" in page
