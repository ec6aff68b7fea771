"""``Mailbox``: the one facade. Every door translates its world into these calls.

Belongs here: all parts together, and acts on a message that is looked up by its id. The parts hold the order of steps
(look, decide in the core, append) and no rule of their own; nothing here ever prints. Questions that change nothing are
in ``mailbox.queries``, upkeep in ``upkeep``. A hook imports just the part it needs.
"""

from __future__ import annotations

import itertools

from ..core import address, codec, frame, message_reads
from ..core.address import check_id, is_remote
from ..core.line_forms import may_be_about, may_be_message, may_begin_with
from ..core.proofs import OURS
from ..core.records import Message, Read, Record
from ..core.text import typed
from ..errors import Busy, NotFound, Refused, StorageFailed
from ..store.files.lines import line_at
from ..store.log.logs import end_of, parse_reads
from ..store.log.proof_view import weigh_message
from ..store.log.stamps import EVERYONE
from ..store.projection.index_keys import NEWS
from .delivery import Delivery
from .open_mailbox import OpenMailbox
from .registry import Registry
from .sending import Sending, retryable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from ..core.compose import Draft
    from ..core.inbox import Item
    from ..core.records import Proof
    from ..core.roster import Agent, Roster
    from ..core.roster_changes import Decision, Registration
    from ..space.order.ordered_log import OrderedLog
    from ..store.log.log import HeldLog
    from ..store.projection.lookup import IndexLookup, Where
    from .delivery import Offering
    from .sending import Sent

MIN_MESSAGE_PREFIX = 4
"""Characters by which a message id may be shortened to: a few thousand messages rarely share four."""

PATIENCE = 1.0
"""Seconds that a look-up waits for another's question to the index, which takes milliseconds; a scan may take longer
than any wait."""


class FoundMessage(Record):
    """A message looked up by id, with all that is recorded about it, oldest first.

    ``position``: its place in the live log; None if it is archived, or ``queued``. ``where``: the places of what is
    recorded about it in the live reads log, as far as that log was looked through. ``queued``: it waits for an engine.
    """

    message: Message
    receipts: tuple[Read, ...]
    position: int | None
    where: Where = (0, 0, ())
    queued: bool = False

    @property
    def reads(self) -> message_reads.Reads:
        """Return what is recorded about it, folded."""
        return message_reads.Reads(self.receipts)

    @property
    def archived(self) -> bool:
        """Return whether it is in the archive."""
        return self.position is None and not self.queued


class Mailbox(OpenMailbox):
    """A mailbox, opened, with all that acts on it; see ``OpenMailbox`` for the arguments."""

    def send(self, draft: Draft, *, strict: bool = False) -> Sent:
        """Send one message; see ``Sending``."""
        return self.part(Sending).send(draft, strict=strict)

    def send_all(self, drafts: Sequence[Draft], *, strict: bool = False, sealed: bool = True) -> list[Sent]:
        """Send many messages, all or none; see ``Sending``."""
        return self.part(Sending).send_all(drafts, strict=strict, sealed=sealed)

    def take_in(self, messages: Sequence[Message], again: Collection[str] = (), *, proof: Proof | None = None) -> None:
        """Append mail from elsewhere; see ``Sending``."""
        self.part(Sending).take_in(messages, again, proof=proof)

    def peek(self, session_id: str, *, control: bool = True) -> list[Item]:
        """Return a session's unread mail, and write nothing; see ``Delivery``."""
        return self.part(Delivery).peek(session_id, control=control)

    def deliver(
        self,
        session_id: str,
        show: Callable[[list[Item]], Sequence[Item]],
        *,
        choose: Callable[[list[Item]], Sequence[Item]] | None = None,
        offering: Offering | None = None,
        only: Collection[str] | None = None,
    ) -> int:
        """Show a session its unread mail, then record what was shown as read; see ``Delivery``."""
        return self.part(Delivery).deliver(session_id, show, choose=choose, offering=offering, only=only)

    def check_in(self, session_id: str) -> Roster:
        """Take a session's sign of life; see ``Delivery``."""
        return self.part(Delivery).check_in(session_id)

    def register(self, request: Registration, actor: str, *, even_away: bool = False) -> tuple[Agent, Decision]:
        """Register or update a session; see ``Registry``."""
        return self.part(Registry).register(request, actor, even_away=even_away)

    def end(self, session_id: str, event: str, actor: str, reason: str | None = None) -> Agent:
        """Freeze, thaw or retire an agent; see ``Registry``."""
        return self.part(Registry).end(session_id, event, actor, reason)

    def reply(self, message_id: str, draft: Draft, *, strict: bool = False, everyone: bool = False) -> Sent:
        """Answer a message in its thread: ``draft.to``, else its sender, or ``everyone`` it was for and its sender.

        An answer to one's own message goes to everyone. An answer also acks the message if that asks for it. Raises as
        ``find`` and ``send`` do, and ``Refused`` if nobody is left to answer."""
        found = self.find(message_id)
        parent = found.message
        if not is_remote(parent.sender):
            check_id(parent.sender, "sender")  # a foreign writer may have put an address there
        if parent.sender in OURS and not (draft.to or everyone):
            from ..core import replies  # rare

            raise replies.program_error(parent.sender)
        to, dead = list(draft.to) or [parent.sender], list[str]()
        if everyone or (not draft.to and parent.sender in self.logs.read_roster().lineage(draft.sender)):
            from ..core import replies  # most answers go to the sender

            before = self.part(Sending).find_sent(draft.id) if draft.id is not None else None
            if before is not None and before.thread == parent.id:  # some of these may be dead since
                to = list(before.recipients)
            else:
                to, dead = replies.recipients(parent, draft.sender, self.logs.read_roster())
        draft = draft.replace(thread=parent.id, to=tuple(to))
        sent = self.part(Sending).send_all([draft], strict=strict, answering=parent.sender)[0]
        if dead:
            sent = sent.replace(warnings=(*sent.warnings, f"left out, for they are dead: {', '.join(dead)}"))
        if parent.ack:
            try:
                self._ack(found, draft.sender)
            except Refused:
                pass  # it never read the message: a reply, but nothing it owed
            except Busy as error:  # the reply is sent, and settles by itself what was owed
                sent = sent.replace(warnings=(*sent.warnings, f"sent, but its ack was not recorded: {error.what}"))
            except StorageFailed as error:
                raise retryable(error, [sent.message.id]) from None
        return sent

    def ack(self, message_id: str, session_id: str) -> Message:
        """Record that the session dealt with a message; idempotent. Raises ``Refused`` if it has not read it."""
        found = self.find(message_id)
        self._ack(found, session_id)
        return found.message

    def _ack(self, found: FoundMessage, session_id: str) -> None:
        roster = self.logs.read_roster()
        lineage = roster.lineage(session_id)
        if not found.reads.acked(found.message, lineage):
            record = Read(message_id=found.message.id, session_id=session_id, timestamp=self.now(), event="ack")
            with self.logs.reads.held() as log:
                if not found.reads.by(found.message.id, lineage):  # under the lock: another may have taken a claim over
                    _refuse_non_reader(self.find(found.message.id), session_id, roster)
                log.append([codec.spell_read(record)], (), [self.prove(session_id)])
        else:
            with self.logs.reads.held() as log:  # its writer may have died before its sync
                log.sync(_about(log, found))

    def release(self, message_id: str, session_id: str) -> Message:
        """Give a message back, unread again; idempotent. Raises ``Refused`` for archived mail, and for non-readers."""
        self.catch_up()
        found = self.find(message_id)
        _refuse_archived(found.message, found.archived)
        roster = self.logs.read_roster()
        lineage = roster.lineage(session_id)
        standing = found.reads.by(found.message.id, lineage) or _claimers(found, roster, lineage)
        if not standing and not found.reads.released(found.message.id, lineage):
            _refuse_non_reader(found, session_id, roster)
        now = self.now()
        records = [Read(found.message.id, reader, now, "release") for reader in standing]
        self.giving_back([session_id]).decide(self._release, session_id, found, records)
        if self.replica is not None:  # another machine's steward may have been first
            _refuse_archived(found.message, archived=not self._is_live(found))
        return found.message

    def _release(self, log: HeldLog | OrderedLog, me: str, found: FoundMessage, records: Sequence[Read]) -> None:
        _refuse_archived(found.message, not self._is_live(found))  # the steward may have moved it since we looked
        log.append(map(codec.spell_read, records), EVERYONE, [self.prove(me)] * len(records))
        log.sync(_about(log, found))

    def _is_live(self, found: FoundMessage) -> bool:
        """Return whether the message is in the live log: first where it was found, else anywhere."""
        wanted = {found.message.id.encode()}
        place = itertools.islice(self.logs.messages.lines(found.position or 0), 1)
        lines = (line for _, line in itertools.chain(place, self.logs.messages.lines()) if may_be_message(line, wanted))
        return any(isinstance(m, Message) and m.id == found.message.id for m in map(codec.message, lines))

    def find(self, message_id: str) -> FoundMessage:
        """Return the message of an id or of a unique prefix, live or archived; raises ``NotFound`` or ``Ambiguous``."""
        if self.is_large():
            from ..store.projection.lookup import ask_index  # SQLite, which a small mailbox does not need

            found = ask_index(
                self.logs, self.archive, lambda view: _indexed(message_id, view), at_once=True, patience=PATIENCE
            )
            if found is not None:
                return found
        return self._scanned(message_id)

    def is_large(self) -> bool:
        """Return whether a message, live or archived, is found faster in the index than by a scan."""
        archived = (self.archive.log(month).path for month in self.archive.months())
        return sum(size for _, size in map(end_of, (self.logs.messages.path, *archived))) > NEWS

    def _scanned(self, message_id: str) -> FoundMessage:
        matches: dict[str, tuple[Message, int | None]] = {}
        for message, position in self._matching(message_id):
            matches.setdefault(message.id, (message, position))
        waits = {one.id: one for one in self.queued() if one.id not in matches and _is_meant(one, message_id)}
        every = matches | {one: (message, None) for one, message in waits.items()}
        found = address.only_match(message_id, address.meant_ids(message_id, every), "messages")
        if found is None:
            raise NotFound(f"no message {message_id!r}", _hint_for(message_id))
        message, position = every[found]
        return FoundMessage(message, tuple(self.receipts(message)), position, queued=found in waits)

    def receipts(self, message: Message) -> list[Read]:
        """Return everything recorded about a message, oldest first."""
        about = {message.id.encode()}
        live = [at for at in self.logs.reads.lines() if may_be_about(at[1], about)]
        # The live ones are read before the archive: a record moves from here to there, never back.
        records = [*self.archive.reads_of(message), *parse_reads(live, self.logs.reads.view())]
        return list(dict.fromkeys(record for record in records if record.message_id == message.id))

    def _matching(self, word: str) -> Iterator[tuple[Message, int | None]]:
        """Yield the messages whose id is the word or begins with it, in any case, live ones first.

        Each comes with its position in the live log, or None.
        """
        begins = word.casefold().encode("utf-8", "replace")
        view = self.logs.messages.view()
        # The live ones are read before the archive: a message moves from here to there, never back.
        live = [at for at in self.logs.messages.lines() if may_begin_with(at[1], begins)]
        archived = ((None, line) for line in self.archive.lines() if may_begin_with(line, begins))
        for position, line in itertools.chain[tuple[int | None, bytes]](live, archived):
            message = codec.message(line)
            if isinstance(message, Message) and _is_meant(message, word):
                yield weigh_message(message, view, line, position), position


def _is_meant(message: Message, word: str) -> bool:
    """Return whether a word is a message's id, or a beginning of it that is long enough."""
    found, wanted = message.id.casefold(), word.casefold()
    return found == wanted or (_may_be_prefix(word) and found.startswith(wanted))


def _about(log: HeldLog | OrderedLog, found: FoundMessage) -> list[tuple[int, bytes]]:
    """Return the lines of the reads log that may be about a message: those that were found, and those written since."""
    about = {found.message.id.encode()}
    inode, end, positions = found.where
    known = [(position, line_at(log.fd, position)) for position in positions]
    now = end_of(log.fd)
    if now[0] != inode or now[1] < end or not all(may_be_about(line, about) for _, line in known):
        known, end = [], 0  # the steward replaced the log meanwhile
    return [*known, *(at for at in log.lines(end) if may_be_about(at[1], about))]


def _hint_for(word: str) -> str:
    """Return how to find what a word means that is the id of no message: a control message shows other ids, too."""
    kind = word.partition("-")[0]
    if kind == "task":
        return f"`agent-mailbox task show {typed(word)}` shows a task"
    if kind in ("lease", "watch"):
        return f"`agent-mailbox {kind} list` lists them"
    least = f"write at least {MIN_MESSAGE_PREFIX} characters of an id, such as {address.EXAMPLE_ID[:8]}; "
    return f"{'' if _may_be_prefix(word) else least}`agent-mailbox history --all` lists ids"


def _may_be_prefix(word: str) -> bool:
    return len(word.casefold()) >= MIN_MESSAGE_PREFIX


def _indexed(word: str, index: IndexLookup) -> FoundMessage | None:
    """Return the one message that the word means; None for no message, and for several, which a scan tells apart."""
    matches = index.ids(word, prefix=_may_be_prefix(word))
    found = index.found(*matches) if len(matches) == 1 else None
    if found is None:
        return None
    message, receipts, position, where = found
    return FoundMessage(message=message, receipts=receipts, position=position, where=where)


def _refuse_archived(message: Message, archived: bool) -> None:
    if archived:
        raise Refused(
            f"{frame.short(message.id)} is archived and cannot be given back", "send it again", code="archived"
        )


def _claimers(found: FoundMessage, roster: Roster, among: Sequence[str] | None = None) -> list[str]:
    """Return the session that claimed the message and has not read it, if it is one of these (None: any)."""
    claimer = message_reads.claimer(found.message, found.reads, roster)
    return [claimer] if claimer is not None and (among is None or claimer in among) else []


def _refuse_non_reader(found: FoundMessage, session_id: str, roster: Roster) -> None:
    lineage = roster.lineage(session_id)
    if message_reads.read_by(found.message, found.reads, lineage, roster) or _claimers(found, roster, lineage):
        return
    holder = message_reads.holder(found.message, found.reads, roster) or "".join(_claimers(found, roster))
    gave_back = found.reads.released(found.message.id, lineage)
    raise Refused(
        f"{session_id} {'gave back' if gave_back else 'has not read'} {frame.short(found.message.id)}"
        + (f"; {holder} holds it" if holder else ""),
        "only a reader or holder may ack or release; `agent-mailbox check` reads what is yours",
        code="not_reader",
    )
