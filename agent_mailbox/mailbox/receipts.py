"""Honest receipts: what was offered to a session becomes ``seen``, or is offered again.

Belongs here: settling a session's open offers under its delivery lock. Whether it saw them its client's transcript
tells (``clients.hooks.transcript``); what follows for reading and archiving is ``core.claims`` and ``core.retention``.
"""

from __future__ import annotations

from ..core import codec
from ..core.records import Read, Record
from ..store import offers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..store.offers import Offer
    from .opened import OpenMailbox


class Settlement(Record):
    """What is known of some offers, by their nonces: ``seen`` by the session; ``lost``, to be offered again;
    ``unknown``, not to be asked about any more. The others stay open."""

    seen: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()
    unknown: frozenset[str] = frozenset()


def settle(
    desk: OpenMailbox, session_id: str, judge: Callable[[Sequence[Offer]], Settlement], *, recall: bool = False
) -> bool:
    """Have ``judge`` look at the session's open offers and record what it says; returns whether any is left open.

    ``recall``: they are looked for in the reads log. Raises ``Busy`` where mail is being shown to the session, or a log
    is locked; ``StorageFailed``.
    """
    with desk.logs.delivery(session_id):
        open_offers = (offers.recalled if recall else offers.load)(desk.logs, session_id)
        if not open_offers:
            return False
        verdict, now = judge(open_offers), desk.now()
        events = dict.fromkeys(verdict.seen, "seen") | dict.fromkeys(verdict.lost, "release")
        if verdict.lost and not recall:  # what was acked meanwhile must not be given back
            known = {offer.nonce: offer for offer in offers.recalled(desk.logs, session_id)}
            open_offers = [known.get(offer.nonce, offer.replace(messages=())) for offer in open_offers]
        lines = [
            codec.read_line(Read(message_id, session_id, now, events[offer.nonce], None, offer.nonce))
            for offer in open_offers
            if offer.nonce in events
            for message_id in offer.messages
        ]
        if lines:
            with desk.logs.reads.held() as log:
                proof = desk.prove(session_id) if verdict.lost else None
                log.append(lines, None if verdict.lost else (), [proof] * len(lines))
                log.sync()
        left = [offer for offer in open_offers if offer.nonce not in events and offer.nonce not in verdict.unknown]
        offers.save(desk.logs, session_id, left)
        return bool(left)
