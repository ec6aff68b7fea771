"""The stream of an open page: what it missed it gets, what it cannot keep up with lets it go; it costs no polling."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_mailbox.console.desk import Desk
from agent_mailbox.console.guard import Session
from agent_mailbox.console.live import KEPT, MAX_PAGES, QUEUE, Event, LiveHub, OpenPage, Watcher
from agent_mailbox.console.survey import SurveyThread
from agent_mailbox.core.instant import HOUR
from agent_mailbox.store.log.logs import Logs, of_mailbox
from tests.console.conftest import PATIENCE, Running
from tests.helpers import MESSAGES, READS, ROSTER, Post, delete, record, stamp, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Iterator


def named(event: Event) -> list[tuple[str, str]]:
    """What the tests' pages write: the event's kind and ids."""
    return [(event.kind, ",".join(event.ids))]


def played(what: Coroutine[Any, Any, None]) -> None:
    """Run it in a thread of its own: the browser's driver leaves a loop running in the tests'."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, what).result(PATIENCE)


async def some(stream: AsyncIterator[bytes], count: int) -> list[str]:
    """The next parts of a stream."""
    return [(await asyncio.wait_for(anext(stream), PATIENCE)).decode() for _ in range(count)]


def number(part: str) -> str:
    """Of an event, as it is spelt."""
    return part.partition("id: ")[2].partition("\n")[0]


def test_no_text_ends_a_line_of_the_stream() -> None:
    """Ids are what a hostile agent wrote into a log: whatever ends a line for a browser begins no event in them."""

    async def play() -> None:
        for end in ("\r", "\n", "\r\n"):
            hub = LiveHub()
            stream = hub.stream_events(OpenPage(named, Session(time.monotonic)), hub.number)
            await some(stream, 1)
            hub.publish_events([Event("reads", None, (f"x{end}{end}event: row{end}data: <form>{end}{end}",))])
            (told,) = await some(stream, 1)
            lines = re.split("\r\n|\r|\n", told)
            assert [line for line in lines if not line.startswith("data: ")] == [
                f"id: {hub.number}",
                "event: reads",
                "",
                "",
            ]

    played(play())


def test_who_comes_back_gets_what_it_missed_or_is_told_to_load_anew() -> None:
    """A page that comes back gets the events that it missed. If they are unknown or too old, it must load again."""

    async def play() -> None:
        hub = LiveHub()
        hub.publish_events([Event("reads", None, (str(n),)) for n in range(3)])
        first = hub.number
        hub.publish_events([Event("reads", None, (str(n),)) for n in range(3, 6)])
        _, *missed = await some(hub.stream_events(OpenPage(named, Session(time.monotonic)), first), 4)
        assert ["3" in missed[0], "4" in missed[1], "5" in missed[2]] == [True] * 3
        assert number(missed[2]) == hub.number
        for last in ("", "other.3", f"{first}x"):
            _, told = await some(hub.stream_events(OpenPage(named, Session(time.monotonic)), last), 2)
            assert "event: resync" in told
        hub.publish_events([Event("roster")] * KEPT)
        _, told = await some(hub.stream_events(OpenPage(named, Session(time.monotonic)), first), 2)
        assert "event: resync" in told

    played(play())


def test_a_page_that_does_not_keep_up_is_let_go_and_hinders_nobody() -> None:
    """Its queue is bounded; what the others get is whole. Of too many pages the oldest goes."""

    async def play() -> None:
        hub = LiveHub()
        slow, quick = OpenPage(named, Session(time.monotonic)), OpenPage(named, Session(time.monotonic))
        streams = [hub.stream_events(page, hub.number) for page in (slow, quick)]
        for stream in streams:
            await some(stream, 1)
        for n in range(QUEUE + 5):
            hub.publish_events([Event("reads", None, (str(n),))])
            assert f"data: {n}\n" in (await some(streams[1], 1))[0]
        assert len(hub) == 1
        assert len([part async for part in streams[0]]) == QUEUE
        more = [hub.stream_events(OpenPage(named, Session(time.monotonic)), hub.number) for _ in range(MAX_PAGES)]
        for stream in more:
            await some(stream, 1)
        assert len(hub) == MAX_PAGES
        hub.close_streams()
        assert [b"event: rest" in part async for part in streams[1]] == [True]
        assert len(hub) == 0

    played(play())


def test_a_copied_seal_proves_nothing_live(post: Post) -> None:
    """The person's own order is proven as it comes; the same line, written again by another program, is not."""
    post.register("ada")
    watcher = Watcher(of_mailbox(str(post.box), PATIENCE, post.environ()), lambda _: None)
    post.ok("control", "mode", "ada", "safe", "--session", "user")
    assert [e.message.proof for e in watcher.look_for_events() if e.message] == ["user@terminal"]
    with open(post.file(MESSAGES), "rb+") as log:
        log.write(log.read().splitlines(keepends=True)[-1])
    assert [e.message.proof for e in watcher.look_for_events() if e.message] == [None]


def test_the_watcher_tells_each_line_once_and_says_when_it_cannot(post: Post) -> None:
    """Half a line is told when it is whole; foreign lines are none; a log that was replaced is no source of news."""
    post.register("ada")
    watcher = Watcher(Logs(str(post.box)), lambda _: None)
    assert watcher.look_for_events() == []
    first = post.send("ada", "all")
    (event,) = watcher.look_for_events()
    assert event.message is not None
    assert event.message.id == first
    whole = json.dumps(record(content="late")).encode() + b"\n"
    with open(post.file(MESSAGES), "ab") as log:
        log.write(b"no record\n" + whole[:40])
        log.flush()
        assert watcher.look_for_events() == []
        log.write(whole[40:])
        log.flush()
        assert [e.message.content for e in watcher.look_for_events() if e.message] == ["late"]
    post.check("bo")
    assert {e.kind for e in watcher.look_for_events()} == {"reads", "roster"}
    old = record(content="old", timestamp="2020-01-01T00:00:00Z")
    post.append(MESSAGES, old)
    post.ok("steward", "run", "--max-live", "0")
    assert [e.kind for e in watcher.look_for_events()] == ["resync"]
    assert watcher.look_for_events() == []


class Stream:
    """The console's own stream, read over its socket."""

    def __init__(self, console: Running, page: str, last: str = "", header: str = "") -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", console.port, timeout=PATIENCE)
        headers = {"Cookie": console.cookie, "Accept": "text/event-stream", "Sec-Fetch-Site": "same-origin"}
        headers |= {"Last-Event-ID": header} if header else {}
        self._connection.request("GET", f"/events?{page}&last={last}", headers=headers)
        self.answer = self._connection.getresponse()
        assert self.answer.status == 200
        assert self.answer.headers["content-type"].startswith("text/event-stream")

    def events(self) -> Iterator[dict[str, Any]]:
        event: dict[str, Any] = {"data": ""}
        while line := self.answer.readline():
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name == "" and "event" in event:
                yield event
                event = {"data": ""}
            elif name == "data":
                event["data"] += value + "\n"
            elif name:
                event[name] = value

    def next(self, kind: str) -> dict[str, Any]:
        return next(event for event in self.events() if event["event"] == kind)

    def close(self) -> None:
        """Go, as a browser does that is closed."""
        self._connection.close()


def test_a_stream_that_broke_off_goes_on_where_it_was(running: Running) -> None:
    """Between a page's making and its stream, and from one stream to the next, no message is lost or doubled."""
    post = running.post
    post.register("ada")
    page = running.ask("/channel?to=all").text
    last = page.partition('data-number="')[2].partition('"')[0]
    first = post.send("ada", "all", "between page and stream")
    stream = Stream(running, "page=/channel&to=all", last)
    row = stream.next("row")
    assert first in row["data"]
    stream.close()
    ids = [post.send("ada", "all", f"while away {n}") for n in range(3)]
    post.send("ada", "user", "not of this page")
    again = Stream(running, "page=/channel&to=all", last, header=row["id"])
    for message_id in ids:
        assert message_id in again.next("row")["data"]
    again.close()


def test_a_log_that_cannot_be_read_leaves_the_console_watching(running: Running) -> None:
    """A log that cannot be read: it says so, and is live again when it is back."""
    post = running.post
    post.register("ada", "--name", "Ada")
    log = post.box / MESSAGES
    stream = Stream(running, "page=/archive")
    stream.next("stale")
    away = log.rename(f"{log}.away")
    log.mkdir()
    answer = running.ask("/archive")
    assert (answer.status, "regular file" in answer.text) == (500, True)
    assert running.does("/send", to="ada", body="x")["status"] == 500
    log.rmdir()
    away.rename(log)
    event = {"event": "stale"}
    while event["event"] == "stale":  # what came beside an unreadable log is told by this alone
        post.send("ada", "all", "READABLE")
        event = next(one for one in stream.events() if one["event"] in ("row", "stale"))
    assert "READABLE" in event["data"]
    stream.close()


def test_a_mailbox_that_was_moved_away_is_not_made_again_and_is_whole_when_it_is_back(post: Post) -> None:
    """Pages and buttons say so, and write nothing in its place; nothing is sent there. No log counts as cut."""
    post.call("roster", "register", "--session-id", "ann")
    with Running(post) as console:
        console.enter().ask("/")
        away = post.box.rename(post.scratch / "away")
        for path in ("/", "/fleet", "/search?q=x", "/rail", "/receipts?ids=x", "/details?open=x"):
            answer = console.ask(path)
            assert (answer.status, f"no mailbox at {post.box}" in answer.text) == (409, True), path
        told = console.ask("/send", {"to": "all", "body": "x"}, headers={"Accept": "application/json"})
        assert (told.status, f"no mailbox at {post.box}" in told.text) == (409, True)
        assert not post.box.exists()
        away.rename(post.box)
        assert "doctor --trust" not in console.ask("/").text
        assert post.call("status", "--session", "ann").stderr == ""


def test_the_counts_go_on_once_a_mailbox_that_was_away_is_back(post: Post) -> None:
    """The thread that counts meets no mailbox for a while; it lives on, and counts what came since."""
    surveyor = SurveyThread(str(post.box), Desk(str(post.box)).advance_cursor)
    away = post.box.rename(post.scratch / "away")
    surveyor.start_counting()
    away.rename(post.box)
    post.register("ann")
    surveyor.request_count()
    until(lambda: "ann" in surveyor.newest.lines)
    surveyor.stop_counting()
    surveyor._thread.join(PATIENCE)


def test_no_page_is_live_while_its_mailbox_is_gone(running: Running) -> None:
    """The open stream ends, and a new one is refused like a page. Once the mailbox is back, the page is live again."""
    post = running.post
    stream = Stream(running, "page=/")
    stream.next("stale")
    away = post.box.rename(post.scratch / "away")
    assert "ping" not in (event["event"] for event in stream.events())
    refused = running.ask("/events?page=/")
    assert (refused.status, f"no mailbox at {post.box}" in refused.text) == (409, True)
    away.rename(post.box)
    again = Stream(running, "page=/")
    again.next("stale")
    again.close()


def test_mail_that_came_beside_an_unreadable_log_is_told_by_a_resync(post: Post) -> None:
    """Its line was read already when the other log failed; pages load themselves again once that is back."""
    post.register("ada")
    told: list[Event] = []
    watcher = Watcher(Logs(str(post.box)), told.extend)
    reads = post.box / READS
    reads.mkdir()
    post.send("x", "all")
    watcher.tell_news()
    watcher.tell_news()
    assert [event.kind for event in told] == ["resync"]
    reads.rmdir()
    watcher.tell_news()
    assert [event.kind for event in told] == ["resync", "resync"]


def test_a_message_seen_by_title_is_shown_as_such(running: Running) -> None:
    """The list and the message's receipts tell that an agent saw only the title."""
    post = running.post
    post.register("ada")
    sent = post.send("x", "ada")
    told = {"message_id": sent, "reader_session_id": "ada", "timestamp": stamp(), "nonce": "1a2b3c"}
    post.append(READS, {**told, "event": "read", "title": True})
    post.append(READS, {**told, "event": "seen"})
    assert json.loads(running.ask(f"/receipts?ids={sent}").text) == {sent: ["○", "ada saw the title alone", False]}
    page = running.ask(f"/archive?open={sent}").text
    assert "<td>offered by title</td>" in page
    assert "<td>seen by title</td>" in page


def test_the_watcher_follows_the_mailbox_to_where_it_is_made_anew(post: Post) -> None:
    """Moved away or deleted, and put back: pages load themselves again, and what comes then is told."""
    post.register("ada", "--name", "Ada")
    told: list[Event] = []
    watcher = Watcher(Logs(str(post.box)), told.extend)
    watcher.start_watching()
    for is_moved in (True, False):
        kept = Path(shutil.copytree(post.box, f"{post.box}.kept"))
        told.clear()
        if is_moved:
            post.box.rename(f"{post.box}.away")
        else:
            delete(post.box)
        kept.rename(post.box)
        until(lambda: any(event.kind == "resync" for event in told))
        sent: set[str] = set()

        def is_one_told(sent: set[str] = sent) -> bool:
            sent.add(post.send("ada", "all", "BACK"))  # a further resync tells of one that is sent before it
            return any(event.message is not None and event.message.id in sent for event in told)

        until(is_one_told)
    watcher.stop_watching()


def test_it_ends_at_once_with_pages_open_and_says_nothing(post: Post) -> None:
    """Their streams are let go first: nobody waits for them, nothing is cancelled with a traceback."""
    with Running(post) as console:
        stream = Stream(console.enter(), "page=/")
        stream.next("stale")
        console._process.terminate()
        _, err = console._process.communicate(timeout=PATIENCE)
        stream.close()
    assert err == b""


def test_fifty_idle_agents_cost_nothing(post: Post) -> None:
    """The console with an open page and fifty idle agents needs almost no processor time."""
    for n in range(50):
        post.append(ROSTER, {"event": "register", "session_id": f"a{n}", "timestamp": "2026-03-16T14:30:00Z"})
    with Running(post) as console:
        stream = Stream(console.enter(), "page=/agents")
        stream.next("stale")
        until(lambda: _used(console.pid, seconds=1.5) < 0.15)  # its start may go on a little
        stream.close()


def _used(pid: int, seconds: float) -> float:
    from tests.console.bench import cpu

    begun = cpu(pid)
    time.sleep(seconds)  # what is measured is that nothing happens in a stretch of time
    return cpu(pid) - begun


def test_the_timeline_s_bars_begin_at_the_hour() -> None:
    """The pictures' bars begin at the hour; a label is where a day or a quarter of one begins, and within."""
    from agent_mailbox.console.charts import LABEL, hours_chart

    chart = hours_chart({}, 100 * HOUR + 7, 124 * HOUR + 7)
    assert len(chart["labels"]) > 1
    assert all(re.fullmatch(r"\w{3} \d+|\d\d:00", label["text"]) for label in chart["labels"])
    assert all(label["x"] <= chart["width"] - LABEL for label in chart["labels"])
    week = hours_chart({}, 100 * HOUR + 7, 268 * HOUR + 7)
    assert len({label["text"] for label in week["labels"]}) == len(week["labels"]) >= 6
