"""News for every open page: one watcher for all, a bounded queue for each, and events as updates of a page.

Belongs here: following the logs, distributing events, new rows for a list, notices that other parts are stale. The
watcher sleeps in the kernel until a log changes. A page that falls behind is disconnected. It reconnects with its last
event's number (Last-Event-ID), and gets the events it missed, or is told to reload if they are forgotten.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import jinja2

from ..core import codec
from ..core.address import ALL
from ..core.control import message_text
from ..core.control.messages import Answer, Ask
from ..core.message_reads import Reads
from ..core.records import USER, BadLine, Message, Read, Record
from ..errors import MailboxError
from ..mailbox.selection import Selection
from ..store.files import system
from ..store.files.watch import Watch
from ..store.log.growing_log import GrowingLog
from ..store.log.logs import Logs
from ..store.log.proof_view import weigh_message
from . import inbox_page, mail_lists, presenters, topics
from .desk import Looking, Params
from .guard import Session

QUEUE = 256
"""Events that a page may be behind: some seconds of a flood."""
KEPT = 512
"""Events kept for pages that reconnect."""
MAX_PAGES = 48
"""Streams at once; a further one makes the oldest rest."""
MAX_WINDOWS = 4
"""Streams of one browser, which opens at most six connections to a server (HTTP/1.1): six streams would block its next
page. The oldest rests until the person looks at it; the page of requests rests last."""
PING = 25.0
"""Seconds between two pings on a quiet stream: they reveal that its reader is gone, or that the connection is dead."""
MOST_AT_ONCE = 64
"""Messages of one change that are sent one by one; after a larger batch pages reload."""


STALE = {
    "/": ("owed", "elsewhere"),
    "/decided": ("control",),
    "/tasks": ("control", "roster"),
    "/notes": ("message", "roster"),
    "/conversations": ("message", "seen", "roster"),
    "/dead": ("survey",),
    "/fleet": ("roster", "control", "survey"),
    "/agents": ("roster", "control", "survey"),
    "/agent": ("roster", "control", "survey"),
    "/channels": ("roster",),
}
"""The event kinds that make each page, or its part without mail, stale."""
_LINE_END = re.compile(r"\r\n|\r|\n")


class Event(Record):
    """One event, of a ``kind``. A ``message`` has it, ``reads`` the ``ids`` of messages with new receipts.

    ``roster``, ``control``, ``survey`` and what waits ``elsewhere`` changed; so did what the person ``owed``, and the
    marks of what they have ``seen``. ``said`` is what became of an act of ``owner``: its kind and its text are the
    ``ids``. By ``resync`` pages reload; with a ``gone`` mailbox their streams end."""

    kind: str
    message: Message | None = None
    ids: tuple[str, ...] = ()
    owner: Session | None = None


def _read_news(log: GrowingLog) -> list[tuple[int, bytes]] | None:
    """Return the new lines with their places; None if the log was replaced, which leaves them unknown."""
    fd = log.log.open() if log.changed() else None
    if fd is None:
        return []
    try:
        if log.inode and not log.look(fd)[0]:
            log.skip()
            return None
        return list(log.lines(fd))
    finally:
        os.close(fd)


class Watcher:
    """The thread that waits for changes of the logs, and calls ``tell`` with the events."""

    def __init__(self, logs: Logs, tell: Callable[[list[Event]], None]) -> None:
        self._logs = logs
        self._tell = tell
        self._followed = [GrowingLog(log) for log in (logs.messages, logs.reads, logs.roster)]
        for log in self._followed:
            log.skip()
        self._is_well = True
        self._wake, self._stop = os.pipe()
        self._thread = threading.Thread(target=self._watch_forever, name="watcher", daemon=True)

    def start_watching(self) -> None:
        self._thread.start()

    def stop_watching(self) -> None:
        os.write(self._stop, b"x")
        self._thread.join(5)

    def _watch_forever(self) -> None:
        with Watch([self._logs.directory]) as changes:
            while not system.readable([self._wake], 0):
                self.tell_news()
                changes.wait(None, self._wake)

    def tell_news(self) -> None:
        """Tell the events since the last call; a resync once a log cannot be read, and once all can be again."""
        was_well = self._is_well
        try:
            events = self.look_for_events()
        except (MailboxError, OSError):  # a log is unreadable now; a page shows that when it reloads
            self._is_well = False
        else:
            self._is_well = True
        if not (was_well and self._is_well):  # lines that were read beside an unreadable log are told by no event
            events = [Event("resync")] if was_well or self._is_well else []
        if system.identity(self._logs.directory) is None:
            events = [Event("gone")]
        if events:
            self._tell(events)

    def look_for_events(self) -> list[Event]:
        """Return the events since the last call."""
        mail, reads, roster = map(_read_news, self._followed)
        if mail is None or reads is None or roster is None or len(mail) > MOST_AT_ONCE:
            return [Event("resync")]
        view = self._logs.messages.view()
        read = ((at, line, codec.message(line)) for at, line in mail)
        found = [Event("message", weigh_message(m, view, line, at)) for at, line, m in read if isinstance(m, Message)]
        if any(event.message is not None and event.message.type == "control" for event in found):
            found.append(Event("control"))
        ids = dict.fromkeys(
            read.message_id for read in (codec.read(line) for _, line in reads) if isinstance(read, Read)
        )
        found += [Event("reads", None, tuple(ids)[:KEPT])] if ids else []
        if any(not isinstance(codec.roster_event(line), BadLine) for _, line in roster):
            found.append(Event("roster"))
        return found


class OpenPage:
    """An open page's stream. ``write`` yields (name, text) pairs for an event; ``owner`` is its browser session. Once
    that is over, nothing more may be told, not even what is queued.

    ``rests``: disconnected until the person looks at it. ``stays``: others rest before it."""

    def __init__(
        self, write: Callable[[Event], Iterable[tuple[str, str]]], owner: Session, stays: bool = False
    ) -> None:
        self.write = write
        self.owner = owner
        self.stays = stays
        self.rests = False
        self.queue: asyncio.Queue[tuple[str, Event] | None] = asyncio.Queue(QUEUE + 1)

    def offer_event(self, number: str, event: Event) -> bool:
        """Queue an event; return False, and end the stream, if the queue is full."""
        if self.queue.qsize() >= QUEUE:
            self.end_stream()
            return False
        self.queue.put_nowait((number, event))
        return True

    def end_stream(self) -> None:
        if not self.queue.full():
            self.queue.put_nowait(None)


class LiveHub:
    """All open pages. Belongs to the event loop; other threads call only ``tell_pages``."""

    def __init__(self) -> None:
        self._run = secrets.token_hex(4)
        self._count = 0
        self._kept: deque[tuple[int, Event]] = deque(maxlen=KEPT)
        self._pages: dict[OpenPage, None] = {}
        self.loop: asyncio.AbstractEventLoop | None = None
        """The loop that serves the pages, once one does."""
        self._pen = ThreadPoolExecutor(1, "pages")  # one thread: who writes reads the roster and renders

    def tell_pages(self, events: list[Event]) -> None:
        """Distribute events, from any thread."""
        loop = self.loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self.publish_events, events)

    def publish_events(self, events: list[Event]) -> None:
        """Distribute events, in the loop."""
        for event in events:
            self._count += 1
            self._kept.append((self._count, event))
            for page in [*self._pages]:
                if not page.offer_event(f"{self._run}.{self._count}", event):
                    self._pages.pop(page, None)
            if event.kind == "gone":
                self.close_streams()

    def __len__(self) -> int:
        return len(self._pages)

    @property
    def number(self) -> str:
        """Return the newest event's number, which a page made now has seen."""
        return f"{self._run}.{self._count}"

    def close_streams(self) -> None:
        for page in self._pages:
            page.end_stream()
        self._pages.clear()

    def dismiss_owner(self, owner: Session) -> None:
        """End the streams of a session that is over."""
        for page in [page for page in self._pages if page.owner is owner]:
            self._pages.pop(page, None)
            page.end_stream()

    async def _render_event(self, page: OpenPage, number: str, event: Event) -> bytes:
        """Return an event as the page's update, made beside the event loop; nothing if the session ended meanwhile."""
        loop = asyncio.get_running_loop()
        made = await loop.run_in_executor(
            self._pen, lambda: b"" if page.owner.is_over else _spell_events(number, page.write(event))
        )
        return b"" if page.owner.is_over else made

    def _missed_events(self, last: str) -> list[tuple[str, Event]]:
        """Return the events after the given one; a resync if they are forgotten."""
        run, _, number = last.partition(".")
        oldest = self._kept[0][0] if self._kept else self._count + 1
        if run != self._run or not number.isdecimal() or len(number) > 15 or int(number) + 1 < oldest:
            return [(self.number, Event("resync"))]
        return [(f"{self._run}.{n}", event) for n, event in self._kept if n > int(number)]

    async def stream_events(self, page: OpenPage, last: str) -> AsyncIterator[bytes]:
        """Yield a page's Server-Sent Events (WHATWG HTML, 9.2) after the event ``last``, until either side ends."""
        if page.owner.is_over:  # it ended since the request was let in
            return
        mine = [other for other in self._pages if other.owner is page.owner]
        mine.sort(key=lambda other: other.stays)
        for oldest in (*mine[: 1 - MAX_WINDOWS], *[*self._pages][: 1 - MAX_PAGES]):
            self._pages.pop(oldest, None)
            oldest.rests = True
            oldest.end_stream()
        self._pages[page] = None
        try:
            missed = self._missed_events(last)  # without an await since the page was added: no event is lost
            yield b"retry: 1000\n\n"
            for number, event in missed:
                yield await self._render_event(page, number, event)
            while not page.owner.is_over:
                try:
                    item = await asyncio.wait_for(page.queue.get(), PING)
                except TimeoutError:
                    if not page.owner.is_over:
                        page.owner.note_use()  # somebody has the page open
                    yield b"event: ping\ndata:\n\n"
                    continue
                if item is None:
                    if page.rests:
                        yield b"event: rest\ndata: until it is looked at\n\n"
                    return
                yield await self._render_event(page, *item)
        finally:
            self._pages.pop(page, None)


def _spell_events(number: str, parts: Iterable[tuple[str, str]]) -> bytes:
    """Return events with their number, one data line per line of text. A lone CR ends a line, too (9.2.6), or an id
    with a CR could forge an event."""
    found = []
    for name, text in parts:
        data = "".join(f"data: {line}\n" for line in _LINE_END.split(text))
        found.append(f"id: {number}\nevent: {name}\n{data}\n")
    return "".join(found).encode("utf-8", "surrogatepass")


class PageUpdater:
    """Turns events into updates, in one thread beside the event loop. ``templates``: those of the pages."""

    def __init__(self, directory: str, templates: jinja2.Environment) -> None:
        self._looking = Looking(directory)
        self.templates = templates

    def updates_for(self, path: str, params: Params) -> Callable[[Event], Iterator[tuple[str, str]]]:
        """Return the function that turns an event into updates of this page. Search results and older pages get no new
        rows."""
        chosen = None if path == "/search" or params.get("before") else mail_lists.selection_of_page(path, params)
        here = {key: value for key, value in params.items() if key not in ("page", "last", "open")}

        def opens(message_id: str) -> str:
            return presenters.page_link(path, **here, open=message_id)

        def write_updates(event: Event) -> Iterator[tuple[str, str]]:
            message = event.message
            if event.kind in ("resync", "roster", "survey", "control", "seen", "elsewhere"):
                yield "stale", "all" if event.kind == "resync" else "rail"
            if message is not None:
                if message.sender != USER:
                    yield "mail", codec.dumps(sorted(presenters.rail_keys(message, self._looking.roster)))
                if chosen is not None and self._belongs_to_page(message, chosen, path, params):
                    yield "row", self._render_row(message, chosen.address, params.get("topic", ""), opens)
                if path == "/" and message.type == "control":
                    yield from self._update_entries(message)
            if event.kind in ("reads", "roster") and chosen is not None:
                yield "reads", ",".join(event.ids)  # who came or went may be an exception: then of every message
            mail = message if message is not None and message.type != "control" else None
            is_letter = mail is not None and not {USER, ALL}.isdisjoint(mail.recipients)
            if event.kind in STALE.get(path, ()) or (path == "/" and is_letter):
                yield "stale", "main"

        return write_updates

    def _update_entries(self, message: Message) -> Iterator[tuple[str, str]]:
        """Yield what a control message changes in the inbox: the one line, and the order of all.

        A request that nothing proves is elsewhere there: then the page is stale."""
        payload = message_text.parse(message.content)
        if not isinstance(payload, Ask | Answer):
            return
        now = self._looking
        stops = inbox_page.group_requests(now, now.unread.list_put_off())[0]
        asked = next((entry for entry in stops.entries if entry.request == payload.request_id), None)
        if USER in message.recipients and asked is None:
            yield "stale", "main"  # forged, or over already
            return
        line = ""
        if asked is not None:
            line = self.templates.get_template("entry.html").render(
                entry=asked, opens=lambda i: presenters.page_link("/", open=i)
            )
        order = [entry.key for entry in stops.entries]
        yield "entries", codec.dumps({"order": order, "entry": line})

    def _belongs_to_page(self, message: Message, chosen: Selection, path: str, params: Params) -> bool:
        topic = topics.topic_of_param(params.get("topic"))
        is_late = message.timestamp >= mail_lists.dated_later(self._looking)
        return not is_late and mail_lists.belongs_to_page(self._looking, message, path, chosen, topic)

    def _render_row(self, message: Message, home: str, topic: str, opens: Callable[[str], str]) -> str:
        now = self._looking
        found, reads = now.queries.known([message.id])
        unsent = now.mailbox.unsent().get(message.id, "")
        row = presenters.message_row(message, reads if found else Reads(), now.roster, home=home, unsent=unsent)
        return self.templates.get_template("row.html").render(row=row, opens=opens, in_topic=topic)
