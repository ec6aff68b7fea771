"""``Mailbox``: the one facade. Every door translates its world into these calls.

Belongs here: all parts together, and acts on a message that is looked up by its id. The parts hold the order of steps
(look, decide in the core, append) and no rule of their own; nothing here ever prints. Questions that change nothing are
in ``mailbox.queries``, upkeep in ``upkeep``. A hook imports just the part it needs.
"""

from __future__ import annotations

from ..core import claims, codec, ids
from ..core.address import check_id, is_remote
from ..core.records import Message, Read, Record
from ..errors import Busy, NotFound, Refused, StorageFailed
from ..store.logs import weighed
from ..store.stamps import EVERYONE
from .delivery import Delivery
from .registry import Registry
from .sending import Posting, retryable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..control.requests import Control
    from ..core.compose import Draft
    from ..core.roster import Roster
    from .sending import Sent

MIN_MESSAGE_PREFIX = 4
"""Characters by which a message id may be shortened to: a few thousand messages rarely share four."""


class FoundMessage(Record):
    """A message looked up by id, with the reads that concern it; ``archived``: is it in the archive?"""

    message: Message
    reads: claims.Reads
    archived: bool


class Mailbox(Posting, Delivery, Registry):
    """A mailbox, opened; see ``OpenMailbox`` for the arguments."""

    @property
    def control(self) -> Control:
        """Requests, orders and reports on the same open mailbox."""
        from ..control.requests import Control  # most mail is none

        return Control.sharing(self)

    def reply(self, message_id: str, draft: Draft, *, strict: bool = False) -> Sent:
        """Answer a message in its thread, to its sender unless ``draft.to`` says otherwise.

        An answer also acks the message if that asks for it. Raises as ``find`` and ``send`` do."""
        parent = self.find(message_id).message
        if not is_remote(parent.sender):
            check_id(parent.sender, "sender")  # a foreign writer may have put an address there
        draft = draft.replace(thread=parent.id, to=draft.to or (parent.sender,))
        sent = self.send_all([draft], strict=strict, answering=parent.sender)[0]
        if parent.ack:
            try:
                self.ack(parent.id, draft.sender)
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
        roster = self.logs.read_roster()
        lineage = roster.lineage(session_id)
        if not found.reads.acked(found.message, lineage):
            _refuse_non_reader(found, session_id, roster)
            record = Read(message_id=found.message.id, session_id=session_id, timestamp=self.now(), event="ack")
            self.logs.reads.append([codec.read_line(record)], (), [self.prove(session_id)])
        else:
            self._sync_reads()
        return found.message

    def release(self, message_id: str, session_id: str) -> Message:
        """Give a message back, unread again; idempotent. Raises ``Refused`` for archived mail, and for non-readers."""
        found = self.find(message_id)
        _refuse_archived(found.message, found.archived)
        roster = self.logs.read_roster()
        lineage = roster.lineage(session_id)
        standing = found.reads.by(found.message.id, lineage)
        if not standing and not found.reads.released(found.message.id, lineage):
            _refuse_non_reader(found, session_id, roster)
        now = self.now()
        records = [
            Read(message_id=found.message.id, session_id=reader, timestamp=now, event="release") for reader in standing
        ]
        with self.logs.reads.held() as log:  # under which the steward moves mail: it may have come since we looked
            _refuse_archived(found.message, not self._is_live(found.message.id))
            log.append(map(codec.read_line, records), EVERYONE, [self.prove(session_id)] * len(records))
            log.sync()
        return found.message

    def _is_live(self, message_id: str) -> bool:
        lines = (line for _, line in self.logs.messages.lines() if message_id.encode() in line)
        return any(isinstance(m, Message) and m.id == message_id for m in map(codec.message, lines))

    def _sync_reads(self) -> None:
        """Sync the reads before an ack is confirmed again: its writer may have died before the sync."""
        with self.logs.reads.held() as log:
            log.sync()

    def find(self, message_id: str) -> FoundMessage:
        """Return the message of an id or of a unique prefix, live or archived; raises ``NotFound`` or ``Ambiguous``."""
        matches: dict[str, tuple[Message, bool]] = {}
        for message, archived in self._matching(message_id):
            matches.setdefault(message.id, (message, archived))
        exact = {i: match for i, match in matches.items() if i.casefold() == message_id.casefold()}
        found = ids.only_match(message_id, list(exact or matches), "messages")
        if found is None:
            raise NotFound(f"no message {message_id!r}", "`agent-mailbox history` shows ids")
        message, archived = matches[found]
        return FoundMessage(message=message, reads=claims.Reads(self.receipts(message)), archived=archived)

    def receipts(self, message: Message) -> list[Read]:
        """Return everything recorded about a message, oldest first."""
        live = list(self.logs.read_records())  # before the archive: a record moves from here to there, never back
        everything = [*self.archive.reads_of(message), *live]
        return list(dict.fromkeys(record for record in everything if record.message_id == message.id))

    def _matching(self, wanted: str) -> Iterator[tuple[Message, bool]]:
        """Yield the messages whose id is ``wanted`` or begins with it, in any case, live ones first."""
        wanted = wanted.casefold()
        prefixes = len(wanted) >= MIN_MESSAGE_PREFIX
        view = self.logs.messages.view()
        live = [*self.logs.messages.lines()]  # before the archive: a message moves from here to there, never back
        for position, line in (*live, *((None, line) for line in self.archive.lines())):
            message = codec.message(line)
            if isinstance(message, Message):
                found = message.id.casefold()
                if found == wanted or (prefixes and found.startswith(wanted)):
                    yield weighed(message, view, line, position), position is None


def _refuse_archived(message: Message, archived: bool) -> None:
    if archived:
        raise Refused(f"{message.id} is archived and cannot be given back", "send it again", code="archived")


def _refuse_non_reader(found: FoundMessage, session_id: str, roster: Roster) -> None:
    if claims.read_by(found.message, found.reads, roster.lineage(session_id), roster):
        return
    holder = claims.holder(found.message, found.reads, roster)
    raise Refused(
        f"{session_id} has not read {found.message.id}" + (f"; {holder} holds it" if holder else ""),
        "only a reader or holder may ack or release; `agent-mailbox check` reads what is yours",
        code="not_reader",
    )
