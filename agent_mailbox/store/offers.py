"""What hooks offered a session and nobody has found seen yet.

Belongs here: the derived list of a session's open offers, by which a hook knows without looking through the reads log
if there is anything to find out. The log is the truth: ``recalled`` asks it.
"""

from __future__ import annotations

from ..core import codec
from ..core.claims import Reads
from ..core.records import BadLine, Record
from . import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .logs import Logs

OFFERS = "offers"


class Offer(Record):
    """One delivery by a hook: its nonce, when that was (ms) and how long the client's transcript was (bytes), and the
    messages."""

    nonce: str
    time: int
    length: int
    messages: tuple[str, ...]


def load(logs: Logs, session_id: str) -> list[Offer]:
    """The session's open offers, as the derived list has them."""
    found = []
    for line in (cache.load(logs.cache(OFFERS, session_id)) or b"").decode().splitlines():
        nonce, time, length, *messages = line.split("\t")
        found.append(Offer(nonce, int(time), int(length), tuple(messages)))
    return found


def save(logs: Logs, session_id: str, offers: Iterable[Offer]) -> None:
    """Keep the list. The caller holds the session's delivery lock."""
    text = "".join("\t".join((o.nonce, str(o.time), str(o.length), *o.messages)) + "\n" for o in offers)
    cache.save(logs.cache(OFFERS, session_id), text.encode())


def recalled(logs: Logs, session_id: str) -> list[Offer]:
    """The session's open offers by the reads log; only the list knows how long the transcript was."""
    mine = session_id.encode()
    records = (codec.read(line) for _, line in logs.reads.lines() if mine in line)
    reads = [r for r in records if not isinstance(r, BadLine) and r.session_id == session_id]
    standing = Reads(reads)
    lengths = {offer.nonce: offer.length for offer in load(logs, session_id)}
    found: dict[str, Offer] = {}
    for message_id in dict.fromkeys(r.message_id for r in reads if r.nonce):
        for read in standing.unseen(message_id):
            nonce = read.nonce or ""
            before = found.get(nonce) or Offer(nonce, read.timestamp, lengths.get(nonce, 0), ())
            found[nonce] = before.replace(messages=(*before.messages, message_id))
    return list(found.values())
