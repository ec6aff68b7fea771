"""``Mailbox``: the one facade. Every door translates its world into these calls.

Belongs here: the order of things (look, decide in the core, append), with clock and ids injected. It holds no rule of
its own, and never prints. What is only ever looked up stands in ``library``; upkeep in ``steward`` and ``doctor``.
"""

from __future__ import annotations

import os
import time

from . import config as configuration
from .core import claims, codec, compose, enrol, inbox
from .core.address import check_id
from .core.enrol import Decision
from .core.records import USER, Message, Read, Record
from .errors import Ambiguous, Busy, MailboxError, NotFound, Refused, StorageFailed
from .store import paths
from .store.archive import Archive
from .store.logs import Logs
from .store.poll import Poll

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeVar

    from .config import Config
    from .core.compose import Draft, Resolved
    from .core.inbox import Item, State
    from .core.roster import Agent, Roster
    from .store.log import HeldLog

    T = TypeVar("T")
    R = TypeVar("R")

MIN_MESSAGE_PREFIX = 4
"""Characters of a message id that may stand for it: what a few thousand messages rarely share."""


def wall_clock() -> int:
    """Milliseconds since 1970 UTC."""
    return time.time_ns() // 1_000_000


def random_id() -> str:
    """A UUID of version 4 (RFC 9562), without the 8 ms that importing ``uuid`` costs."""
    bits = bytearray(os.urandom(16))
    bits[6] = bits[6] & 0x0F | 0x40
    bits[8] = bits[8] & 0x3F | 0x80
    digits = bits.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


class Sent(Record):
    """A message that is durably in the log, whom it reaches, and what its sender should know."""

    message: Message
    delivery: inbox.Delivery
    warnings: tuple[str, ...]


class Found(Record):
    """A message looked up by id, with the reads that concern it; ``archived`` tells where it stands."""

    message: Message
    reads: claims.Reads
    archived: bool


class Mailbox:
    """A mailbox directory, opened.

    ``clock`` gives ms since 1970, ``new_id`` message ids, ``wait`` the seconds to wait for a lock. Raises ``NoMailbox``
    where there is none, ``Refused`` if it is another user's.
    """

    def __init__(
        self,
        directory: str,
        *,
        clock: Callable[[], int] = wall_clock,
        new_id: Callable[[], str] = random_id,
        wait: float | None = None,
    ) -> None:
        self.directory = paths.check(directory)
        self._config: Config | None = None
        self.logs = Logs(self.directory) if wait is None else Logs(self.directory, wait)
        self.archive = Archive(self.logs.path(paths.ARCHIVE))
        self.now = clock
        self._new_id = new_id

    @property
    def config(self) -> Config:
        """The mailbox's configuration, read once; raises ``BadData`` if it is wrong."""
        if self._config is None:
            self._config = configuration.load(self.directory)
        return self._config

    def state(self) -> State:
        """The live logs, folded."""
        return self.logs.state(self.config.ttls)

    # -- sending ------------------------------------------------------------------------------------------------------

    def send(self, draft: Draft, *, strict: bool = False) -> Sent:
        """Append one message durably; the same id with the same mail again is the same message.

        Raises ``Malformed`` and ``BadData`` for what can never be sent, ``Refused`` for a dead recipient or an id that
        belongs to other mail, ``NotFound`` under ``strict`` for a word nobody answers to, ``StorageFailed``.
        """
        return self.send_all([draft], strict=strict)[0]

    def send_all(self, drafts: Sequence[Draft], *, strict: bool = False, answering: str | None = None) -> list[Sent]:
        """Append many messages as one durable batch, all or none; raises as ``send`` does."""
        roster = self.logs.read_roster()
        prepared = _each(drafts, lambda draft: self._prepare(draft, roster, strict, answering))
        given = {message.id for (message, _, _), draft in zip(prepared, drafts, strict=True) if draft.id is not None}
        if len({message.id for message, _, _ in prepared}) < len(prepared):
            raise Refused("two messages of the batch have the same id", "nothing was sent", code="id_conflict")
        try:
            known = self._append(prepared, given)
        except StorageFailed as error:
            raise _retryable(error, [message.id for message, _, _ in prepared]) from None
        return [
            Sent(message=known.get(message.id, message), delivery=inbox.delivery(message, roster), warnings=warnings)
            for message, _, warnings in prepared
        ]

    def _append(
        self, prepared: Sequence[tuple[Message, Resolved, tuple[str, ...]]], given: set[str]
    ) -> dict[str, Message]:
        """Append those whose id is new; returns the ones that were there already, which are synced again."""
        with self.logs.messages.held() as log:
            known = self._known(given, log) if given else {}
            _each(prepared, lambda made: _refuse_conflict(made[0], made[1], known.get(made[0].id)))
            new = [message for message, _, _ in prepared if message.id not in known]
            log.append([codec.message_line(message) for message in new], self._concerned(new))
            if known:
                log.sync()
        return known

    def _concerned(self, messages: Sequence[Message]) -> set[str] | None:
        """Whose quiet stamps the messages end; asked under the messages' lock, so that no stamp is newer than this."""
        roster = self.logs.read_roster()
        found: set[str] = set()
        for message in messages:
            concerned = inbox.concerned(message, roster)
            if concerned is None:
                return None
            found |= concerned
        return found

    def _prepare(
        self, draft: Draft, roster: Roster, strict: bool, answering: str | None
    ) -> tuple[Message, Resolved, tuple[str, ...]]:
        compose.checked(draft, self.config.max_content)
        message_id = self._new_id() if draft.id is None else compose.check_id_form(draft.id)
        resolved = compose.resolve(draft.to, roster, self.config.namespaces, strict=strict, answering=answering)
        message = compose.message(draft, resolved.recipients, message_id, self.now())
        compose.check_record(message)
        warnings = (*resolved.warnings, *compose.warnings_for(draft.content, self.config.long_words))
        return message, resolved, warnings

    def _known(self, ids: set[str], log: HeldLog) -> dict[str, Message]:
        """Those of the ids that are taken, live or archived."""
        known: dict[str, Message] = {}
        wanted = [i.encode() for i in ids]
        live = (line for _, line in log.lines() if any(i in line for i in wanted))
        for line in (*live, *self.archive.mentioning(ids)):
            message = codec.message(line)
            if isinstance(message, Message) and message.id in ids:
                known.setdefault(message.id, message)
        return known

    def reply(self, message_id: str, draft: Draft, *, strict: bool = False) -> Sent:
        """Answer a message: to its sender unless ``draft.to`` says otherwise, in its thread; an ack where one was
        asked of the replier. Raises as ``find`` and ``send`` do."""
        parent = self.find(message_id).message
        check_id(parent.sender, "sender")  # a foreign writer may have put an address there
        draft = draft.replace(thread=parent.id, to=draft.to or (parent.sender,))
        sent = self.send_all([draft], strict=strict, answering=parent.sender)[0]
        if parent.ack:
            try:
                self.ack(parent.id, draft.sender)
            except Refused:
                pass  # it never read the message: a reply, but nothing it owed
        return sent

    # -- checking -----------------------------------------------------------------------------------------------------

    def peek(self, session_id: str) -> list[Item]:
        """The session's unread mail; writes nothing at all. ``Refused`` to the dead."""
        roster = self.logs.read_roster()
        if roster.state(session_id) == "dead":
            enrol.checked_in(session_id, roster, self.now())
        return self._unread(session_id, save=False)

    def deliver(
        self, session_id: str, show: Callable[[list[Item]], Sequence[Item]], *, role_wait: float | None = None
    ) -> int:
        """Show the session its unread mail, then record as read what was shown; returns how many that was.

        ``show`` gets all unread mail in order, writes out *and flushes* what it has room for, and returns exactly
        that; if it raises, nothing is recorded. Choosing, showing and recording happen under the session's delivery
        lock, and under the shared role lock if role mail is among it. With ``role_wait`` (seconds; a hook's way) role
        mail is left for next time where that lock is not to be had; without it, ``Busy``. ``Refused`` to the dead.
        """
        self.check_in(session_id)
        with self.logs.delivery(session_id):
            items = self._unread(session_id)
            if any(item.claims for item in items):
                try:
                    with self.logs.role_delivery(role_wait):
                        return self._show(session_id, self._unread(session_id), show)
                except Busy:
                    if role_wait is None:
                        raise
                    items = [item for item in items if not item.claims]
            return self._show(session_id, items, show)

    def _unread(self, session_id: str, *, save: bool = True, adopt: bool = True) -> list[Item]:
        poll = Poll(self.logs, session_id, self.config.ttls, self.config.stamp)
        return poll.unread(self.now(), save=save, adopt=adopt)

    def _settle(self, session_id: str) -> None:
        """Leave a quiet stamp for the session if nothing is left to read (see ``store.trail`` why that is sound)."""
        logs = self.logs
        with logs.messages.held(), logs.reads.held(), logs.roster.held():
            if not self._unread(session_id, adopt=False):
                logs.trail.stamp(session_id)

    def _show(self, session_id: str, items: list[Item], show: Callable[[list[Item]], Sequence[Item]]) -> int:
        if items:
            # What cannot be recorded must not be shown: a log that cannot be written to is found out first.
            with self.logs.reads.held():
                pass
        shown = show(items)
        now = self.now()
        self.logs.reads.append(
            [
                codec.read_line(Read(message_id=item.message.id, session_id=session_id, timestamp=now, via=item.via))
                for item in shown
            ]
        )
        if len(shown) == len(items) and not self.logs.trail.is_quiet(session_id):
            self._settle(session_id)
        return len(shown)

    def check_in(self, session_id: str) -> None:
        """A sign of life: beats the heart, registers the unknown, thaws the frozen; ``Refused`` to the dead."""
        if session_id != USER and self.logs.read_roster().state(session_id) != "alive":
            self.change_roster(lambda roster: enrol.checked_in(session_id, roster, self.now()))
        self.logs.beat(session_id, self.now())

    def ack(self, message_id: str, session_id: str) -> Message:
        """Deal with a message the session has read. Again is no error; ``Refused`` to who did not read it."""
        found = self.find(message_id)
        roster = self.logs.read_roster()
        lineage = roster.lineage(session_id)
        if not found.reads.acked(found.message.id, lineage):
            _refuse_non_reader(found, session_id, roster)
            self._record_event(found.message, session_id, "ack")
        return found.message

    def release(self, message_id: str, session_id: str) -> Message:
        """Give a message back, unread again. Again is no error; ``Refused`` for archived mail and to non-readers."""
        found = self.find(message_id)
        if found.archived:
            raise Refused(f"{found.message.id} is archived and cannot be given back", "send it anew", code="archived")
        roster = self.logs.read_roster()
        lineage = roster.lineage(session_id)
        standing = found.reads.by(found.message.id, lineage)
        if not standing and not found.reads.released(found.message.id, lineage):
            _refuse_non_reader(found, session_id, roster)
        for reader in standing:
            self._record_event(found.message, reader, "release")
        return found.message

    def _record_event(self, message: Message, session_id: str, event: str) -> None:
        record = Read(message_id=message.id, session_id=session_id, timestamp=self.now(), event=event)
        self.logs.reads.append([codec.read_line(record)], None if event == "release" else ())

    def find(self, message_id: str) -> Found:
        """The message of an id or a unique prefix of one, live or archived; raises ``NotFound`` or ``Ambiguous``."""
        matches: dict[str, tuple[Message, bool]] = {}
        for message, archived in self._matching(message_id):
            matches.setdefault(message.id, (message, archived))
        exact = {i: match for i, match in matches.items() if i.casefold() == message_id.casefold()}
        matches = exact or matches
        if not matches:
            raise NotFound(f"no message {message_id!r}", "`agent-mailbox history` shows ids")
        if len(matches) > 1:
            shown = ", ".join(list(matches)[:5]) + (", …" if len(matches) > 5 else "")
            raise Ambiguous(f"{message_id!r} could be {len(matches)} messages", f"write more of the id: {shown}")
        ((message, archived),) = matches.values()
        return Found(message=message, reads=claims.Reads(self.receipts(message)), archived=archived)

    def receipts(self, message: Message) -> list[Read]:
        """Everything recorded about a message, oldest first."""
        live = list(self.logs.read_records())  # before the archive: a record moves from here to there, never back
        everything = [*self.archive.reads_of(message), *live]
        return list(dict.fromkeys(record for record in everything if record.message_id == message.id))

    def _matching(self, wanted: str) -> Iterator[tuple[Message, bool]]:
        """Messages whose id is, or begins with, what is wanted (case does not count), live ones first."""
        wanted = wanted.casefold()
        prefixes = len(wanted) >= MIN_MESSAGE_PREFIX
        live = ((line, False) for _, line in self.logs.messages.lines())
        for line, archived in (*live, *((line, True) for line in self.archive.lines())):
            message = codec.message(line)
            if isinstance(message, Message):
                found = message.id.casefold()
                if found == wanted or (prefixes and found.startswith(wanted)):
                    yield message, archived

    # -- the roster ---------------------------------------------------------------------------------------------------

    def change_roster(self, decide: Callable[[Roster], Decision]) -> Decision:
        """Carry out a decision about the roster, taken and appended under its lock; raises what ``decide`` raises.

        Whoever's death is recorded gives back, at once, the role mail that waits for its ack.
        """
        with self.logs.roster.held() as log:
            roster = self.logs.read_roster()
            decision = decide(roster)
            changed = {event.session_id for event in decision.events}
            log.append(
                [codec.roster_line(event) for event in decision.events],
                changed.union(*(roster.heirs(session_id) for session_id in changed)),
            )
        for event in decision.events:
            if event.event == "retire":
                self.give_back(event.session_id)
        return decision

    def register(self, request: enrol.Request, actor: str) -> tuple[Agent, Decision]:
        """Register or update a session as ``actor`` asks; returns the agent and what was decided."""
        decision = self.change_roster(
            lambda roster: enrol.enrolled(request, roster, actor, self.now(), self.config.namespaces)
        )
        if request.event == "register" or any(e.session_id == request.session_id for e in decision.events):
            self.logs.beat(request.session_id, self.now())
        agent = self.logs.read_roster().get(request.session_id)
        if agent is None:
            raise NotFound(f"{request.session_id} vanished from the roster", "`agent-mailbox doctor` looks closer")
        return agent, decision

    def end(self, session_id: str, event: str, actor: str, reason: str | None = None) -> Agent:
        """Freeze, thaw or retire an agent (by id, name or prefix); raises ``NotFound`` or ``Refused``."""
        self.change_roster(lambda roster: enrol.ended(session_id, event, roster, actor, self.now(), reason))
        return self.logs.read_roster().find(session_id)

    def give_back(self, session_id: str) -> None:
        """Append releases for what the dead agent still owed, decided under the reads' lock, so that no ack is lost."""
        with self.logs.reads.held() as log:
            owed = inbox.owed_on_death(session_id, self.state())
            now = self.now()
            log.append(
                [
                    codec.read_line(Read(message_id=i, session_id=session_id, timestamp=now, event="release"))
                    for i in owed
                ],
                None,
            )


def _each(items: Sequence[T], do: Callable[[T], R]) -> list[R]:
    """``do`` for every item; an error says which one it was about."""
    results = []
    for place, item in enumerate(items):
        try:
            results.append(do(item))
        except MailboxError as error:
            error.at = place
            raise
    return results


def _retryable(error: StorageFailed, ids: Sequence[str]) -> StorageFailed:
    """The error of a send that may or may not have happened, with the id under which to repeat it."""
    same = (
        f"repeat it with --id {ids[0]}" if len(ids) == 1 else f'repeat it with an "id" in each line: {", ".join(ids)}'
    )
    return StorageFailed(
        error.what, f"{error.hint}; {same}".removeprefix("; ") + ": nothing is doubled", code=error.code
    )


def _refuse_conflict(message: Message, resolved: Resolved, known: Message | None) -> None:
    """A new message must not go to the dead; a known id must be the same mail (to whom, even if they died since)."""
    if known is None:
        compose.refuse_dead(resolved)
    elif not compose.same_mail(message, known, resolved):
        raise Refused(f"id {message.id} belongs to another message", "leave --id out for a new one", code="id_conflict")


def _refuse_non_reader(found: Found, session_id: str, roster: Roster) -> None:
    if claims.read_by(found.message, found.reads, roster.lineage(session_id)):
        return
    holder = claims.holder(found.message, found.reads, roster)
    raise Refused(
        f"{session_id} has not read {found.message.id}" + (f"; {holder} holds it" if holder else ""),
        "only a reader or holder may ack or release; `agent-mailbox check` reads what is yours",
        code="not_reader",
    )
