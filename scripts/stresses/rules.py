"""What must hold between what the processes were told and what stands in the logs.

Belongs here: the promises, each a function that gives one line for each breach. Must not know how the run went on;
``Account`` is all there is of it.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from . import cast, decisions
from .journal import notes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from typing import Any

    from .commands import Command
    from .evidence import Evidence, Stored


class Show:
    """Mail that a session was shown at one moment. ``excused``: its process was not able to record that."""

    def __init__(self, session: str, tokens: list[str], excused: bool) -> None:
        self.session, self.tokens, self.excused = session, tokens, excused


class Account:
    """What every process was told, from the journals and what the commands said."""

    def __init__(self) -> None:
        self.sent: dict[str, str | None] = {}
        self.tried: set[str] = set()
        self.again: set[str] = set()
        """Tried by an earlier life, of which nobody knows what it came to."""
        self.busy: set[str] = set()
        self.shows: list[Show] = []
        self.retired: set[str] = set()
        self.errors: list[str] = []
        self.counts: Counter[str] = Counter()
        self.killed = 0
        self.permits: list[decisions.Permit] = []
        self.decided: list[tuple[str, str, str]] = []
        """(who was told, of which request, how it was decided)."""
        self.bearers: tuple[str, ...] = ()

    def hear_process(self, path: Path, *, killed: bool) -> None:
        """Take in a journal; ``killed``: its process did not end by itself."""
        told = list(notes(path))
        open_shows: dict[int, Show] = {}
        for note in told:
            self._hear(note, open_shows, path.name)
        for show in open_shows.values():
            show.excused = killed
        ended = bool(told) and told[-1]["op"] == "end"
        if not killed and not ended:
            self.errors.append(f"{path.name} ends without an end")

    def _hear(self, note: Mapping[str, Any], open_shows: dict[int, Show], name: str) -> None:
        op = note["op"]
        self.counts[op] += 1
        self.counts["forged"] += note.get("forged") is True
        if op == "send":
            if note["token"] in self.tried:
                self.again.add(note["token"])
            self.tried.add(note["token"])
        elif op == "sent":
            self.sent.update(note["pairs"])
        elif op == "unsent" and note["busy"]:
            self.busy.update(note["tokens"])
        elif op == "show":
            open_shows[note["number"]] = Show(note["session"], note["tokens"], False)
            self.shows.append(open_shows[note["number"]])
        elif op == "recorded":
            del open_shows[note["number"]]
        elif op == "unrecorded" and note["number"] in open_shows:
            show = open_shows.pop(note["number"])
            show.excused = note["code"] == "busy"
            self.counts["shown, then busy"] += show.excused
        elif op == "retire":
            self.retired.add(note["session"])
        elif op == "error" or (op == "refused" and note["code"] == "id_conflict"):
            self.errors.append(f"{name}: {note['text']}")
        elif op == "decided":
            self.decided.append((name, note["request"], note["state"]))
        elif op == "steward":
            self.counts["archived"] += note["archived"]

    def hear_command(self, command: Command, *, slept: bool) -> None:
        """Take in a command; ``slept``: some process was stopped while it ran, so a hook may have found a lock held
        between showing and recording, which it keeps to itself."""
        complaint = command.complaint()
        if complaint is not None:
            self.errors.append(complaint)
        self.counts["busy"] += command.busy
        self.counts[f"command {command.what}"] += 1
        if command.what == "permit":
            asked = decisions.Permit(command.session, command.asks, command.said, killed=command.killed)
            self.permits.append(asked)
        elif command.what == "wait" and command.code in (0, 1) and command.said:
            found = json.loads(command.said)["request"]
            self.decided.append((f"command {command.number}", found["id"], found["state"]))
        if command.token:
            self.tried.add(command.token)
            if command.code == 0:
                self.sent.setdefault(command.token, None)
            elif command.busy:
                self.busy.add(command.token)
        if command.shown:
            excused = command.killed or command.busy or (command.what == "hook" and slept)
            self.shows.append(Show(command.session, command.shown, excused))


def breaches(evidence: Evidence, told: Account, unread: Mapping[str, list[str]]) -> Iterator[str]:
    """Every breach; ``unread`` are the tokens each session still has to read."""
    yield from told.errors
    yield from _stored_once(evidence, told)
    yield from _delivered(evidence, told, unread)
    yield from _shown_once(evidence, told)
    yield from _recorded_as_shown(evidence, told)
    yield from _held_by_one(evidence)
    yield from _archived_when_finished(evidence, told)
    yield from _lines_whole(evidence, told)
    yield from decisions.breaches(decisions.cases(evidence), told.permits, told.decided)


def _stored_once(evidence: Evidence, told: Account) -> Iterator[str]:
    """Acknowledged: there exactly once, under the id that was acknowledged. Busy: not there. Tried: at most once."""
    for token, message_id in told.sent.items():
        there = evidence.by_token.get(token, [])
        if len(there) != 1 or len(there[0].places) != 1 or message_id not in (None, there[0].id):
            yield f"{token} was acknowledged as {message_id} and is there {[(m.id, m.places) for m in there]}"
    for token, there in evidence.by_token.items():
        if len(there) > 1 or len(there[0].places) > 1:
            yield f"{token} stands {[(m.id, m.places) for m in there]}"
        if token in told.busy and token not in told.sent and token not in told.again:
            yield f"{token} was refused as busy and is there all the same"


def _delivered(evidence: Evidence, told: Account, unread: Mapping[str, list[str]]) -> Iterator[str]:
    """Everyone a message was for has read it, or has it unread still."""
    waiting = {session: set(tokens) for session, tokens in unread.items()}
    retired = {evidence.kin(session) for session in told.retired}
    bearers = {evidence.kin(session): session for session in told.bearers}
    for message in evidence.stored():
        if message.may_expire:
            continue
        standing = evidence.standing(message.id)
        kin = {evidence.kin(session) for session in standing}
        for address in message.to:
            if address.startswith("role:"):
                holders = [s for s, roles in cast.ROLES.items() if address[5:] in roles and s != message.sender]
                if holders and not evidence.claimed(message.id):
                    missing = [] if any(message.token in waiting[s] or s in standing for s in holders) else [address]
                else:
                    missing = []
            else:
                missing = [
                    session
                    for session in _readers(address, message, evidence)
                    if evidence.kin(session) not in kin
                    and evidence.kin(session) not in retired
                    and message.token not in waiting.get(bearers.get(evidence.kin(session), session), ())
                ]
            for session in missing:
                yield f"{message.token} ({message.id}) to {message.to}: {session} neither read it nor has it unread"


def _readers(address: str, message: Stored, evidence: Evidence) -> list[str]:
    everybody = {cast.TAG: cast.TAGGED, "all": cast.STEADY}.get(address, (address,))
    return [session for session in everybody if evidence.kin(session) != evidence.kin(message.sender)]


def _shown_once(evidence: Evidence, told: Account) -> Iterator[str]:
    """Nobody was shown a message again, unless it was given back, or who showed it could not record that."""
    shown: dict[str, Counter[str]] = {}
    for show in told.shows:
        for token in () if show.excused else show.tokens:
            shown.setdefault(token, Counter())[evidence.kin(show.session)] += 1
    for message in evidence.stored():
        times = shown.get(message.token, Counter())
        events = evidence.events(message.id)
        back = Counter(evidence.kin(session) for session, event, _ in events if event == "release")
        read = Counter(evidence.kin(session) for session, event, _ in events if event == "read")
        for session in read.keys() | times.keys():
            if max(times[session], read[session]) > 1 + back[session]:
                yield (
                    f"{message.token} ({message.id}): {session} was shown it {times[session]} times and read it"
                    f" {read[session]} times, having given it back {back[session]} times"
                )


def _recorded_as_shown(evidence: Evidence, told: Account) -> Iterator[str]:
    """What is recorded as read was shown."""
    shown = {(token, show.session) for show in told.shows for token in show.tokens}
    for message in evidence.stored():
        for session, event, _ in evidence.events(message.id):
            if event == "read" and (message.token, session) not in shown:
                yield f"{message.token} ({message.id}) is recorded as read by {session}, which was never shown it"


def _held_by_one(evidence: Evidence) -> Iterator[str]:
    """Of role mail there is never more than one holder. A name that nobody had is given to its taker beside that."""
    for message in evidence.stored():
        holders: set[str] = set()
        for session, event, via in evidence.events(message.id):
            if event == "release":
                holders.discard(session)
            elif event == "read" and (via or "").startswith("role:") and via not in message.bare:
                holders.add(session)
            if len({evidence.kin(holder) for holder in holders}) > 1:
                yield f"{message.token} ({message.id}) is held by {sorted(holders)} at once"
                break


def _archived_when_finished(evidence: Evidence, told: Account) -> Iterator[str]:
    """Nothing that is pending or owed was moved."""
    retired = {evidence.kin(session) for session in told.retired}
    for message in evidence.stored():
        if not message.archived or message.may_expire:
            continue
        standing = evidence.standing(message.id)
        kin = {evidence.kin(session) for session in standing}
        acked = {session for session, event, _ in evidence.events(message.id) if event == "ack"}
        settled = acked | evidence.replied.get(message.id, set())
        for address in message.to:
            if address.startswith("role:"):
                pending = not evidence.claimed(message.id)
            else:
                pending = address in (cast.TAG, "all") or (
                    evidence.kin(address) not in kin and evidence.kin(address) not in retired
                )
            if pending:
                yield f"{message.token} ({message.id}) to {address} is archived and pending"
        owing = [s for s in standing if message.ack and s in cast.STEADY and s not in settled]
        if owing:
            yield f"{message.token} ({message.id}) is archived, and {owing} owe its ack"


def _lines_whole(evidence: Evidence, told: Account) -> Iterator[str]:
    """Every line is whole but those that were torn on purpose, and the last words of the killed."""
    torn = [found for found in evidence.bad if cast.TORN.encode() not in found[2]]
    cut = [found for found in torn if found[2].startswith((b'{"id":"', b'{"message_id":"', b'{"event":"'))]
    for path, number, line in torn if len(cut) > told.killed else [found for found in torn if found not in cut]:
        yield f"{path}:{number} is no record: {line[:200]!r}"
