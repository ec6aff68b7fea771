"""Sending mail: compose, append durably, say whom it reaches.

Belongs here: the order of those steps. What may be sent to whom is ``core.compose``.
"""

from __future__ import annotations

from ..core import codec, compose, recipients
from ..core.instant import MINUTE
from ..core.records import USER, Message, Record
from ..errors import MailboxError, Refused, StorageFailed
from ..store import paths, system
from ..store.prefilter import may_be_message
from .opened import OpenMailbox

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import TypeVar

    from ..core.compose import Draft, Resolved
    from ..core.roster import Roster
    from ..store.archive import Archive
    from ..store.log import HeldLog

    T = TypeVar("T")
    R = TypeVar("R")
    E = TypeVar("E", bound=MailboxError)


def random_id() -> str:
    """A UUID of version 4 (RFC 9562), without the 8 ms that importing ``uuid`` costs."""
    bits = bytearray(system.urandom(16))
    bits[6] = bits[6] & 0x0F | 0x40
    bits[8] = bits[8] & 0x3F | 0x80
    digits = bits.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


class Sent(Record):
    """A message that is durably in the log, whom it reaches, and what its sender should know."""

    message: Message
    delivery: recipients.Reach
    warnings: tuple[str, ...]


class _Prepared(Record):
    """A message that may be sent: its line, what its addresses mean, what its sender should know."""

    message: Message
    line: bytes
    resolved: Resolved
    warnings: tuple[str, ...]


class Posting(OpenMailbox):
    """The part of the facade that sends."""

    @property
    def archive(self) -> Archive:
        """What the steward moved."""
        from ..store.archive import Archive  # asked only for an id that is given

        return Archive(self.logs.path(paths.ARCHIVE), self.logs.custody)

    def send(self, draft: Draft, *, strict: bool = False) -> Sent:
        """Append one message durably; the same id with the same mail again is the same message.

        Raises ``Malformed`` and ``BadData`` for what can never be sent, ``Refused`` for a dead recipient or an id that
        belongs to other mail, ``NotFound`` under ``strict`` for a word nobody answers to, ``StorageFailed``.
        """
        return self.send_all([draft], strict=strict)[0]

    def send_all(
        self, drafts: Sequence[Draft], *, strict: bool = False, answering: str | None = None, sealed: bool = True
    ) -> list[Sent]:
        """Append many messages as one durable batch, all or none; raises as ``send`` does. ``sealed``: off for mail
        that proves nothing of its writer, whoever appends it."""
        roster = self.logs.read_roster()
        prepared = _each(drafts, lambda draft: self._prepare(draft, roster, strict, answering))
        given = {made.message.id for made, draft in zip(prepared, drafts, strict=True) if draft.id is not None}
        ids = [made.message.id for made in prepared]
        _refuse_twins(ids)
        try:
            known = self._append(prepared, given, sealed)
        except StorageFailed as error:
            raise retryable(error, ids) from None
        if any(draft.type == "control" for draft in drafts):
            from ..control import effects  # what most mail is spared

            effects.sent(self, [made.message for made in prepared if made.message.type == "control"], self.send)
        return [
            Sent(
                message=known.get(made.message.id, made.message),
                delivery=self.delivery(made.message, roster),
                warnings=made.warnings,
            )
            for made in prepared
        ]

    def delivery(self, message: Message, roster: Roster) -> recipients.Reach:
        """Whom a message reaches at this moment. It waits for a teammate of a client's team that nobody bridges."""
        found = recipients.delivery(message, roster)
        mates = [a for a in found.agents if "@" in a and f"team:{a.partition('@')[2]}" in roster.agents[a].tags]
        if not mates:
            return found
        from ..store import team_lock  # what most mail is spared

        idle = [mate for mate in mates if not team_lock.runs(self.logs, f"team:{mate.partition('@')[2]}")]
        agents = tuple(agent for agent in found.agents if agent not in idle)
        return recipients.Reach(agents=agents, waiting_for=(*found.waiting_for, *idle))

    def take_in(self, messages: Sequence[Message], again: Collection[str] = ()) -> None:
        """Append mail that came from elsewhere, whose ids its door knows to be new; durable when this returns.

        ``again``: ids of those that may stand there already; they are looked for, and not appended a second time.
        Raises ``BadData`` for what cannot be stored, ``Busy``, ``StorageFailed``.
        """
        lines = {message.id: compose.stored_line(message) for message in messages}
        with self.logs.messages.held() as log:
            known = self._known({*again}, log) if again else {}
            new = [message for message in messages if message.id not in known]
            if new:
                log.append([lines[message.id] for message in new], self._concerned(new))  # from elsewhere: no seal
            if len(new) < len(messages):
                log.sync()

    def _append(self, prepared: Sequence[_Prepared], given: set[str], sealed: bool) -> dict[str, Message]:
        """Append those whose id is new; returns the ones that were there already, which are synced again."""
        with self.logs.messages.held() as log:
            known = self._known(given, log) if given else {}
            _each(prepared, lambda made: _refuse_conflict(made.message, made.resolved, known.get(made.message.id)))
            new = [made for made in prepared if made.message.id not in known]
            if self.config.max_per_minute is not None:
                # A decision that came too late because of a limit would be worse than any flood.
                chat = [made.message.sender for made in new if made.message.type != "control"]
                self._refuse_flood(chat, self.config.max_per_minute, log)
            proofs = [self.prove(made.message.sender) if sealed else None for made in new]
            log.append([made.line for made in new], self._concerned([made.message for made in new]), proofs)
            if known:
                log.sync()
        return known

    def _refuse_flood(self, senders: Sequence[str], most: int, log: HeldLog) -> None:
        """Anyone but the person may write only so much in a minute: an agent in a loop is stopped here."""
        from ..store import rate  # only where a mailbox sets the limit

        now = self.now()
        for sender in {*senders} - {USER}:
            lately = rate.count(log.fd, sender, now - MINUTE, now)
            if lately + senders.count(sender) > most:
                raise Refused(
                    f"{sender} sent {lately} messages in the last minute; this mailbox takes {most} a minute from one",
                    "wait a minute, or say it in one message",
                    code="rate_limited",
                )

    def _concerned(self, messages: Sequence[Message]) -> set[str] | None:
        """Whose quiet stamps the messages end; asked under the messages' lock, so that no stamp is newer than this."""
        roster = self.logs.read_roster()
        found: set[str] = set()
        for message in messages:
            concerned = recipients.concerned(message, roster)
            if concerned is None:
                return None
            found |= concerned
        return found

    def _prepare(self, draft: Draft, roster: Roster, strict: bool, answering: str | None) -> _Prepared:
        compose.checked(draft, self.config.max_content)
        told: tuple[str, ...] = ()
        if draft.type == "control":
            from ..core.control import validation  # what most mail is spared

            told = validation.check(draft.content)
        message_id = (self._new_id or random_id)() if draft.id is None else compose.check_id_form(draft.id)
        resolved = compose.resolve(draft.to, roster, self.config.namespaces, strict=strict, answering=answering)
        message = compose.message(draft, resolved.recipients, message_id, self.now())
        warnings = (*told, *resolved.warnings, *compose.warnings_for(draft.content, self.config.long_words))
        return _Prepared(message=message, line=compose.stored_line(message), resolved=resolved, warnings=warnings)

    def _known(self, ids: set[str], log: HeldLog) -> dict[str, Message]:
        """Those of the ids that are taken, live or archived."""
        known: dict[str, Message] = {}
        wanted = {i.encode() for i in ids}
        live = (line for _, line in log.lines() if may_be_message(line, wanted))
        for line in (*live, *self.archive.mentioning(ids)):
            message = codec.message(line)
            if isinstance(message, Message) and message.id in ids:
                known.setdefault(message.id, message)
        return known


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


def _refuse_twins(ids: Sequence[str]) -> None:
    seen: set[str] = set()
    for place, message_id in enumerate(ids):
        if message_id in seen:
            error = Refused(
                f"id {message_id} stands in the batch twice", "give each message its own", code="id_conflict"
            )
            error.at = place
            raise error
        seen.add(message_id)


def retryable(error: E, ids: Sequence[str]) -> E:
    """The error of a send that may have happened, or of what was to follow it, with the id under which to repeat it."""
    same = (
        f"repeat it with --id {ids[0]}" if len(ids) == 1 else f'repeat it with an "id" in each line: {", ".join(ids)}'
    )
    return type(error)(error.what, f"{error.hint}; {same}".removeprefix("; ") + ": nothing is doubled", code=error.code)


def _refuse_conflict(message: Message, resolved: Resolved, known: Message | None) -> None:
    """A new message must not go to the dead; a known id must be the same mail (to whom, even if they died since)."""
    if known is None:
        compose.refuse_dead(resolved)
    elif not compose.same_mail(message, known, resolved):
        raise Refused(f"id {message.id} belongs to another message", "leave --id out for a new one", code="id_conflict")
