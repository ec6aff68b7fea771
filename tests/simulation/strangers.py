"""What other programs append that knows no lock: records in every spelling, and mail that makes tables hard.

Belongs here: such programs as commands for sweeps (``tables``): a record on a day that is none, a torn one, one about a
message to come; a line without an end, one that begins anew, a second one, one that is no JSON.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from agent_mailbox.core import codec
from agent_mailbox.core.ids import uuid_of
from agent_mailbox.core.records import Message, Read
from agent_mailbox.store import system
from tests.simulation import commands
from tests.simulation.commands import LEAD, pick
from tests.simulation.judge import LIVE, Letter, Session

if TYPE_CHECKING:
    from tests.simulation.commands import Stage
    from tests.simulation.world import Process

COMMANDS = ("note", "note_ahead", "torn_note", "claim", "twin", "double", "unclean", "unended", "start_over")
TITLE, NO_DAY, ESCAPED, TURNED, CLAIM, RELEASE = "title", "no day", "escaped", "turned", "claim", "release"
SPELLINGS = ("", TITLE, NO_DAY, ESCAPED, TURNED, CLAIM, RELEASE, "ack")
"""How another program writes a record: as we do; about a title; on a day that is none; with an escape, its keys turned;
as another event."""


def _append(stage: Stage, path: str, text: bytes) -> None:
    """Append as a program does that knows no lock."""
    fd = system.open(path, system.O_WRONLY | system.O_APPEND | system.O_CREAT, 0o600)
    written = system.write(fd, text)
    stage.judge.torn = stage.judge.torn or written < len(text)
    system.close(fd)


def record(stage: Stage, process: Process, me: Session, message_id: str, spelling: str, *, torn: bool = False) -> None:
    """Append a record of a session about a message, in one of ``SPELLINGS``."""
    letter = stage.judge.letters.get(message_id)
    via = letter.to if letter is not None and letter.to in (me.role, me.tag) else None
    event = spelling if spelling in (CLAIM, RELEASE, "ack") else "read"
    when = stage.world.wall() // 1_000_000
    line = codec.read_line(Read(message_id, me.id, when, event, via, title=spelling == TITLE))
    if spelling == NO_DAY:
        line = re.sub(rb'("timestamp":")[-0-9]{10}', rb"\g<1>2026-02-30", line)
    elif spelling == TURNED:
        line = json.dumps(dict(reversed(json.loads(line).items()))).encode() + b"\n"
    elif spelling == ESCAPED:
        line = line.replace(me.id.encode(), b"\\u%04x" % ord(me.id[0]) + me.id[1:].encode())
    if torn:
        keys = [found.end() for found in re.finditer(rb'": ?', line)]
        line = line[: pick(process, keys)]
        stage.judge.torn = True
    stage.judge.noted(me, message_id)
    stage.judge.doubled.add(line.removesuffix(b"\n"))
    _append(stage, LIVE[1], line)
    stage.judge.noted(me, message_id)


def _recent(stage: Stage, process: Process, me: Session) -> Letter | None:
    """A letter of late, rather one that the session may get."""
    late = [*stage.judge.letters.values()][-4:]
    mine = [letter for letter in late if me.may_get(letter)]
    return pick(process, mine or late) if late else None


def note(stage: Stage, process: Process, me: Session) -> None:
    """Another program writes that a session read a message, in one of many spellings, or gave it back."""
    letter = _recent(stage, process, me)
    if letter is not None:
        record(stage, process, me, letter.id, pick(process, SPELLINGS))


def torn_note(stage: Stage, process: Process, me: Session) -> None:
    """Another program is ended while it writes a record, behind one of its keys."""
    letter = _recent(stage, process, me)
    if letter is not None:
        record(stage, process, me, letter.id, "", torn=True)


def note_ahead(stage: Stage, process: Process, me: Session) -> None:
    """Another program writes that a session read a message that is still to come."""
    message_id = uuid_of(f"{process.chance.getrandbits(128):032x}", "4")
    stage.reserved.append((message_id, me.id))
    record(stage, process, me, message_id, "")


def claim(stage: Stage, process: Process, me: Session) -> None:
    """Another program claims mail for a holder of its role."""
    letters = [letter for letter in stage.judge.letters.values() if letter.to == me.role]
    if letters:
        record(stage, process, me, pick(process, letters[-2:]).id, CLAIM)


# -- messages --------------------------------------------------------------------------------------------------------


def _there(stage: Stage, process: Process) -> Letter | None:
    """A message of late whose line stands in the live log. If another program spoilt that line, its second one would
    be the first that counts, and might be shown again."""
    live = bytes(stage.world.kernel.look_up(LIVE[0]).data).split(b"\n")[:-1]
    ids = {message.id for message in map(codec.message, live) if isinstance(message, Message)}
    there = [letter for letter in stage.judge.letters.values() if letter.id in ids]
    return pick(process, there[-3:]) if there else None


def _second(stage: Stage, letter: Letter, *, lasting: bool) -> None:
    before, letter.lasting = letter.lasting, lasting
    line = commands._foreign_line(letter, json.dumps(letter.content, ensure_ascii=False)[1:-1])
    letter.lasting = before
    stage.judge.doubled.update(line.split(b"\n"))
    _append(stage, LIVE[0], line)


def double(stage: Stage, process: Process, me: Session) -> None:
    """Another program appends a message a second time."""
    letter = _there(stage, process)
    if letter is not None:
        _second(stage, letter, lasting=letter.lasting)


def twin(stage: Stage, process: Process, me: Session) -> None:
    """Another program appends a message a second time, which would live for long. The scan of a large log leaves out
    mail that has expired by its mode's time to live, and does not look for its second lines."""
    letter = _there(stage, process)
    if letter is not None and (letter.foreign or stage.drafts[letter.id].ttl_hours is not None):
        _second(stage, letter, lasting=True)


def unclean(stage: Stage, process: Process, me: Session) -> None:
    """Another program writes a character into a message that JSON does not allow: it is none."""
    line = commands._rung(process)
    stage.judge.doubled.update(line.split(b"\n"))
    _append(stage, LIVE[0], line)


def _foreign(stage: Stage, process: Process) -> tuple[Letter, bytes]:
    letter = stage.letter(f"cron-{stage.count}", commands._address(stage, process, stage.judge.sessions[LEAD]), process)
    letter.foreign = True
    return letter, commands._foreign_line(letter, json.dumps(letter.content, ensure_ascii=False)[1:-1])


def unended(stage: Stage, process: Process, me: Session) -> None:
    """Another program appends mail, and leaves out the end of its line."""
    _, line = _foreign(stage, process)
    stage.judge.torn = True
    _append(stage, LIVE[0], line.removesuffix(b"\n"))


def start_over(stage: Stage, process: Process, me: Session) -> None:
    """Another program's write was cut short, so it begins the message anew on a line of its own."""
    _, line = _foreign(stage, process)
    begun = line[: len(line) // 4 + int(process.chance.random() * len(line) * 3 // 4)]
    stage.judge.doubled.update((begun, b""))
    _append(stage, LIVE[0], begun.rstrip(b"\n") + b"\n" + line)


def mail(stage: Stage, process: Process) -> None:
    """Append a message."""
    _, line = _foreign(stage, process)
    _append(stage, LIVE[0], line)
