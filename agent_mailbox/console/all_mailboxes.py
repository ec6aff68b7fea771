"""All mailboxes of the person: what waits for them in each.

Belongs here: the list, and a thread that looks at a mailbox again once its logs changed. The person's own ``init``
recorded each of them; a directory that only looks like a mailbox is none of them. It rests as ``survey`` does.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import Counter
from collections.abc import Callable

from ..core.records import Record
from ..errors import MailboxError
from ..store.files import paths, system
from ..store.files.watch import Watch
from . import presenters, rail
from .desk import Looking
from .survey import REST

MOST = 40
"""Mailboxes that are looked at; the rest of the list is left out, and the page says so."""
MINUTE = 60.0
"""Seconds after which all are looked at again: a deadline passes without a write."""


class OneMailbox(Record):
    """A mailbox of the person's. ``key``: its name in addresses; ``name``: its project's. ``decisions``: requests that
    wait for the person, None if that is unknown. ``calls``: each one's id, words and page, as ``rail.list_calls``
    has them."""

    directory: str
    key: str
    name: str
    decisions: int | None = None
    calls: tuple[tuple[str, str, str], ...] = ()


def list_mailboxes(first: str) -> list[OneMailbox]:
    """Return the person's mailboxes that are there, by name; ``first`` is one of them in any case."""
    known = {first, *filter(paths.is_mailbox, paths.trusted(system.environment()))}
    names = {directory: name_mailbox(directory) for directory in known}
    twice = {name for name, times in Counter(names.values()).items() if times > 1}
    for directory, name in names.items():
        if name in twice:  # two clones of one project: the directory around each tells them apart
            names[directory] = f"{name} in {name_mailbox(os.path.dirname(directory))}"
    found = [OneMailbox(directory, key_of(directory), name) for directory, name in names.items()]
    found.sort(key=lambda one: (one.directory != first, one.name.casefold(), one.directory))
    return found[:MOST]


def key_of(directory: str) -> str:
    """Return the name of a mailbox in addresses: it says nothing about its path."""
    return hashlib.sha256(directory.encode("utf-8", "surrogateescape")).hexdigest()[:10]


def name_mailbox(directory: str) -> str:
    """Return the name of a mailbox's project, by which its pages are told from another's."""
    return presenters.one_line(os.path.basename(os.path.dirname(directory)) or directory)


class AllMailboxes:
    """Keeps what waits in each; ``tell`` is called in its thread with those that changed.

    ``first``: the mailbox that the console was started for, by its real path."""

    def __init__(self, first: str, tell: Callable[[set[str]], None]) -> None:
        self._first = first
        self._tell = tell
        self._looking: dict[str, Looking] = {}
        self._ends: dict[str, object] = {}
        self.listed = list_mailboxes(first)
        self._wake, self._stop = os.pipe()
        self._thread = threading.Thread(target=self._look_forever, name="mailboxes", daemon=True)

    def start_looking(self) -> None:
        self._thread.start()

    def stop_looking(self) -> None:
        os.write(self._stop, b"x")
        self._thread.join(5)

    def find(self, key: str) -> OneMailbox | None:
        """Return the mailbox of that key; None if there is none."""
        return next((one for one in self.listed if one.key == key), None)

    def _look_forever(self) -> None:
        while True:
            places = (paths.state_directory(system.environment()), *(one.directory for one in self.listed))
            with Watch([*filter(os.path.isdir, places)]) as changes:
                begun = time.monotonic()
                self.look_again()
                rest = (time.monotonic() - begun) * REST
                if not changes.wait(system.monotonic() + MINUTE, self._wake):
                    self._ends.clear()
            if system.readable([self._wake], rest):
                return

    def look_again(self) -> None:
        """Look at the list, and at each mailbox whose logs changed."""
        before = self.listed
        try:
            known = {one.directory: one for one in before}
            listed = [known.get(one.directory, one).replace(name=one.name) for one in list_mailboxes(self._first)]
        except MailboxError:
            listed = before  # the list cannot be read now
        self.listed = [*map(self._looked_at, listed)]
        for directory in self._looking.keys() - {one.directory for one in listed}:
            del self._looking[directory]
            self._ends.pop(directory, None)
        if changed := {one.directory for one in {*before} ^ {*self.listed}}:
            self._tell(changed)

    def _looked_at(self, one: OneMailbox) -> OneMailbox:
        try:
            if one.directory not in self._looking:
                self._looking[one.directory] = Looking(one.directory)
            now = self._looking[one.directory]
            ends = now.mailbox.logs.ends()
            if self._ends.get(one.directory) == ends:
                return one
            if now.is_cold():  # whoever opens it has its index built
                return one.replace(decisions=None, calls=())
            with now.look_once():
                calls = tuple(rail.list_calls(now, now.unread_letters()))
                decisions = len(now.requests_to_decide())
        except (MailboxError, OSError):  # another user's now, or on a disk that fails: its number is not known
            self._looking.pop(one.directory, None)
            self._ends.pop(one.directory, None)
            return one.replace(decisions=None, calls=())
        self._ends[one.directory] = ends
        return one.replace(decisions=decisions, calls=calls)
