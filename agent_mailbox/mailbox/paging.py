"""Leafing through mail: which of it, page by page, with what hangs on it.

Belongs here: a selection of mail as a value, the page of it before a place, what a stretch of time holds. The same
selection says of a message that was just sent if it belongs. Like all of ``mailbox.queries`` it asks the index, and
looks through everything where there is none; what belongs is decided by the same function either way.
"""

from __future__ import annotations

from ..core import claims, threads, words
from ..core.address import ALL
from ..core.records import USER, Record
from .queries import Library, either_way, meant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ..core.records import Message, Read
    from ..core.roster import Roster
    from ..store.index_keys import Row
    from ..store.lookup import IndexView


class Selection(Record):
    """Which mail: from or to an ``address`` (an agent, a role, a tag, ``all``); of these only what the person wrote or
    was written (``person``); what an agent wrote or may see (``reader``, its id); with all ``query`` words in it;
    between two instants in ms, both included. What is empty does not narrow."""

    address: str = ""
    person: bool = False
    reader: str = ""
    query: str = ""
    since: int | None = None
    until: int | None = None


class Position(Record):
    """A place between two messages of a selection: just before the one of that instant (ms) and id."""

    timestamp: int
    id: str


class Page(Record):
    """Messages, newest last, with their reads and how many answer each; ``before``: where older ones go on."""

    messages: tuple[Message, ...]
    reads: claims.Reads
    replies: Mapping[str, int]
    before: Position | None


class Recent(Record):
    """The newest messages of a time, newest last, with everything recorded about them; ``whole``: are these all?"""

    messages: tuple[Message, ...]
    records: tuple[Read, ...]
    whole: bool


class Browsing(Library):
    """The reading room, for who leafs through it."""

    def chooses(self, selection: Selection, roster: Roster) -> Callable[[Message], bool]:
        """The question if a message belongs to the selection. Raises ``NotFound`` or ``Ambiguous`` for an address that
        means nobody."""
        phrases = words.phrases(selection.query)
        reader = roster.reader(selection.reader) if selection.reader else None
        if selection.address:
            threads.exchanged((), selection.address, roster)

        def chosen(m: Message) -> bool:
            return (
                (selection.since is None or m.timestamp >= selection.since)
                and (selection.until is None or m.timestamp <= selection.until)
                and (not selection.person or m.sender == USER or USER in m.recipients)
                and (reader is None or threads.visible(m, reader))
                and (not selection.address or bool(threads.exchanged((m,), selection.address, roster)))
                and (not phrases or words.matches(m, phrases))
            )

        return chosen

    def page(self, selection: Selection, before: Position | None, limit: int) -> Page:
        """The newest ``limit`` messages of the selection that stand before a place (None: the newest of all)."""
        roster = self._mailbox.logs.read_roster()
        chosen, older = self.chooses(selection, roster), _Older(before)

        def candidates(view: IndexView) -> Iterator[Row]:
            older.begin()
            return _candidates(view, selection, before, roster)

        found, reads = self._newest(candidates, lambda m: older(m) and chosen(m), limit + 1)
        shown = tuple(found[-limit:])
        first = Position(shown[0].timestamp, shown[0].id) if len(found) > limit else None
        replies = self._ask(lambda view: {m.id: view.replies(m.id) for m in shown}) or {}
        return Page(shown, reads, {i: count for i, count in replies.items() if count}, first)

    def stretch(self, since: int, limit: int) -> Recent:
        """The newest ``limit`` messages since an instant (ms)."""

        def answer(view: IndexView) -> Recent:
            found, _ = view.newest(view.between((), since), lambda _: True, limit + 1)
            return Recent(tuple(found[-limit:]), tuple(view.records(found[-limit:])), len(found) <= limit)

        return self._ask(answer) or self._looked_through(since, limit)

    def _looked_through(self, since: int, limit: int) -> Recent:
        everything = self.everything()
        found = [m for m in everything.messages.values() if m.timestamp >= since]
        ids = {m.id for m in found[-limit:]}
        records = dict.fromkeys([*self._mailbox.archive.reads(), *self._mailbox.logs.read_records()])
        return Recent(tuple(found[-limit:]), tuple(r for r in records if r.message_id in ids), len(found) <= limit)

    def known(self, ids: Iterable[str]) -> tuple[list[Message], claims.Reads]:
        """The messages of these ids, as far as there are any, with their reads."""
        wanted = [*dict.fromkeys(ids)]

        def answer(view: IndexView) -> tuple[list[Message], claims.Reads]:
            found = [message for message in map(view.message, wanted) if message is not None]
            return found, claims.Reads(view.records(found))

        answered = self._ask(answer)
        if answered is not None:
            return answered
        everything = self.everything()
        return [everything.messages[i] for i in wanted if i in everything.messages], everything.reads

    def prepare(self) -> bool:
        """Bring the index up to date, which may take a minute the first time in a large mailbox; False where none can
        be had."""
        return self._ask(lambda _: True) is not None


def _candidates(view: IndexView, selection: Selection, before: Position | None, roster: Roster) -> Iterator[Row]:
    ends = [end for end in (selection.until, before.timestamp if before else None) if end is not None]
    until = min(ends, default=None)
    phrases = words.phrases(selection.query)
    if phrases:
        return view.with_words(phrases, until)
    parties = []
    if selection.person:
        parties.append({USER})
    if selection.address:
        parties.append(meant(selection.address, roster))
    if selection.reader:
        reader = roster.reader(selection.reader)
        parties.append({*reader.lineage, reader.name or ALL, ALL, *either_way(*reader.tags)})
    return view.between(parties, selection.since, until)


class _Older:
    """Asked of messages from the newest on: does it stand before the place? Of those at the very instant, what comes
    after the one that is named."""

    def __init__(self, before: Position | None) -> None:
        self._before = before
        self._passed = False

    def begin(self) -> None:
        """The messages are gone through once more."""
        self._passed = False

    def __call__(self, message: Message) -> bool:
        before = self._before
        if before is None or message.timestamp < before.timestamp:
            return True
        if message.id == before.id:
            self._passed = True
            return False
        return self._passed and message.timestamp == before.timestamp
