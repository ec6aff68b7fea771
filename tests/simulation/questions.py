"""Questions: the answers of derived files must be those of the logs, whoever writes meanwhile.

Belongs here: commands that ask a mailbox, and compare what they are told with what the logs say, read whole and judged
by the core. That is the third promise: deleting ``.cache`` changes no answer. And the programs that make such answers
hard: those that append records in another spelling, and a configuration that changes.
"""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from agent_mailbox.config import config
from agent_mailbox.core import codec, dead_letters, inbox, obligations
from agent_mailbox.core.address import uuid_of
from agent_mailbox.core.records import Read
from agent_mailbox.mailbox.queries import LATELY, MailQueries
from agent_mailbox.store.files import system
from agent_mailbox.store.polling.poll import Poll
from tests.simulation import second_judge
from tests.simulation.places import BOX, HOURS, LIVE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agent_mailbox.core.inbox import Item
    from tests.simulation.letters import Session
    from tests.simulation.process import Process
    from tests.simulation.stage import Stage
    from tests.simulation.world import World

COMMANDS = ("question", "stand", "configure", "foreign_note")
HOUR = 3_600_000
"""In milliseconds."""


class Moment:
    """What answers follow from. Two equal moments have the same answers; if nobody else made a call between, also about
    claims, which hang on the signs of life."""

    def __init__(self, world: World, process: Process) -> None:
        self.others = world.calls - process.calls
        there = world.disk.files(solid=False)
        self.files = [
            (path, inode.number, len(inode.data), 0 if path in LIVE else inode.mtime)
            for path, inode in there
            if path.startswith(f"{BOX}/") and "/.cache/" not in path and not path.startswith(f"{BOX}/attachments")
        ]
        self.broken = any(path.endswith("/broken") for path, _ in world.disk.files(solid=False))


@contextmanager
def alone(world: World) -> Iterator[None]:
    """Nobody interrupts, and nothing goes wrong: what the logs say is read so."""
    before, world.quiet = world.quiet, True
    try:
        yield
    finally:
        world.quiet = before


def question(stage: Stage, process: Process, me: Session) -> None:
    """Ask what a session has, owes and lost."""
    if me.registered is None or me.may_be_dead:
        return
    now = stage.world.wall() // 1_000_000
    desk = stage.desk(me.id, clock=lambda: now)
    queries, before = MailQueries(desk), Moment(stage.world, process)
    who = me.id if process.chance.random() < 0.5 else None
    limit = 2 if process.chance.random() < 0.3 else None
    status = queries.status(me.id)
    between = Moment(stage.world, process)
    letters, older = queries.dead_letters(who, None, limit)
    after = Moment(stage.world, process)
    with alone(stage.world):
        fresh = stage.desk(me.id, clock=lambda: now)
        live, everything = fresh.state(), MailQueries(fresh).everything(now - LATELY)
        unread = inbox.unread(me.id, live, now)
        last = Moment(stage.world, process)
    quiet = before.others == last.others and not process.hurt  # a lock that fails counts as held
    if before.files == last.files and before.broken == last.broken and quiet:
        most = len(unread) + len(stage.early & live.messages.keys())
        _same(stage, me, "unread mail", status.unread, min(max(status.unread, len(unread)), most))
    if before.files == between.files == last.files and before.broken == last.broken:
        owed = obligations.obligations(me.id, live)
        _same(stage, me, "obligations", _ids(status.obligations), _ids(owed))
        lost = len(dead_letters.dead_letters(live, now, me.id))
        _same(stage, me, "dead letters", status.dead_letters, lost)
    if before.files == after.files == last.files and before.broken == last.broken:
        all_lost = {message.id for message, _ in dead_letters.dead_letters(everything, now, who)}
        shown = {message.id for message, _ in letters}
        _same(stage, me, "dead letters of all time", len(shown) + older, len(all_lost))
        _same(stage, me, "dead letters that are none", shown - all_lost, set())
        second_judge.hold(stage, me.id, now, live, everything)


def _ids(messages: Iterable[Any]) -> list[str]:
    return sorted(message.id for message in messages)


def _same(stage: Stage, me: Session, what: str, told: object, by_logs: object) -> None:
    if told != by_logs:
        if isinstance(told, list | set) and isinstance(by_logs, list | set):
            stage.judge.about |= {str(one) for one in set(told) ^ set(by_logs)}
        stage.judge.breach(f"{me.id} is told {what}: {told}; the logs say {by_logs}")


def stand(stage: Stage, process: Process, me: Session) -> None:
    """Stay, as a console or a doorbell does, and look again and again, though clock and configuration may change."""
    if me.registered is None or me.may_be_dead:
        return
    desk, ahead = stage.desk(me.id), 0
    for _ in range(3 + int(process.chance.random() * 6)):
        if process.chance.random() < 0.3:
            ahead = 3 * HOUR - ahead
        if process.chance.random() < 0.2:
            configure(stage, process, me)
        now = stage.world.wall() // 1_000_000 + ahead
        stage.world.tell(f"{process.name} looks, its clock {ahead // HOUR} hours ahead")
        before, settings = Moment(stage.world, process), config.load_config(BOX)
        unread = Poll(desk.logs, me.id, settings).unread(now)
        with alone(stage.world):
            state = stage.desk(me.id).logs.state(settings.ttls)
            wanted = inbox.unread(me.id, state, now)
            after = Moment(stage.world, process)
        if before.files == after.files and before.broken == after.broken:
            if before.others != after.others or process.hurt:
                unread, wanted = _own(unread), _own(wanted)
            _same(stage, me, "unread mail", _told(unread, stage.early), _told(wanted, stage.early))
        system.sleep((0.01, 4.0, 4.0)[int(process.chance.random() * 3)])


def _own(items: Iterable[Item]) -> list[Item]:
    return [item for item in items if not item.claims]


def _told(items: Iterable[Item], early: set[str]) -> list[str]:
    return [item.message.id for item in items if item.message.id not in early]


def configure(stage: Stage, process: Process, me: Session) -> None:
    """The person changes how long mail lives that says nothing of that."""
    stage.count += 1
    hours = HOURS[int(process.chance.random() * len(HOURS))]
    text = f"[ttl]\ndirect = {hours}\ntag = {hours}\nbroadcast = {hours}\n{'#' * (stage.count % 50)}\n"
    path = f"{BOX}/config.toml"
    fd = system.open(f"{path}.{process.pid}", system.O_WRONLY | system.O_CREAT | system.O_TRUNC, 0o600)
    written = system.write(fd, text.encode())
    system.fsync(fd)
    system.close(fd)
    if written == len(text):
        system.rename(f"{path}.{process.pid}", path)


def foreign_note(stage: Stage, process: Process, me: Session) -> None:
    """A program that knows no lock appends records about mail: in its own spelling, about mail to come, or none."""
    judge, chance = stage.judge, process.chance
    letters = list(judge.letters.values())
    if not letters or chance.random() < 0.3:
        message_id = uuid_of(f"{chance.getrandbits(128):032x}", "4")
        stage.reserved.append((message_id, me.id))
    else:
        message_id = letters[-1 - int(chance.random() * min(len(letters), 6))].id
    event = ("read", "read", "read", "ack", "release", "claim", "seen")[int(chance.random() * 7)]
    via = (None, None, me.role, me.tag)[int(chance.random() * 4)]
    read = Read(message_id, me.id, stage.world.wall() // 1_000_000, event, via, title=chance.random() < 0.2)
    line = codec.spell_read(read)
    drawn = chance.random()
    if drawn < 0.2:
        line = re.sub(rb'("timestamp":")[-0-9]{10}', rb"\g<1>2026-02-30", line)  # no day, so no record
    elif drawn < 0.5:
        said = json.loads(line)
        text = json.dumps(dict(reversed(said.items())) if drawn < 0.4 else said)
        line = text.replace(me.id, f"\\u{ord(me.id[0]):04x}{me.id[1:]}").encode() + b"\n"
    if chance.random() < 0.15:  # torn, and rather behind a key
        keys = [found.end() for found in re.finditer(rb'": ?', line)]
        line = line[
            : keys[int(chance.random() * len(keys))] if chance.random() < 0.7 else int(chance.random() * len(line))
        ]
    judge.noted(me, message_id)
    judge.doubled.add(line.removesuffix(b"\n"))
    fd = system.open(LIVE[1], system.O_WRONLY | system.O_APPEND | system.O_CREAT, 0o600)
    written = system.write(fd, line)
    judge.torn = judge.torn or written < len(line)
    system.close(fd)
    judge.noted(me, message_id)
