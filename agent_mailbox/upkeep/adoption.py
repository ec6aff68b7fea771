"""Trust a mailbox on the person's word: its logs count as they are now, with ``adopt`` their unsealed lines, too.

Belongs here: restarting a mailbox's record (``store.log.custody``) from its present logs, and reporting the rules that
count then. The command line checks that the person asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import codec, frame, message_reads, proofs
from ..core.control import message_text, summary
from ..core.control import messages as m
from ..core.records import USER, BadLine, Message, Record
from ..core.text import typed
from ..errors import Refused
from ..store.archive import rotation
from ..store.archive.manifest import Manifest
from ..store.files import paths, system
from ..store.files.lines import lines_of
from ..store.log import custody, keys, proof_view, replacement
from ..store.log.stamps import EVERYONE
from . import withheld_rules
from .doctor.proof_checks import standing_rules

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core.roster import Roster
    from ..mailbox.mailbox import Mailbox
    from ..store.log.custody import Custody, Kept
    from ..store.log.log import HeldLog
    from .withheld_rules import Withheld


class Trusted(Record):
    """The result of trusting: why it was needed (empty: it was not), and the number of confirmed lines. ``standing`` is
    a line of rules per agent, those that are allowed something first.

    ``messages`` are the confirmed ones, in a line each; ``digest`` is that of all lines that may decide. ``withheld``
    are the rules that a log which was brought back would allow again."""

    why: str
    adopted: int
    standing: tuple[str, ...]
    messages: tuple[str, ...] = ()
    digest: bytes = b""
    withheld: tuple[Withheld, ...] = ()


def record_of(mailbox: Mailbox) -> Custody:
    """Return the mailbox's record outside the project; raises ``Refused`` if the user's ``init`` did not make it."""
    keys.make(paths.state_directory(system.environment()))
    record = mailbox.logs.custody
    if record is None or record.key is None:
        raise Refused(
            f"the mailbox was not made by your `agent-mailbox init`: {mailbox.directory}",
            f"run `agent-mailbox init --adopt {typed(mailbox.directory)}` if you trust it",
            code="not_yours",
        )
    return record


def trust_logs(
    mailbox: Mailbox, *, adopt: bool = False, seen: Trusted | None = None, withheld: tuple[Withheld, ...] = ()
) -> Trusted:
    """Accept the logs as they are: their sealed lines count, and lines that were cut are no longer missed.

    With ``adopt`` unsealed deciding lines count, too, for the writers they name. The person's orders end what is
    ``withheld``, before anything counts. Raises ``Refused`` if the user's
    ``init`` did not make the mailbox, or if the logs changed since the person has ``seen`` what would count. Raises
    ``Busy`` while a steward runs.
    """
    record = record_of(mailbox)
    why = record.broken() or ""
    logs = mailbox.logs
    with (
        rotation.alone(mailbox.archive, logs.wait),
        logs.messages.held() as messages,
        logs.reads.held() as reads,
        logs.roster.held() as roster,
    ):
        held = (messages, reads, roster)
        digest = _digest_deciding(record, held)
        if seen is not None and seen.digest != digest:
            raise Refused("the logs changed since you were shown what would count", "run the command again")
        if withheld and not logs.is_shared:
            orders = list(withheld_rules.withholding_lines(withheld, mailbox.now()))
            messages.append(orders, EVERYONE, [proofs.TERMINAL] * len(orders))
        adopted, confirmed = _adopt_unsealed(record, held) if adopt else (0, [])
        decides = custody.Kept(record, messages.path).decides  # few lines of an archive do
        archived = {line for line in mailbox.archive.lines() if decides(line) and proofs.parse_seal(line) is not None}
        for log in held:
            _begin_again(custody.Kept(record, log.path), log, archived)
        Manifest(mailbox.archive).note()
        record.forget_broken()
        logs.stamp_files.disturb(EVERYONE)
    if withheld and logs.is_shared:
        withheld_rules.send_withholding(withheld, mailbox)  # what decides has its place in the order of all machines
    now = mailbox.logs.read_roster()
    told = sorted((_describe_message(message, now) for message in confirmed), key=lambda one: not one[0])
    return Trusted(why, adopted, tuple(standing_rules(mailbox)), tuple(said for _, said in told), digest)


def _begin_again(kept: Kept, log: HeldLog, archived: set[bytes]) -> None:
    """Start a new generation in the log's entry, with the whole log below its base.

    Below the base, a copy of a sealed line would count, so move copies to the end, behind it.
    """
    system.fdatasync(log.fd)
    system.sync_directory(system.dirname(log.path))  # a steward may have died before: the old log would be back
    before = kept.entry()
    entry = custody.left(log.path, before)
    lines, copies = _without_copies(kept, lines_of(log.fd, 0, entry.size), archived)
    if copies:
        replacement.replace(log, lines, entry.size, misplaced=copies)
        kept.change(lambda now: now.replace(before=before.before))  # no foreign line becomes an old one
        return
    generation = entry.generation + 1
    counted = proof_view.counted(kept, lines_of(log.fd, 0, entry.size), generation, entry.base)
    kept.follow(entry.replace(generation=generation, count=counted.count, digest=counted.digest))


def _without_copies(
    kept: Kept, lines: Iterable[tuple[int, bytes]], archived: set[bytes]
) -> tuple[list[bytes], list[bytes]]:
    """Return a log's lines without the copies of sealed deciding lines, and those copies."""
    found: tuple[list[bytes], list[bytes]] = ([], [])
    seen = set(archived)
    for _, line in lines:
        is_sealed = kept.decides(line) and proofs.parse_seal(line) is not None
        found[is_sealed and line in seen].append(line)
        seen.update([line] if is_sealed else ())
    return found


def _digest_deciding(record: Custody, held: tuple[HeldLog, ...]) -> bytes:
    """Return a digest of all lines that may decide something, of each log."""
    found = b"-"
    for log in held:
        decides = custody.Kept(record, log.path).decides
        for _, line in lines_of(log.fd):
            if decides(line) or _is_the_person_s(codec.message(line)):
                found = keys.digest(found, line)
    return found


def _describe_message(message: Message, roster: Roster) -> tuple[bool, str]:
    """Return whether a confirmed message allows something, and the message in a line."""
    said, way = frame.title(message), f"{frame.name_of(message.sender, roster)} → {frame.target_of(message, roster)}"
    widens = False
    if message.type == "control":
        payload = message_text.parse(message.content)
        said = summary.line(payload)
        widens = not isinstance(payload, m.Unknown) and any(word in said for word in ("allow", "approve", "mode"))
    return widens, f"{way}: {said}"


def _adopt_unsealed(record: Custody, held: tuple[HeldLog, ...]) -> tuple[int, list[Message]]:
    """Confirm the unsealed deciding lines by their MACs, beside those confirmed before; return how many are new, and
    the messages among them."""
    known = record.adopted()
    found: set[bytes] = set()
    asked: set[str] = set()  # the ids of the messages, whose log is the first, that only a proof settles
    messages: list[Message] = []
    for log in held:
        kept, view = custody.Kept(record, log.path), log.view()
        for _, line in lines_of(log.fd):
            message = codec.message(line)
            mail = [message] if log is held[0] and isinstance(message, Message) else []
            is_sealed = view is not None and proofs.proves(view.proof(line))
            if not is_sealed and (kept.decides(line) or _is_the_person_s(message) or _is_about(line, asked)):
                found.add(mac := record.adoption(kept.name, line))
                messages += mail if mac not in known else []
            asked.update(one.id for one in mail if message_reads.is_kept(one))
    record.adopt(known | found)
    return len(found - known), messages


def _is_the_person_s(message: Message | BadLine) -> bool:
    return isinstance(message, Message) and message.sender == USER


def _is_about(line: bytes, asked: set[str]) -> bool:
    """Return whether a line is a record about one of these messages."""
    record = codec.read(line)
    return not isinstance(record, BadLine) and record.message_id in asked
