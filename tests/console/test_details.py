"""Small things that a day of use met: each is as the person expects it, on a phone and where no file can be written."""

from __future__ import annotations

import html
import json
import re
import shlex
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.console import charts, markup
from agent_mailbox.console.error_pages import describe_error
from agent_mailbox.console.guard import Gate
from agent_mailbox.console.live import MAX_WINDOWS, LiveHub, OpenPage
from agent_mailbox.control.tasking import Tasking
from agent_mailbox.core.compose import EXAMPLE_ID, Draft
from agent_mailbox.core.control.messages import TaskAssignment
from agent_mailbox.core.records import USER
from agent_mailbox.errors import AGAIN, Busy
from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.mailbox.sending import retryable
from tests.console.conftest import Running, Window
from tests.console.test_live import named, played, some
from tests.helpers import MESSAGES, Post, until

if TYPE_CHECKING:
    from pathlib import Path

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


ASKS = ("control", "request", "permission", "--tool", "Bash", "--input", '{"command": "make"}', "--session", "ada")


def block(path: Path) -> None:
    """Have a directory with something in it where a file is."""
    path.unlink()
    (path / "in the way").mkdir(parents=True)


def test_a_mark_that_cannot_be_kept_is_no_success(running: Running) -> None:
    """Putting off, muting and marking as seen are refused where their file cannot be written; pages still come."""
    post = running.post
    post.register("ada", "--name", "Ada")
    made = post.send("ada", "user", "two")
    assert running.ask("/").status == 200
    (marks,) = post.home.rglob("seen.json")
    block(marks)
    for path, fields in (
        ("/put-off", {"id": made}),
        ("/put-off", {}),
        ("/place", {"place": "all", "kind": "muted", "on": "1"}),
        ("/seen", {"to": "all", "until": "1000"}),
    ):
        told = running.does(path, **fields)
        assert (told["kind"], str(marks) in told["said"]) == ("problem", True), told
    assert "two" in running.ask("/").text


def test_a_decision_counts_though_its_request_stays_unread(running: Running) -> None:
    """The answer says that it was decided, with what failed behind it."""
    post = running.post
    post.register("ada", "--name", "Ada")
    ids = [post.ok(*ASKS)["request"]["id"] for _ in range(3)]
    beats = post.file("agent-heartbeats")
    beats.rename(beats.with_name("away"))
    beats.write_text("")
    one = running.does("/decide", request=ids[0], decision="approve")
    rest = running.does("/decide-chosen", decision="deny", **{f"chosen:{each}": "1" for each in ids[1:]})
    for told, said in ((one, "approved. Ada was told. But it stays unread: "), (rest, "2 denied: ")):
        assert (told["kind"], said in told["said"], str(beats) in told["said"]) == ("done", True, True), told
    assert "approved already" in running.does("/decide", request=ids[0], decision="approve")["said"]


def test_the_commands_on_a_page_name_the_mailbox_that_the_console_was_given(post: Post) -> None:
    """Each command on a page names the mailbox with its whole path, for its reader may be in another directory."""
    box = post.cwd / "a box"
    post.run("init", box)
    post.env.pop("AGENT_MAILBOX_DIR", None)
    assert post.call("send", "--from", "ann", "--to", "all", "--body", "x", "--dir", box).rc == 0
    place = f"--dir {shlex.quote(str(box))}"
    with Running(post, "--dir", "a box") as console:
        console.enter()
        shown = html.unescape(console.ask("/?open=no-such").text)
        assert f"`agent-mailbox history {place} --all` lists ids" in shown
        assert f"`agent-mailbox roster list {place}`" in console.does("/send", to="@ann", body="x")["said"]
        (box / MESSAGES).write_bytes(b"")
        assert f"<code>agent-mailbox doctor {place} --trust</code>" in html.unescape(console.ask("/").text)


def test_an_address_without_a_page_is_answered_by_a_page(running: Running) -> None:
    """A misspelt address leads on: it has the lists of all others, and is escaped as all else."""
    answer = running.ask("/inbx<b>")
    assert answer.status == 404
    assert "the console has no such page" in answer.text
    assert 'href="/search"' in answer.text
    assert "<b>" not in answer.text


def test_an_error_of_a_form_names_no_option_of_a_command(running: Running) -> None:
    """A form has no options. Its error says what to write, and a form that is sent again has its id already."""
    running.post.register("ada", "--name", "Ada")
    for path, fields, said in (
        ("/send", {"to": "ada", "body": " "}, "the body is empty. write its text"),
        ("/send", {"to": ",", "body": "x"}, "the message has no recipient. name an agent"),
        ("/send", {"to": "@bo", "body": "x"}, "without the sign: bo;"),
        ("/send", {"to": "Adda", "body": "x"}, "role:Adda insists on a role"),
        ("/send", {"to": "ada", "body": "x", "message_id": "1"}, "leave the id out"),
        ("/add-note", {"to": "project:x", "subject": " "}, "the note has no title. name it in a few words"),
        ("/assign", {"to": "ada", "subject": " "}, "the task has no title. name it in a few words"),
    ):
        told = running.does(path, **fields)["said"]
        assert said in told
        assert "--" not in told.replace("`agent-mailbox roster list --dir", "")
    late = retryable(Busy("the log is busy", AGAIN), [EXAMPLE_ID])
    assert describe_error(late, str)[0]["hint"] == "repeat it: nothing is sent twice"


def test_a_form_that_was_sent_before_says_that_it_may_be_sent_again(running: Running) -> None:
    """The back button brings a form as it was: with another text it is a new message, under the id that comes with the
    refusal. With the same text it is the one that was sent."""
    post = running.post
    fields = {"to": "all", "body": "first", "message_id": EXAMPLE_ID}
    for _ in range(2):
        assert running.does("/send", **fields)["kind"] == "done"
    refused = running.does("/send", **{**fields, "body": "second"})
    assert (refused["status"], "send it again" in refused["said"], "leave the id out" in refused["said"]) == (
        409,
        True,
        False,
    )
    assert running.does("/send", to="all", body="second", message_id=refused["message_id"])["kind"] == "done"
    assert [m["content"] for m in post.objects(MESSAGES)] == ["first", "second"]


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
