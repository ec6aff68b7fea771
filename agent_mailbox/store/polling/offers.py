"""The messages that hooks offered a session, as long as it is unknown whether it saw them.

Belongs here: the derived list of a session's open offers, which saves a hook a search of the reads log. The log is the
truth: ``recalled`` asks it.
"""

from __future__ import annotations

from ...core import codec
from ...core.claims import Reads
from ...core.records import Record
from ..files import cache, system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..log.logs import Logs

OFFERS = "offers"


class Offer(Record):
    """One delivery by a hook: its nonce, its time (ms), the length of the client's transcript then (bytes), its
    messages.

    ``client`` is the client's process (empty: unknown).
    """

    nonce: str
    time: int
    length: int
    messages: tuple[str, ...]
    client: str = ""


def load(logs: Logs, session_id: str) -> list[Offer]:
    """Return the session's open offers: from the derived list, or from the log if its writer was killed."""
    found = _listed(logs, session_id)
    if found is None and system.size(logs.cache(OFFERS, session_id)):
        return recalled(logs, session_id)
    return found or []


def _listed(logs: Logs, session_id: str) -> list[Offer] | None:
    """Return the derived list; None if there is no sound one."""
    body = cache.load(logs.cache(OFFERS, session_id))
    listed = codec.parse(body) if body is not None else None
    if not isinstance(listed, dict):
        return None
    return [Offer(nonce, time, length, tuple(ids), by) for nonce, (time, length, ids, by) in listed.items()]


def save(logs: Logs, session_id: str, offers: Iterable[Offer]) -> None:
    """Keep the list. The caller holds the session's delivery lock."""
    listed = {o.nonce: (o.time, o.length, o.messages, o.client) for o in offers}
    cache.save(logs.cache(OFFERS, session_id), codec.dumps(listed).encode())


def recalled(logs: Logs, session_id: str) -> list[Offer]:
    """Return the session's open offers from the reads log; only the list knows the transcript's length and client."""
    from ..projection import open_ends  # as a session starts, and where a delivery was lost

    reads = open_ends.read_offered(logs, session_id)
    standing = Reads(reads)
    listed = {offer.nonce: offer.replace(messages=()) for offer in _listed(logs, session_id) or ()}
    found: dict[str, Offer] = {}
    for message_id in dict.fromkeys(r.message_id for r in reads if r.nonce):
        for read in standing.unseen(message_id):
            nonce = read.nonce or ""
            before = found.get(nonce) or listed.get(nonce) or Offer(nonce, read.timestamp, 0, ())
            found[nonce] = before.replace(messages=(*before.messages, message_id))
    return list(found.values())
