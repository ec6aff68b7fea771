"""Sending mail: compose, append durably, say whom it reaches.

Belongs here: the order of those steps. The rules of who may send what are ``core.compose``.
"""

from __future__ import annotations

from ..core import codec, compose, recipients
from ..core.address import is_remote
from ..core.ids import uuid_of
from ..core.line_forms import may_be_message
from ..core.proofs import OURS, STEWARD
from ..core.records import Message, Record
from ..core.roster import ALIVE, DEAD
from ..errors import MailboxError, Refused, StorageFailed, Unavailable
from ..store.files import paths, system
from ..store.log.logs import weighed
from .opened import OpenMailbox

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import TypeVar

    from ..core.compose import Draft, Resolved
    from ..core.records import Proof
    from ..core.roster import Roster
    from ..space.order.ordered_log import OrderedLog
    from ..store.archive.archive import Archive
    from ..store.log.log import HeldLog

    T = TypeVar("T")
    R = TypeVar("R")
    E = TypeVar("E", bound=MailboxError)


def random_id() -> str:
    """Return a random UUID (version 4)."""
    return uuid_of(system.urandom(16).hex(), "4")


class Sent(Record):
    """A message that is durably in the log, its reach, and warnings for its sender.

    ``queued``: it waits here for the engine that several machines share."""

    message: Message
    delivery: recipients.Reach
    warnings: tuple[str, ...]
    queued: bool = False


class _Prepared(Record):
    """A message that may be sent: its line, the meaning of its addresses, warnings for its sender."""

    message: Message
    line: bytes
    resolved: Resolved
    warnings: tuple[str, ...]


class Posting(OpenMailbox):
    """The part of the facade that sends. ``at_once``: rather fail than let mail wait for an engine."""

    at_once = False

    @property
    def archive(self) -> Archive:
        """Return the archive, to which the steward moves mail."""
        from ..store.archive.archive import Archive  # asked only for an id that is given

        return Archive(self.logs.path(paths.ARCHIVE), self.logs.custody)

    def send(self, draft: Draft, *, strict: bool = False) -> Sent:
        """Append one message durably; idempotent for the same id with the same mail.

        Raises ``Malformed`` and ``BadData`` for mail that can never be sent, and ``StorageFailed``. Raises ``Refused``
        for a dead recipient or another message's id, and under ``strict`` ``NotFound`` for a name that nobody has.
        """
        return self.send_all([draft], strict=strict)[0]

    def send_all(
        self,
        drafts: Sequence[Draft],
        *,
        strict: bool = False,
        answering: str | None = None,
        sealed: bool = True,
        by_id: bool = True,
    ) -> list[Sent]:
        """Append many messages as one durable batch, all or none; raises as ``send`` does. Without ``sealed`` the mail
        proves nothing of its writer. ``by_id``: the caller's command takes ``--id``, so an error names it."""
        log = self.in_order(self.logs.messages)
        log.catch_up()
        roster = self.logs.read_roster()
        prepared = _each(drafts, lambda draft: self._prepare(draft, roster, strict, answering))
        given = {made.message.id for made, draft in zip(prepared, drafts, strict=True) if draft.id is not None}
        ids = [made.message.id for made in prepared]
        _refuse_twins(ids)
        orders = any(draft.type == "control" for draft in drafts)
        known: dict[str, Message] | None
        try:
            were_read = self._are_read(given)

            def append(held: HeldLog | OrderedLog) -> dict[str, Message]:
                return self._append(held, prepared, given, sealed, were_read)

            if self.at_once or orders:
                known = log.decide(append)
            else:
                known = log.decide_or_wait(append, lambda: self._waiting(prepared, sealed))
        except (StorageFailed, Unavailable) as error:
            raise (retryable(error, ids) if by_id else error) from None
        if known is None:
            return [Sent(made.message, self.delivery(made.message, roster), made.warnings, True) for made in prepared]
        if orders:
            from ..control_plane import effects  # what most mail is spared

            effects.sent(self, [made.message for made in prepared if made.message.type == "control"], self.send)
        sent = [
            Sent(
                message=known.get(made.message.id) or self._weighed(made.message, sealed),
                delivery=self.delivery(made.message, roster),
                warnings=made.warnings,
            )
            for made in prepared
        ]
        if gone := {who for one in sent for who in one.delivery.gone if roster.state(who) == ALIVE}:
            self._note_gone(gone, prepared[0].message.sender)
        return sent

    def _weighed(self, message: Message, sealed: bool) -> Message:
        """Return a message that was just written with what is proven of its writer, if programs are told."""
        record = self.logs.custody
        if record is None or not (sealed and record.weighs_mail and record.key) or record.broken() is not None:
            return message
        return message.replace(written_by=self.prove(message.sender))

    def _waiting(self, prepared: Sequence[_Prepared], sealed: bool) -> tuple[list[bytes], list[Proof | None]]:
        """Return the lines that wait for an engine, with what is proven of the writer of each."""
        for made in prepared:
            compose.refuse_dead(made.resolved)
            compose.check_expiry(made.message)
        proofs = [self.prove(made.message.sender) if sealed else None for made in prepared]
        return [made.line.rstrip(b"\n") for made in prepared], proofs

    def _note_gone(self, sessions: set[str], sender: str) -> None:
        """Record, as far as the sender can prove anything, that these sessions are gone."""
        from . import absence  # which most mail does not meet

        try:
            absence.note(self, sessions, sender)
        except MailboxError:
            pass  # the mail is sent; the steward records it

    def delivery(self, message: Message, roster: Roster) -> recipients.Reach:
        """Return whom a message reaches at this moment. It waits for a teammate whose team nobody bridges."""
        found = recipients.delivery(message, roster)
        reached = map(roster.get, (*found.agents, *found.waiting_for))
        gone, running = self.judge_clients(agent for agent in reached if agent is not None)
        if gone:
            found = recipients.delivery(message, roster, gone)
        if running:
            found = found.replace(running=tuple(running))
        mates = recipients.mates(found.agents, roster)
        if not mates:
            return found
        from ..store.locks import team_lock  # what most mail is spared

        idle = [mate for mate in mates if not team_lock.runs(self.logs, f"team:{mate.partition('@')[2]}")]
        agents = tuple(agent for agent in found.agents if agent not in idle)
        return found.replace(agents=agents, waiting_for=(*found.waiting_for, *idle))

    def take_in(self, messages: Sequence[Message], again: Collection[str] = ()) -> None:
        """Append mail from elsewhere, whose ids its door knows to be new; durable when this returns.

        ``again``: the ids that may be in the log already; such mail is not appended a second time. Raises ``BadData``
        for mail that cannot be stored, ``Busy``, ``StorageFailed``.
        """
        lines = {message.id: compose.stored_line(message) for message in messages}
        were_read = self._are_read(lines)
        with self.logs.messages.held() as log:
            known, found = self._known({*again}, log) if again else ({}, [])
            new = [message for message in messages if message.id not in known]
            if new:
                if were_read:
                    log.begin_again()
                log.append([lines[message.id] for message in new], self._concerned(new))  # from elsewhere: no seal
            if len(new) < len(messages):
                log.sync(found)

    def _are_read(self, ids: Collection[str]) -> bool:
        """Return whether a session may have read one of the given ids. If the log has no such line, it was lost.

        Asked ahead of the lock: whoever writes such a line meanwhile makes the id a known one."""
        if not ids:
            return False
        from ..store.polling import foreign_lines  # asked only for an id that is given

        return foreign_lines.are_read(self.logs, ids)

    def _append(
        self,
        log: HeldLog | OrderedLog,
        prepared: Sequence[_Prepared],
        given: set[str],
        sealed: bool,
        were_read: bool,
    ) -> dict[str, Message]:
        """Append the messages whose id is new; return those that were there already, synced again."""
        known, found = self._known(given, log) if given else ({}, [])
        _each(prepared, lambda made: _refuse_conflict(made.message, made.resolved, known.get(made.message.id)))
        new = [made for made in prepared if made.message.id not in known]
        if self.config.max_per_minute is not None:
            # A decision that came too late because of a limit would be worse than any flood.
            from ..store.files import rate_limit  # only for a mailbox with a limit

            chat = [made.message.sender for made in new if made.message.type != "control"]
            rate_limit.check(log.fd, chat, self.config.max_per_minute, self.now())
        if any(made.message.attachments for made in new):
            from ..store.attachments import attachment_files  # rare in mail

            for made in new:
                attachment_files.check(self.directory, made.message)
        proofs = [self.prove(made.message.sender) if sealed else None for made in new]
        if were_read and new:
            log.begin_again()
        log.append([made.line for made in new], self._concerned([made.message for made in new]), proofs)
        if known:
            log.sync(found)
        return known

    def _concerned(self, messages: Sequence[Message]) -> set[str] | None:
        """Return the sessions whose quiet stamps the messages end; None: everyone's.

        The caller holds the messages' lock, so that no stamp is newer."""
        return recipients.concerned(messages, self.logs.read_roster())

    def _prepare(self, draft: Draft, roster: Roster, strict: bool, answering: str | None) -> _Prepared:
        is_ours = draft.sender in OURS and self.prove(draft.sender) == STEWARD
        config = self.config
        compose.checked(draft, config.max_content, is_ours=is_ours)
        told = compose.unanswerable(draft.sender) if _is_dead(draft.sender, roster) else ()
        if draft.type == "control":
            from ..core.control import validation  # what most mail is spared

            told += validation.check(draft.content)
        message_id = (self._new_id or random_id)() if draft.id is None else compose.check_id_form(draft.id)
        resolved = compose.resolve(draft.to, roster, config.namespaces, strict=strict, answering=answering)
        message = compose.message(draft, resolved.recipients, message_id, self.now(), resolved.bare)
        if any(map(is_remote, message.recipients)):
            from . import leaving  # most mail stays here

            leaving.check(message, roster, self.prove(message.sender), self.directory)
        warnings = (*told, *resolved.warnings, *compose.warnings_for(draft.content, config.long_words))
        return _Prepared(message=message, line=compose.stored_line(message), resolved=resolved, warnings=warnings)

    def _known(self, ids: set[str], log: HeldLog | OrderedLog) -> tuple[dict[str, Message], list[tuple[int, bytes]]]:
        """Return the messages, live or archived, that have one of the ids, and the live lines that may."""
        known: dict[str, Message] = {}
        wanted = {i.encode() for i in ids}
        found = [at for at in log.lines() if may_be_message(at[1], wanted)]
        view = self.logs.messages.view()
        places: list[tuple[int | None, bytes]] = [*found, *((None, line) for line in self.archive.mentioning(ids))]
        for position, line in places:
            message = codec.message(line)
            if isinstance(message, Message) and message.id in ids:
                known.setdefault(message.id, weighed(message, view, line, position))
        return known, found


def _is_dead(sender: str, roster: Roster) -> bool:
    """Return whether the sender is dead, and no agent has its place."""
    return roster.state(sender) == DEAD and not roster.heirs(sender)


def _each(items: Sequence[T], do: Callable[[T], R]) -> list[R]:
    """Return ``do`` of every item; an error gets the index of its item as ``at``."""
    results = []
    for place, item in enumerate(items):
        try:
            results.append(do(item))
        except MailboxError as error:
            error.at = place
            raise
    return results


def _refuse_twins(ids: Sequence[str]) -> None:
    seen: set[str] = set()
    for place, message_id in enumerate(ids):
        if message_id in seen:
            error = Refused(
                f"id used twice in the batch: {message_id}", "give each message an id of its own", code="id_conflict"
            )
            error.at = place
            raise error
        seen.add(message_id)


def retryable(error: E, ids: Sequence[str]) -> E:
    """Return the error of a send that may have happened, with the id under which a retry sends nothing twice."""
    same = (
        f"repeat it with --id {ids[0]}" if len(ids) == 1 else f'repeat it with an "id" in each line: {", ".join(ids)}'
    )
    return type(error)(
        error.what, f"{error.hint}; {same}".removeprefix("; ") + ": nothing is sent twice", code=error.code
    )


def _refuse_conflict(message: Message, resolved: Resolved, known: Message | None) -> None:
    """Raise ``Refused`` for new mail to the dead, and for a known id with other mail. A known message may have
    recipients that died since."""
    if known is None:
        compose.refuse_dead(resolved)
        if message.expires_at is not None:
            compose.check_expiry(message)
    elif not compose.same_mail(message, known, resolved):
        raise Refused(f"id {message.id} belongs to another message", "leave --id out for a new one", code="id_conflict")
