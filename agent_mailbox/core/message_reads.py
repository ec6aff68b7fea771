"""The readers of messages, and the holders of role messages: the fold of the reads log.

Belongs here: claim, ack, release, re-offer, receipt. Ownership follows from the reads log alone. The roster only
decides about a line without ``as``, which an older writer left.

**Claims before showing.** A session claims role mail before it is shown, and reads it once it was written out:

    free ──claim by A──▶ claimed by A ──read by A──▶ held by A (``holder``)
      ▲                    │      │ ▲
      └──── release by A ──┘      └─┘ claim by B, once A's has ``lapsed``: claimed by B

Only the reads' lock decides: a writer looks and claims under it. A claim hides the message from the other holders; its
claimer is shown it again. Lapsing needs no line: the claim of the next holder takes the place of a lapsed one.
"""

from __future__ import annotations

from . import proofs
from .address import own_route, role_or_tag, route
from .records import USER, Message, Read
from .roster import DEAD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from .roster import Roster


READ, OFFERED, TITLE_SEEN, SEEN, ACKED = "read", "offered", "seen by title", "seen", "acked"
"""The stages of a reader with a message. It asked for its mail and got this. A hook showed it, and nothing tells yet
whether it was seen. Its title was seen, and not its text. It was seen. It is dealt with."""


DOUBT = "?"
"""The end of a release's nonce if the outcome of the delivery is unknown."""
LAPSES = 600_000
"""Milliseconds without a check of its claimer after which a claim lapses, if the message was not read."""
DELIVERING = -1
"""The sign of life of a session that is shown mail at this moment: its claims hold as long as that takes."""


def is_kept(message: Message) -> bool:
    """Return whether our writers seal the records about the message: control, and mail whose ack the person asked for.

    Another program's line cannot settle these.
    """
    return message.type == "control" or (message.ack and message.sender == USER)


def with_archived(live: Iterable[Read], archived: Iterable[Read]) -> list[Read]:
    """Return archived records and live ones, in that order, each once.

    The live ones are taken first: a steward moves records into the archive, never back. As long as it does, or once it
    was killed, some are in both. Behind a release, the copy of a read would take that back.
    """
    now, before = [*live], [*archived]
    known = {*before}
    return [*before, *(record for record in now if record not in known)]


class Reads:
    """The standing reads of every message: a release takes the reader's read back, a later read sets it again.

    An unproven line never takes back a proven one. Another machine's word on its own sessions does. So the last claim
    in the order has the mail, on every machine. Copies of a sealed line count once.
    """

    def __init__(self, records: Iterable[Read] = ()) -> None:
        self._standing: dict[str, dict[str, Read]] = {}
        self._claimed: dict[str, Read] = {}
        self._acked: dict[tuple[str, str], bool] = {}
        self._sealed: set[Read] = set()
        self._further: dict[tuple[str, str], list[Read]] = {}
        """The reads of a session's later deliveries of a message, one for each nonce, while the first one counts."""
        self._released: set[tuple[str, str]] = set()
        self._seen: set[tuple[str, str, str | None]] = set()
        for record in records:
            self.apply(record)

    def apply(self, record: Read) -> None:
        """Fold one more record in. An ack implies the read; ``seen`` is a receipt of the read with its nonce.

        A release with a nonce ends the delivery with that nonce alone."""
        key = (record.message_id, record.session_id)
        proven = proofs.proves(record.proof)
        if proven:
            if record in self._sealed:
                return
            self._sealed.add(record)
        decides = proofs.decides(record.proof)
        standing = self._standing.get(record.message_id, {})
        before = standing.get(record.session_id)
        if record.event == "claim":
            if decides or not self._is_decided_claim(record.message_id):
                self._claimed[record.message_id] = record
        elif record.event == "release":
            if before is not None and proofs.proves(before.proof) and not decides:
                return
            if before is not None and record.nonce is not None and self._has_another(before, record.nonce):
                return  # a line may have been written again, behind those of later deliveries
            claim = self._claimed.get(record.message_id)
            if (
                claim is not None
                and claim.session_id == record.session_id
                and (decides or not proofs.decides(claim.proof))
            ):
                del self._claimed[record.message_id]
            standing.pop(record.session_id, None)
            self._further.pop(key, None)
            self._acked.pop(key, None)
            self._released.add(key)
        elif record.event == "seen":
            self._seen.add((*key, record.nonce))
        else:
            if before is None or (proven and not proofs.proves(before.proof)):
                self._standing.setdefault(record.message_id, {})[record.session_id] = record
            elif before.title and not record.title and (proven or not proofs.proves(before.proof)):
                standing[record.session_id] = before.replace(nonce=None, title=False)  # the text followed the title
            elif record.event == "read" and (proven or not proofs.proves(before.proof)):
                further = self._further.setdefault(key, [])
                if record.nonce not in (before.nonce, *(read.nonce for read in further)):
                    further.append(record)
            if record.event == "ack":
                self._acked[key] = proven or self._acked.get(key, False)

    def _has_another(self, before: Read, nonce: str) -> bool:
        """Drop one delivery of a message that counts as read; return whether another one is left."""
        key, ended = (before.message_id, before.session_id), nonce.removesuffix(DOUBT)
        others = [read for read in (before, *self._further.get(key, ())) if read.nonce != ended]
        if others:
            self._standing[before.message_id][before.session_id], *self._further[key] = others
        return bool(others)

    def _is_decided_claim(self, message_id: str) -> bool:
        return message_id in self._claimed and proofs.decides(self._claimed[message_id].proof)

    def claim(self, message_id: str) -> Read | None:
        """Return the last claim of a message that was not given back; see ``claimer``."""
        return self._claimed.get(message_id)

    def of(self, message_id: str) -> list[Read]:
        """Return the standing reads of a message, first reader first."""
        return list(self._standing.get(message_id, {}).values())

    def standing(self, message_id: str, lineage: Sequence[str]) -> list[Read]:
        """Return the standing reads of the message by these sessions."""
        standing = self._standing.get(message_id)
        return [standing[session] for session in lineage if session in standing] if standing else []

    def by(self, message_id: str, lineage: Sequence[str]) -> list[str]:
        """Return the sessions among these that have a standing read of the message."""
        return [read.session_id for read in self.standing(message_id, lineage)]

    def acked(self, message: Message, lineage: Sequence[str]) -> bool:
        """Return whether one of these sessions acknowledged the message; if the person provably asked it, provably."""
        least = proofs.is_person(message.proof)
        known = [self._acked[message.id, session] for session in lineage if (message.id, session) in self._acked]
        return any(proven or not least for proven in known)

    def stages(self, message_id: str) -> dict[str, str]:
        """Return how far each reader has come with the message: one of the five words above."""
        found = {}
        for session, read in self._standing.get(message_id, {}).items():
            if (message_id, session) in self._acked:
                found[session] = ACKED
            elif read.nonce is not None and (message_id, session, read.nonce) not in self._seen:
                found[session] = OFFERED
            elif read.title:
                found[session] = TITLE_SEEN
            else:
                found[session] = READ if read.nonce is None else SEEN
        return found

    def unseen(self, message_id: str) -> list[Read]:
        """Return the standing reads that offered the message to a session without a sign yet that it was seen."""
        return self._at_stages(message_id, OFFERED)

    def missed(self, message: Message) -> list[Read]:
        """Return the standing reads that settle nothing: unseen ones, and of mail that asks for an ack a title's."""
        return self._at_stages(message.id, OFFERED, *([TITLE_SEEN] if message.ack else []))

    def _at_stages(self, message_id: str, *stages: str) -> list[Read]:
        return [self._standing[message_id][who] for who, stage in self.stages(message_id).items() if stage in stages]

    def ever_released(self) -> set[str]:
        """Return the messages that a session ever gave back."""
        return {message_id for message_id, _ in self._released}

    def released(self, message_id: str, lineage: Sequence[str]) -> bool:
        """Return whether one of these sessions ever gave the message back."""
        return any((message_id, session) in self._released for session in lineage)


def readers(message: Message, reads: Reads) -> list[str]:
    """Return all readers of the message, first reader first; a foreign line may name some itself."""
    return list(dict.fromkeys([*(read.session_id for read in reads.of(message.id)), *message.read_by]))


def takers(message: Message, reads: Reads) -> list[str]:
    """Return the readers of the message, without those that saw the mere title of one that asks for an ack."""
    stages = reads.stages(message.id) if message.ack else {}
    return [reader for reader in readers(message, reads) if stages.get(reader) != TITLE_SEEN]


def untold(message: Message, reads: Reads) -> list[Read]:
    """Return the standing reads whose session was given the message by title alone, and neither asked nor acked."""
    stages = reads.stages(message.id)
    return [read for read in reads.of(message.id) if read.title and stages[read.session_id] != ACKED]


def by_title(records: Iterable[Read]) -> frozenset[Read]:
    """Return those of a message's records that are about its title alone: offered so, or seen so."""
    records = list(records)
    titles = {(record.session_id, record.nonce) for record in records if record.title}
    return frozenset(
        r for r in records if r.title or (r.event == "seen" and r.nonce and (r.session_id, r.nonce) in titles)
    )


def read_by(message: Message, reads: Reads, lineage: Sequence[str], roster: Roster) -> bool:
    """Return whether one of these sessions has read the message.

    For a proven message that ``is_kept``, another program's line counts only if its session has no client.
    """
    unproven_too = not (is_kept(message) and proofs.proves(message.proof))
    if message.read_by and unproven_too and any(session in message.read_by for session in lineage):
        return True
    return any(
        unproven_too or proofs.proves(read.proof) or not roster.has_client(read.session_id)
        for read in reads.standing(message.id, lineage)
    )


def is_claim(read: Read, message: Message, roster: Roster) -> bool:
    """Return whether this read claimed the message for its reader. Without ``as``: if only a role brought it there."""
    if read.via is not None:
        return read.via.startswith("role:")
    if own_route(message.recipients, roster.reader(read.session_id)):
        return False
    return any(roster.mode(address) == "role" for address in message.recipients)


def holder(message: Message, reads: Reads, roster: Roster, address: str | None = None) -> str | None:
    """Return the session that holds a role message: the first that read it so; None if it is free.

    If several did, it is the last to claim it: machines have reads in sequences of their own, and claims in one.
    Each bare word (``Message.bare``) among the recipients has a holder of its own: ``address`` asks for one of them."""
    found = [
        read.session_id
        for read in reads.of(message.id)
        if is_claim(read, message, roster) and not _is_apart(address, read.via, message)
    ]
    last = reads.claim(message.id) if len(found) > 1 else None
    return last.session_id if last is not None and last.session_id in found else next(iter(found), None)


def is_holder(session_id: str, message: Message, reads: Reads, roster: Roster) -> bool:
    """Return whether the session holds the message, or the bare word of it that it took."""
    return any(holder(message, reads, roster, r.via) == session_id for r in reads.standing(message.id, (session_id,)))


def is_taken(address: str, way: str | None, message: Message) -> bool:
    """Return whether a read through ``way`` took the message for that address of it, too. None: the way is unknown."""
    if way is None or way == address:
        return True
    return way.startswith("role:") and role_or_tag(address).startswith("role:") and not _is_apart(address, way, message)


def _is_apart(one: str | None, other: str | None, message: Message) -> bool:
    """Return whether two role addresses of the message are held apart: they differ, and one is a bare word."""
    if one is None or other is None or one == other:
        return False
    return any(address.removeprefix("role:") in message.bare for address in (one, other))


def claimer(message: Message, reads: Reads, roster: Roster, address: str | None = None) -> str | None:
    """Return the session that claimed a role message and has not read it yet, if nobody holds it; None if there is
    none. ``address`` as for ``holder``."""
    claim = reads.claim(message.id)
    if claim is None or _is_apart(address, claim.via, message):
        return None
    return claim.session_id if holder(message, reads, roster, claim.via) is None else None


def lapsed(claim: Read, message: Message, reads: Reads, roster: Roster, sign: Callable[[str], int], now: int) -> bool:
    """Return whether a claim of another session no longer hides the message.

    Its claimer would not be shown the message any more, or has neither read nor checked for ``LAPSES``. A time as far
    ahead of the clock is no sign of life. ``sign`` gives the instant of a session's last check, or ``DELIVERING``.
    """
    counts = _may_show(claim.session_id, message, reads, roster)
    if counts and abs(now - claim.timestamp) < LAPSES:
        return False
    seen = sign(claim.session_id)
    return seen != DELIVERING and (not counts or abs(now - seen) >= LAPSES)


def _may_show(session_id: str, message: Message, reads: Reads, roster: Roster) -> bool:
    """Return whether the next check of that session would show it the role message that it claimed."""
    agent, reader = roster.get(session_id), roster.reader(session_id)
    if agent is None or agent.state == DEAD or agent.has_ended:
        return False
    way = route(message.recipients, reader, message.bare)
    mine = way is not None and way.claims and message.sender != session_id
    return mine and not read_by(message, reads, reader.lineage, roster)
