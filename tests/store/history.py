"""A real mailbox with a random history: our own writers, other programs, a clock that jumps, damaged derived files.

Belongs here: the steps. ``test_index`` and ``test_poll_machine`` ask their questions after each of them.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from typing import TYPE_CHECKING

import hypothesis.strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, rule

from agent_mailbox import Draft, Mailbox, MailboxError, Request
from agent_mailbox.core import codec, inbox, instant
from agent_mailbox.core.keeping import retention
from agent_mailbox.core.records import Message, Read
from agent_mailbox.store.archive import rotation
from agent_mailbox.store.files import paths
from agent_mailbox.store.user_state import creation
from tests.door import switches

if TYPE_CHECKING:
    from collections.abc import Callable

NOON = instant.parse("2026-03-16T12:00:00Z")
AGENTS = ("amy", "bob", "cat")
ROLES = ("role:dev", "role:ops")
TAGS = ("project:x", "concern:y")
NAMES = ("nan", "uwe")
"""Names that an agent may take; until one does, mail to such a word waits for whoever takes it."""
ADDRESSES = (*AGENTS, *ROLES, *TAGS, *NAMES, "role:nan", "all")
BODIES = ("alpha beta", "Beta-gamma", "gamma ÁLPHA straße", "日本語のメール", "...", 'say "beta" NOT alpha')
agents = st.sampled_from(AGENTS)
hours = st.sampled_from((None, 1, 30))


def ids(seed: int) -> Callable[[], str]:
    source = random.Random(seed)

    def make() -> str:
        bits = f"{source.getrandbits(128):032x}"
        return f"{bits[:8]}-{bits[8:12]}-4{bits[13:16]}-8{bits[17:20]}-{bits[20:]}"

    return make


def mailbox(root: str, now: Callable[[], int] = lambda: NOON, seed: int = 7) -> Mailbox:
    directory = creation.create(os.path.join(root, "box"), {switches.STATE: root})
    return Mailbox(directory, clock=now, new_id=ids(seed), wait=2)


def delivered(box: Mailbox, who: str) -> list[str]:
    """What a session is shown, and reads."""
    shown: list[str] = []
    box.deliver(who, lambda items: shown.extend(item.message.content for item in items) or items)
    return shown


def rotate(box: Mailbox, max_live: int = 0) -> None:
    with rotation.alone(box.archive, 1):
        rotation.rotate(
            box.logs, box.archive, box.config.ttls, lambda state: retention.plan(state, box.now(), max_live)
        )


class History(RuleBasedStateMachine):
    sent = Bundle("sent")

    @initialize()
    def make(self) -> None:
        self.root = tempfile.mkdtemp()
        self.now = NOON
        self.box = mailbox(self.root, lambda: self.now)
        self.random_id = ids(8)
        self.kept: dict[str, bytes] = {}
        self.guard_blind = False
        """Whether something happened of which a guard may not know: it is told at the next explicit check only."""

    def teardown(self) -> None:
        if hasattr(self, "root"):
            shutil.rmtree(self.root, ignore_errors=True)

    # -- our own writers ----------------------------------------------------------------------------------------------

    @rule(
        target=sent,
        sender=agents,
        to=st.lists(st.sampled_from(ADDRESSES), min_size=1, max_size=3, unique=True),
        body=st.sampled_from(BODIES),
        subject=st.sampled_from((None, *BODIES)),
        thread=st.none() | sent,
        ttl=hours,
        ack=st.booleans(),
        priority=st.sampled_from(("normal", "high")),
    )
    def send(self, sender, to, body, subject, thread, ttl, ack, priority) -> str:
        more = {"subject": subject, "thread": thread, "ttl_hours": ttl, "ack": ack, "priority": priority}
        try:
            return self.box.send(Draft(sender=sender, to=tuple(to), content=body, **more)).message.id
        except MailboxError:
            return "none"

    @rule(message=sent, sender=agents, to=st.sampled_from(ADDRESSES))
    def send_again(self, message: str, sender: str, to: str) -> None:
        """Under an id that is there, was archived or is known from a record alone."""
        try:
            self.box.send(Draft(sender=sender, to=(to,), content="x", id=message))
        except MailboxError:
            pass

    def _pure(self, who: str) -> list[str]:
        return [item.message.id for item in inbox.unread(who, self.box.state(), self.now)]

    @rule(who=agents, limit=st.sampled_from((1, 2, 99)))
    def check(self, who: str, limit: int) -> None:
        shown: list[str] = []

        def show(items: list[inbox.Item]) -> list[inbox.Item]:
            shown.extend(item.message.id for item in items[:limit])
            return items[:limit]

        before = self._pure(who)
        try:
            self.box.deliver(who, show)
        except MailboxError:
            return
        assert shown == before[:limit] or self.box.logs.read_roster().agents[who].changed == self.now

    @rule(who=agents, message=sent, what=st.sampled_from(("ack", "release")))
    def settle(self, who: str, message: str, what: str) -> None:
        try:
            getattr(self.box, what)(message, who)
        except MailboxError:
            pass

    @rule(
        who=agents,
        role=st.sampled_from((*ROLES, None)),
        tags=st.sets(st.sampled_from(TAGS)),
        name=st.sampled_from((None, *NAMES)),
    )
    def register(self, who: str, role: str | None, tags: set[str], name: str | None) -> None:
        request = Request(session_id=who, roles=(role,) if role else None, tags=tuple(sorted(tags)), name=name)
        try:
            self.box.register(request, "user")
        except MailboxError:
            pass

    @rule(who=agents, what=st.sampled_from(("freeze", "thaw", "retire")))
    def end(self, who: str, what: str) -> None:
        try:
            self.box.end(who, what, "user")
        except MailboxError:
            pass

    @rule(max_live=st.sampled_from((0, 3)))
    def archive(self, max_live: int) -> None:
        rotate(self.box, max_live)

    @rule(by=st.sampled_from((1, instant.HOUR, 25 * instant.HOUR, 80 * instant.HOUR, 40 * instant.DAY)))
    def later(self, by: int) -> None:
        self.now += by

    @rule(by=st.sampled_from((1, instant.HOUR, 30 * instant.HOUR)))
    def clock_back(self, by: int) -> None:
        self.guard_blind = True
        self.now -= by

    # -- everyone else ------------------------------------------------------------------------------------------------

    def append(self, name: str, data: bytes) -> None:
        self.guard_blind = True
        with open(self.box.logs.path(name), "ab") as file:
            file.write(data)

    @rule(
        target=sent,
        to=st.sampled_from((*ADDRESSES, "dev", "nan")),
        thread=st.none() | sent,
        tail=st.sampled_from((b"\n", b"", b'\n{"id":"to', b"\nrubbish\n\n")),
        month=st.sampled_from((None, None, "2026-03", "2025-12")),
    )
    def foreign_message(self, to: str, thread: str | None, tail: bytes, month: str | None) -> str:
        message = Message(self.random_id(), "zed", (to,), self.now, "foreign alpha", thread=thread, read_by=("zed",))
        name = paths.MESSAGES if month is None else f"{paths.ARCHIVE}/{month}.jsonl"
        self.append(name, codec.spell_message(message).rstrip(b"\n") + tail)
        return message.id

    @rule(message=sent, archived=st.booleans(), when=st.sampled_from((0, 7)), again=st.booleans())
    def twin(self, message: str, archived: bool, when: int, again: bool) -> None:
        line = codec.spell_message(Message(message, "zed", ("all",), NOON + when, "beta twin"))
        self.append(f"{paths.ARCHIVE}/2026-03.jsonl" if archived else paths.MESSAGES, line * (1 + again))

    @rule(
        who=agents,
        message=sent,
        event=st.sampled_from(("read", "ack", "release", "seen", "claim")),
        via=st.sampled_from((None, *ADDRESSES)),
        name=st.sampled_from((paths.READS, paths.READS, f"{paths.ARCHIVE}/2026-03-reads.jsonl")),
        newline=st.booleans(),
    )
    def foreign_read(self, who, message, event, via, name=paths.READS, newline=True) -> None:
        line = codec.spell_read(Read(message, who, self.now, event=event, via=via))
        self.append(name, line if newline else b" " + line.rstrip(b"\n"))

    def derived(self) -> list[str]:
        """The derived files that may be damaged."""
        raise NotImplementedError

    @rule(
        how=st.sampled_from(("flip", "cut", "delete", "keep", "restore")),
        which=st.integers(0, 50),
        where=st.integers(0, 200_000),
    )
    def damage(self, how: str, which: int, where: int) -> None:
        """A file is damaged, or an older one comes back."""
        if not (files := self.derived()):
            return
        path = files[which % len(files)]
        with open(path, "rb") as file:
            content = file.read()
        place = where % max(len(content), 1)
        flipped = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :] if content else b""
        ruined = {"flip": flipped, "cut": content[:place], "restore": self.kept.get(path, b"")}
        if how == "delete":
            os.unlink(path)
        elif how == "keep":
            self.kept[path] = content
        else:
            with open(path, "r+b") as file:
                file.write(ruined[how])
                file.truncate()
