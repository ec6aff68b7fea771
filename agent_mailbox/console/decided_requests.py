"""Requests that were decided, newest first, and the decision of several at once.

Belongs here: the rows of the page of past decisions, and how a form's choice becomes decisions, one after another. The
facade decides each, as it would alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.control import lasting, summary, transitions
from ..core.records import USER, Record
from ..core.roster import DEAD
from ..errors import MailboxError, Malformed
from . import cards, presenters

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..control.requests import ControlRequest
    from ..core.control.standing_orders import StandingOrders
    from ..core.roster import Roster
    from .desk import Looking

PAGE = 50
MOST = 50
"""Requests that one form decides."""
MOST_REASONS = 8
CHOSEN = "chosen:"
"""The beginning of the field names that choose a request; its id follows."""
_SIGNS = {transitions.APPROVED: "✔", transitions.DENIED: "✕", transitions.TIMED_OUT: "◷"}


class Decided(Record):
    """A decided request in words. ``at``: the instant (ms) of the decision, or of the request that nobody decided."""

    id: str
    sign: str
    state: str
    asker: str
    asker_id: str
    title: str
    what: str
    by: str
    reason: str
    rules: tuple[str, ...]
    at: int
    iso: str
    moment: str
    message_id: str


def past_decisions(
    requests: list[ControlRequest], roster: Roster, now: int, before: int | None
) -> tuple[list[Decided], int]:
    """Return a page of the decided requests, newest first, and the instant before which the next page begins (0: there
    is none)."""
    done = [
        request for request in requests if not request.is_open and (before is None or _instant_of(request) < before)
    ]
    done.sort(key=lambda request: (_instant_of(request), request.place), reverse=True)
    shown = [_describe_decision(request, roster, now) for request in done[:PAGE]]
    return shown, shown[-1].at if len(done) > PAGE else 0


def latest_reasons(requests: Iterable[ControlRequest]) -> list[str]:
    """Return the reasons that the person gave last, for the next one."""
    mine = sorted(
        (r for r in requests if r.by == USER and r.answer_proven and not r.is_open), key=_instant_of, reverse=True
    )
    return [text for text in dict.fromkeys(map(_notes_of, mine)) if text][:MOST_REASONS]


def _notes_of(request: ControlRequest) -> str:
    answer: Any = request.answer
    return presenters.one_line(getattr(answer, "notes", "") or "")


def rules_in_force(now: Looking) -> list[tuple[str, str, StandingOrders]]:
    """Return each agent's rules, if it has any: its name, its id, the rules."""
    living = [agent.session_id for agent in now.roster.agents.values() if agent.state != DEAD]
    policies = [(presenters.party_name(one, now.roster), one, now.control.standing(one).policy) for one in living]
    return sorted(found for found in policies if found[2].allow or found[2].deny or found[2].hosts)


def _instant_of(request: ControlRequest) -> int:
    return request.asked if request.decided is None else request.decided


def _describe_decision(request: ControlRequest, roster: Roster, now: int) -> Decided:
    answer: Any = request.answer
    at = _instant_of(request)
    return Decided(
        id=request.id,
        sign=_SIGNS.get(request.state, "•"),
        state=request.state.replace("_", " "),
        asker=presenters.party_name(request.asker, roster) + ("" if request.proven else " (unverified)"),
        asker_id=request.asker,
        title=cards.describe_request(request, roster),
        what=summary.line(request.payload).partition(": ")[2],
        by=presenters.party_name(request.by, roster, person="you") + request.doubt if request.by else "",
        reason=_notes_of(request),
        rules=tuple(map(presenters.one_line, lasting.added(getattr(answer, "updates", ())))),
        at=at,
        iso=presenters.iso_instant(at),
        moment=presenters.local_moment(at, now),
        message_id=request.message_id,
    )


def decide_several(now: Looking, fields: Mapping[str, str]) -> str:
    """Approve or deny each chosen request as the person; tell what became of each. Raise ``Malformed`` if none is."""
    word = fields.get("decision", "")
    if word not in ("approve", "deny"):
        raise Malformed(f"unknown decision: {word!r}", "choose Approve or Deny")
    chosen = [key.removeprefix(CHOSEN) for key in fields if key.startswith(CHOSEN)]
    if not 0 < len(chosen) <= MOST:
        raise Malformed(f"{len(chosen)} requests are chosen", f"choose 1 to {MOST} requests, then decide them together")
    notes, done, failed = fields.get("reason", "").strip(), [], []
    for request_id in chosen:
        try:
            done.append(_decide_one(now, request_id, word == "approve", notes))
        except MailboxError as error:
            failed.append(f"{presenters.one_line(request_id)} is not decided: {error.what}.")
    counted = f"{len(done)} {'approved' if word == 'approve' else 'denied'}: {', '.join(done)}." if done else ""
    if not done:
        raise Malformed(" ".join(failed).removesuffix("."), "reload the page: it shows what still waits")
    return " ".join([counted, *failed])


def _decide_one(now: Looking, request_id: str, approved: bool, notes: str) -> str:
    request = now.control.find(request_id)
    usual = {transitions.SANDBOX: {"scope": "one-shot"}, transitions.PLAN: {"mode": ""}}
    said: dict[str, Any] = usual.get(request.flow, {}) if approved else {}
    return now.control.answer(USER, request.id, approved, notes=notes, **said).id
