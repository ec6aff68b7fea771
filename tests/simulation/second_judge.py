"""A second judge, which knows the texts alone (``tests.judge``), reads a world's logs and answers, too.

Belongs here: from the bytes on the simulated disk to the facts of that judge, and where its answers are asked. The
derived files of the product are held to its own core; so the core is held to this. Reading costs no call of the world.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from agent_mailbox.core import dead_letters, inbox, obligations
from agent_mailbox.mailbox.queries import LATELY, MailQueries
from tests.judge.lines import Facts, read_time
from tests.judge.mail import Judge
from tests.judge.people import FROZEN, fold_roster
from tests.simulation.places import BOX, HOURS, LIVE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent_mailbox.core.inbox import InboxState
    from tests.simulation.disk import Disk
    from tests.simulation.stage import Stage

GONE = "its client's process ended"


def read_facts(disk: Disk, box: str, hours: Mapping[str, float | None]) -> Facts:
    """Return what the logs of a mailbox say, the archive first."""
    live = [f"{box}/{name.rpartition('/')[2]}" for name in LIVE]
    files = {path: inode for path, inode in disk.files(solid=False) if path.startswith(f"{box}/")}
    old = [path for path in sorted(files) if path.startswith(f"{box}/agent-mailbox-archive/2")]
    logs = {path: [*_objects(bytes(files[path].data))] for path in (*old, *live) if path in files}
    facts = Facts(hours={mode: None if ttl is None else int(ttl) for mode, ttl in hours.items()})
    reads = [path for path in old if path.endswith("-reads.jsonl")]
    facts.messages = [line for path in (*(p for p in old if p not in reads), live[0]) for line in logs.get(path, ())]
    facts.reads = [line for path in (*reads, live[1]) for line in logs.get(path, ())]
    facts.roster = logs.get(live[2], [])
    for path, inode in files.items():
        if path.startswith(beats := f"{box}/agent-heartbeats/"):
            facts.looked[path.removeprefix(beats)] = datetime.fromtimestamp(inode.mtime / 1e9, UTC)
    ended = {line["session_id"]: line.get("reason") for line in facts.roster if line["event"] in {"freeze", "register"}}
    people = fold_roster(facts)
    facts.gone = {who for who, why in ended.items() if why == GONE and people[who].state == FROZEN}
    return facts


def _objects(data: bytes) -> list[dict[str, Any]]:
    found = []
    for line in data.split(b"\n"):
        try:
            said = json.loads(line)
            read_time(said["timestamp"])
        except (ValueError, KeyError, TypeError):
            continue  # no record: it is no JSON object, or has no instant
        found.append(said)
    return found


def is_asked(stage: Stage) -> bool:
    """Return whether it understands this world: one in which no program wrote that spells lines in its own way."""
    return not (stage.judge.has_strangers() or stage.judge.torn or stage.early or stage.world.befell("jump"))


def has_returned(facts: Facts, who: str) -> bool:
    """Return whether a session was ever dead, or one that it continues was so before. What the steward archived
    meanwhile is not told again."""
    retired = {line["session_id"]: line["timestamp"] for line in facts.roster if line["event"] == "retire"}
    begun = {line["session_id"]: line for line in facts.roster if line.get("continues")}
    if who in retired:
        return True
    while who in begun:
        before, at = begun[who]["continues"], begun[who]["timestamp"]
        if retired.get(before, at) != at:
            return True
        who = before
    return False


def list_archived(stage: Stage, judge: Judge, live: InboxState) -> set[str]:
    """Return the mail that was archived under a shorter time, and would wait again under today's: it stays away."""
    if f"{BOX}/config.toml" not in dict(stage.world.disk.files(solid=False)):
        return set()
    short = Judge(replace(judge.facts, hours=dict.fromkeys(judge.facts.hours, HOURS[0])), judge.now)
    return {mail.id for mail in short.mail if mail.id not in live.messages and short.has_expired(mail)}


def hold(stage: Stage, who: str, now: int, live: InboxState, everything: InboxState | None) -> None:
    """Hold the core's answers about whole logs to the second judge's. Mail that another claims is left out."""
    if not is_asked(stage):
        return
    judge = Judge(read_facts(stage.world.disk, BOX, live.ttls), datetime.fromtimestamp(now / 1000, UTC))
    if has_returned(judge.facts, who):
        return
    claimed = {mail.id for mail in judge.mail if live.reads.claim(mail.id) is not None}
    archived = list_archived(stage, judge, live)
    told = [item.message.id for item in inbox.unread(who, live, now) if item.message.id not in claimed]
    compare(stage, who, "unread", told, [name for name in judge.unread(who) if name not in claimed | archived])
    compare(stage, who, "owed", sorted(m.id for m in obligations.obligations(who, live)), sorted(judge.owes(who)))
    if everything is not None:
        lost = sorted(m.id for m, _ in dead_letters.dead_letters(everything, now))
        known = [mail.id for mail in judge.mail if mail.id in everything.messages and judge.lost(mail) is not None]
        compare(stage, who, "lost", lost, sorted(known))


def hold_all(stage: Stage) -> None:
    """Ask about everyone at the end of a world."""
    if is_asked(stage):
        now = stage.world.wall() // 1_000_000
        desk = stage.desk(clock=lambda: now)
        live, everything = desk.state(), MailQueries(desk).everything(now - LATELY)
        for session in stage.registered():
            hold(stage, session.id, now, live, everything)
        told = Counter(_told_lost(read_facts(stage.world.disk, BOX, live.ttls)))
        for (who, letter), count in told.items():
            if count > 1:
                stage.judge.breach(f"{who} is told {count} times that {letter} is a dead letter")


def _told_lost(facts: Facts) -> Iterator[tuple[str, str]]:
    """Who was told of which dead letter by the steward, for each time."""
    for mail in facts.mail():
        named = mail.line.get("metadata")
        if mail.sender == "steward" and isinstance(named, dict):
            yield from ((mail.to[0], letter) for letter in named.get("dead_letters", ()))


def compare(stage: Stage, who: str, what: str, told: list[str], judged: list[str]) -> None:
    if told != judged:
        more, less = set(told) - set(judged), set(judged) - set(told)
        stage.judge.breach(f"{who}: {what} told, and not by the texts: {more}; by the texts alone: {less}")
        stage.judge.about |= more | less
