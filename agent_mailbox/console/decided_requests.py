"""Requests that were decided, newest first, and the decision of several at once.

Belongs here: the rows of the page of past decisions and its filters, and how a form's choice becomes decisions, one
after another. The facade decides each, as it would alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..control.past_requests import instant_of, past_page
from ..control.steps import find_request
from ..control_plane.standing import find_standing
from ..core.control import message_text, summary, transitions
from ..core.control.control_requests import ControlRequest
from ..core.control.standing_orders import StandingOrders
from ..core.records import USER
from ..core.roster import Roster
from ..errors import MailboxError, Malformed, Refused
from . import calls, cards, presenters
from .desk import Looking, Params

PAGE = 50
MOST = 200
"""Lines of a group on a page, the rest is only counted; and requests that one form decides."""
MOST_REASONS = 8
CHOSEN = "chosen:"
"""The beginning of the field names that choose a request; its id follows."""
DECIDED = "decided"
"""The code of the refusal of a request that has another decision."""
_SIGNS = {transitions.APPROVED: "✔", transitions.DENIED: "✕", transitions.TIMED_OUT: "◷"}
CHANGED = "changed"
"""The choice of decisions that let another input run than was asked for."""
CHOICES = (transitions.APPROVED, CHANGED, transitions.DENIED, transitions.TIMED_OUT)


def view_decided(now: Looking, params: Params) -> dict[str, Any]:
    """Return the decided requests, live and archived, newest first, a page at a time."""
    before = presenters.whole_number(params.get("before", ""))
    problem, decided, older = "", [], 0
    try:
        page = past_page(now.mailbox, now.queries, before, PAGE, _filter_of(now.roster, params))
        decided, older = [_describe_decision(r, now.roster, now.mailbox.now()) for r in page.shown], page.older
    except MailboxError as error:
        problem = f"{presenters.end_sentence(error.what)} {error.hint}"
    kept = {name: params.get(name, "") for name in ("agent", "tool", "decision")}
    return {
        "title": "Past decisions",
        "decided": decided,
        "older_decisions": presenters.page_link("/decided", **kept, before=older) if older else None,
        "rules": rules_in_force(now),
        "refused": problem,
        "choices": CHOICES,
        "filtered": any(kept.values()),
        "askers": sorted({presenters.party_name(one, now.roster) for one in now.roster.agents}, key=str.casefold)[:400],
    }


def _filter_of(roster: Roster, params: Params) -> Callable[[ControlRequest], bool]:
    """Return the predicate of the page's filters. Raises ``NotFound`` or ``Ambiguous`` for its agent."""
    agent, tool, decision = (params.get(name, "").strip() for name in ("agent", "tool", "decision"))
    who = {*roster.lineage(roster.find(agent).session_id)} if agent else None

    def is_wanted(request: ControlRequest) -> bool:
        named = getattr(request.payload, "tool", "") or request.flow
        state = CHANGED if decision == CHANGED and _ran_instead(request) is not None else request.state
        return (who is None or request.asker in who) and tool.casefold() in named.casefold() and decision in ("", state)

    return is_wanted


def _ran_instead(request: ControlRequest) -> Any:
    """Return the input that ran instead of what was asked for; None if there is none."""
    answer: Any = request.answer
    changed = getattr(answer, "updated_input", None) if request.state == transitions.APPROVED else None
    if changed is None or calls.is_same_json(changed, getattr(request.payload, "input", None)):
        return None
    return changed


def latest_reasons(requests: Iterable[ControlRequest]) -> list[str]:
    """Return the reasons that the person gave last, for the next one."""
    mine = sorted(
        (r for r in requests if r.by == USER and r.answer_proven and not r.is_open), key=instant_of, reverse=True
    )
    return [text for text in dict.fromkeys(map(_notes_of, mine)) if text][:MOST_REASONS]


def _notes_of(request: ControlRequest) -> str:
    answer: Any = request.answer
    return presenters.one_line(getattr(answer, "notes", "") or "")


def rules_in_force(now: Looking) -> list[tuple[str, str, StandingOrders]]:
    """Return each agent's rules, if it has any: its name, its id, the rules."""
    living = [agent.session_id for agent in presenters.living_agents(now.roster)]
    policies = [(presenters.party_name(one, now.roster), one, find_standing(now.mailbox, one).policy) for one in living]
    return sorted(found for found in policies if found[2].allow or found[2].deny or found[2].hosts)


def _describe_decision(request: ControlRequest, roster: Roster, now: int) -> dict[str, Any]:
    """Return a decided request in words.

    ``asked`` and ``ran``: the call as it was asked for, and the other one that ran instead. ``waited``: until its
    decision. ``terms``: the scope or the mode of an approval."""
    answer: Any = request.answer
    at, payload, changed = instant_of(request), request.payload, _ran_instead(request)
    tool, given = getattr(payload, "tool", ""), getattr(payload, "input", None)
    approved = request.state == transitions.APPROVED
    term = "scope" if getattr(payload, "hosts", ()) else "mode"
    return {
        "id": request.id,
        "sign": _SIGNS.get(request.state, "•"),
        "state": request.state.replace("_", " ") + (" with changes" if changed is not None else ""),
        "asker": presenters.party_name(request.asker, roster) + ("" if request.proven else " (unverified)"),
        "asker_id": request.asker,
        "title": cards.describe_request(request, roster).text,
        "what": summary.line(payload).partition(": ")[2],
        "instead": "" if changed is None else summary.line(payload.replace(input=changed)).partition(": ")[2],
        "asked": calls.parts_of_call(tool, given) if isinstance(given, dict) else (),
        "ran": calls.parts_of_call(tool, changed) if isinstance(changed, dict) else (),
        "by": presenters.party_name(request.by, roster) + request.doubt if request.by else "",
        "reason": _notes_of(request),
        "terms": presenters.one_line(getattr(answer, term, "")) if approved else "",
        "rules": [*map(presenters.one_line, message_text.added_rules(getattr(answer, "updates", ()))[0])],
        "waited": "" if request.decided is None else presenters.elapsed_time(request.asked, request.decided),
        "at": at,
        "moment": presenters.local_moment(at, now),
        "message_id": request.message_id,
    }


def decide_several(now: Looking, fields: Params) -> str:
    """Approve or deny each chosen request as the person; tell what became of each. Raise ``Malformed`` if none is."""
    word = fields.get("decision", "")
    if word not in ("approve", "deny"):
        raise Malformed(f"unknown decision: {word!r}", "choose Approve or Deny")
    notes, done, failed = fields.get("reason", "").strip(), [], []
    for request_id in list_chosen(fields, "requests", "decide"):
        try:
            request = find_request(now.mailbox, request_id)
            decided = decide_as_person(now, request, word == "approve", notes=notes)
            if request.is_open:
                done.append(decided)
            else:
                failed.append(f"{cards.tell_request(request, now.roster)} was decided so before.")
        except MailboxError as error:
            named = "" if error.code == DECIDED else f"{_name_request(now, request_id)} is not decided: "
            failed.append(presenters.end_sentence(named + error.what))
    if not done:
        raise Malformed(" ".join(failed).removesuffix("."), "reload the page: it shows what still waits")
    named = "; ".join(cards.tell_request(request, now.roster) for request in done)
    counted = f"{len(done)} {'approved' if word == 'approve' else 'denied'}: {named}."
    return " ".join([counted, *failed]) + now.settle_read({request.message_id for request in done})


def list_chosen(fields: Params, what: str, act: str) -> list[str]:
    """Return the ids that a form chose; raise ``Malformed`` for none, or for more than one form's."""
    chosen = [key.removeprefix(CHOSEN) for key in fields if key.startswith(CHOSEN)]
    if not 0 < len(chosen) <= MOST:
        raise Malformed(f"{len(chosen)} {what} are chosen", f"choose 1 to {MOST} {what}, then {act} them together")
    return chosen


def _name_request(now: Looking, request_id: str) -> str:
    """Return who asks what, or the id of no request."""
    try:
        return cards.tell_request(find_request(now.mailbox, request_id), now.roster)
    except MailboxError:
        return presenters.one_line(request_id)


def decide_as_person(now: Looking, request: ControlRequest, approved: bool, **said: Any) -> ControlRequest:
    """Decide a request as the person. One that is decided otherwise is refused in a page's words: who, and when."""
    try:
        return now.requests.answer(USER, request, approved, **said)
    except Refused as error:
        request = find_request(now.mailbox, request.id)
        if error.code != DECIDED or request.decided is None:
            raise
        what, state = cards.tell_request(request, now.roster), request.state.replace("_", " ")
        by = presenters.party_name(request.by, now.roster) + request.doubt
        when = presenters.local_moment(request.decided, now.mailbox.now())
        raise Refused(
            f"{what}: {state} by {by}, {when}", "the first decision counts; you may write to the agent", code=DECIDED
        ) from None
