"""What is new, to every open page: one watcher for all of them, a bounded queue for each.

Belongs here: reading the logs on as they grow, and handing events round. The watcher sleeps in the kernel until a log
changes. A page that does not keep up is let go: it comes back with the number of the last event it had (Last-Event-ID)
and gets what it missed, or is told to load itself anew where that is forgotten.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import threading
from collections import deque
from typing import TYPE_CHECKING

from ..core import codec
from ..core.records import BadLine, Message, Read, Record
from ..errors import MailboxError
from ..store.growing_log import GrowingLog
from ..store.logs import weighed
from ..store.watch import Watch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from ..store.logs import Logs

QUEUE = 256
"""Events a page may be behind: some seconds of a flood."""
KEPT = 512
"""Events that are remembered for who comes back."""
MAX_PAGES = 48
"""Streams at once; of more the oldest rests."""
MAX_WINDOWS = 4
"""Of these of one browser, which opens six connections to a server (HTTP/1.1), whatever it has them for: with six
streams the next page would never load. The oldest rests until it is looked at."""
PING = 25.0
"""Seconds between two signs of life, by which a stream whose reader is gone is noticed."""
MOST_AT_ONCE = 64
"""Messages of one change that are shown one by one; a larger batch has pages load themselves anew."""


_LINE_END = re.compile(r"\r\n|\r|\n")


class Event(Record):
    """Something that happened: ``message`` (with it), ``reads`` (ids of messages whose receipts changed), ``roster``,
    ``control``, ``survey``, or ``resync``: pages are to load themselves anew."""

    kind: str
    message: Message | None = None
    ids: tuple[str, ...] = ()


def _news(log: GrowingLog) -> list[bytes] | None:
    """Return the lines since the last time; None if the log was replaced, so that nobody can say."""
    fd = log.log.open() if log.changed() else None
    if fd is None:
        return []
    try:
        if log.inode and not log.continues(fd):
            log.skip()
            return None
        return [line for _, line in log.lines(fd)]
    finally:
        os.close(fd)


class Watcher:
    """The thread that waits for the logs to change; ``tell`` is called there with what happened."""

    def __init__(self, logs: Logs, tell: Callable[[list[Event]], None]) -> None:
        self._logs = logs
        self._tell = tell
        self._followed = [GrowingLog(log) for log in (logs.messages, logs.reads, logs.roster)]
        for log in self._followed:
            log.skip()
        self._is_well = True
        self._wake, self._stop = os.pipe()
        self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """Wake the thread for the last time."""
        os.write(self._stop, b"x")
        self._thread.join(5)

    def _run(self) -> None:
        while not self._stopped():
            place = self._place()  # before the watch: what takes its place meanwhile is noticed
            with Watch([self._logs.directory]) as changes:
                while self._place() == place and not self._stopped():
                    self._tell_news()
                    changes.wait(None, self._wake)

    def _place(self) -> tuple[int, int] | None:
        """Which directory stands there: a watch holds on to one that was moved away or deleted."""
        try:
            there = os.stat(self._logs.directory)
        except OSError:
            return None
        return there.st_dev, there.st_ino

    def _tell_news(self) -> None:
        try:
            events = self.look()
        except (MailboxError, OSError):  # a log that cannot be read now; pages that load themselves say so
            events = [Event("resync")] if self._is_well else []
            self._is_well = False
        else:
            self._is_well = True
        if events:
            self._tell(events)

    def _stopped(self) -> bool:
        import select

        return bool(select.select([self._wake], [], [], 0)[0])

    def look(self) -> list[Event]:
        """What happened since the last look."""
        mail, reads, roster = map(_news, self._followed)
        if mail is None or reads is None or roster is None or len(mail) > MOST_AT_ONCE:
            return [Event("resync")]
        view = self._logs.messages.view()
        read = ((line, codec.message(line)) for line in mail)
        found = [Event("message", weighed(m, view, line, None)) for line, m in read if isinstance(m, Message)]
        if any(event.message is not None and event.message.type == "control" for event in found):
            found.append(Event("control"))
        ids = dict.fromkeys(read.message_id for read in map(codec.read, reads) if isinstance(read, Read))
        found += [Event("reads", None, tuple(ids)[:KEPT])] if ids else []
        if any(not isinstance(codec.roster_event(line), BadLine) for line in roster):
            found.append(Event("roster"))
        return found


class OpenPage:
    """An open page's stream. ``write``: what it is sent for an event, as names and texts; nothing for what is not its
    business. ``owner``: whose browser it is in. ``rests``: was it let go until somebody looks at it?"""

    def __init__(self, write: Callable[[Event], Iterable[tuple[str, str]]], owner: object = None) -> None:
        self.write = write
        self.owner = owner
        self.rests = False
        self.queue: asyncio.Queue[tuple[str, Event] | None] = asyncio.Queue(QUEUE + 1)

    def offer(self, number: str, event: Event) -> bool:
        """Put an event into the queue; False where there is no room but for the end."""
        if self.queue.qsize() >= QUEUE:
            self.end()
            return False
        self.queue.put_nowait((number, event))
        return True

    def end(self) -> None:
        """Let the page go."""
        if not self.queue.full():
            self.queue.put_nowait(None)


class Hub:
    """All open pages. Belongs to the event loop: other threads hand events in by ``tell``."""

    def __init__(self) -> None:
        self._run = secrets.token_hex(4)
        self._count = 0
        self._kept: deque[tuple[int, Event]] = deque(maxlen=KEPT)
        self._pages: dict[OpenPage, None] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def belong(self, loop: asyncio.AbstractEventLoop) -> None:
        """The loop that pages are served in."""
        self._loop = loop

    def tell(self, events: list[Event]) -> None:
        """Hand events round, from any thread."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self.publish, events)

    def publish(self, events: list[Event]) -> None:
        """Hand events round, in the loop."""
        for event in events:
            self._count += 1
            self._kept.append((self._count, event))
            for page in [*self._pages]:
                if not page.offer(f"{self._run}.{self._count}", event):
                    self._pages.pop(page, None)

    def __len__(self) -> int:
        return len(self._pages)

    @property
    def number(self) -> str:
        """Of the newest event: what a page that is made now has seen."""
        return f"{self._run}.{self._count}"

    def close(self) -> None:
        """Let every page go."""
        for page in self._pages:
            page.end()
        self._pages.clear()

    def _missed(self, last: str) -> list[tuple[str, Event]]:
        """What happened since an event that a page had; a resync where that is not known any more."""
        run, _, number = last.partition(".")
        oldest = self._kept[0][0] if self._kept else self._count + 1
        if run != self._run or not number.isdecimal() or len(number) > 15 or int(number) + 1 < oldest:
            return [(self.number, Event("resync"))]
        return [(f"{self._run}.{n}", event) for n, event in self._kept if n > int(number)]

    async def stream(self, page: OpenPage, last: str) -> AsyncIterator[bytes]:
        """A page's stream as Server-Sent Events (WHATWG HTML, 9.2) after the event ``last``, until it is let go or
        goes."""
        mine = [other for other in self._pages if other.owner is page.owner] if page.owner else []
        for oldest in (*mine[: 1 - MAX_WINDOWS], *[*self._pages][: 1 - MAX_PAGES]):
            self._pages.pop(oldest, None)
            oldest.rests = True
            oldest.end()
        self._pages[page] = None
        try:
            missed = self._missed(last)  # at the same moment as the page comes in: nothing falls between
            yield b"retry: 1000\n\n"
            for number, event in missed:
                yield _spelt(number, page.write(event))
            while True:
                try:
                    item = await asyncio.wait_for(page.queue.get(), PING)
                except TimeoutError:
                    yield b": still here\n\n"
                    continue
                if item is None:
                    if page.rests:
                        yield b"event: rest\ndata: until it is looked at\n\n"
                    return
                yield _spelt(item[0], page.write(item[1]))
        finally:
            self._pages.pop(page, None)


def _spelt(number: str, parts: Iterable[tuple[str, str]]) -> bytes:
    """Events with their number; a line of data for each line of text. A lone CR ends a line there too (9.2.6): one in
    an id that an agent wrote would begin an event of the agent's making."""
    found = []
    for name, text in parts:
        data = "".join(f"data: {line}\n" for line in _LINE_END.split(text))
        found.append(f"id: {number}\nevent: {name}\n{data}\n")
    return "".join(found).encode("utf-8", "surrogatepass")
