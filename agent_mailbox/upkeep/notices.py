"""Telling senders of their dead letters: once, in a run of the steward, by one notice or as many as it takes.

Belongs here: the notice, and which letters the earlier ones named. ``core.dead_letters`` knows the letters. A letter is
not archived before its sender was told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import codec, dead_letters, frame
from ..core.compose import Draft
from ..core.instant import DAY, HOUR
from ..core.line_forms import may_have
from ..core.proofs import STEWARD
from ..core.records import USER, Message
from ..core.text import clipped, typed
from ..errors import Busy, MailboxError, StorageFailed
from ..store.files import paths

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..core.inbox import InboxState
    from ..core.keeping.retention import RetentionPlan
    from ..mailbox.mailbox import Mailbox
    from ..store.log.proof_view import ProofView

    Letters = list[tuple[Message, str]]

KEY = "dead_letters"
"""The key in a notice's metadata with the ids of the letters."""
NAMED = 5
"""Letters in a notice's text: it goes into a model's context, and the command lists all."""
WIDE = 80_000
"""Characters of the ids in one notice, some 2000 of ours: another program's may be long, and a line is bounded."""
LIFE = 7 * DAY // HOUR
"""Hours for which a notice waits to be read."""


def notify_senders(mailbox: Mailbox, now: int) -> set[str]:
    """Send each sender a notice of its new dead letters; return the ids of those that nobody can be told of.

    If machines share the mailbox, the session's own tells it.

    A process that proves nothing sends no notice: later runs would not know it for the steward's. Raises ``Busy`` and
    ``StorageFailed``.
    """
    hopeless: set[str] = set()
    if mailbox.prove(STEWARD) is None:
        return hopeless
    state = mailbox.state()
    option = "" if mailbox.logs.is_shared else f" --dir {typed(mailbox.directory)}"  # readers may work elsewhere
    for who, letters in _untold_letters(mailbox, state, now).items():
        if mailbox.logs.is_shared and who != USER and not mailbox.logs.last_seen([who]):
            continue
        try:
            for notice in _notices_to(who, letters, state, option):
                mailbox.send(notice)
        except StorageFailed as error:
            raise StorageFailed(error.what, "run `agent-mailbox steward run` again") from None
        except Busy:
            raise
        except MailboxError:
            hopeless.update(m.id for m, _ in letters)
    return hopeless


def held_back(plan: RetentionPlan, mailbox: Mailbox, state: InboxState, hopeless: set[str]) -> RetentionPlan:
    """Return the plan without the dead letters whose sender has yet to be told."""
    if not plan.move or mailbox.prove(STEWARD) is None:
        return plan
    told = set(_told_live(mailbox, by_anyone=mailbox.logs.is_shared))  # another machine's notice proves nothing here
    found = _untold_letters(mailbox, state, mailbox.now()).values()
    waiting = {m.id for letters in found for m, _ in letters if m.id not in told}
    return plan.replace(move=plan.move - (waiting - hopeless))


def _untold_letters(mailbox: Mailbox, state: InboxState, now: int) -> dict[str, Letters]:
    found = dead_letters.untold(state, now, set(_told_live(mailbox)))
    if not found:
        return found
    return dead_letters.untold(state, now, {*_told_live(mailbox), *_told_in_archive(mailbox)})


def _split_letters(letters: Letters) -> list[list[str]]:
    """Return the letters' ids, as many together as one notice has room for."""
    parts: list[list[str]] = [[]]
    room = WIDE
    for message, _ in letters:
        room -= len(message.id)
        if room < 0 and parts[-1]:
            parts.append([])
            room = WIDE - len(message.id)
        parts[-1].append(message.id)
    return parts


def _notices_to(who: str, letters: Letters, state: InboxState, place: str) -> Iterator[Draft]:
    """Yield the notices to one sender: the first counts all letters, and the others name the rest of them."""
    count, parts = len(letters), _split_letters(letters)
    listed = f"agent-mailbox dead-letters --session {typed(who)}{place}"
    back = state.reads.ever_released() & {m.id for m, _ in letters}
    what = "given back, and nobody took it" if back and count == 1 else "never read"
    what = "never read, or given back" if back and count > 1 else what
    said = f"A message of yours was {what}" if count == 1 else f"{count} messages of yours were {what}"
    lines = [
        f"{frame.short(m.id)} to {clipped(frame.target_of(m, state.roster), 60)}: "
        f"{'given back, ' if m.id in back else ''}{reason.replace('_', ' ')}"
        for m, reason in letters[:NAMED]
    ]
    lines += [f"more: {listed}"] if count > NAMED else []
    for number, ids in enumerate(parts, 1):
        yield Draft(
            sender=STEWARD,
            to=(who,),
            subject=f"{said} ({number} of {len(parts)})" if len(parts) > 1 else said,
            content="\n".join(lines) if number == 1 else f"These are {len(ids)} of them. All: {listed}",
            type="notification",
            ttl_hours=LIFE,
            metadata={KEY: ids},
        )


def _told_live(mailbox: Mailbox, *, by_anyone: bool = False) -> Iterator[str]:
    """Yield the ids that live notices name. Another program's line is none: it could keep a sender from being told.

    With ``by_anyone`` it counts: then a letter is archived, which a sender may still be told of."""
    view = None if by_anyone else mailbox.logs.messages.view()
    return _ids_told(mailbox.logs.messages.lines(), view)


def _told_in_archive(mailbox: Mailbox) -> Iterator[str]:
    """Yield the ids that archived notices name: a letter may stay live longer than its notice.

    A clock that was ahead may have dated the letter later than the notice: all months are read."""
    return _ids_told(((None, line) for line in mailbox.archive.lines()), mailbox.archive.view(paths.MESSAGES))


def _ids_told(lines: Iterable[tuple[int | None, bytes]], view: ProofView | None) -> Iterator[str]:
    """Yield the ids that the notices among these lines name; with a ``view`` only proven ones count."""
    for position, line in lines:
        if not may_have(line, KEY.encode()) or (view is not None and view.proof(line, position) is None):
            continue
        message = codec.message(line)
        if isinstance(message, Message) and message.sender == STEWARD and isinstance(message.metadata, dict):
            ids: Any = message.metadata.get(KEY)
            yield from (i for i in ids if isinstance(i, str)) if isinstance(ids, list) else ()
