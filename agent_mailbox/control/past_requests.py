"""Requests that were decided, live or archived, newest first: the audit.

Belongs here: finding a page of them. A request is archived with its decision, so the same fold tells what became of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..control_plane import control_log
from ..core.control import message_text, state
from ..core.control.messages import Answer, ShutdownApproved, ShutdownRejected
from ..core.control.state import ControlState
from ..core.records import Record
from ..mailbox.selection import Position, Selection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..core.control.control_requests import ControlRequest
    from ..core.records import Message
    from ..mailbox.mail_pages import MailPages
    from ..mailbox.open_mailbox import OpenMailbox

    Wanted = Callable[[ControlRequest], bool]

STEP = 100
"""Archived answers of one look."""
MOST_LOOKED = 400
"""Archived answers that a page looks through before it says where to go on."""
_ANSWERS = (Answer, ShutdownApproved, ShutdownRejected)
_WORDS = ("approved", "rejected")
"""The words of which every answer's text has one."""


class PastPage(Record):
    """A page of decided requests; ``older``: the instant (ms) before which the next one begins, 0: there is none."""

    shown: tuple[ControlRequest, ...]
    older: int


def instant_of(request: ControlRequest) -> int:
    """Return the instant (ms) of the decision, or of the request that nobody decided."""
    return request.asked if request.decided is None else request.decided


def past_page(box: OpenMailbox, queries: MailPages, before: int | None, limit: int, wanted: Wanted) -> PastPage:
    """Return the newest ``limit`` wanted requests that were decided before an instant (ms), and all of the last's."""
    live = control_log.of(box).requests
    done = [r for r in live.values() if not r.is_open and wanted(r) and (before is None or instant_of(r) < before)]
    archived, reached = _look_through_archive(queries, box, before, limit, lambda r: r.id not in live and wanted(r))
    done = [request for request in (*done, *archived) if instant_of(request) >= reached]
    done.sort(key=lambda request: (instant_of(request), request.place), reverse=True)
    last = instant_of(done[limit - 1]) if len(done) > limit else reached
    shown = tuple(request for request in done if instant_of(request) >= last)
    return PastPage(shown, last if len(shown) < len(done) or reached else 0)


def _look_through_archive(
    queries: MailPages, box: OpenMailbox, before: int | None, limit: int, wanted: Wanted
) -> tuple[list[ControlRequest], int]:
    """Return archived requests, and the instant (ms) down to which they are complete; 0: there are no others."""
    found: dict[str, ControlRequest] = {}
    reached, looked = before, 0
    while not queries.newest_alone:
        answers, reached = _answers_before(queries, reached)
        looked += len(answers)
        for request in _decided_by(queries, box, answers):
            if wanted(request):
                found[request.id] = request
        if not reached or len(found) > limit or looked >= MOST_LOOKED:
            return [*found.values()], reached
    return [], 0


def _answers_before(queries: MailPages, before: int | None) -> tuple[list[Message], int]:
    """Return answers, newest first, and the instant (ms) down to which they are complete; 0: there are no others."""
    place = None if before is None else Position(before, "")
    pages = [queries.page(Selection(query=word, kind="control"), place, STEP) for word in _WORDS]
    ends = [(page.before.timestamp, page.messages[-1].timestamp) for page in pages if page.before is not None]
    reached = max((min(oldest + 1, newest) for oldest, newest in ends), default=0)  # the oldest instant may be cut
    found = {m.id: m for page in pages for m in page.messages if m.timestamp >= reached}
    answers = [m for m in found.values() if isinstance(message_text.parse(m.content), _ANSWERS)]
    return sorted(answers, key=lambda m: m.timestamp, reverse=True), reached


def _decided_by(queries: MailPages, box: OpenMailbox, answers: list[Message]) -> Iterator[ControlRequest]:
    """Yield the request that each answer decided."""
    roster = box.logs.read_roster()
    for answer in answers:
        chain, _ = queries.thread(answer.id)
        chain.sort(key=lambda message: (not state.opens(message.content), message.timestamp))
        requests = ControlState(roster, chain).requests.values()
        yield from (request for request in requests if request.answer_id == answer.id)
