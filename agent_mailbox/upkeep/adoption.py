"""The person looked: what a mailbox holds now counts from here on, and with ``adopt`` its unsealed lines too.

Belongs here: beginning a mailbox's record again from the logs as they are (``store.custody``), and telling what counts
then. Whose word that takes is the command line's business.
"""

from __future__ import annotations

from ..core import codec, frame, proofs, seals
from ..core.records import USER, BadLine, Record
from ..core.roster import DEAD
from ..errors import Refused
from ..store import keys, log_ends, proof_view, rotation, system, user_state
from ..store.lines import lines_of
from ..store.stamps import EVERYONE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..mailbox.facade import Mailbox
    from ..store.custody import Custody, Kept
    from ..store.log import HeldLog


class Trusted(Record):
    """The outcome of the person's word: why it was needed (empty: it was not), the number of lines that it confirmed,
    and what agents are under now, a line each."""

    why: str
    adopted: int
    standing: tuple[str, ...]


def trust(mailbox: Mailbox, *, adopt: bool = False) -> Trusted:
    """Take the logs as they are: what is sealed in them counts, and nothing is missed any more.

    With ``adopt`` the unsealed lines that decide count too, for the writers that they name. Raises ``Refused`` for a
    mailbox that the user's ``init`` did not make, ``Busy`` beside a steward.
    """
    keys.make(user_state.directory(system.environment()))
    record = mailbox.logs.custody
    if record is None or record.key is None:
        raise Refused(
            f"{mailbox.directory} is not one that your `init` made",
            f"`agent-mailbox init --adopt {mailbox.directory}`",
            code="not_yours",
        )
    why = record.broken() or ""
    logs = mailbox.logs
    with (
        rotation.alone(mailbox.archive, logs.wait),
        logs.messages.held() as messages,
        logs.reads.held() as reads,
        logs.roster.held() as roster,
    ):
        held = (messages, reads, roster)
        adopted = _adopt(record, held) if adopt else 0
        decides = record.log(messages.path).decides  # an archive is mostly plain mail
        archived = {line for line in mailbox.archive.lines() if decides(line) and seals.of(line) is not None}
        for log in held:
            _begin_again(record.log(log.path), log, archived)
        record.forget_broken()
        logs.trail.disturb(EVERYONE)
    return Trusted(why, adopted, tuple(_standing(mailbox)))


def _begin_again(kept: Kept, log: HeldLog, archived: set[bytes]) -> None:
    """Have the log's entry say what the log holds: all of it is below the base of a new generation.

    A copy of a sealed line would count there, so copies go to the end, behind the base.
    """
    system.fdatasync(log.fd)
    before = kept.entry()
    entry = log_ends.left(log.path, before)
    lines, copies = _without_copies(kept, lines_of(log.fd, 0, entry.size), archived)
    if copies:
        log.replace(lines, entry.size, misplaced=copies)
        kept.change(lambda now: now.replace(before=before.before))  # no foreign line becomes an old one
        return
    generation = entry.generation + 1
    counted = proof_view.counted(kept, lines_of(log.fd, 0, entry.size), generation, entry.base)
    kept.follow(entry.replace(generation=generation, count=counted.count, digest=counted.digest))


def _without_copies(
    kept: Kept, lines: Iterable[tuple[int, bytes]], archived: set[bytes]
) -> tuple[list[bytes], list[bytes]]:
    """Return a log's lines without the copies of sealed lines that decide, and these copies."""
    found: tuple[list[bytes], list[bytes]] = ([], [])
    seen = set(archived)
    for _, line in lines:
        is_sealed = kept.decides(line) and seals.of(line) is not None
        found[is_sealed and line in seen].append(line)
        seen.update([line] if is_sealed else ())
    return found


def _adopt(record: Custody, held: tuple[HeldLog, ...]) -> int:
    """Confirm the unsealed lines that decide, by their MACs; those confirmed before stay so."""
    known = record.adopted()
    found: set[bytes] = set()
    for log in held:
        kept, view = record.log(log.path), log.view()
        for _, line in lines_of(log.fd):
            sealed = view is not None and proofs.proves(view.proof(line))
            if not sealed and (kept.decides(line) or _is_the_person_s(line)):
                found.add(record.adoption(kept.name, line))
    record.adopt(known | found)
    return len(found - known)


def _is_the_person_s(line: bytes) -> bool:
    message = codec.message(line)
    return not isinstance(message, BadLine) and message.sender == USER


def _standing(mailbox: Mailbox) -> Iterator[str]:
    """The rules that agents are under, as far as anything is said of them."""
    control = mailbox.control
    roster = control.plane().roster
    for agent in roster.agents.values():
        if agent.state == DEAD:
            continue
        now = control.standing(agent.session_id)
        said = [f"lead {frame.name_of(now.lead, roster)}"] if agent.lead is not None else []
        said += [f"mode {now.mode}"] if now.mode != "default" else []
        said += ["waits for a plan's approval"] if now.waits_for_plan else []
        said += [f"allow {rule}" for rule in now.policy.allow] + [f"deny {rule}" for rule in now.policy.deny]
        said += [f"host {host}" for host in now.policy.hosts]
        if said:
            yield f"{frame.name_of(agent.session_id, roster)}: {', '.join(said)}"
