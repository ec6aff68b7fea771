"""The steps that all of control shares: finding a request, sending one control message, refusing who has no right.

Belongs here: those steps, for an opened mailbox, and the end of a standing notice, as leases and watches are.
``requests``, ``orders``, ``tasking`` and the notices say when each is taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..control_plane import control_log
from ..control_plane.control_log import note_step
from ..core import address, codec, frame
from ..core.compose import Draft
from ..core.control import authority, message_text, transitions
from ..core.control.verdicts import REFUSED
from ..core.records import MAX_TTL_HOURS, USER, Read
from ..core.text import typed
from ..errors import NotFound, Refused
from ..mailbox.sending import Sending

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..core.control.control_requests import ControlRequest
    from ..core.control.messages import Payload
    from ..core.control.standing_notices import N, StandingNotices
    from ..core.control.state import ControlState
    from ..core.control.verdicts import Verdict
    from ..mailbox.open_mailbox import OpenMailbox
    from ..mailbox.sending import Sent

DECIDE = "decide in the session itself, or as the person at a terminal; a program may not"

TEAM = "team:"
"""The tag that names an agent's team, in a mailbox that takes such tags; an agent of two teams names none."""


def post_message(
    box: OpenMailbox,
    me: str,
    payload: Payload,
    to: Sequence[str],
    *,
    thread: str | None = None,
    lasts: bool = False,
    when: str | None = None,
    check: Callable[[], None] | None = None,
    again: ControlRequest | None = None,
) -> Sent:
    """Send one control message; one that ``lasts`` never expires, and goes to nobody by mistake. ``check`` may refuse
    it under the lock. ``again``: what has its id already. The same is that message, and nobody is sent another one.
    Raises as ``send`` does."""
    roster = box.logs.read_roster()
    agent = roster.get(me)
    teams = [tag.removeprefix(TEAM) for tag in agent.tags if tag.startswith(TEAM)] if agent is not None else []
    payload = payload.replace(
        timestamp=box.now(),
        team=teams[0] if len(teams) == 1 else "",
        agent_id=me,
        agent_name=(agent.name or "") if agent is not None else "",
    )
    if again is not None:  # what tells of the first call's moment
        first = again.payload
        payload = payload.replace(timestamp=first.timestamp, team=first.team, agent_name=first.agent_name)
    content = message_text.written(payload)
    hours = MAX_TTL_HOURS if lasts else None
    draft = Draft(
        sender=me, to=tuple(to), content=content, type="control", when=when, thread=thread, ttl_hours=hours,
        id=None if again is None else again.message_id,
    )  # fmt: skip
    # An answer goes to the asker, even if the roster has it dead by now.
    answering = to[0] if len(to) == 1 and not lasts else None
    try:
        return Sending(box).send_all([draft], strict=lasts, answering=answering, by_id=False, check=check)[0]
    except Refused as error:
        if again is None or error.code != "id_conflict":
            raise
        show = f"; `agent-mailbox task show {typed(again.id)}` shows it" if again.flow == transitions.TASK else ""
        kind = "task" if show else "request"
        raise Refused(f"{again.id}: another {kind} has this id", f"leave the id out for a new one{show}") from None


def find_known(box: OpenMailbox, request_id: str) -> ControlRequest | None:
    """Return the request or task of an id that a caller gave, live or archived; None without an id. One that was
    archived undecided is none: its asker was dead, and may ask again."""

    def named(fold: ControlState) -> ControlRequest | None:
        return fold.requests.get(request_id) or fold.tasks.get(request_id)

    if not request_id:
        return None
    if (live := named(control_log.of_request(box, request_id))) is not None:
        return live
    found = named(control_log.archived(box.logs, box.archive, request_id)[0])
    return None if found is None or found.state in transitions.UNFINISHED else found


def note_read(box: OpenMailbox, me: str, ways: Mapping[str, str]) -> None:
    """Record messages as read by ``me``, each with the way by which it came: they wait for nobody."""
    reads = [Read(message_id, me, box.now(), via=via) for message_id, via in ways.items()]
    box.logs.reads.append(map(codec.spell_read, reads), (), [box.prove(me)] * len(reads))


def find_request(box: OpenMailbox, word: str) -> ControlRequest:
    """Return the request of an id, of its message's id, or of a unique prefix of either, live or archived; raises
    ``NotFound`` or ``Ambiguous``."""
    found = None
    if len(word) != address.ID_SHOWN:
        fold = control_log.of_request(box, word)
        found = fold.requests.get(word) or _meant(word, fold)
    found = found or _meant(word, control_log.of_beginning(box, word))
    if found is None and len(word) >= address.SHORTEST:
        # Live before archive: the steward moves it that way.
        found = _meant(word, control_log.archived(box.logs, box.archive, word)[0])
        found = found and _meant(found.id, control_log.archived(box.logs, box.archive, found.id)[0])
        if found is not None and found.state in transitions.UNFINISHED:
            raise NotFound(
                f"{found.id} was archived undecided: {found.worker} is gone", "send a new request to its successor"
            )
    if found is None:
        raise NotFound(address.describe_unknown("request", word), "`agent-mailbox pending` lists the open ones")
    return found


def _meant(word: str, fold: ControlState) -> ControlRequest | None:
    everything = {**fold.tasks, **fold.requests}
    named = {name: request.id for request in everything.values() for name in (request.message_id, request.id)}
    meant = dict.fromkeys(named[name] for name in address.begun_ids(word, named))
    tasks = [everything[one].flow == transitions.TASK for one in meant]
    kinds = "tasks" if all(tasks) else "requests and tasks" if any(tasks) else "requests"
    found = address.only_match(word, [*meant], kinds)
    return None if found is None else everything[found]


def refuse_other(box: OpenMailbox, me: str, worker: str, what: str) -> None:
    """Raise ``Refused`` unless ``me`` may command the worker."""
    roster = box.logs.read_roster()
    if authority.commands(me, worker, box.now(), roster):
        return
    lead = authority.lead_of(worker, roster)
    who = "the person" if lead == USER else f"{lead} or the person"
    why = "no agent commands itself" if me == worker else f"{me} is not the lead of {worker}"
    if authority.commands(me, worker, box.now(), roster, proven=False):
        why = f"nothing proves that {me} leads {worker}: what made it the lead had no proof"
    note_step(box, me, what, REFUSED, worker, {"cause": why})
    raise Refused(why, f"ask {who} to do it", code="not_lead")


def describe_vain(verdict: Verdict, on: str = "") -> str:
    """Return what an error says of a message without effect, ``on`` an agent or at all."""
    return f"this message ({verdict.kind.replace('_', ' ')}) has no effect{on and f' on {on}'}: {verdict.why}"


def refuse_unapplied(box: OpenMailbox, sent: Sent, hint: str = DECIDE) -> Verdict | None:
    """Return the fate of a message that was sent; raise ``Refused`` if the fold refused it.

    Nothing proved its writer then, or the writer lost the right."""
    verdict = control_log.of_sent(box, sent.message.id).verdicts.get(sent.message.id)
    if verdict is not None and verdict.outcome == REFUSED:
        raise Refused(describe_vain(verdict), hint, code="unverified")
    return verdict


def end_notice(
    box: OpenMailbox,
    me: str,
    word: str,
    fold: StandingNotices[N],
    older: Callable[[], StandingNotices[N]],
    live: Sequence[N],
    payload: Callable[..., Any],
    hint: Callable[[], str] = str,
) -> tuple[N, bool]:
    """End a notice, by its id or a unique beginning; return whether it was over before, too. ``older``: the fold of
    an archived one. ``hint``: what else may be meant.

    Raises ``NotFound``, and ``Refused`` unless ``me`` owns it or commands its owner."""
    notice = fold.get(word) or older().get(word)
    if notice is None:
        known = {one.id: one for one in live}
        found = address.only_match(word, address.begun_ids(word, known), fold.plural)
        if found is None:
            raise NotFound(
                address.describe_unknown(fold.KIND, word), hint() or f"`agent-mailbox {fold.KIND} list` lists them"
            )
        notice = known[found]
    if notice.over:
        return notice, True
    if notice.proven and not fold.may_end(me, notice, box.now()):
        raise Refused(
            f"{notice.id} is {frame.name_of(notice.owner, box.logs.read_roster())}'s {fold.KIND}",
            f"its {fold.OWNER}, that one's lead or the person ends it; it also ends by itself",
            code="not_yours",
        )
    own = fold.is_owner(me, notice, box.now())
    sent = post_message(box, me, payload(request_id=notice.id), (me if own else notice.owner,))
    if own:
        note_read(box, me, {sent.message.id: me})
    refuse_unapplied(box, sent)
    return notice.replace(over=True), False
