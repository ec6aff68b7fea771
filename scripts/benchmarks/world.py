"""Mailboxes to measure in: a year of mail between agents, written as our own writers spell it.

Belongs here: what a mailbox of a given size looks like. The lines are put together as text, for speed; a sample of
them is taken through the codec and must come back byte for byte, so that nothing is measured on lines nobody writes.
"""

from __future__ import annotations

import os
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_mailbox.core import codec, instant
from agent_mailbox.core.address import uuid_of
from agent_mailbox.core.records import BadLine, RosterEvent
from agent_mailbox.store.files import paths

from . import launch, timing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SEED = 20260316
PROJECTS, ROLES = 20, 20
SHARES = {"broadcast": 0.1, "tag": 0.2, "role": 0.3, "direct": 0.4}
YEAR = 365 * instant.DAY
RARE = "zyzzyva"
"""The word searched for: it is in ``RARE_MESSAGES`` messages of every mailbox."""
RARE_MESSAGES = 3
SAMPLE = 997
"""One line in so many is taken through the codec."""
SUBJECTS = ("Schema change", "Review of the parser", "Red build on main", "Question about caching", "Release notes")
_PROSE = (
    "agent branch build cache change check claim commit config context cursor decision deploy design draft error fail "
    "field file fix flag format guard hook index issue ledger limit line list lock log mail merge message migration "
    "module note old order parser patch path plan poll position project queue read release repair report request "
    "result review role run schema search session shell sign signal size stamp state sync table tag task test thread "
    "tool type update user wait write is the and of to in for please after before when not yet über naïve"
)
WORDS = tuple(_PROSE.split())


@dataclass(frozen=True)
class World:
    """A mailbox on disk and the sessions in it; who is measured are the first few of them."""

    directory: Path
    size: int
    agents: int
    sessions: tuple[str, ...]

    @property
    def quiet(self) -> str:
        """The session that gets no mail."""
        return self.sessions[0]

    @property
    def attended(self) -> str:
        """The session that a client runs, and that gets no mail either."""
        return self.sessions[5]

    @property
    def prompted(self) -> str:
        """The session whose hook is measured with mail."""
        return self.sessions[1]

    @property
    def checking(self) -> str:
        """The session whose check is measured with mail."""
        return self.sessions[2]

    @property
    def sender(self) -> str:
        """The session that sends."""
        return self.sessions[3]

    @property
    def sink(self) -> str:
        """The session that is sent to and never looks."""
        return self.sessions[4]


def build(scratch: Path, size: int, agents: int) -> World:
    """Write a mailbox of ``size`` messages between ``agents`` agents below ``scratch``."""
    directory = scratch / f"world-{size}-{agents}" / "data"
    directory.mkdir(parents=True)
    timing.run_once((*launch.CONSOLE, "init", str(directory)), launch.environment(scratch))
    chance = random.Random(f"{SEED} {size} {agents}")
    now = time.time_ns() // 1_000_000
    sessions = tuple(_uuid(chance) for _ in range(agents))
    tags = [_tags(i, agents) for i in range(agents)]
    _roster(directory, sessions, tags, now - YEAR)
    mail = _Mail(chance, sessions, tags, size, now)
    with (directory / paths.MESSAGES).open("wb") as messages, (directory / paths.READS).open("wb") as reads:
        for message, read in mail.lines():
            messages.write(message)
            reads.write(read)
        for file in (messages, reads):  # or its writing back would be in the way of what is measured
            file.flush()
            os.fsync(file.fileno())
    _verify(directory)
    return World(directory, size, agents, sessions)


def _uuid(chance: random.Random) -> str:
    return uuid_of(f"{chance.getrandbits(128):032x}", "4")


def _tags(place: int, agents: int) -> tuple[str, ...]:
    """One role and two projects each; where the agents are few, as many roles as it takes."""
    roles = range(place % ROLES, ROLES, agents) if agents < ROLES else (place % ROLES,)
    projects = dict.fromkeys((place % PROJECTS, place // PROJECTS * 7 % PROJECTS))
    return (*(f"role:role-{r:02}" for r in roles), *(f"project:project-{p:02}" for p in projects))


def _roster(directory: Path, sessions: tuple[str, ...], tags: list[tuple[str, ...]], since: int) -> None:
    events = [
        RosterEvent(event="register", session_id=s, timestamp=since + i * 1000, name=f"agent-{i:04}", tags=tags[i])
        for i, s in enumerate(sessions)
    ]
    (directory / paths.ROSTER).write_bytes(b"".join(map(codec.spell_event, events)))
    for session in sessions:
        (directory / paths.HEARTBEATS / session).touch(mode=0o600)


class _Mail:
    """The lines of a year, oldest first."""

    def __init__(
        self, chance: random.Random, sessions: tuple[str, ...], tags: list[tuple[str, ...]], size: int, now: int
    ) -> None:
        self._chance = chance
        self._sessions = sessions
        self._size = size
        self._start, self._step = now - YEAR, YEAR / (size + 1)
        self._holders: dict[str, list[str]] = {}
        for session, carried in zip(sessions, tags, strict=True):
            for tag in carried:
                self._holders.setdefault(tag, []).append(session)
        self._texts = [codec.dumps(_text(chance)) for _ in range(4096)]
        self._rare = {size * (k + 1) // (RARE_MESSAGES + 1) for k in range(RARE_MESSAGES)}

    def lines(self) -> Iterator[tuple[bytes, bytes]]:
        """(message line, the read line it got or nothing) of every message."""
        chance, modes = self._chance, tuple(SHARES)
        weights = tuple(SHARES.values())
        recent = [_uuid(chance)]
        for place in range(self._size):
            mode = chance.choices(modes, weights)[0]
            message_id = _uuid(chance)
            at = self._start + int(self._step * (place + chance.random()))
            sender, recipient, reader, via = self._addressed(mode)
            thread = f'"{chance.choice(recent)}"' if chance.random() < 0.1 and place else "null"
            yield self._message(place, message_id, sender, recipient, at, thread), _read(message_id, reader, at, via)
            recent = [message_id, *recent[:20]]

    def _addressed(self, mode: str) -> tuple[str, str, str, str]:
        """(sender, recipient, who read it, through which address)."""
        chance = self._chance
        sender = chance.choice(self._sessions)
        if mode == "direct":
            reader = chance.choice(self._sessions)
            while reader == sender:
                reader = chance.choice(self._sessions)
            return sender, reader, reader if chance.random() < 0.97 else "", reader
        if mode == "role":
            role = f"role:role-{chance.randrange(ROLES):02}"
            others = [s for s in self._holders.get(role, ()) if s != sender]
            return sender, role, chance.choice(others) if others else "", role
        if mode == "tag":
            return sender, f"project:project-{chance.randrange(PROJECTS):02}", "", ""
        return sender, "all", "", ""

    def _message(self, place: int, message_id: str, sender: str, recipient: str, at: int, thread: str) -> bytes:
        chance = self._chance
        text = chance.choice(self._texts)
        subject = f'"subject":"{chance.choice(SUBJECTS)}",' if chance.random() < 0.3 else ""
        if place in self._rare:  # without a subject, which lists show in the text's place
            subject = ""
            text = f'"{RARE} {text[1:]}'
        return (
            f'{{"id":"{message_id}","sender":"{sender}","recipient":"{recipient}","timestamp":"{instant.text(at)}",'
            f'{subject}"content":{text},"thread":{thread},"ttl_hours":null,"read_by":[]}}\n'
        ).encode()


def _text(chance: random.Random) -> str:
    """40 to 400 characters of words, a few of them on further lines."""
    length = chance.randint(40, 400)
    words = " ".join(chance.choices(WORDS, k=length // 3 + 2))[:length].strip()
    text = words.replace(" please ", "\nplease ") + "."
    return text if len(text) >= 40 else f"{text:.<40}"


def _read(message_id: str, reader: str, at: int, via: str) -> bytes:
    if not reader:
        return b""
    when = instant.text(at + 60_000)
    return (
        f'{{"message_id":"{message_id}","reader_session_id":"{reader}","timestamp":"{when}",'
        f'"event":"read","as":"{via}"}}\n'
    ).encode()


def _verify(directory: Path) -> None:
    """Our codec must spell a sample of the lines exactly as they stand; raises ``ValueError`` where it does not."""
    with (directory / paths.MESSAGES).open("rb") as file:
        for line in _sampled(file):
            message = codec.message(line)
            if isinstance(message, BadLine) or codec.spell_message(message) != line:
                raise ValueError(f"not the canonical spelling of a message: {line!r}")
    with (directory / paths.READS).open("rb") as file:
        for line in _sampled(file):
            read = codec.read(line)
            if isinstance(read, BadLine) or codec.spell_read(read) != line:
                raise ValueError(f"not the canonical spelling of a read: {line!r}")


def _sampled(file: Iterator[bytes]) -> Iterator[bytes]:
    return (line for place, line in enumerate(file) if place % SAMPLE == 0)
