"""The control plane of a mailbox: the fold of its control messages, kept up with the log, and its telemetry.

Belongs here: finding the control messages in the log, folding them, one telemetry event for a step. The rules are
``core.control``; ``control.requests`` asks and answers; ``control.effects`` acts on messages that are sent or shown.
"""

from __future__ import annotations

from ..core import codec, instant
from ..core.control import state
from ..core.control.state import Plane
from ..core.records import Message, Record
from ..store import events
from ..store.growing_log import LogPlace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from ..core.control.state import Verdict
    from ..core.roster import Roster
    from ..mailbox.opened import OpenMailbox
    from ..store.archive import Archive
    from ..store.logs import Logs
    from ..store.proof_view import ProofView

_MARK = b'"control"'
"""Bytes in each control message's line; in the text of other mail the quotation marks are escaped."""


class Reading:
    """The fold of a mailbox's control messages, as far as it was read; the next reading continues it."""

    def __init__(self) -> None:
        self._forget()
        self._roster: Roster | None = None

    def _forget(self) -> None:
        self._place = LogPlace()
        self._counted: tuple[int, int, bytes] | None = None
        self.messages: list[Message] = []
        self._plane: Plane | None = None

    def plane(self, logs: Logs) -> Plane:
        """Fold everything up to the log's end. The roster is read after the log: it knows every writer."""
        fresh = logs.messages.attentively(self._news) or []
        roster = logs.read_roster()
        if self._plane is None or roster is not self._roster:
            self._plane, fresh = Plane(roster), self.messages
            self._roster = roster
        for message in fresh:
            self._plane.apply(message)
        return self._plane

    def _news(self, fd: int, view: ProofView | None) -> list[Message]:
        if not self._place.continues(fd) or not self._resumes(view):
            self._forget()
            if view is not None:
                view.begin()
        news = [message for at, line in self._place.lines(fd) for message in _control(at, line, view)]
        self._counted = None if view is None else view.counted
        self.messages += news
        return news

    def _resumes(self, view: ProofView | None) -> bool:
        """Return whether the record still vouches for the part that was read, as it did then."""
        if view is None:
            return self._counted is None
        return self._counted is not None and view.resume(*self._counted)


def _control(position: int | None, line: bytes, view: ProofView | None) -> Iterator[Message]:
    """Yield the control message on a line, if it is one, with the proof for its writer."""
    if _MARK not in line:
        return
    message = codec.message(line)
    if not isinstance(message, Message) or message.type != "control":
        return
    proof = None if view is None else view.proof(line) if position is None else view.read(line, position)
    yield message if proof is None else message.replace(proof=proof)


def of(desk: OpenMailbox) -> Plane:
    """Return the control plane of an opened mailbox, up to this moment."""
    return desk.once(Reading).plane(desk.logs)


def archived(logs: Logs, archive: Archive, word: str) -> tuple[Plane, list[Message]]:
    """Return the fold of the archived control messages that contain the word, and the messages.

    A decided request is archived whole, so they tell its outcome. Requests go first: the order of months in the archive
    depends on the clock."""
    mark = word.encode("utf-8", "surrogatepass")
    view = logs.messages.view()
    found = [one for line in archive.lines() if mark in line for one in _control(None, line, view)]
    found.sort(key=lambda message: not state.opens(message.content))
    return Plane(logs.read_roster(), found), found


def history(desk: OpenMailbox) -> list[tuple[Message, Verdict]]:
    """Return the live control messages in log order, each with its outcome."""
    return told(of(desk), desk.once(Reading).messages)


def told(fold: Plane, messages: Iterable[Message]) -> list[tuple[Message, Verdict]]:
    """Return folded messages, each id once, with their outcomes."""
    first: dict[str, Message] = {}
    for message in messages:
        first.setdefault(message.id, message)
    return [(message, fold.verdicts[message.id]) for message in first.values()]


class ControlStep(Record):
    """A telemetry event: its actor, the act, the request, its states before and after, the reason, the time it
    waited."""

    who: str
    what: str
    outcome: str
    about: str = ""
    request_id: str = ""
    before: str | None = None
    after: str | None = None
    cause: str = ""
    latency: int | None = None
    message_id: str = ""
    at: str = ""

    def told(self, now: int) -> Mapping[str, Any]:
        """Return the event as it is written; ``latency`` in ms."""
        return {
            "timestamp": instant.text(now),
            "who": self.who,
            "what": self.what,
            "outcome": self.outcome,
            "about": self.about,
            "from": self.before,
            "to": self.after,
            "cause": self.cause,
            "requestId": self.request_id,
            "latency_ms": self.latency,
            "message_id": self.message_id,
            "at": self.at,
        }


def note(desk: OpenMailbox, step: ControlStep) -> None:
    """Write a step to telemetry."""
    events.note(desk.logs, step.told(desk.now()))


def note_verdict(desk: OpenMailbox, message: Message, verdict: Verdict, asked: int | None, at: str) -> None:
    """Write the outcome of a control message to telemetry.

    ``asked``: the ms of the request it answers; ``at``: ``sending``, or the session that read it."""
    note(
        desk,
        ControlStep(
            who=message.sender,
            what=verdict.kind or "unknown",
            outcome=verdict.outcome,
            about=verdict.about,
            request_id=verdict.request_id,
            before=verdict.before,
            after=verdict.after,
            cause=verdict.why,
            latency=None if asked is None else max(message.timestamp - asked, 0),
            message_id=message.id,
            at=at,
        ),
    )
