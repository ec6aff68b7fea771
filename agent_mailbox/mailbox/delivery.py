"""Delivering unread mail: choose, show, record.

Belongs here: the order of those steps and the locks around them. ``core.inbox`` decides what is unread; ``store.poll``
finds it without reading everything.
"""

from __future__ import annotations

from ..core import claims, codec
from ..core.records import USER, Read, Record
from ..core.roster import ALIVE, DEAD
from ..errors import Busy
from ..store import offers
from ..store.poll import Poll
from .opened import OpenMailbox

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..core.compose import Draft
    from ..core.inbox import Item


class Offering(Record):
    """A hook's offer of mail, as the read records keep it.

    ``nonce`` finds the delivery again in the client's transcript, which is ``length`` bytes long so far; None: nobody
    can tell whether it was seen. ``client``: its process, if known. ``show`` fills in ``tokens``, the cost by message
    id, and ``titles``, the ids of those without their text. ``quiet``: may the offer leave a quiet stamp, which spares
    later hooks their work?
    """

    nonce: str | None
    length: int
    client: str
    tokens: dict[str, int]
    titles: set[str]
    quiet: bool = True


class Delivery(OpenMailbox):
    """The part of the facade that shows sessions their mail. ``registered``: its check made a session known."""

    registered = False

    def peek(self, session_id: str) -> list[Item]:
        """Return the session's unread mail; writes nothing at all. Raises ``Refused`` for the dead."""
        desk = self.read_only()
        if desk.logs.read_roster().state(session_id) == DEAD:
            desk._admit(session_id)
        return desk._judged(session_id, desk._poll(session_id).unread(desk.now(), adopt=False))

    def look(self, session_id: str) -> list[Item]:
        """Return the session's unread mail, without a record that it was shown. Raises ``Refused`` for the dead.

        Unlike ``peek`` this keeps what is derived, so that the next look reads only what is new.
        """
        if self.logs.read_roster().state(session_id) != ALIVE:
            return self.peek(session_id)
        poll = self._poll(session_id)
        items = poll.unread(self.now())
        done = all(item.muted for item in items) and not offers.load(self.logs, session_id)
        try:
            self._settle(poll, set(), 0, quiet=done)
        except Busy:
            pass  # the next look does it
        return self._judged(session_id, items)

    def deliver(
        self,
        session_id: str,
        show: Callable[[list[Item]], Sequence[Item]],
        *,
        role_wait: float | None = None,
        offering: Offering | None = None,
    ) -> int:
        """Show the session its unread mail, then record as read what was shown; return how many that was.

        ``show`` gets all unread mail in order. It writes *and flushes* as much as it has room for, and returns exactly
        that; if it raises, nothing is recorded. The session's delivery lock is held all the time, and the shared role
        lock if role mail is among it. If another holds the role lock, a hook, which gives ``role_wait`` (seconds),
        leaves role mail for next time; without it this raises ``Busy``. Raises ``Refused`` for the dead.
        """
        self.check_in(session_id)
        self._note_gone_holders(session_id)
        with self.logs.delivery(session_id):
            poll = self._poll(session_id)
            items = poll.unread(self.now())
            if not any(item.claims for item in items):
                return self._show(poll, items, show, offering)
            try:
                role_lock = self.logs.role_delivery(role_wait).take()
            except Busy:
                if role_wait is None:
                    raise
                return self._show(poll, [item for item in items if not item.claims], show, offering)
            with role_lock:
                return self._show(poll, items if poll.is_current() else poll.unread(self.now()), show, offering)

    def _poll(self, session_id: str) -> Poll:
        return Poll(self.logs, session_id, self.config.ttls, self.config.stamp)

    def _show(
        self,
        poll: Poll,
        items: list[Item],
        show: Callable[[list[Item]], Sequence[Item]],
        offering: Offering | None,
    ) -> int:
        if items:
            # Mail that cannot be recorded must not be shown: try first whether the log can be written.
            with self.logs.reads.held():
                pass
        # Control runs ahead of chat: it is in force, and refusals are reported, before anything is shown.
        shown = show(self._judged(poll.session_id, items, apply=True))
        now, me = self.now(), poll.session_id
        records = [Read(message_id=i.message.id, session_id=me, timestamp=now, via=i.via) for i in shown]
        if offering is not None and records:
            records = self._offered(me, records, offering)
        size = 0
        if records:  # with more patience than before: mail that is not recorded now is shown again
            proofs = [self.prove(me) if claims.is_kept(i.message) or i.claims else None for i in shown]
            size = self.logs.patient_reads().append(map(codec.read_line, records), (), proofs)
        if not items and self._is_stamped(me, offering):
            poll.save()
            return 0
        quiet = offering is None or (offering.quiet and (offering.nonce is None or not records))
        try:
            self._settle(poll, {record.message_id for record in records}, size, quiet)
        except Busy:
            pass  # everything is shown and recorded; what is derived can wait for the next poll
        return len(shown)

    def _judged(self, me: str, items: list[Item], *, apply: bool = False) -> list[Item]:
        """Return the items, control messages with their outcome; ``apply``: with what follows from that."""
        if not any(item.message.type == "control" for item in items):
            return items
        from ..control import effects  # most mail is none

        return effects.judged(self, me, items, self._send if apply else None)

    def _send(self, draft: Draft) -> object:
        from .sending import Posting  # a delivery rarely reports anything

        return Posting.sharing(self).send(draft)

    def _offered(self, me: str, records: list[Read], offering: Offering) -> list[Read]:
        """Return the records with the offering's marks, and keep it among the session's open offers.

        It is kept before the records are written: an open offer without records does no harm."""
        nonce = offering.nonce
        if nonce is not None:
            ids = tuple(record.message_id for record in records)
            offer = offers.Offer(nonce, records[0].timestamp, offering.length, ids, offering.client)
            offers.save(self.logs, me, [*offers.load(self.logs, me), offer])
        cost, titles = offering.tokens, offering.titles
        return [r.replace(nonce=nonce, tokens=cost.get(i := r.message_id), title=i in titles) for r in records]

    def _is_stamped(self, me: str, offering: Offering | None) -> bool:
        """Return whether the session has its quiet stamp; for a hook the guard must also believe it."""
        trail = self.logs.trail
        return trail.is_quiet(me) if offering is None else trail.counts(me, self.now())

    def _settle(self, poll: Poll, recorded: set[str], size: int, quiet: bool) -> None:
        """Save the cursor, and leave a quiet stamp if nothing is left to read and ``quiet`` allows it.

        ``store.stamps`` says why that is sound; without a stamp no lock is needed. ``recorded`` was read since, in
        ``size`` bytes; if anything else was written, the logs are read again."""
        logs = self.logs
        if not quiet:
            poll.without(recorded, size)
            poll.save()
            return
        with logs.messages.held(), logs.reads.held(), logs.roster.held():
            left = poll.without(recorded, size) if logs.trail.vouch(self.config.stamp) else None
            if left is None:
                left = poll.unread(self.now(), adopt=False)
            poll.save()
            if all(item.muted for item in left):
                agent = logs.read_roster().get(poll.session_id)
                led = agent is not None and agent.lead not in (None, USER)
                logs.trail.stamp(poll.session_id, poll.judged, led=led)

    def check_in(self, session_id: str) -> None:
        """Take a sign of life: beat the heart; register the unknown, thaw the frozen. Raises ``Refused`` for the
        dead."""
        if session_id != USER and self.logs.read_roster().state(session_id) != ALIVE:
            self._admit(session_id)
        self.logs.beat(session_id, self.now())

    def _note_gone_holders(self, me: str) -> None:
        """Have the holders of this session's roles whose client's process is gone give back the mail they never saw."""
        roster = self.logs.read_roster()
        agent = roster.get(me)
        others = {a.session_id for role in agent.roles for a in roster.carrying(role)} - {me} if agent else set()
        if others and (gone := self.gone(others)):
            from . import absence  # a client was killed

            try:
                absence.note(self, gone, me)
            except Busy:
                pass  # the next check, or the steward, does it

    def _admit(self, session_id: str) -> None:
        """Let in a session that is not alive, as far as the roster's rules allow it."""
        from .registry import Registry  # the rare case; a poll of a living session is spared the import

        self.registered = Registry.sharing(self).admit(session_id)
