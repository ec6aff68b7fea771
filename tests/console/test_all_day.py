"""The page that stays open all day: what ends, what comes back, what is seen, what is counted."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn
from playwright.sync_api import expect

from agent_mailbox.console import charts, mail_lists, presenters, unread_mail, views
from agent_mailbox.console.console_server import TimelyConnection, _Inert
from agent_mailbox.console.desk import Looking
from agent_mailbox.console.error_pages import describe_error
from agent_mailbox.console.guard import MAX_BODY, MAX_SESSIONS, Gate, Session
from agent_mailbox.console.live import Event, LiveHub, OpenPage
from agent_mailbox.core import instant
from agent_mailbox.core.instant import DAY, HOUR
from agent_mailbox.mailbox import mailbox as facade
from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.mailbox.open_mailbox import wall_clock
from agent_mailbox.mailbox.queries import MailQueries
from agent_mailbox.store.locks.lock import FileLock
from agent_mailbox.store.projection import index_keys
from agent_mailbox.store.projection.index_keys import NEWS
from tests.console.conftest import Running, Window
from tests.console.forms import find_form, read_forms
from tests.console.test_live import Stream, named, played, some
from tests.helpers import MESSAGES, PATIENCE, Post, record, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser


# -- what ends --------------------------------------------------------------------------------------------------------


def test_a_stream_ends_when_its_session_is_signed_out(running: Running) -> None:
    """A stream ends when its session signs out, and tells no mail that comes after."""
    running.post.register("ada")
    stream = Stream(running, "page=/archive")
    stream.next("stale")
    assert running.ask("/leave", {}).status == 303
    running.post.send("ada", "user", "SECRET")
    assert "SECRET" not in "".join(event["data"] for event in stream.events())
    stream.close()


def test_a_stream_ends_with_a_session_that_gives_way_to_a_newer_one() -> None:
    """A session that gives way to a newer one gets no queued event any more. Its new streams end at once."""

    async def play() -> None:
        hub = LiveHub()
        gate = Gate(time.monotonic, hub.dismiss_owner)
        owner = gate.session_of(gate.exchange_token(gate.new_link_token()))
        page = OpenPage(named, owner)
        stream = hub.stream_events(page, hub.number)
        await some(stream, 1)
        hub.publish_events([Event("reads", None, ("QUEUED",))])
        for _ in range(MAX_SESSIONS):
            gate.exchange_token(gate.new_link_token())
        assert not [part async for part in stream if b"QUEUED" in part]
        assert [part async for part in hub.stream_events(OpenPage(named, owner), hub.number)] == []
        assert len(hub) == 0

    played(play())


def test_a_page_is_written_beside_the_event_loop() -> None:
    """A slow roster delays that page alone."""

    async def play() -> None:
        hub, loops = LiveHub(), []

        def write(event: Event) -> list[tuple[str, str]]:
            try:
                loops.append(asyncio.get_running_loop())
            except RuntimeError:
                loops.append(None)
            return named(event)

        stream = hub.stream_events(OpenPage(write, Session(time.monotonic)), hub.number)
        await some(stream, 1)
        hub.publish_events([Event("roster")])
        await some(stream, 1)
        assert loops == [None]
        hub.close_streams()

    played(play())


def test_requests_that_do_not_arrive_whole_are_closed() -> None:
    """The server closes a connection whose request does not arrive whole. It keeps one whose answer takes long."""

    class Quick(TimelyConnection):
        seconds = 0.15

    async def app(scope: Any, receive: Any, send: Any) -> None:
        while (await receive())["type"] == "http.request":
            if scope["path"] == "/slow":
                await asyncio.sleep(1.2)
                await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
                await send({"type": "http.response.body", "body": b"ok"})
                return

    async def play() -> None:
        config = uvicorn.Config(app, http=Quick, lifespan="off", log_config=None, loop="asyncio")
        server = uvicorn.Server(config)
        listening = socket.create_server(("127.0.0.1", 0))
        serving = asyncio.create_task(server.serve([listening]))
        head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n"
        port = listening.getsockname()[1]
        while not server.started:
            await asyncio.sleep(0.01)
        for sent in (b"", head, head + b"\r\nxx"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            assert await asyncio.wait_for(reader.read(), PATIENCE) == b""
            writer.close()
        Quick.seconds = 1.0  # a busy machine brings a whole request in less, and the answer comes later
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(2):
            writer.write(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
        writer.close()
        server.should_exit = True
        await serving

    played(play())


def test_an_unexpected_error_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    """The log has the traceback of an unexpected error, without the control characters of what it quotes."""

    def failing() -> None:
        raise ValueError("quoted \x1b[2J mail")

    try:
        failing()
    except ValueError as error:
        said, status = describe_error(error, str)
    assert (status, "unexpected error" in said["what"]) == (500, True)
    (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    text = _Inert().format(record)
    assert "in failing" in text
    assert "\x1b" not in text


# -- what is sent and kept --------------------------------------------------------------------------------------------


ASKS = ("control", "request", "permission", "--tool", "Bash", "--input")


def field(page: str, name: str) -> str:
    """The value of a page's hidden field."""
    found = re.search(f'name="{name}" value="([^"]+)"', page)
    assert found is not None
    return found[1]


def test_a_message_sent_twice_by_a_retry_is_one(running: Running) -> None:
    """A lost answer leaves the form with the same id; an answer that came gives it another."""
    running.post.register("ada", "--name", "Ada")
    made = field(running.ask("/direct?with=ada").text, "message_id")
    answers = [running.does("/send", to="ada", body="once", message_id=made) for _ in range(2)]
    assert [m["id"] for m in running.post.objects(MESSAGES)] == [made]
    assert answers[0]["message_id"] not in (made, None)
    again = running.ask(f"/archive?open={made}").text
    answer = field(again, "message_id")
    for _ in range(2):
        running.does("/reply", id=made, body="answer", message_id=answer)
    assert [m["id"] for m in running.post.objects(MESSAGES)] == [made, answer]


def test_without_script_a_refused_form_keeps_what_was_written(running: Running) -> None:
    """It is there once, in the form that it was written into."""
    running.post.register("ada", "--name", "Ada")
    place = "/direct?with=ada"
    written = "KEPT " * 20_000
    assert running.ask("/send", {"to": "ada", "body": written, "subject": "S1", "next": place}).status == 303
    page = running.ask(place).text
    assert "Refused:" in page
    assert written.strip() in page
    assert 'value="S1"' in page
    assert "KEPT" not in running.ask(place).text


def test_a_window_that_renews_itself_takes_no_other_one_s_notice(running: Running) -> None:
    """The scripts of a window fetch its page and show none of its notices. So these wait for a page that one opens."""
    running.post.register("ada", "--name", "Ada")
    for body, told in (("x", "Sent to Ada"), (" ", "Refused:")):
        running.ask("/send", {"to": "ada", "body": body, "subject": "KEPT", "next": "/direct?with=ada"})
        fetched = running.ask("/direct?with=ada", headers={"Sec-Fetch-Mode": "cors"}).text
        opened = running.ask("/direct?with=ada", headers={"Sec-Fetch-Mode": "navigate"}).text
        assert (told in fetched, told in opened) == (False, True)
    assert 'value="KEPT"' in opened


def test_without_script_a_refused_form_keeps_its_choices(running: Running) -> None:
    """The choices about a message are there as they were made; so is to whom one goes again."""
    running.post.register("ada", "--name", "Ada")
    place, chosen = "/direct?with=ada", {"ack": "1", "priority": "high"}
    running.ask("/send", {"to": "ada", "body": " ", "next": place, **chosen})
    assert chosen.items() <= running.form(place, "/send").items()
    running.ask("/send", {"to": "adda", "body": "x", "next": "/new", **chosen})
    assert chosen.items() <= running.form("/new", "/send").items()
    made = running.post.send("ada", "user", "once")
    again = {"to": "adda", "body": "see above"}
    place = f"/archive?open={made}"
    running.ask("/resend", {"id": made, "next": place, **again})
    assert again.items() <= running.form(place, "/resend").items()
    place, wanted = "/agent?id=ada", {"name": "not a name"}
    running.ask("/rename", {"agent": "ada", "next": place, **wanted})
    assert wanted.items() <= running.form(place, "/rename").items()


def test_without_script_a_refused_decision_keeps_what_was_written(running: Running) -> None:
    """The request is open again, with the changed input in sight, whichever the page shows by itself."""
    running.post.register("ada", "--name", "Ada", "--lead", "user")
    made = [running.post.ok(*ASKS, f'{{"command": "make {n}"}}', "--session", "ada")["request"] for n in range(2)]
    written = {"input": '{"command": "make -n"', "reason": "a trial"}
    for one in made:
        form = running.form(f"/?open={one['message_id']}", "/decide", {"request": one["id"]}, "approve", **written)
        answer = running.ask("/decide", form)
        page = running.ask(answer.headers["location"]).text
        assert "nothing was decided" in page
        found = find_form(read_forms(page), "/decide", request=one["id"]).fields
        assert written.items() <= found.items()
        assert '<details class="change" open>' in page


def test_a_form_that_is_too_large_is_told_so(running: Running) -> None:
    """Its sender is told what to do, and not that the console is away or the message is for nobody."""
    running.post.register("ada", "--name", "Ada")
    answer = running.ask("/send", {"to": "ada", "body": "x" * MAX_BODY})
    assert (answer.status, "Shorten its text" in answer.text) == (413, True)
    head = '--B\r\nContent-Disposition: form-data; name="files"; filename="f"\r\n\r\nx\r\n'
    kind = {"Content-Type": "multipart/form-data; boundary=B"}
    answer = running.ask("/send", (head * 70 + "--B--\r\n").encode(), headers=kind)
    assert (answer.status, "too many files" in answer.text, "send at most" in answer.text) == (400, True, True)


# -- what is counted and where ----------------------------------------------------------------------------------------


def test_the_title_counts_decisions_and_not_mail(running: Running) -> None:
    """Broadcasts stop nobody; a request that has timed out waits for nobody."""
    post = running.post
    post.register("ada", "--name", "Ada", "--lead", "user")
    post.send("ada", "all", "noise")
    page = running.ask("/agents").text
    assert "<title>Agents" in page
    assert 'data-decisions="0"' in page
    ask = ("control", "request", "permission", "--tool", "Bash", "--input", '{"command": "x"}', "--session", "ada")
    post.ok(*ask)
    page = running.ask("/agents").text
    assert "<title>(1) Agents" in page
    assert 'id="icon" href="/icon.svg?waits=1"' in page
    post.ok(*ask, "--timeout", "0")
    assert "<title>(1) Agents" in running.ask("/agents").text


def test_a_link_to_an_old_message_shows_it_in_its_place(running: Running) -> None:
    """A link to a message that the newest page lacks shows the page around it. A message of another list changes
    nothing."""
    post = running.post
    post.register("ada")
    first = post.send("ada", "all", "long ago")
    other = post.send("ada", "user", "elsewhere")
    lines = "".join(f'{{"recipient": "all", "content": "bulk {n}"}}\n' for n in range(mail_lists.PAGE + 5))
    post.ok("send", "--from", "ada", "--jsonl", "-", stdin=lines)
    page = running.ask(f"/channel?to=all&open={first}").text
    assert f'id="m-{first}"' in page
    assert "The newest messages" in page
    newest = running.ask(f"/channel?to=all&open={other}").text
    assert "The newest messages" not in newest
    assert f"bulk {mail_lists.PAGE + 4}" in newest


def test_a_time_of_another_day_names_its_day() -> None:
    """Today's is the time alone."""
    noon = 1_773_662_400_000
    assert re.fullmatch(r"\d\d:\d\d", presenters.local_moment(noon, noon))
    assert re.fullmatch(r"\w{3} \d+ \w{3}, \d\d:\d\d", presenters.local_moment(noon - 3 * DAY, noon))
    assert re.fullmatch(r"\d+ \w{3} 2025, \d\d:\d\d", presenters.local_moment(noon - 300 * DAY, noon))


def test_the_dead_letters_of_a_large_log_are_counted_beside_the_pages(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page asks for the count and does not wait: it held every other window for twenty seconds."""
    post.register("ada")
    monkeypatch.setattr(MailQueries, "dead_letters", lambda *_: pytest.fail("looked through everything for a page"))
    made = unread_mail.view_dead(Looking(str(post.box)), {})
    assert (made["letters"], made["wants_dead"]) == ([], True)


def test_a_look_up_beside_another_one_does_not_read_everything(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits the milliseconds for which another window, or a command, has the index."""
    long = "x" * 60_000
    post.append(MESSAGES, *(record(id=f"long-{n}", sender="ada", content=long) for n in range(NEWS // len(long) + 2)))
    mailbox = Mailbox(str(post.box))
    assert MailQueries(mailbox).thread("long-3")[0]
    monkeypatch.setattr(Mailbox, "_scanned", lambda *_: pytest.fail("read everything"))
    monkeypatch.setattr(facade, "PATIENCE", PATIENCE)  # a busy machine may hold up who has it
    lock = FileLock(str(post.file(".cache", index_keys.LOCK)), 0).take()
    threading.Timer(0.05, lock.release).start()
    assert mailbox.find("long-3").message.id == "long-3"


def test_the_timeline_counts_all_that_it_says_it_counts(post: Post) -> None:
    """Each look reads a bounded number, newest first; the number is whole at once, the modes are after some looks."""
    post.register("ada", "--tags", "project:x")
    old, new = ((wall_clock() - hours * HOUR) // 1000 * 1000 for hours in (30, 2))
    addresses = ("ada", "all", "project:x")
    third = (charts.MOST_READ - 2 + 60) // 3
    whole_number = 3 * third
    lines = [
        {"id": f"m{n:05}", "sender": "bo", "recipient": addresses[n % 3], "content": "x", "timestamp": instant.text(at)}
        for n, at in enumerate([old] * (whole_number - 60) + [new] * 60)
    ]
    post.append(MESSAGES, *lines)
    looking = Looking(str(post.box))
    first = views.view_timeline(looking, {"hours": "72"})
    assert (first["total"], first["told"], sum(t for _, t in first["hours_chart"]["totals"])) == (
        whole_number,
        60,
        whole_number,
    )
    assert dict(first["hours_chart"]["totals"])[charts.UNTOLD] == whole_number - 60
    whole = views.view_timeline(looking, {"hours": "72"})
    assert whole["told"] == whole_number
    assert dict(whole["hours_chart"]["totals"]) == {"direct": third, "role": 0, "tag": third, "broadcast": third}
    assert (first["counts_on"], whole["counts_on"]) == (True, False)  # an open page looks again by itself
    assert sum(count for _, _, count in whole["matrix"]["rows"]) == whole_number
    post.append(MESSAGES, {**lines[-1], "id": "late"})
    assert views.view_timeline(looking, {"hours": "72"})["total"] == whole_number + 1


# -- what is seen -----------------------------------------------------------------------------------------------------


@pytest.fixture
def talk(post: Post) -> Iterator[Running]:
    """A console whose channel is longer than a screen."""
    post.register("ada", "--name", "Ada", "--lead", "user")
    for n in range(30):
        post.append(MESSAGES, {"id": f"00000000-0000-4000-8000-{n:012}", "sender": "ada", "recipient": "all",
                               "content": f"line {n}", "timestamp": f"2026-03-1{n // 10}T10:{n:02}:00Z"})  # fmt: skip
    with Running(post) as console:
        yield console.enter()


def test_what_a_button_answered_is_seen_and_a_draft_survives(talk: Running, browser: Browser) -> None:
    """The answer to a button is in view on a small window. A draft stays over other pages until it is sent."""
    window = Window(browser, talk, viewport={"width": 390, "height": 700})
    page = window.go("/channel?to=all")
    page.get_by_role("link", name="Menu").wait_for()
    assert page.evaluate("document.querySelector('.to-rail').getBoundingClientRect().bottom") < 60
    page.locator("#body").fill(" " * 3)
    page.get_by_role("button", name="Send", exact=True).click()
    page.locator("#said .problem").wait_for()
    box = page.locator("#said .problem").bounding_box()
    assert box is not None
    assert 0 <= box["y"] < 700
    page.get_by_role("button", name="Close", exact=True).click()
    page.locator("#body").fill("half a thought")
    made = page.locator(".compose [name=message_id]").input_value()
    window.go("/agents")
    page = window.go("/channel?to=all")
    assert page.locator("#body").input_value() == "half a thought"
    assert page.locator(".compose [name=message_id]").input_value() == made
    page.get_by_role("button", name="Send", exact=True).click()
    page.locator(".message", has_text="half a thought").wait_for()
    until(lambda: page.locator("#body").input_value() == "")
    assert page.locator(".compose [name=message_id]").input_value() != made
    assert window.go("/channel?to=all").locator("#body").input_value() == ""
    assert window.problems == ["Failed to load resource: the server responded with a status of 400 (Bad Request)"]


def test_back_closes_the_panel_and_single_keys_can_be_off(talk: Running, browser: Browser) -> None:
    """Back leads to the list, not away from it; a switched-off key does nothing, also after a reload."""
    window = Window(browser, talk)
    window.go("/agents")
    page = window.go("/channel?to=all")
    page.locator(".message .open").last.click()
    page.locator("#reply").wait_for()
    page.go_back()
    page.locator("#details").wait_for(state="hidden")
    assert page.url.endswith("/channel?to=all")
    page.keyboard.press("?")
    page.get_by_label("Keys without Ctrl").uncheck()
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    page = window.go("/channel?to=all")
    page.keyboard.press("/")
    page.keyboard.press("?")
    assert page.evaluate("document.activeElement.id") != "find"
    assert page.get_by_role("dialog").count() == 0
    assert window.problems == []


def test_a_sound_tells_of_a_request_if_one_wants_it(talk: Running, browser: Browser) -> None:
    """Off by default; on, two tones for each request while one looks elsewhere, also after a reload, and none before
    one's eyes."""
    window = Window(browser, talk)
    window.page.add_init_script(
        "window.tones = 0; window.looks = false; document.hasFocus = () => window.looks;"
        "const start = OscillatorNode.prototype.start;"
        "OscillatorNode.prototype.start = function (...when) { tones += 1; return start.apply(this, when); };"
    )

    def asked(reason: str) -> int:
        talk.post.ok("control", "request", "permission", "--tool", "Bash", "--reason", reason, "--session", "ada")
        page.locator(".item", has_text=reason).wait_for()
        page.wait_for_function(
            "() => Number(document.body.dataset.decisions) === document.querySelectorAll('[data-decides]').length"
        )
        return int(page.evaluate("tones"))

    page = window.go("/")
    assert asked("the first") == 0
    page.keyboard.press("?")
    page.get_by_label("A sound when").check()
    assert page.evaluate("tones") == 2
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    page = window.go("/")
    assert asked("the second") == 2
    page.evaluate("looks = true")
    assert asked("the third") == 2
    assert window.problems == []


def test_a_message_that_comes_in_stands_where_a_reload_puts_it(talk: Running, browser: Browser) -> None:
    """A message that comes in is in the order of sending, below its day, as after a reload."""
    window = Window(browser, talk)
    page = window.go("/channel?to=all")
    for n, at in enumerate(("2026-03-11T10:15:30Z", "2026-03-12T23:00:00Z", "2026-03-11T23:00:00Z")):
        talk.post.append(MESSAGES, {"id": f"00000000-0000-4000-9000-{n:012}", "sender": "ada", "recipient": "all",
                                    "content": f"late {n}", "timestamp": at})  # fmt: skip
        page.locator(".message", has_text=f"late {n}").wait_for()
    order = "[...document.querySelectorAll('.list .message, .list .day')].map(n => n.dataset.key || n.dataset.day)"
    came = page.evaluate(order)
    assert came == window.go("/channel?to=all").evaluate(order)
    assert len(came) == 30 + 3 + 3


def test_a_request_is_reviewed_as_it_is_and_expires_before_one_s_eyes(talk: Running, browser: Browser) -> None:
    """A diff, the JSON behind a toggle; when its time is over nobody can press, and it goes."""
    given = '{"file_path": "/a.py", "old_string": "one\\ntwo", "new_string": "one\\n2"}'
    ask = ("control", "request", "permission", "--tool", "Edit", "--input", given, "--session", "ada")
    talk.post.ok(*ask, "--timeout", "600")
    window = Window(browser, talk)
    window.page.clock.install()
    page = window.go("/")
    card = page.locator(".card")
    assert [card.locator(sign).inner_text().rstrip("\n") for sign in ("del", "ins")] == ["- two", "+ 2"]
    assert not card.locator("textarea").is_visible()
    page.clock.run_for(2000)
    left = card.locator(".left").inner_text()
    assert re.fullmatch(r"\(\d min( \d+ s)? left\)", left), left
    page.clock.run_for(610_000)
    card.get_by_text("(expired)").first.wait_for()
    assert card.get_by_role("button", name="Approve").is_disabled()


def test_a_browser_whose_clock_is_wrong_counts_by_the_console_s(talk: Running, browser: Browser) -> None:
    """A phone may be minutes ahead: a request with time left is not over there, and can be decided."""
    post = talk.post
    words = ("control", "request", "permission", "--tool", "Bash", "--input", '{"command": "make"}')
    post.ok(*words, "--timeout", "240", "--session", "ada")
    page = Window(browser, talk).page
    page.clock.install(time=time.time() + 600)
    page.goto(talk.url)
    card = page.locator("#details .card")
    expect(card.locator(".left")).to_contain_text("min")
    expect(card.locator(".left")).not_to_contain_text("expired")
    expect(card.get_by_role("button", name="Approve")).to_be_enabled()


def test_a_page_that_outlives_its_console_comes_back(post: Post, browser: Browser) -> None:
    """It says to sign in again, keeps what is written, and goes on when another window of the browser has."""
    post.register("ada", "--name", "Ada")
    with Running(post) as console:
        window = Window(browser, console.enter())
        page = window.go("/channel?to=all")
        page.locator("#body").fill("still here")
        port = console.port
        console.kill()
    with Running(post, "--port", port) as again:
        page.get_by_text("You are signed out here").wait_for()
        page.get_by_role("button", name="Send", exact=True).click()
        post.send("ada", "all", "MEANWHILE")
        beside = window.context.new_page()
        beside.goto(again.link)
        beside.wait_for_selector(".link-state.live")
        page.evaluate("window.dispatchEvent(new Event('focus'))")
        page.locator(".message", has_text="MEANWHILE").wait_for()
        assert page.locator("#body").input_value() == "still here"
        assert page.locator("#said .said").count() == 0
