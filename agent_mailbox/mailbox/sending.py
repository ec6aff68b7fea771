"""Sending mail: compose, append durably, say whom it reaches.

Belongs here: the order of those steps. The rules of who may send what are ``core.compose``.
"""

from __future__ import annotations

from ..core import codec, compose, reach
from ..core.line_forms import may_be_message
from ..core.proofs import OURS, STEWARD
from ..core.records import Message, Record
from ..core.roster import ALIVE
from ..errors import AGAIN, MailboxError, Refused, StorageFailed, Unavailable
from ..store.log.proof_view import weigh_message
from .arrivals import judge_reach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import TypeVar

    from ..core.compose import Composed, Draft
    from ..core.records import Proof
    from ..core.roster import Roster
    from ..space.order.ordered_log import OrderedLog
    from ..store.log.log import HeldLog, Log
    from ..store.projection.archived_mail import ArchivedMail
    from .open_mailbox import OpenMailbox

    T = TypeVar("T")
    R = TypeVar("R")
    E = TypeVar("E", bound=MailboxError)


class Sent(Record):
    """A message that is durably in the log, its reach by this roster, and warnings for its sender.

    ``queued``: why it waits here for the engine that several machines share, if it does. ``leaves``: see ``Resolved``.
    """

    message: Message
    delivery: reach.Reach
    warnings: tuple[str, ...]
    roster: Roster
    leaves: bool
    queued: str = ""


class Sending:
    """Sends mail in an opened mailbox. ``at_once``: rather fail than let mail wait for an engine."""

    def __init__(self, box: OpenMailbox, *, at_once: bool = False) -> None:
        self.box = box
        self.at_once = at_once

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
        check: Callable[[], None] | None = None,
    ) -> list[Sent]:
        """Append many messages as one durable batch, all or none; raises as ``send`` does. Without ``sealed`` the mail
        proves nothing of its writer. ``by_id``: the caller's command takes ``--id``, so an error names it. ``check``
        looks once more under the lock, and raises if nothing is to be sent."""
        log = self.box.in_order(self.box.logs.messages, is_caught_up=True)
        roster = self.box.logs.read_roster()
        prepared = _each(drafts, self._prepare, roster, strict, answering)
        given = {made.message.id for made, draft in zip(prepared, drafts, strict=True) if draft.id is not None}
        ids = [made.message.id for made in prepared]
        if len(ids) > 1:
            _refuse_twins(ids)
        orders = any(draft.type == "control" for draft in drafts)
        known: dict[str, Message] | None
        why = ""

        def later(said: str) -> tuple[list[bytes], list[Proof | None]]:
            nonlocal why
            why = said
            return self._waiting(prepared, sealed)

        try:
            were_read = bool(given) and self._are_read(given)

            def decide(archived: ArchivedMail | None) -> dict[str, Message] | None:
                batch = prepared, archived, sealed, were_read, check
                if self.at_once or orders:
                    return log.decide(self._append, *batch)
                return log.decide_or_wait(later, self._append, *batch)

            known = self._looked_up(given, decide) if given else decide(None)
        except (StorageFailed, Unavailable) as error:
            raise (retryable(error, ids) if by_id else error) from None
        if orders:  # which never wait
            from ..control_plane import effects  # what most mail is spared

            effects.sent(self.box, [made.message for made in prepared if made.message.type == "control"], self.send)
        record, waits = self.box.logs.custody, known is None
        weighs = sealed and not waits and record is not None and record.weighs_mail
        sent = [
            Sent(
                (known or {}).get(made.message.id) or (self.box.weigh_own(made.message) if weighs else made.message),
                judge_reach(self.box, made.message, roster),
                made.warnings,
                roster,
                made.resolved.leaves,
                why,
            )
            for made in prepared
        ]
        gone = {who for one in sent for who in one.delivery.gone if roster.state(who) == ALIVE}
        if gone and not waits:
            self._note_gone(gone, prepared[0].message.sender)
        return sent

    def _waiting(self, prepared: Sequence[Composed], sealed: bool) -> tuple[list[bytes], list[Proof | None]]:
        """Return the lines that wait for an engine, with what is proven of the writer of each."""
        for made in prepared:
            compose.refuse_dead(made.resolved)
            compose.check_expiry(made.message)
        proofs = [self.box.prove(made.message.sender) if sealed else None for made in prepared]
        return [made.line.rstrip(b"\n") for made in prepared], proofs

    def _note_gone(self, sessions: set[str], sender: str) -> None:
        """Record, as far as the sender can prove anything, that these sessions are gone."""
        from . import absence  # which most mail does not meet

        try:
            absence.note(self.box, sessions, sender)
        except MailboxError:
            pass  # the mail is sent; the steward records it

    def take_in(self, messages: Sequence[Message], again: Collection[str] = (), *, proof: Proof | None = None) -> None:
        """Append mail from elsewhere, whose ids its door knows to be new; durable when this returns.

        ``again``: the ids that may be in the log already; such mail is not appended a second time. ``proof``: what the
        door knows of its writers. Raises ``BadData`` for mail that cannot be stored, ``Busy``, ``StorageFailed``.
        """
        lines = {message.id: compose.stored_line(message) for message in messages}
        were_read = bool(lines) and self._are_read(lines)
        if again:
            self._looked_up({*again}, lambda archived: self._take_in(messages, lines, archived, were_read, proof))
        else:
            self._take_in(messages, lines, None, were_read, proof)

    def _take_in(
        self,
        messages: Sequence[Message],
        lines: Mapping[str, bytes],
        archived: ArchivedMail | None,
        were_read: bool,
        proof: Proof | None,
    ) -> None:
        with self.box.logs.messages.held() as log:
            known, found = self._known(archived, log) if archived is not None else ({}, [])
            new = [message for message in messages if message.id not in known]
            if new:
                if were_read:
                    log.begin_again()
                concerned = reach.find_concerned(new, self.box.logs.read_roster())  # under the lock: no stamp is newer
                log.append([lines[message.id] for message in new], concerned, [proof] * len(new))
            if len(new) < len(messages):
                log.sync(found)

    def _are_read(self, ids: Collection[str]) -> bool:
        """Return whether a session may have read one of the given ids. If the log has no such line, it was lost.

        It runs before the lock. If a program writes such a line meanwhile, the id is a known one."""
        from ..store.polling import foreign_lines  # asked only for an id that is given

        return foreign_lines.are_read(self.box.logs, ids)

    def _append(
        self,
        log: HeldLog | OrderedLog,
        prepared: Sequence[Composed],
        archived: ArchivedMail | None,
        sealed: bool,
        were_read: bool,
        check: Callable[[], None] | None,
    ) -> dict[str, Message]:
        """Append the messages whose id is new; return those that were there already, synced again."""
        if check is not None:
            check()
        known, found = self._known(archived, log) if archived is not None else ({}, [])
        roster = self.box.logs.read_roster()  # under the messages' lock, so that no quiet stamp is newer
        _each(prepared, _refuse_conflict, known, roster)
        new = [made for made in prepared if made.message.id not in known]
        if (most := self.box.config.max_per_minute) is not None:
            # A decision that came too late because of a limit would be worse than any flood.
            from ..store.files import rate_limit  # only for a mailbox with a limit

            chat = [made.message.sender for made in new if made.message.type != "control"]
            rate_limit.check(log.fd, chat, most, self.box.now())
        if any(made.message.attachments for made in new):
            from ..store.attachments import attachment_files  # rare in mail

            for made in new:
                attachment_files.check(self.box.directory, made.message)
        proofs = [self.box.prove(made.message.sender) if sealed else None for made in new]
        if were_read and new:
            log.begin_again()
        concerned = reach.find_concerned([made.message for made in new], roster)
        log.append([made.line for made in new], concerned, proofs)
        if known:
            log.sync(found)
        return known

    def _prepare(self, draft: Draft, roster: Roster, strict: bool, answering: str | None) -> Composed:
        made = compose.compose_message(
            draft,
            roster,
            self.box.new_id,
            self.box.now(),
            namespaces=self.box.config.namespaces,
            max_content=self.box.config.max_content,
            long_words=self.box.config.long_words,
            is_ours=draft.sender in OURS and self.box.prove(draft.sender) == STEWARD,
            strict=strict,
            answering=answering,
        )
        if draft.type == "control":
            from ..core.control import message_text  # what most mail is spared

            if told := message_text.check(draft.content):
                made = made.replace(warnings=(*told, *made.warnings))
        if made.resolved.leaves:
            from . import leaving  # most mail stays here

            leaving.check(made.message, roster, self.box.prove(draft.sender), self.box.directory)
        return made

    def find_sent(self, given: str) -> Message | None:
        """Return the message of an id that was given, if one was sent with it."""
        return self._looked_up({given}, lambda archived: self._known(archived, self.box.logs.messages)[0]).get(given)

    def _looked_up(self, ids: set[str], act: Callable[[ArchivedMail], T]) -> T:
        """Return what ``act`` does with the archived mail of given ids, looked up ahead of the lock.

        Once more if the steward moved mail meanwhile."""
        from ..store.projection import archived_mail  # asked only for an id that is given

        while True:
            with archived_mail.ArchivedMail(self.box.logs, self.box.archive, ids) as archived:
                try:
                    return act(archived)
                except archived_mail.ArchiveGrew:
                    continue

    def _known(
        self, archived: ArchivedMail, log: HeldLog | OrderedLog | Log
    ) -> tuple[dict[str, Message], list[tuple[int, bytes]]]:
        """Return the messages, live or archived, that have one of the ids, and the live lines that may."""
        known: dict[str, Message] = {}
        wanted = {i.encode() for i in archived.ids}
        found = [at for at in log.lines() if may_be_message(at[1], wanted)]
        view = self.box.logs.messages.view()
        places: list[tuple[int | None, bytes]] = [*found, *((None, line) for line in archived.lines())]
        for position, line in places:
            message = codec.message(line)
            if isinstance(message, Message) and message.id in archived.ids:
                known.setdefault(message.id, weigh_message(message, view, line, position))
        return known, found


def _each(items: Sequence[T], do: Callable[..., R], *given: object) -> list[R]:
    """Return ``do`` of every item, with what else is ``given``; an error gets the index of its item as ``at``."""
    results = []
    for place, item in enumerate(items):
        try:
            results.append(do(item, *given))
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
    first = error.hint.removesuffix(AGAIN)
    return type(error)(
        error.what, f"{first}; then {same}".removeprefix("; then ") + ": nothing is sent twice", code=error.code
    )


def _refuse_conflict(made: Composed, found: Mapping[str, Message], roster: Roster) -> None:
    """Raise ``Refused`` for new mail to the dead, and for the id of a message that was found with other mail. Such a
    message may have recipients that died since."""
    message = made.message
    if (known := found.get(message.id)) is None:
        if made.resolved.dead:
            compose.refuse_dead(made.resolved)
        if message.expires_at is not None:
            compose.check_expiry(message)
    elif not compose.same_mail(message, known, compose.find_meanings(made.written, roster)):
        raise Refused(
            f"id {message.id} belongs to another message", "leave the id out for a new one", code="id_conflict"
        )
