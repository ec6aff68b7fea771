"""The control plane of a mailbox: the fold of its control messages, kept up with the log, and its telemetry.

Belongs here: finding the control messages in the log, folding them, one telemetry event for a step. The rules are
``core.control``; ``control.requests`` asks and answers; ``control_plane.effects`` acts on messages that are sent or
shown.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from ..core import instant
from ..core.control import message_text, state
from ..core.control.state import ControlState
from ..store.files.lines import LinePlace, lines_of
from ..store.log import events
from ..store.projection import control_table
from ..store.projection.control_table import messages_on

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..core.control.verdicts import Verdict
    from ..core.records import Message
    from ..core.roster import Roster
    from ..mailbox.open_mailbox import OpenMailbox
    from ..store.archive.archive import Archive
    from ..store.log.logs import Logs
    from ..store.log.proof_view import ProofView
    from ..store.projection.control_table import Question

    Part = tuple[ControlState, list[Message]]
    """A fold, and the messages in it."""


class ControlReading:
    """The fold of a mailbox's control messages, as far as it was read; the next reading continues it."""

    def __init__(self, desk: OpenMailbox) -> None:
        self._logs = desk.logs
        self._place = LinePlace()
        self._counted: tuple[int, int, bytes] | None = None
        self.messages: list[Message] = []
        self._plane: ControlState | None = None
        self._folded_count = 0
        self._parse = cache(message_text.parse)
        """A new fold of the same messages, for another roster, parses none again."""
        self._roster: Roster | None = None
        self.latest: ControlState | None = None
        """The fold of the last reading."""
        self.found: list[Message] = []
        """The messages in it."""

    def plane(self) -> ControlState:
        """Fold everything up to the log's end. The roster is read after the log: it knows every writer."""
        self._logs.messages.attentively(self._take_news)
        return self._folded()

    def _folded(self) -> ControlState:
        roster = self._logs.read_roster()
        if self._plane is None or roster is not self._roster:
            self._plane, self._folded_count = ControlState(roster, parse=self._parse), 0
            self._roster = roster
        for message in self.messages[self._folded_count :]:
            self._plane.apply(message)
        self._folded_count = len(self.messages)
        return self._plane

    def ask(self, question: Question, now: int = 0) -> ControlState:
        """Fold the messages that a question is about, up to the log's end, and perhaps more. ``now`` (ms): for one
        about what lapses.

        A whole fold that is there already, for the present roster, answers itself. So does one without a table."""
        logs = self._logs
        is_there = self._plane is not None and self._roster is logs.read_roster()

        def read(fd: int, view: ProofView | None) -> Part | None:
            found = None
            if not is_there and logs.derives and view is not None and view.trusted:
                found = control_table.ask_table(fd, view, logs.read_roster, question, now)
            if found is None:
                self._take_news(fd, view)
            return found

        found = logs.messages.attentively(read)
        fold, messages = found or (self._folded(), self.messages)
        self.latest, self.found = fold, messages
        return fold

    def _take_news(self, fd: int, view: ProofView | None) -> None:
        place = self._place
        continues, inode, end = place.look(fd)
        known = self._counted  # does the record still vouch for the part that was read, as it did then?
        is_vouched = known is None if view is None else known is not None and view.resume(*known)
        if not continues or not is_vouched:
            place.position, self.messages, self._plane = 0, [], None
            self._parse.cache_clear()
            if view is not None:
                view.begin()
        self.messages += [message for _, message in messages_on(lines_of(fd, place.position, end), view)]
        place.inode, place.position = inode, max(end, place.position)
        self._counted = None if view is None else view.counted


def of(desk: OpenMailbox) -> ControlState:
    """Return the control plane of an opened mailbox, up to this moment."""
    return desk.part(ControlReading).plane()


def of_agents(desk: OpenMailbox, sessions: Iterable[str]) -> ControlState:
    """Return the part that may bind or end one of these agents."""
    return desk.part(ControlReading).ask(lambda _, roster: control_table.of_agents(sessions, roster))


def of_messages(desk: OpenMailbox, ids: Iterable[str]) -> ControlState:
    """Return the part with these messages and all that belong to them."""
    return desk.part(ControlReading).ask(lambda *_: ((control_table.ID, message_id) for message_id in ids))


def of_sent(desk: OpenMailbox, message_id: str) -> ControlState:
    """Return the part with a message that was just sent: its effects read that (``control.effects``)."""
    latest = desk.part(ControlReading).latest
    return latest if latest is not None and message_id in latest.verdicts else of_messages(desk, [message_id])


def of_request(desk: OpenMailbox, request_id: str) -> ControlState:
    """Return the part about a request or a task."""
    return desk.part(ControlReading).ask(lambda *_: [(control_table.REQUEST, request_id)])


def of_open(desk: OpenMailbox) -> ControlState:
    """Return the part with every request that may still wait for a decision."""
    return desk.part(ControlReading).ask(lambda *_: [control_table.OPEN])


def of_tasks(desk: OpenMailbox) -> ControlState:
    """Return the part with every task that may not be over, and all that these wait for."""
    return desk.part(ControlReading).ask(lambda *_: [control_table.TASKS])


def of_leases(desk: OpenMailbox) -> ControlState:
    """Return the part with every lease that may still hold, and the tasks that they go with."""
    return desk.part(ControlReading).ask(lambda *_: [control_table.LEASES], desk.now())


def of_watches(desk: OpenMailbox) -> ControlState:
    """Return the part with every watch that may still hold, and the tasks that they are about."""
    return desk.part(ControlReading).ask(lambda *_: [control_table.WATCHES], desk.now())


def of_beginning(desk: OpenMailbox, word: str) -> ControlState:
    """Return the part with each request whose id, or whose message's id, begins with a word."""
    if not (word.isascii() and word.replace("-", "").replace("_", "").isalnum()):  # lines may spell it differently
        return of(desk)
    return desk.part(ControlReading).ask(lambda table, _: table.holding(word))


def archived(logs: Logs, archive: Archive, word: str) -> tuple[ControlState, list[Message]]:
    """Return the fold of the archived control messages that contain the word, and the messages.

    A decided request is archived whole, so they tell its outcome. Requests go first: the order of months in the archive
    depends on the clock."""
    mark = word.encode("utf-8", "surrogatepass")
    view = logs.messages.view()
    found = [one for _, one in messages_on(((None, line) for line in archive.lines() if mark in line), view)]
    found.sort(key=lambda message: not state.opens(message.content))
    return ControlState(logs.read_roster(), found), found


def history(desk: OpenMailbox, request_id: str | None = None) -> list[tuple[Message, Verdict]]:
    """Return the live control messages in log order, each with its outcome; ``request_id``: those about that request,
    live or archived."""
    if request_id is None:
        return told(of(desk), desk.part(ControlReading).messages)
    fold = of_request(desk, request_id)
    found = told(fold, desk.part(ControlReading).found)
    if request_id not in fold.requests and request_id not in fold.tasks:
        found = [*told(*archived(desk.logs, desk.archive, request_id)), *found]
    return [entry for entry in found if entry[1].request_id == request_id]


def told(fold: ControlState, messages: Iterable[Message]) -> list[tuple[Message, Verdict]]:
    """Return folded messages, each id once, with their outcomes."""
    first: dict[str, Message] = {}
    for message in messages:
        first.setdefault(message.id, message)
    return [(message, fold.verdicts[message.id]) for message in first.values()]


def note_step(desk: OpenMailbox, who: str, what: str, outcome: str, about: str, more: Mapping[str, Any]) -> None:
    """Write a step to telemetry: its actor, the act, what became of it, whom it is about. ``more``: the ``requestId``,
    its states ``from`` and ``to``, the ``cause``, the ``latency_ms`` it waited. ``at``: ``sending``, or the session
    that read its message."""
    step = {"timestamp": instant.text(desk.now()), "who": who, "what": what, "outcome": outcome, "about": about}
    events.note(desk.logs, {**step, **more})
