"""What programs append that know no lock: mail, whole, torn or odd, and records in every spelling.

Belongs here: such programs as commands. For sweeps (``tables``) they write a record on a day that is none, a torn one,
one about a message to come; a line without an end, one that begins again, a second one, one that is no JSON.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from agent_mailbox.core import codec
from agent_mailbox.core.address import uuid_of
from agent_mailbox.core.records import Message, Read
from agent_mailbox.store.files import system
from tests.simulation.letters import Letter, Session
from tests.simulation.places import LIVE
from tests.simulation.sending import address
from tests.simulation.stage import LASTING, LEAD, pick

if TYPE_CHECKING:
    from tests.simulation.process import Process
    from tests.simulation.stage import Stage

COMMANDS = (
    *("foreign", "foreign_again", "note", "note_ahead", "torn_note", "claim"),
    *("twin", "double", "astray", "unclean", "unended", "start_over"),
)
TITLE, NO_DAY, ESCAPED, TURNED, CLAIM, RELEASE = "title", "no day", "escaped", "turned", "claim", "release"
TURNED_RELEASE = "turned release"
SPELLINGS = ("", TITLE, NO_DAY, ESCAPED, TURNED, CLAIM, RELEASE, "ack", TURNED_RELEASE)
"""How another program writes a record: as we do; about a title; on a day that is none; with an escape, its keys turned;
as another event; as a release with its keys turned."""


def append(stage: Stage, path: str, text: bytes) -> None:
    """Append as a program does that knows no lock."""
    fd = system.open(path, system.O_WRONLY | system.O_APPEND | system.O_CREAT, 0o600)
    written = system.write(fd, text)
    stage.judge.torn = stage.judge.torn or written < len(text)
    system.close(fd)


def record(stage: Stage, process: Process, me: Session, message_id: str, spelling: str, *, torn: bool = False) -> None:
    """Append a record of a session about a message, in one of ``SPELLINGS``."""
    letter = stage.judge.letters.get(message_id)
    via = letter.to if letter is not None and letter.to in (me.role, me.tag) else None
    event = spelling.removeprefix("turned ")
    event = event if event in (CLAIM, RELEASE, "ack") else "read"
    when = stage.world.wall() // 1_000_000
    line = codec.spell_read(Read(message_id, me.id, when, event, via, title=spelling == TITLE))
    if spelling == NO_DAY:
        line = re.sub(rb'("timestamp":")[-0-9]{10}', rb"\g<1>2026-02-30", line)
    elif spelling in (TURNED, TURNED_RELEASE):
        line = json.dumps(dict(reversed(json.loads(line).items()))).encode() + b"\n"
    elif spelling == ESCAPED:
        line = line.replace(me.id.encode(), b"\\u%04x" % ord(me.id[0]) + me.id[1:].encode())
    if torn:
        keys = [found.end() for found in re.finditer(rb'": ?', line)]
        line = line[: pick(process, keys)]
        stage.judge.torn = True
    stage.judge.noted(me, message_id)
    stage.judge.doubled.add(line.removesuffix(b"\n"))
    append(stage, LIVE[1], line)
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


def foreign(stage: Stage, process: Process, me: Session) -> None:
    """A program that knows no lock appends mail, whole or torn."""
    letter = stage.letter(f"cron-{stage.count}", address(stage, process, me), process)
    letter.foreign = True
    letter.lasting = process.chance.random() < 0.8
    torn = process.chance.random() < 0.5 and stage.world.seed % 3 == 0
    said = letter.content
    if process.chance.random() < 0.3:
        letter.content += pick(process, ODD)
        said = json.dumps(letter.content, ensure_ascii=process.chance.random() < 0.5)[1:-1]
    text = line_of(letter, said)
    stage.judge.torn = stage.judge.torn or torn  # before the call: it may be killed right behind
    fd = system.open(LIVE[0], system.O_WRONLY | system.O_APPEND)
    length = len(text) - 1 if process.chance.random() < 0.3 else int(process.chance.random() * len(text))
    written = system.write(fd, text[:length] if torn else text)
    stage.judge.torn = stage.judge.torn or written < len(text)
    file = process.files.get(fd)
    letter.times = (file.inode.before, file.inode.mtime) if file is not None and file.inode is not None else (0, 0)
    system.close(fd)
    if stage.judge.torn:
        stage.judge.appended.clear()  # whatever follows a torn line may be glued to it
    elif letter.begun > stage.judge.steward_died and file is not None and stage.world.is_at(LIVE[0], file.inode):
        stage.judge.appended.add(letter.id)


ODD = ("\\u0041", "\\\\u00fc", "\\n", '"}', "\x07", "\x1f\n", "ü\u2028", "\x7f", '\\",\\"id\\":\\"x')
"""Ends of texts that other programs spell otherwise than we do."""


def line_of(letter: Letter, said: str, to: str = "") -> bytes:
    lives = LASTING if letter.lasting else 2
    return (
        f'{{"id":"{letter.id}","sender":"{letter.sender}","recipient":"{to or letter.to}","timestamp":'
        f'"2026-01-01T00:00:00.000Z","content":"{said}","thread":null,"ttl_hours":{lives},"read_by":[]}}\n'
    ).encode()


def spelt(letter: Letter, to: str = "") -> bytes:
    """The line of a message, perhaps for another agent."""
    return line_of(letter, json.dumps(letter.content, ensure_ascii=False)[1:-1], to)


def foreign_again(stage: Stage, process: Process, me: Session) -> None:
    """A program that knows no lock appends a message a second time, perhaps to others, and perhaps odd lines."""
    there = [letter for letter in stage.judge.letters.values() if letter.acked or letter.id in stage.judge.appended]
    drawn = process.chance.random()
    if drawn < 0.2:
        text = pick(
            process, (b'{"id":"%s","sender":"x\x07"}\n', b"\x00\n", b"[]\n", rung(process), rung(process), b"\n\n")
        )
    elif there:
        letter = pick(process, there)
        text = line_of(letter, json.dumps(letter.content, ensure_ascii=drawn < 0.5)[1:-1])
    else:
        return
    stage.judge.doubled.update(text.split(b"\n"))
    fd = system.open(LIVE[0], system.O_WRONLY | system.O_APPEND)
    written = system.write(fd, text)
    stage.judge.torn = stage.judge.torn or written < len(text)
    system.close(fd)


def rung(process: Process) -> bytes:
    """A line that is a message in our spelling but for a character that JSON does not allow: nobody's mail."""
    message_id, to = uuid_of(f"{process.chance.getrandbits(128):032x}", "4"), pick(process, ("agent-0", "agent-1"))
    return (
        f'{{"id":"{message_id}","sender":"cron","recipient":"{to}","timestamp":"2025-12-31T00:00:00.000Z",'
        '"content":"ding\x07","thread":null,"ttl_hours":2,"read_by":[]}\n'
    ).encode()


def _there(stage: Stage, process: Process) -> Letter | None:
    """A message of late whose line is in the live log. If another program spoilt that line, its second one would
    be the first that counts, and might be shown again."""
    live = bytes(stage.world.kernel.look_up(LIVE[0]).data).split(b"\n")[:-1]
    ids = {message.id for message in map(codec.message, live) if isinstance(message, Message)}
    there = [letter for letter in stage.judge.letters.values() if letter.id in ids]
    return pick(process, there[-3:]) if there else None


def _second(stage: Stage, letter: Letter, *, lasting: bool, to: str = "") -> None:
    before, letter.lasting = letter.lasting, lasting
    line = spelt(letter, to)
    letter.lasting = before
    stage.judge.doubled.update(line.split(b"\n"))
    append(stage, LIVE[0], line)


def double(stage: Stage, process: Process, me: Session) -> None:
    """Another program appends a message a second time."""
    letter = _there(stage, process)
    if letter is not None:
        _second(stage, letter, lasting=letter.lasting)


def astray(stage: Stage, process: Process, me: Session) -> None:
    """Another program gives mail to this agent the id of other mail: the first line alone counts."""
    letter = _there(stage, process)
    if letter is not None:
        _second(stage, letter, lasting=letter.lasting, to=me.id)


def twin(stage: Stage, process: Process, me: Session) -> None:
    """Another program appends a message a second time, which would live for long. The scan of a large log leaves out
    mail that has expired by its mode's time to live, and does not look for its second lines."""
    letter = _there(stage, process)
    if letter is not None and (letter.foreign or stage.drafts[letter.id].ttl_hours is not None):
        _second(stage, letter, lasting=True)


def unclean(stage: Stage, process: Process, me: Session) -> None:
    """Another program writes a character into a message that JSON does not allow: it is none."""
    line = rung(process)
    stage.judge.doubled.update(line.split(b"\n"))
    append(stage, LIVE[0], line)


def _foreign(stage: Stage, process: Process) -> tuple[Letter, bytes]:
    letter = stage.letter(f"cron-{stage.count}", address(stage, process, stage.judge.sessions[LEAD]), process)
    letter.foreign = True
    return letter, spelt(letter)


def unended(stage: Stage, process: Process, me: Session) -> None:
    """Another program appends mail, and leaves out the end of its line."""
    _, line = _foreign(stage, process)
    stage.judge.torn = True
    append(stage, LIVE[0], line.removesuffix(b"\n"))


def start_over(stage: Stage, process: Process, me: Session) -> None:
    """Another program's write was cut short, so it begins the message again on a line of its own."""
    _, line = _foreign(stage, process)
    begun = line[: len(line) // 4 + int(process.chance.random() * len(line) * 3 // 4)]
    stage.judge.doubled.update((begun, b""))
    append(stage, LIVE[0], begun.rstrip(b"\n") + b"\n" + line)


def mail(stage: Stage, process: Process) -> None:
    """Append a message."""
    _, line = _foreign(stage, process)
    append(stage, LIVE[0], line)
