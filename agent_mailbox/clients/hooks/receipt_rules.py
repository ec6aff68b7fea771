"""Conclusions from a transcript about offered mail: it was seen, or it is offered again.

Belongs here: which event may draw which conclusion. Mail is offered again if the model certainly missed it. At a turn's
end that is mail missing from the transcript though the model spoke since. When a session ends or returns, it is all
mail after which the model said nothing.
"""

from __future__ import annotations

from ...mailbox.receipts import Settlement
from ...store.files import system
from .. import transcript

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...store.polling.offers import Offer


def judge(event: str, path: str, session_id: str, client: str) -> Callable[[Sequence[Offer]], Settlement]:
    """Return the judge for ``mailbox.receipts.settle``: what the session's transcript at ``path`` says at this event of
    the client's process ``client``."""

    def verdict(offers: Sequence[Offer]) -> Settlement:
        try:
            states = _states(path, session_id, offers)
        except OSError:
            return Settlement()  # a later event may read it
        if states is None:
            return _without_transcript(event, path, frozenset(offer.nonce for offer in offers))
        lost = frozenset(nonce for nonce, state in states.items() if state in _LOST.get(event, ()))
        if event == "SessionStart" and client:  # another hook of this start just showed it
            lost -= {o.nonce for o in offers if o.client == client and states[o.nonce] == transcript.OPEN}
        return Settlement(frozenset(nonce for nonce, state in states.items() if state == transcript.SEEN), lost)

    return verdict


def _states(path: str, session_id: str, offers: Sequence[Offer]) -> dict[str, str] | None:
    if path.rpartition("/")[2].startswith("rollout-"):
        from . import rollout  # Codex's

        return rollout.states(path, offers)
    return transcript.states(path, session_id, offers)


_UNTAKEN = (transcript.SHOWN, transcript.PASSED, transcript.OPEN)
_LOST = {"SessionStart": _UNTAKEN, "SessionEnd": _UNTAKEN, "Stop": (transcript.PASSED,)}


def _without_transcript(event: str, path: str, nonces: frozenset[str]) -> Settlement:
    """Return the conclusion without a transcript. A client that keeps none can tell nothing, as its first turn's end
    shows. One that keeps them, without one at the session's end, was closed before any word."""
    if event == "Stop":
        return Settlement(unknown=nonces)
    if event == "SessionEnd" and system.is_directory(system.dirname(path)):
        return Settlement(lost=nonces)
    return Settlement()
