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
from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import invariant, rule

from agent_mailbox.core import codec, instant
from agent_mailbox.core.records import Message, RosterEvent
from agent_mailbox.store.files import paths
from agent_mailbox.store.log import scan
from agent_mailbox.store.polling import poll, quiet_polls
from agent_mailbox.store.polling.poll import Poll
from tests.store.history import ADDRESSES, AGENTS, ROLES, TAGS, History, agents, hours


class CursorMachine(History):
    def __init__(self) -> None:
        super().__init__()
        self.lately, quiet_polls.LATELY = quiet_polls.LATELY, -(10**19)  # a poll remembers what it can
        self.chance = random.Random(7)

    def teardown(self) -> None:
        quiet_polls.LATELY = self.lately
        super().teardown()

    @rule(target=History.sent, who=agents, via=st.sampled_from((None, *ROLES)))
    def read_what_is_lost(self, who: str, via: str | None) -> str:
        """The power took the line behind a record, and whoever sent it may send it again."""
        message = self.random_id()
        self.foreign_read(who, message, "read", via)
        return message

    @rule(target=History.sent, bare=st.sampled_from(([], ["nan"], ["uwe"], ["nan", 7], "nan")))
    def foreign_bare_word(self, bare: object) -> str:
        """Whatever another program puts there, only a list that names the recipient counts."""
        message = Message(self.random_id(), "zed", ("role:nan", "role:dev"), self.now, "f", extra={"bare": bare})
        self.append(paths.MESSAGES, codec.spell_message(message))
        return message.id

    @rule(
        who=agents,
        event=st.sampled_from(("register", "freeze", "retire")),
        tags=st.sets(st.sampled_from((*ROLES, *TAGS))),
    )
    def foreign_roster(self, who: str, event: str, tags: set[str]) -> None:
        record = RosterEvent(event=event, session_id=who, timestamp=self.now, tags=tuple(sorted(tags)))
        self.append(paths.ROSTER, codec.spell_event(record))

    def derived(self) -> list[str]:
        """All but the stamps: a forged one is the guard's business, not the cursor's."""
        cache = self.box.logs.derived
        return sorted(os.path.join(d, n) for d, _, names in os.walk(cache) if d != f"{cache}/quiet" for n in names)

    @rule()
    def delete_cache(self) -> None:
        shutil.rmtree(self.box.logs.derived, ignore_errors=True)

    # -- the claims ---------------------------------------------------------------------------------------------------

    @invariant()
    def the_cursor_answers_as_the_pure_function_does(self) -> None:
        for who in AGENTS:
            poll = Poll(self.box.logs, who, self.box.config)
            found = poll.unread(self.now, adopt=self.chance.random() < 0.5)
            assert [item.message.id for item in found] == self._pure(who)
            if self.chance.random() < 0.5:
                poll.save()

    @invariant()
    def a_quiet_stamp_is_true(self) -> None:
        if self.guard_blind:
            return
        for who in AGENTS:
            assert not self.box.logs.stamp_files.is_quiet(who) or self._pure(who) == []


class ScanMachine(CursorMachine):
    """The same of cursors that begin in large logs, which are looked through as bytes: every answer is a first one, and
    a log is large that holds a byte. Twins are left out: of those the scan knows no first."""

    def __init__(self) -> None:
        super().__init__()
        self.saved = poll.LARGE, scan.CHUNK
        poll.LARGE, scan.CHUNK = 0, 900

    def teardown(self) -> None:
        poll.LARGE, scan.CHUNK = self.saved
        super().teardown()

    def twin(self, message: str, archived: bool, when: int, again: bool) -> None:
        pass

    @rule(
        target=History.sent,
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
            message_id = self.random_id()
        elif any(message_id == m.id for m in self.box.state().messages.values()):
            return message_id
        line = {"id": message_id, "sender": "zed", "recipient": to, "timestamp": instant.text(self.now)}
        line |= {"content": "} x", "thread": None, "ttl_hours": ttl, "read_by": [], **more}
        ascii_only = ttl is None
        text = json.dumps(line, ensure_ascii=ascii_only, separators=(spelling, ":") if more else (",", ":"))
        self.append(paths.MESSAGES, text.encode() + b"\n")
        return message_id

    @rule(who=agents, message=History.sent, event=st.sampled_from(("read", "ack", "release")), torn=st.booleans())
    def foreign_claim(self, who: str, message: str, event: str, torn: bool) -> None:
        when = "2026-02-30T00:00:00.000Z" if torn else "2028-02-29T00:00:00.000Z"
        line = {"message_id": message, "reader_session_id": who, "timestamp": when, "event": event, "as": "role:dev"}
        self.append(paths.READS, json.dumps(line, separators=(",", ":")).encode() + b"\n")

    @invariant()
    def the_cursor_answers_as_the_pure_function_does(self) -> None:
        shutil.rmtree(self.box.logs.cache("cursors"), ignore_errors=True)
        super().the_cursor_answers_as_the_pure_function_does()


CursorMachine.TestCase.settings = settings(
    max_examples=settings().max_examples // 2, stateful_step_count=40, deadline=None
)
ScanMachine.TestCase.settings = CursorMachine.TestCase.settings
TestCursor = CursorMachine.TestCase
TestScan = ScanMachine.TestCase
