"""Delivering unread mail: choose, claim, show, record.

Belongs here: the order of those steps, the locks around them, the list of open offers. It has what hooks showed a
session that perhaps did not see it. It is derived, and saves a search of the reads log (``recall_offers``).
``core.inbox`` decides what is unread; ``store.polling.poll`` finds it without reading everything.

Role mail goes to one holder, and no lock that others need is held while output is written. So it is claimed first,
under the reads' lock (``core.message_reads``):

- Two holders at once: the second finds the first one's claim under the lock, and leaves that mail.
- Killed behind the claim: the mail is shown to the claimer again, or to another once the claim has lapsed.
- The claimer comes back while another takes over a lapsed claim: both look under the reads' lock. The claimer holds its
  delivery lock from its look to its record, which keeps its claims (``message_reads.DELIVERING``). Another machine sees
  no such lock: there the claimer thaws, and claims again, in the order, before it is shown what it had claimed.
"""

from __future__ import annotations

from ..core import codec, inbox, message_reads, proofs
from ..core.message_reads import Reads
from ..core.records import IDLE, NOW, TURN, USER, Read, Record
from ..core.roster import ALIVE, DEAD
from ..errors import Busy, StorageFailed
from ..store.files import system
from ..store.files.board import WATCHED, Board
from ..store.files.small_files import load_derived, save_derived
from ..store.locks.lock import SOON, WAIT, Patience
from ..store.log.stamps import AT_TURN, LED
from ..store.polling.poll import Poll

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from ..core.compose import Draft
    from ..core.inbox import Item
    from ..core.roster import Agent, Roster
    from ..space.order.ordered_log import OrderedLog
    from ..store.log.log import HeldLog
    from ..store.log.logs import Logs
    from .open_mailbox import OpenMailbox

OFFERS = "offers"
WITHHELD = 60.0
"""Seconds until whoever waits for mail looks again at role mail that another session claimed: time may free it."""


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


class Delivery:
    """Shows sessions the mail of an opened mailbox.

    ``registered``: its check made a session known. ``left``: how much role mail the last delivery did not claim, for
    want of room, or since ``waits`` (why) keeps it. ``withheld``: another claimed role mail at the last look, and has
    not read it; or the engine could give nobody what there was.
    """

    def __init__(self, box: OpenMailbox) -> None:
        self.box = box
        self.registered = False
        self.left = 0
        self.waits = ""
        self.withheld = False

    def peek(self, session_id: str, *, control: bool = True) -> list[Item]:
        """Return the session's unread mail, perhaps without control messages; write nothing at all. Raises ``Refused``
        for the dead."""
        box = self.box.read_only()
        if box.logs.read_roster().state(session_id) == DEAD:
            self._admit(session_id)
        poll = Poll(box.logs, session_id, box.config)
        items = poll.unread(box.now(), adopt=False)
        if not control:
            items = [item for item in items if item.message.type != "control"]
        self.withheld = poll.withheld
        return Delivery(box)._judged(session_id, items)

    def look(self, session_id: str) -> list[Item]:
        """Return the session's unread mail, without a record that it was shown. Raises ``Refused`` for the dead.

        Unlike ``peek`` this keeps what is derived, so that the next look reads only what is new.
        """
        if self.box.logs.read_roster().state(session_id) != ALIVE:
            return self.peek(session_id)
        poll = Poll(self.box.logs, session_id, self.box.config)
        items = poll.unread(self.box.now())
        self.withheld = poll.withheld
        done = not (items and inbox.due(items, NOW, IDLE)) and not load_offers(self.box.logs, session_id)
        self._settle(poll, set(), 0, quiet=done)
        return self._judged(session_id, items)

    def look_for_showable(self, session_id: str) -> list[Item]:
        """Return the same, but nothing while all of it is for roles, and the engine can give none of it to anybody.

        ``withheld`` says so then: whoever waits looks again."""
        items = self.look(session_id)
        if not items or not self.box.logs.is_shared or not all(item.claims for item in items):
            return items
        try:
            self.box.in_order(self.box.logs.reads, hurried=True).decide(lambda _: None)
        except Busy:
            self.withheld = True
            return []
        return items

    def deliver(
        self,
        session_id: str,
        show: Callable[[list[Item]], Sequence[Item]],
        *,
        choose: Callable[[list[Item]], Sequence[Item]] | None = None,
        offering: Offering | None = None,
        only: Collection[str] | None = None,
    ) -> int:
        """Show the session its unread mail, then record as read what was shown; return how many that was.

        ``show`` gets the unread mail in order. It writes *and flushes* as much as it has room for, and returns exactly
        that; if it raises, nothing is recorded. The session's delivery lock is held all the time. Role mail is claimed
        before: what ``choose`` returns of all unread mail (default: all), because there is room for it.
        ``only``: the ids of the mail that this is about; no other is looked at. Raises ``Refused`` for the dead.
        """
        agent = self.check_in(session_id).get(session_id)
        if agent is not None and agent.roles:
            self._note_gone_holders(agent)
        with self.box.logs.delivery(session_id):
            poll = Poll(self.box.logs, session_id, self.box.config)
            items = poll.unread(self.box.now())
            if only is not None:
                items = [item for item in items if item.message.id in only]
            self.left, self.waits = 0, ""
            if any(item.claims for item in items):
                items = self._claimed(poll, items, items if choose is None else choose(items))
            return self._show(poll, items, show, offering)

    def claim(self, session_id: str, items: Sequence[Item]) -> list[Item]:
        """Claim the role mail among unread ``items``; return those that the session may be shown.

        The caller holds the session's delivery lock until it recorded them."""
        if not any(item.claims for item in items):
            return list(items)
        poll = Poll(self.box.logs, session_id, self.box.config)
        mine = {item.message.id for item in self._claimed(poll, poll.unread(self.box.now()), items) if item.claims}
        return [item for item in items if not item.claims or item.message.id in mine]

    def _claimed(self, poll: Poll, items: list[Item], chosen: Sequence[Item]) -> list[Item]:
        """Claim the chosen role mail; return what may be shown: that, and all mail of the session's own.

        Claims are not synced: a power failure, which alone could take them back, ends every claimer."""
        wanted = {item.message.id for item in chosen if item.claims}
        try:
            reads = self.box.in_order(self.box.logs.reads, hurried=True)
            may = reads.decide(self._claim, poll, items, wanted)
            if self._is_away(poll.session_id):  # the person gave this machine up meanwhile
                self._admit(poll.session_id)
                may = reads.decide(self._claim, poll, items, wanted)
        except Busy as error:
            if not self.box.logs.is_shared:
                raise
            # Role mail waits for the engine, or for whoever keeps the machine's lock; one's own mail does not.
            self.waits = error.what
            may = [item for item in items if not item.claims]
        self.left = len(items) - len(may)
        return may

    def _claim(self, log: HeldLog | OrderedLog, poll: Poll, items: list[Item], wanted: set[str]) -> list[Item]:
        me = poll.session_id
        if not poll.is_current() or any(item.claimed and item.claimed.session_id != me for item in items):
            items = poll.unread(self.box.now(), adopt=False)  # a claimer may have come back without a write
        if self._is_away(me):
            wanted = set()
        may = [item for item in items if not item.claims or (item.message.id in wanted and self._may_take(item, me))]
        new = [i for i in may if i.claims and (self.box.logs.is_shared or not i.claimed or i.claimed.session_id != me)]
        lines = [codec.spell_read(Read(i.message.id, me, poll.judged, "claim", i.via)) for i in new]
        size = log.append(lines, (), [self.box.prove(me) for _ in new], durably=False)
        poll.claimed({item.message.id for item in may if item.claims}, size)
        return may

    def _is_away(self, me: str) -> bool:
        """Return whether the session is not alive by the order: another machine may take over what it claims."""
        return self.box.logs.is_shared and me != USER and self.box.logs.read_roster().state(me) != ALIVE

    def _may_take(self, item: Item, me: str) -> bool:
        """Return whether the session may take over the claim of the role mail: an unproven line ends no proven one."""
        claim = item.claimed
        return (
            claim is None or claim.session_id == me or not proofs.decides(claim.proof) or self.box.prove(me) is not None
        )

    def _show(
        self,
        poll: Poll,
        items: list[Item],
        show: Callable[[list[Item]], Sequence[Item]],
        offering: Offering | None,
    ) -> int:
        if items and not any(item.claims for item in items):  # else they were just claimed
            # Mail that cannot be recorded must not be shown: try first whether the log can be written.
            with self.box.logs.reads.held():
                pass
        # Control runs ahead of chat: it is in force, and refusals are reported, before anything is shown.
        shown = show(self._judged(poll.session_id, items, apply=True) if items else items)
        now, me = self.box.now(), poll.session_id
        nonce, cost, titles = (offering.nonce, offering.tokens, offering.titles) if offering else (None, {}, set())
        records = [
            Read(
                message_id=i.message.id,
                session_id=me,
                timestamp=now,
                via=i.via,
                nonce=nonce,
                tokens=cost.get(i.message.id),
                title=i.message.id in titles,
            )
            for i in shown
        ]
        if offering is not None and offering.nonce is not None and records:
            self._keep_offer(me, records, offering, offering.nonce)
        size = 0
        if records:  # with more patience than before: mail that is not recorded now is shown again
            proofs = [self.box.prove(me) if message_reads.is_kept(i.message) or i.claims else None for i in shown]
            size = self.box.logs.reads.append(map(codec.spell_read, records), (), proofs, WAIT)
        stamp_files = self.box.logs.stamp_files
        # For a hook the guard must also believe the stamp.
        if not items and (stamp_files.is_quiet(me) if offering is None else stamp_files.believed(me, now) is not None):
            poll.save()
            return 0
        if offering is None:  # an earlier hook's offer is settled by a later hook, which a stamp would spare
            quiet = not load_offers(self.box.logs, me)
        else:
            quiet = offering.quiet and (offering.nonce is None or not records)
        self._settle(poll, {record.message_id for record in records}, size, quiet)
        return len(shown)

    def _judged(self, me: str, items: list[Item], *, apply: bool = False) -> list[Item]:
        """Return the items as they are shown: control messages with their outcome.

        ``apply``: with what follows from that."""
        if any(item.message.attachments is not None for item in items):
            items = [item.replace(message=self.box.here(item.message)) for item in items]
        if not any(item.message.type == "control" for item in items):
            return items
        from ..control_plane import effects  # most mail is none

        return effects.judged(self.box, me, items, self._send if apply else None)

    def _send(self, draft: Draft) -> object:
        from .sending import Sending  # a delivery rarely reports anything

        return Sending(self.box).send(draft)

    def _keep_offer(self, me: str, records: Sequence[Read], offering: Offering, nonce: str) -> None:
        """Keep the offering among the session's open offers.

        It is kept before the records are written: an open offer without records does no harm."""
        ids = tuple(record.message_id for record in records)
        offer = Offer(nonce, records[0].timestamp, offering.length, ids, offering.client)
        save_offers(self.box.logs, me, [*load_offers(self.box.logs, me), offer])

    def _settle(self, poll: Poll, recorded: set[str], size: int, quiet: bool) -> None:
        """Save the cursor, and leave a quiet stamp if nothing is left to read and ``quiet`` allows it.

        ``store.log.stamps`` says why that is sound; without a stamp no lock is needed. ``recorded`` was read since, in
        ``size`` bytes; if anything else was written, the logs are read again. If a log is locked or takes no writes,
        what is derived waits for the next poll."""
        try:
            if not quiet:
                if recorded:
                    poll.without(recorded, size)
                poll.save()
                return
            logs = self.box.logs
            with Patience(SOON), logs.messages.held(), logs.reads.held(), logs.roster.held():
                left = poll.without(recorded, size) if logs.stamp_files.vouch(self.box.config.stamp) else None
                if left is None:
                    left = poll.unread(self.box.now(), adopt=False)
                poll.save()
                if (
                    (left and inbox.due(left, NOW, IDLE))
                    or poll.withheld
                    or logs.stamp_files.is_offered(poll.session_id)
                ):
                    return
                agent = logs.read_roster().get(poll.session_id)
                led = agent is not None and agent.lead not in (None, USER)
                word = LED if led or Board(logs.stamp_files, WATCHED).has(poll.session_id) else ""
                word = AT_TURN if left and inbox.due(left, TURN) else word
                logs.stamp_files.stamp(poll.session_id, poll.judged, word=word)
        except (Busy, StorageFailed):
            pass

    def check_in(self, session_id: str) -> Roster:
        """Take a sign of life: beat the heart; register the unknown, thaw the frozen. Return the roster that has it
        then. Raises ``Refused`` for the dead."""
        roster = self.box.logs.read_roster()
        if session_id != USER and roster.state(session_id) != ALIVE:
            self._admit(session_id)
            roster = self.box.logs.read_roster()
        self.box.logs.beat(session_id, self.box.now())
        return roster

    def _note_gone_holders(self, agent: Agent) -> None:
        """Have the holders of this agent's roles whose client's process is gone give back the mail they never saw."""
        if gone := self.box.gone_holders(agent.roles) - {agent.session_id}:
            from . import absence  # a client was killed

            try:
                absence.note(self.box, gone, agent.session_id)
            except Busy:
                pass  # the next check, or the steward, does it

    def _admit(self, session_id: str) -> None:
        """Let in a session that is not alive, as far as the roster's rules allow it."""
        from .registry import Registry  # the rare case; a poll of a living session is spared the import

        self.registered = Registry(self.box).admit(session_id)


def load_offers(logs: Logs, session_id: str) -> list[Offer]:
    """Return the session's open offers: from the derived list, or from the log if its writer was killed."""
    path = logs.cache(OFFERS, session_id)
    body = load_derived(path)
    listed = codec.parse(body) if body is not None else None
    if isinstance(listed, dict):
        return [Offer(nonce, time, length, tuple(ids), by) for nonce, (time, length, ids, by) in listed.items()]
    return _offers_by_log(logs, session_id, ()) if system.size(path) else []


def save_offers(logs: Logs, session_id: str, offers: Iterable[Offer]) -> None:
    """Keep the list. The caller holds the session's delivery lock."""
    listed = {o.nonce: (o.time, o.length, o.messages, o.client) for o in offers}
    save_derived(logs.cache(OFFERS, session_id), codec.dumps(listed).encode())


def recall_offers(logs: Logs, session_id: str) -> list[Offer]:
    """Return the session's open offers from the reads log; only the list knows the transcript's length and client."""
    return _offers_by_log(logs, session_id, load_offers(logs, session_id))


def _offers_by_log(logs: Logs, session_id: str, known: Iterable[Offer]) -> list[Offer]:
    from ..store.projection import open_ends  # as a session starts, and where a delivery was lost

    reads = open_ends.read_offered(logs, session_id)
    standing = Reads(reads)
    listed = {offer.nonce: offer.replace(messages=()) for offer in known}
    found: dict[str, Offer] = {}
    for message_id in dict.fromkeys(r.message_id for r in reads if r.nonce):
        for read in standing.unseen(message_id):
            nonce = read.nonce or ""
            before = found.get(nonce) or listed.get(nonce) or Offer(nonce, read.timestamp, 0, ())
            found[nonce] = before.replace(messages=(*before.messages, message_id))
    return list(found.values())
