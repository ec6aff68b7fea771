"""What follows from a transcript for mail that was offered: it was seen, or it is offered again.

Belongs here: which event may draw which conclusion. Offered again is what was certainly not taken in: at the end of a
turn, what is missing though the model spoke since; when a session ends or comes back, all that it did not speak after.
"""

from __future__ import annotations

from ...mailbox.receipts import Settlement
from ...store import system
from . import transcript

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...store.offers import Offer


def judge(event: str, path: str, client: str) -> Callable[[Sequence[Offer]], Settlement]:
    """The judge that ``mailbox.receipts.settle`` asks: what the client's transcript at ``path`` says at this event of
    the client's process ``client``."""

    def verdict(offers: Sequence[Offer]) -> Settlement:
        states = transcript.states(path, offers)
        if states is None:
            return _without_transcript(event, path, frozenset(offer.nonce for offer in offers))
        lost = frozenset(nonce for nonce, state in states.items() if state in _LOST.get(event, ()))
        if event == "SessionStart" and client:  # another hook of this very start has just shown it
            lost -= {o.nonce for o in offers if o.client == client and states[o.nonce] == transcript.OPEN}
        return Settlement(frozenset(nonce for nonce, state in states.items() if state == transcript.SEEN), lost)

    return verdict


_UNTAKEN = (transcript.SHOWN, transcript.PASSED, transcript.OPEN)
_LOST = {"SessionStart": _UNTAKEN, "SessionEnd": _UNTAKEN, "Stop": (transcript.PASSED,)}


def _without_transcript(event: str, path: str, nonces: frozenset[str]) -> Settlement:
    """A client that keeps no transcripts can tell nothing, as shows at the end of its first turn. One that does, and
    has none when the session ends, was closed before anything was said."""
    if event == "Stop":
        return Settlement(unknown=nonces)
    if event == "SessionEnd" and system.is_directory(system.dirname(path)):
        return Settlement(lost=nonces)
    return Settlement()
