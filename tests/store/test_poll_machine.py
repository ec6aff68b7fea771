"""The cursor's answer is the pure function's answer, whatever happened to the mailbox in between.

A state machine drives a real mailbox directory (sends, checks, acks, releases, roster changes, archive runs, foreign
appends, a clock that jumps, derived files that are damaged) and after every step asks each agent's cursor and the pure
``inbox.unread`` over the whole logs the same question.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import tempfile
from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from agent_mailbox import Draft, Mailbox, MailboxError, Request
from agent_mailbox.core import codec, inbox, instant
from agent_mailbox.core.keeping import retention
from agent_mailbox.core.records import Message, Read, RosterEvent
from agent_mailbox.store.archive import rotation
from agent_mailbox.store.files import paths
from agent_mailbox.store.log import scan
from agent_mailbox.store.polling import poll, quiet_polls
from agent_mailbox.store.polling.poll import Poll
from agent_mailbox.store.user_state import creation
from tests.door import switches

AGENTS = ("amy", "bob", "cat")
ROLES = ("role:dev", "role:ops")
TAGS = ("project:x", "concern:y")
NAMES = ("nan", "uwe")
"""Names that an agent may take; until one does, mail to such a word waits for whoever takes it."""
ADDRESSES = (*AGENTS, *ROLES, *TAGS, *NAMES, "role:nan", "all")
agents = st.sampled_from(AGENTS)
hours = st.sampled_from((None, 1, 30))


class CursorMachine(RuleBasedStateMachine):
    sent = Bundle("sent")

    @initialize()
    def make(self) -> None:
        self.root = tempfile.mkdtemp()
        self.directory = creation.create(os.path.join(self.root, "box"), {switches.STATE: self.root})
        self.now = instant.parse("2026-03-16T12:00:00Z")
        self.ids = random.Random(7)
        self.box = Mailbox(self.directory, clock=lambda: self.now, new_id=self._id, wait=2)
        self.lately, quiet_polls.LATELY = quiet_polls.LATELY, -(10**19)  # a poll remembers what it can
        # What a guard may not know of: it is told at the next explicit check only.
        self.guard_blind = False

    def teardown(self) -> None:
        quiet_polls.LATELY = self.lately
        shutil.rmtree(self.root, ignore_errors=True)

    def _id(self) -> str:
        bits = f"{self.ids.getrandbits(128):032x}"
        return f"{bits[:8]}-{bits[8:12]}-4{bits[13:16]}-8{bits[17:20]}-{bits[20:]}"

    # -- our own writers ----------------------------------------------------------------------------------------------

    @rule(
        target=sent,
        sender=agents,
        to=st.lists(st.sampled_from(ADDRESSES), min_size=1, max_size=3, unique=True),
        ttl=hours,
        ack=st.booleans(),
        priority=st.sampled_from(("normal", "high")),
    )
    def send(self, sender: str, to: list[str], ttl: int | None, ack: bool, priority: str) -> str:
        try:
            draft = Draft(sender=sender, to=tuple(to), content="x", ttl_hours=ttl, ack=ack, priority=priority)
            return self.box.send(draft).message.id
        except MailboxError:
            return "none"

    @rule(message=sent, sender=agents, to=st.sampled_from(ADDRESSES))
    def send_again(self, message: str, sender: str, to: str) -> None:
        """Under an id that is there, was archived or is known from a record alone."""
        try:
            self.box.send(Draft(sender=sender, to=(to,), content="x", id=message))
        except MailboxError:
            pass

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
    def settle_mail(self, who: str, message: str, what: str) -> None:
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
        box = self.box
        with rotation.alone(box.archive, 1):
            rotation.rotate(
                box.logs, box.archive, box.config.ttls, lambda state: retention.plan(state, self.now, max_live)
            )

    # -- everyone else ------------------------------------------------------------------------------------------------

    def _append(self, name: str, data: bytes) -> None:
        self.guard_blind = True
        with open(os.path.join(self.directory, name), "ab") as file:
            file.write(data)

    @rule(
        target=sent,
        to=st.sampled_from((*ADDRESSES, "dev", "nan")),
        tail=st.sampled_from((b"", b'{"id":"to')),
        again=st.booleans(),
    )
    def foreign_message(self, to: str, tail: bytes, again: bool) -> str:
        again = again and not isinstance(self, ScanMachine)
        message = Message(id=self._id(), sender="zed", recipients=(to,), timestamp=self.now, content="f")
        line = codec.spell_message(message)
        if again:
            line += codec.spell_message(message.replace(recipients=("all",), content="twin"))
        self._append(paths.MESSAGES, line + tail)
        return message.id

    @rule(message=sent, again=st.booleans())
    def foreign_twin(self, message: str, again: bool) -> None:
        twin = Message(id=message, sender="zed", recipients=("all",), timestamp=self.now, content="twin")
        self._append(paths.MESSAGES, codec.spell_message(twin) * (1 + again))

    @rule(who=agents, message=sent, event=st.sampled_from(("read", "release")), via=st.sampled_from((None, *ADDRESSES)))
    def foreign_read(self, who: str, message: str, event: str, via: str | None) -> None:
        record = Read(message_id=message, session_id=who, timestamp=self.now, event=event, via=via)
        self._append(paths.READS, codec.spell_read(record))

    @rule(target=sent, who=agents, via=st.sampled_from((None, *ROLES)))
    def read_what_is_lost(self, who: str, via: str | None) -> str:
        """The power took the line behind a record, and whoever sent it may send it again."""
        message = self._id()
        self.foreign_read(who, message, "read", via)
        return message

    @rule(target=sent, bare=st.sampled_from(([], ["nan"], ["uwe"], ["nan", 7], "nan")))
    def foreign_bare_word(self, bare: object) -> str:
        """Whatever another program puts there, only a list that names the recipient counts."""
        message = Message(self._id(), "zed", ("role:nan", "role:dev"), self.now, "f", extra={"bare": bare})
        self._append(paths.MESSAGES, codec.spell_message(message))
        return message.id

    @rule(
        who=agents,
        event=st.sampled_from(("register", "freeze", "retire")),
        tags=st.sets(st.sampled_from((*ROLES, *TAGS))),
    )
    def foreign_roster(self, who: str, event: str, tags: set[str]) -> None:
        record = RosterEvent(event=event, session_id=who, timestamp=self.now, tags=tuple(sorted(tags)))
        self._append(paths.ROSTER, codec.spell_event(record))

    @rule(by=st.sampled_from((1, 3_600_000, 25 * 3_600_000, 80 * 3_600_000)))
    def later(self, by: int) -> None:
        self.now += by

    @rule(by=st.sampled_from((1, 3_600_000, 30 * 3_600_000)))
    def clock_back(self, by: int) -> None:
        self.guard_blind = True
        self.now -= by

    @rule(how=st.sampled_from(("flip", "cut", "delete")), which=st.integers(0, 50), where=st.integers(0, 5000))
    def damage_derived(self, how: str, which: int, where: int) -> None:
        cache = os.path.join(self.directory, paths.CACHE)
        stamps = os.path.join(cache, "quiet")  # a forged stamp is the guard's business, not the cursor's
        files = sorted(os.path.join(d, n) for d, _, names in os.walk(cache) if d != stamps for n in names)
        if not files:
            return
        path = files[which % len(files)]
        with open(path, "rb") as file:
            content = file.read()
        if how == "delete":
            os.unlink(path)
        elif content:
            place = where % len(content)
            rest = b"" if how == "cut" else bytes([content[place] ^ 1]) + content[place + 1 :]
            with open(path, "wb") as file:
                file.write(content[:place] + rest)

    @rule()
    def delete_cache(self) -> None:
        shutil.rmtree(os.path.join(self.directory, paths.CACHE), ignore_errors=True)

    # -- the claims ---------------------------------------------------------------------------------------------------

    def _pure(self, who: str) -> list[str]:
        return [item.message.id for item in inbox.unread(who, self.box.state(), self.now)]

    @invariant()
    def the_cursor_answers_as_the_pure_function_does(self) -> None:
        if not hasattr(self, "box"):
            return
        for who in AGENTS:
            poll = Poll(self.box.logs, who, self.box.config)
            found = poll.unread(self.now, adopt=self.ids.random() < 0.5)
            assert [item.message.id for item in found] == self._pure(who)
            if self.ids.random() < 0.5:
                poll.save()

    @invariant()
    def a_quiet_stamp_is_true(self) -> None:
        if not hasattr(self, "box") or self.guard_blind:
            return
        for who in AGENTS:
            assert not self.box.logs.stamp_files.is_quiet(who) or self._pure(who) == []


class ScanMachine(CursorMachine):
    """The same of cursors that begin in large logs, which are looked through as bytes: every answer is a first one, and
    a log is large that holds a byte. Twins are left out: of those the scan knows no first."""

    sent = Bundle("sent")

    @initialize()
    def make(self) -> None:
        super().make()
        self.saved = poll.LARGE, scan.CHUNK
        poll.LARGE, scan.CHUNK = 0, 900

    def teardown(self) -> None:
        poll.LARGE, scan.CHUNK = self.saved
        super().teardown()

    def foreign_twin(self, message: str, again: bool) -> None:
        pass

    @rule(
        target=sent,
        to=st.sampled_from((*ADDRESSES, "dev", "nan")),
        message_id=st.sampled_from(("uuid", "short", 'quo"te', "ümlaut")),
        spelling=st.sampled_from((", ", ",\t")),
        ttl=hours,
        more=st.sampled_from(
            ({}, {"ack": True}, {"metadata": {"ttl_hours": None, "read_by": []}}, {"bare": ["nan", "uwe"]})
        ),
    )
    def foreign_spelling(self, to: str, message_id: str, spelling: str, ttl: int | None, more: dict[str, Any]) -> str:
        if message_id == "uuid":
            message_id = self._id()
        elif any(message_id == m.id for m in self.box.state().messages.values()):
            return message_id
        line = {"id": message_id, "sender": "zed", "recipient": to, "timestamp": instant.text(self.now)}
        line |= {"content": "} x", "thread": None, "ttl_hours": ttl, "read_by": [], **more}
        ascii_only = ttl is None
        text = json.dumps(line, ensure_ascii=ascii_only, separators=(spelling, ":") if more else (",", ":"))
        self._append(paths.MESSAGES, text.encode() + b"\n")
        return message_id

    @rule(who=agents, message=sent, event=st.sampled_from(("read", "ack", "release")), torn=st.booleans())
    def foreign_claim(self, who: str, message: str, event: str, torn: bool) -> None:
        when = "2026-02-30T00:00:00.000Z" if torn else "2028-02-29T00:00:00.000Z"
        line = {"message_id": message, "reader_session_id": who, "timestamp": when, "event": event, "as": "role:dev"}
        self._append(paths.READS, json.dumps(line, separators=(",", ":")).encode() + b"\n")

    @invariant()
    def the_cursor_answers_as_the_pure_function_does(self) -> None:
        if hasattr(self, "box"):
            shutil.rmtree(self.box.logs.cache("cursors"), ignore_errors=True)
            super().the_cursor_answers_as_the_pure_function_does()


CursorMachine.TestCase.settings = settings(
    max_examples=settings().max_examples // 2, stateful_step_count=40, deadline=None
)
ScanMachine.TestCase.settings = CursorMachine.TestCase.settings
TestCursor = CursorMachine.TestCase
TestScan = ScanMachine.TestCase
