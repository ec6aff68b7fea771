"""Check the proofs: do the logs continue what our writers left, and what would unproven lines have done?

Belongs here: comparing the mailbox's record outside the project (``store.log.custody``) with the logs, and naming the
lines on whose proof something hangs. Most unproven lines need none: mail, and the roster's lines of agents without a
client.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from ...control_plane import control_log, standing
from ...core import codec, frame, message_reads, proofs
from ...core.control import message_text, summary
from ...core.findings import Problem
from ...core.line_forms import may_ask_or_answer, may_settle
from ...core.proofs import proves
from ...core.records import USER, BadLine, Message, Record
from ...core.roster import DEAD, Roster, narrowed
from ...core.text import clipped, neutral, typed
from ...store.files import system
from ...store.files.line_numbers import numbered_in
from ...store.files.lines import lines_of
from ...store.files.small_files import OpenFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ...mailbox.mailbox import Mailbox
    from ...store.log.log import Log
    from ...store.log.proof_view import ProofView

TRUST = "`agent-mailbox doctor --trust`"
LOOK = "if you do not know it, look which program wrote it"
NOBODY = "no agent has a lead, a mode or rules"
"""It is told where ``standing_rules`` finds none."""
SHOWN = 90


class UnprovenLine(Record):
    """A line of which nothing is proven: its number and position, and how it came to be so.

    ``kind`` is *foreign* if a program wrote it, *waits* if another machine did. A copy of a sealed line is
    *moved*, a line older than the seals *before*. One that was sealed in another mailbox is *elsewhere*.
    """

    number: int
    position: int
    line: bytes
    kind: str


def check_proofs(mailbox: Mailbox) -> Iterator[Problem]:
    """Yield a log that our writers did not leave so, and notes of unproven lines on which something hangs."""
    record = mailbox.logs.custody
    if record is None:
        return  # place_checks reports it
    logs = mailbox.logs
    for log in (logs.messages, logs.reads, logs.roster):
        log.attentively(_read_deciding)
    if (why := record.broken()) is not None:
        what = f"{why}: nothing here counts as proven, and agents keep their restrictions, until you check the logs"
        then = "" if standing_rules(mailbox) else f"; as they are, {NOBODY}"
        yield Problem(mailbox.directory, None, f"{what} and run {TRUST}{then}")
        return
    roster, asked = logs.read_only().read_roster(), _asked_messages(logs.messages)
    yield from _note_effects(logs.messages, lambda one: _of_message(one, roster))
    yield from _note_effects(logs.roster, _of_events(logs.roster))
    yield from _note_effects(logs.reads, lambda one: _of_read(one, asked, roster))


def _read_deciding(fd: int, view: ProofView | None) -> bool:
    """Read the deciding lines, so that the record notices missing ones."""
    if view is not None:
        for _, position, line in _numbered_lines(fd):
            if view.kept.decides(line):
                view.read(line, position)
    return True


def _numbered_lines(fd: int) -> Iterator[tuple[int, int, bytes]]:
    """Yield (line number, byte offset, line) of an open log."""
    positions = lines_of(fd, 0, system.fstat(fd).st_size)
    for (number, line), (position, _) in zip(numbered_in(fd, system.fstat(fd).st_size), positions, strict=False):
        yield number, position, line


def _asked_messages(log: Log) -> dict[str, Message]:
    """Return the proven messages whose records only a proof settles (``message_reads.is_kept``), by id."""
    view, found = log.view(), dict[str, Message]()
    if view is None:
        return found
    for position, line in log.lines():
        if may_ask_or_answer(line) or may_settle(line):
            message = codec.message(line)
            if (
                not isinstance(message, BadLine)
                and message_reads.is_kept(message)
                and proves(view.proof(line, position))
            ):
                found[message.id] = message
    return found


def _unproven_lines(log: Log) -> Iterator[UnprovenLine]:
    """Yield the log's unproven lines."""
    view, fd = log.view(), log.open()
    if view is None or fd is None:
        return
    with OpenFile(fd):
        for number, position, line in _numbered_lines(fd):
            proof = view.proof(line, position)
            if proves(proof):
                continue
            kind = "foreign" if proof is None else "before"
            if view.waits(line, position):
                kind = "waits"
            elif view.is_misplaced(line, position):
                kind = "moved"
            elif kind == "before" and proofs.parse_seal(line) is not None:
                kind = "elsewhere"
            yield UnprovenLine(number, position, line, kind)


HOLDS = "what they forbid holds, and what they allow does not count"
TOLD = {
    "foreign": "{}; " + LOOK,
    "waits": "{}, on another machine of the space, whose word does not count here: `agent-mailbox engine status`",
    "moved": "{}; it is a copy of a sealed line, which does not count at this place; look who copied it",
    "before": f"{{}} without a seal, from before seals: {HOLDS}; if you trust them, run {{adopt}}",
    "elsewhere": f"{{}} sealed in another mailbox, or by deleted records: {HOLDS}; if you trust them, run {{adopt}}",
}


def _note_effects(log: Log, said: Callable[[UnprovenLine], str]) -> Iterator[Problem]:
    """Yield a note for each thing that unproven lines would have done; ``said`` tells it, empty for nothing."""
    found: dict[tuple[str, str], list[int]] = {}
    for one in _unproven_lines(log):
        if what := said(one):
            old = one.kind in ("before", "elsewhere")  # their writer is known: an earlier version, or a backup
            found.setdefault((one.kind, "" if old else what), []).append(one.number)
    for (kind, what), numbers in found.items():
        more = f" (and {len(numbers) - 1} more such line{'s' if len(numbers) > 2 else ''})" if len(numbers) > 1 else ""
        lines = f"{len(numbers)} {'lines' if len(numbers) > 1 else 'line'}"
        adopt = f"`agent-mailbox init --adopt {typed(system.dirname(log.path))}`"
        yield Problem(log.path, numbers[0], TOLD[kind].format(what + more if what else lines, adopt=adopt), note=True)


def _of_message(one: UnprovenLine, roster: Roster) -> str:
    """Return what an unproven message claims, if it claims to be the person's, or orders somebody around."""
    message = codec.message(one.line)
    if isinstance(message, BadLine):
        return ""
    to = ", ".join(_name_of_word(word, roster) for word in message.recipients)
    if message.type != "control":
        said = f"nothing proves that this mail to {to} is the person's, so it is shown as `user (unverified)`"
        return said if message.sender == USER else ""
    agents = [agent for agent in map(roster.meant, message.recipients) if agent is not None]
    leads = any(agent.lead == message.sender for agent in agents)
    if message.sender != USER and not leads and not roster.has_client(message.sender):
        return ""  # whoever that is may order nobody around
    order = clipped(neutral(summary.line(message_text.parse(message.content))), SHOWN)
    sender = _name_of_word(message.sender, roster)
    return f"nothing proves that {sender} sent {to} `{order}`: it may forbid, and allows nothing"


def _of_events(log: Log) -> Callable[[UnprovenLine], str]:
    """Return what tells of an unproven roster event, if it needed a proof: a client runs its session, or it names a
    lead from before. The log is folded for the first of them."""
    found = cache(lambda: _effects_of_events(log))
    return lambda one: found().get(one.position, "")


def _effects_of_events(log: Log) -> dict[int, str]:
    roster, view, found = Roster(), log.view(), dict[int, str]()
    for position, line in log.lines():
        event = codec.roster_event(line)
        if isinstance(event, BadLine):
            continue
        event = event.replace(proof=None if view is None else view.proof(line, position))
        agent = roster.get(event.session_id)
        if not proves(event.proof) and (roster.has_client(event.session_id) or (event.proof and event.lead)):
            name = _name_of_word(event.session_id, roster)
            by = f" by {_name_of_word(event.by, roster)}" if event.by else ""
            binds = narrowed(agent, event, None) is not None and event.lead is not None
            effect = (
                f"it binds {name} to {_name_of_word(event.lead or '', roster)}, and allows nothing"
                if binds
                else "it does not count"
            )
            found[position] = f"nothing proves this {event.event} of {name}{by}, which a client runs: {effect}"
        roster.apply(event)
    return found


def _of_read(one: UnprovenLine, asked: dict[str, Message], roster: Roster) -> str:
    """Return what an unproven record would have settled: of control, or of mail whose ack the person asked for."""
    record = codec.read(one.line)
    message = None if isinstance(record, BadLine) else asked.get(record.message_id)
    if isinstance(record, BadLine) or message is None:
        return ""
    if record.event == "seen":
        return ""  # our own hooks prove none: the delivery before it is what counts
    if record.event not in ("ack", "release") and not roster.has_client(record.session_id):
        return ""
    title = clipped(neutral(frame.title(message)), SHOWN)
    who = _name_of_word(record.session_id, roster)
    return f"nothing proves that {who} did this {record.event} of `{title}`: it settles nothing"


def _name_of_word(word: str, roster: Roster) -> str:
    return frame.name_of(word, roster) if roster.meant(word) is not None else frame.word(word)


def standing_rules(mailbox: Mailbox) -> list[str]:
    """Return one line of rules for each agent that has any, those that are allowed something first. A dead agent is
    told only for that: it has it again if it comes back."""
    fold, wide, narrow = control_log.of(mailbox), list[str](), list[str]()
    roster = fold.roster
    for agent in roster.agents.values():
        now = standing.of(fold, agent.session_id)
        widens = [f"allow {rule}" for rule in now.policy.allow] + [f"host {host}" for host in now.policy.hosts]
        widens += [f"mode {now.mode}"] if now.mode != "default" else []
        said = [f"lead {frame.name_of(now.lead, roster)}"] if agent.lead is not None else []
        said += ["waits for a plan's approval"] if now.waits_for_plan else []
        said += [f"deny {rule}" for rule in now.policy.deny]
        is_dead = agent.state == DEAD
        if widens or (said and not is_dead):
            name = frame.name_of(agent.session_id, roster) + (" (dead, if it comes back)" if is_dead else "")
            (wide if widens else narrow).append(f"{name}: {', '.join([*widens, *said])}")
    return [*wide, *narrow]
