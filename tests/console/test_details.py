"""Small things that a day of use met: each is as the person expects it."""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.console import charts, markup
from agent_mailbox.console.gate import Gate
from agent_mailbox.console.live import MAX_WINDOWS, LiveHub, OpenPage
from agent_mailbox.control.tasking import Tasking
from agent_mailbox.core.compose import Draft
from agent_mailbox.core.control.messages import TaskAssignment
from agent_mailbox.core.records import USER
from agent_mailbox.mailbox.mailbox import Mailbox
from tests.console.conftest import Running, Window
from tests.console.test_live import named, played, some
from tests.helpers import MESSAGES, until

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def test_with_many_windows_the_page_of_requests_stays_live() -> None:
    """If too many windows are open, the oldest window rests, but not the page of requests."""

    async def play() -> None:
        hub = LiveHub()
        gate = Gate(lambda: 0.0)
        owner = gate.session_of(gate.exchange_token(gate.new_link_token()))
        pages = [OpenPage(named, owner, stays=number == 0) for number in range(MAX_WINDOWS + 2)]
        streams = [hub.stream_events(page, hub.number) for page in pages]
        for stream in streams:
            await some(stream, 1)
        assert [page.rests for page in pages] == [False, True, True, *[False] * (MAX_WINDOWS - 1)]
        hub.close_streams()

    played(play())


def test_a_clock_that_begins_anew_leaves_no_time_out(running: Running) -> None:
    """A machine without a battery for its clock writes 1970 until it hears of the time: the first instant is one."""
    box = Mailbox(str(running.post.box), clock=lambda: 0)
    Tasking(box).add_task(USER, ["all"], TaskAssignment(title="Tidy up"))
    sent = box.send(Draft(sender="ada", to=("user",), content="hello")).message
    receipts = running.ask(f"/details?open={sent.id}").text.partition("<tbody>")[2]
    for text in (receipts, running.ask("/tasks").text.partition("Tidy up")[2]):
        assert "1970-01-01T00:00:00Z" in text


@pytest.mark.parametrize("path", ["/events?page=/&last=", "/receipts?ids=x", "/rail?page=/"])
def test_nobody_visits_what_only_pages_load(shared: Running, path: str) -> None:
    """Another port's page cannot lead the browser there; it can link to a page."""
    followed = {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert shared.ask(path, headers=followed).status == 403
    assert shared.ask("/agents", headers=followed).status == 200


def test_a_fault_in_the_input_is_found_by_its_line(running: Running) -> None:
    """A changed input may have forty lines."""
    running.post.register("ada")
    words = ("control", "request", "permission", "--tool", "T", "--input", '{"a": 1}', "--session", "ada")
    request = running.post.ok(*words)["request"]["id"]
    given = '{\n  "a": 1,\n  b\n}'
    assert "line 3, column 3" in running.does("/decide", request=request, decision="approve", input=given)["said"]


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("see https://example.org/a?b=c#d.", ["https://example.org/a?b=c#d"]),
        ("(https://example.org), HTTP://EXAMPLE.ORG/x!", ["https://example.org", "HTTP://EXAMPLE.ORG/x"]),
        ("[named https://one.example](https://two.example)", ["https://two.example"]),
        ("`https://code.example` and javascript://x, ftp://y", []),
        ("https:// and https://'", []),
    ],
)
def test_a_bare_web_address_becomes_a_link(text: str, links: list[str]) -> None:
    """Without the punctuation after it; not within code or another link, and on the web alone."""
    from tests.console.test_markup import Sieve, check

    found: list[Any] = [attributes.get("href") for tag, attributes in Sieve(check(text)).found if tag == "a"]
    assert found == links


def test_bare_addresses_are_found_in_linear_time() -> None:
    """The longest message is searched for bare addresses in linear time."""
    assert "href" in markup.html_of("https://a.example/" + ".,;" * 20_000 + "x")
    assert markup.html_of("https://" * 8000)


def test_charts_tell_durations_in_a_fitting_unit() -> None:
    """A chart tells a duration in the unit that suits it, such as 16 h and not 931 minutes."""
    assert [charts.spell_duration(seconds) for seconds in (0.2, 3, 300, 931 * 60, 5 * 86400)] == [
        "200 ms", "3.0 s", "5 min", "16 h", "5 days"
    ]  # fmt: skip


def test_pending_is_mail_that_needs_a_reader(running: Running) -> None:
    """News to a project needs nobody; a question to it does, and so does mail to an agent or a role."""
    post = running.post
    post.register("ada", "--tags", "project:x")
    post.send("user", "project:x", "NEWS")
    post.send("user", "project:x", "QUESTION", "--ack")
    post.send("user", "role:r", "FOR-ROLE")
    post.send("user", "ada", "FOR-ADA")
    assert running.ask("/pending?x=1").headers["location"] == "/?x=1"
    until(lambda: "FOR-ADA" in running.ask("/").text)
    text = running.ask("/").text.partition('data-key="unread"')[2]
    assert ("NEWS" in text, "QUESTION" in text, "FOR-ROLE" in text) == (False, True, True)


def test_an_answer_in_the_direct_thread_settles_the_question(running: Running, browser: Browser) -> None:
    """It is neither unread nor owed after that; in the inbox each is settled beside the list."""
    post = running.post
    post.register("ada", "--name", "Ada")
    asked = post.send("ada", "user", "May I?", "--ack", "--subject", "Leave")
    window = Window(browser, running)
    page = window.go("/direct?with=ada")
    assert page.get_by_label("This answers “Leave”").is_checked()
    page.locator("#body").fill("Yes.")
    page.get_by_role("button", name="Send").click()
    page.locator(".message", has_text="Yes.").wait_for()
    assert post.objects(MESSAGES)[-1]["thread"] == asked
    assert post.ok("status", "--session", "user")["obligations"] == []
    assert post.unread("user") == []
    news, other = post.send("ada", "user", "First"), post.send("ada", "user", "Second", "--ack")
    page = window.go("/")
    page.locator(f"#m-{news} a").click()
    page.locator(f'#details [data-message="{news}"]').wait_for()
    page.get_by_role("button", name="Mark as read").click()
    until(lambda: post.unread("user") == [other])
    page.locator(f'#details [data-message="{other}"]').wait_for()
    page.get_by_role("button", name="Acknowledge").click()
    page.get_by_text("Nothing waits for you.").wait_for()
    assert news != other
    assert post.ok("status", "--session", "user")["obligations"] == []
    assert window.problems == []


def test_the_rest_of_a_long_thread_is_a_link_away(running: Running) -> None:
    """An opened message says how many messages of its thread it leaves out, and links the topic that has them all."""
    post = running.post
    post.register("ada", "--tags", "project:x")
    first = post.send("ada", "project:x", "text 0", "--subject", "Long talk")
    lines = [{"recipient": "project:x", "content": f"text {n}", "thread": first} for n in range(1, 60)]
    post.ok("send", "--from", "ada", "--jsonl", "-", stdin="".join(json.dumps(line) + "\n" for line in lines))
    text = " ".join(running.ask(f"/details?page=/channel&to=project:x&open={first}").text.split())
    told = re.search(r'Thread of 60 messages, 35 of them further away: <a href="([^"]*)">all of #x › Long talk', text)
    assert told is not None, text
    seen: list[str] = []
    link: re.Match[str] | None = told
    while link is not None:
        page = running.ask(html.unescape(link[1])).text.partition('id="details"')[0]
        seen += re.findall(r">text (\d+)<", page)
        link = re.search(r'<a href="([^"]*)" data-older', page)
    assert sorted(seen, key=int) == [str(n) for n in range(60)]
