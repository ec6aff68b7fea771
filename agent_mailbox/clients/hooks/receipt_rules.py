"""Conclusions from a transcript about offered mail: it was seen, or it is offered again.

Belongs here: which event may draw which conclusion. Mail is offered again if the model certainly missed it. At a turn's
end that is mail missing from the transcript though the model spoke since. When a session ends, it is all mail after
which the model said nothing: another may have it. When the session returns, its client replays what the transcript
holds. So that counts as shown, and only what is missing there is offered again. A compaction replays what it keeps. One
client says what that is, behind our hook of that start: so the hook after it draws the conclusion.
"""

from __future__ import annotations

from ...errors import Busy
from ...mailbox import receipts
from ...mailbox.receipts import Settlement
from ...store.files import system
from .. import transcript
from ..transcript import ERASED, OPEN, PASSED, SEEN, SHOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...mailbox.delivery import Delivery, Offer
    from ..client_input import ClientInput


def settle_offers(delivery: Delivery, call: ClientInput, client: str, pauses: Sequence[float], *, begins: bool) -> bool:
    """Settle a session's earlier deliveries, as far as its transcript tells; return whether any is left open.

    While one is, look again after each of the ``pauses`` (seconds). ``begins``: the session does, and its client, whose
    process is ``client``, may replay some of them."""
    judge = make_judge(call, client)
    try:
        if begins and call.source != "compact":
            receipts.take_back(delivery, call.session_id, lambda given: held(call, given))
        left = receipts.settle(delivery.box, call.session_id, judge, recall=begins)
        for pause in pauses:
            if left:
                system.sleep(pause)
                left = receipts.settle(delivery.box, call.session_id, judge)
        return left
    except Busy:
        return True


def make_judge(call: ClientInput, client: str) -> Callable[[Sequence[Offer]], Settlement]:
    """Return the judge for ``mailbox.receipts.settle``: what the session's transcript says at this call of the client's
    process ``client``."""

    def judge_offers(offers: Sequence[Offer]) -> Settlement:
        try:
            states = _states_of(call, offers)
        except OSError:
            return Settlement()  # a later event may read it
        if states is None:
            return _without_transcript(call.event, call.conversation, frozenset(offer.nonce for offer in offers))
        losing = _LOST.get(_moment(call), (ERASED,))
        lost = frozenset(nonce for nonce, state in states.items() if state in losing)
        if call.event == "SessionStart" and client:  # another hook of this start just showed it
            lost -= {o.nonce for o in offers if o.client == client and states[o.nonce] == OPEN}
        return Settlement(frozenset(nonce for nonce, state in states.items() if state == SEEN), lost)

    return judge_offers


def _moment(call: ClientInput) -> str:
    if call.source != "compact":
        return call.event
    return "" if call.transcript else "Compaction"


def held(call: ClientInput, offers: Sequence[Offer]) -> frozenset[str]:
    """Return the nonces of the offers whose text the session's transcript holds: its client replays that."""
    try:
        states = _states_of(call, offers) or {}
    except OSError:
        states = {}
    return frozenset(nonce for nonce, state in states.items() if state in (SHOWN, SEEN))


def _states_of(call: ClientInput, offers: Sequence[Offer]) -> dict[str, str] | None:
    path = call.conversation
    if path.rpartition("/")[2].startswith("rollout-"):
        from . import rollout  # Codex's

        return rollout.offer_states(path, offers)
    kind = call.client.conversation if call.client else ""
    if kind == "events":
        from . import events_file

        return events_file.offer_states(path, offers, call.called, begins=call.event == "SessionStart")
    if kind == "chat" and call.may_take_back:
        from . import chat_file

        return chat_file.states(path, offers, call.prompt if call.event == "UserPromptSubmit" else None)
    return transcript.offer_states(path, call.session_id, offers)


_LOST = {
    "SessionStart": (PASSED, OPEN, ERASED),
    "Compaction": (SHOWN, PASSED, OPEN, ERASED),
    "Stop": (PASSED, ERASED),
    "SessionEnd": (SHOWN, PASSED, OPEN, ERASED),
}


def _without_transcript(event: str, path: str, nonces: frozenset[str]) -> Settlement:
    """Return the conclusion without a transcript. A client that keeps none can tell nothing, as its first turn's end
    shows. One that keeps them, without one at the session's end, was closed before any word."""
    if event == "Stop":
        return Settlement(unknown=nonces)
    if event == "SessionEnd" and system.is_directory(system.dirname(path)):
        return Settlement(lost=nonces)
    return Settlement()
