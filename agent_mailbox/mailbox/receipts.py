"""Honest receipts: mail that was offered to a session becomes ``seen``, or is offered again.

Belongs here: settling a session's open offers under its delivery lock. The client's transcript tells whether it saw
them (``clients.transcript``); ``core.message_reads`` and ``core.keeping.retention`` say what follows for reading and
archiving.
"""

from __future__ import annotations

from ..core import codec, message_reads, proofs
from ..core.records import Read, Record
from ..store.log.stamps import EVERYONE
from .delivery import Offer, load_offers, recall_offers, save_offers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..core.records import Message
    from .delivery import Delivery, Offer
    from .open_mailbox import OpenMailbox


class Settlement(Record):
    """The known fate of some offers, by nonce: ``seen`` by the session; ``lost``, to be offered again; ``unknown``, to
    be given up. All others stay open."""

    seen: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()
    unknown: frozenset[str] = frozenset()


def settle(
    desk: OpenMailbox, session_id: str, judge: Callable[[Sequence[Offer]], Settlement], *, recall: bool = False
) -> bool:
    """Have ``judge`` look at the session's open offers and record its judgement; return whether any is left open.

    ``recall``: look for the offers in the reads log. Raises ``Busy`` while the session is shown mail or a log is
    locked, and ``StorageFailed``.
    """
    with desk.logs.delivery(session_id):
        open_offers = (recall_offers if recall else load_offers)(desk.logs, session_id)
        if not open_offers:
            return False
        if recall:  # should this fail, the hooks that follow know of them
            save_offers(desk.logs, session_id, open_offers)
        verdict, now = judge(open_offers), desk.now()
        events = dict.fromkeys(verdict.seen, "seen") | dict.fromkeys(verdict.lost, "release")
        if verdict.lost and not recall:  # mail that was acked meanwhile must not be given back
            known = {offer.nonce: offer for offer in recall_offers(desk.logs, session_id)}
            open_offers = [known.get(offer.nonce, offer.replace(messages=())) for offer in open_offers]
        lines = [
            codec.spell_read(Read(message_id, session_id, now, events[offer.nonce], None, offer.nonce))
            for offer in open_offers
            if offer.nonce in events
            for message_id in offer.messages
        ]
        if lines:
            with desk.logs.reads.held() as log:
                proof = desk.prove(session_id) if verdict.lost else None
                log.append(lines, EVERYONE if verdict.lost else (), [proof] * len(lines))
        left = [offer for offer in open_offers if offer.nonce not in events and offer.nonce not in verdict.unknown]
        save_offers(desk.logs, session_id, left)
        return bool(left)


def take_back(delivery: Delivery, session_id: str, held: Callable[[Sequence[Offer]], frozenset[str]]) -> None:
    """Take back mail that was released while the session was away. The file of its conversation holds that mail, so its
    client shows it all the same. It counts as offered once more, and is not shown again.

    ``held`` returns the nonces of which this is so. Raises ``Busy`` and ``StorageFailed``.
    """
    desk = delivery.box
    waiting = {item.message.id: item for item in delivery.look(session_id)}
    if not waiting:
        return
    from ..store.projection import open_ends  # as a session comes back to mail

    records = open_ends.read_records(desk.logs, session_id, waiting)
    seen = {(read.message_id, read.nonce) for read in records if read.event == "seen"}
    given = {read.message_id: read for read in records if read.event == "read"}  # the last counts
    mine = {i: read for i, read in given.items() if read.nonce and (i, read.nonce) not in seen}
    found = {nonce: Offer(nonce, read.timestamp, 0, ()) for read in mine.values() if (nonce := read.nonce)}
    nonces = held([*found.values()]) if found else frozenset()
    if not nonces:
        return
    with desk.logs.delivery(session_id):
        delivery.check_in(session_id)
        wanted = [item for i, item in waiting.items() if i in mine and mine[i].nonce in nonces]
        taken, now = delivery.claim(session_id, wanted), desk.now()
        lines = [
            codec.spell_read(mine[item.message.id].replace(timestamp=now, via=item.via, tokens=None)) for item in taken
        ]
        sealed = [message_reads.is_kept(item.message) or item.claims for item in taken]
        desk.logs.reads.append(lines, (), [desk.prove(session_id) if kept else None for kept in sealed])


def tell_in_full(desk: OpenMailbox, session_id: str, messages: Iterable[Message], reads: message_reads.Reads) -> None:
    """Record that the session, or one it continues, now has the texts of messages that a hook gave it by title.

    Raises ``Busy`` and ``StorageFailed``.
    """
    lineage, now = desk.logs.read_roster().lineage(session_id), desk.now()
    found = [(m, read) for m in messages for read in message_reads.untold(m, reads) if read.session_id in lineage]
    if found:
        lines = [codec.spell_read(Read(m.id, read.session_id, now, via=read.via)) for m, read in found]
        sealed = [proofs.proves(read.proof) or message_reads.is_kept(m) for m, read in found]
        desk.logs.reads.append(lines, (), [desk.prove(session_id) if kept else None for kept in sealed])
