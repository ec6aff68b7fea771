"""The core's answers over random histories, held to the judge's: both read the same lines, and share no code."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from agent_mailbox.core import address, codec, conversations, dead_letters, inbox, obligations, proofs, reach
from agent_mailbox.core.inbox import InboxState
from agent_mailbox.core.keeping import retention
from agent_mailbox.core.message_reads import Reads
from agent_mailbox.core.records import RosterEvent
from agent_mailbox.core.roster import CLIENT_ENDED, Roster
from tests.judge.lines import HOURS, Facts, Line, mode_of
from tests.judge.mail import Judge
from tests.judge.people import ALIVE, DEAD, FROZEN, fold_roster

SESSIONS = ("agent-1", "agent-10", "Agent-1", "agent")
"""Ids that begin with each other, or differ by case alone."""
NAMES = ("ann", "Ann-2", "ann.2", "op")
TAGS = ("role:op", "role:ops", "role:Op", "role:caf\u00e9", "project:a", "project:ab", "project:A", "concern:caf\u00e9")
OTHERS = ("role:cafe\u0301", "project:ab/c", "concern:cafe\u0301")
"""Addresses that nobody has: the same to the eye, or longer."""
WORD = "op"
"""A bare word that nobody had when mail was written to it."""
EVERYBODY = (*SESSIONS, "user", "stranger")
ADDRESSES = (*SESSIONS, *TAGS, *OTHERS, "all", "user")
START = datetime.fromisoformat("2026-02-28T22:59:59.998+00:00")
STEPS = (
    *(timedelta(milliseconds=ms) for ms in (1, 2, 599_998, 600_000)),
    *(timedelta(hours=hours) for hours in (1, 4, 23, 24, 72, 28 * 24)),
)
"""Around a claim's ten minutes, each mode's hours, midnight, and the end of a month."""
BREAKS = "a\r\nb\x0bc\x0cd\x1ce\x85f\u2028g\u2029h"
who = st.sampled_from(SESSIONS)
place = st.integers(0, 7)


def _spell(when: datetime, form: int) -> str:
    """Return an instant as one of several programs spells it."""
    zone = (timedelta(), timedelta(hours=2), timedelta(hours=-9, minutes=-30))[form % 3]
    text = (when + zone).isoformat(timespec="milliseconds")[:-6]
    sign, minutes = "-" if zone < timedelta() else "+", abs(zone) // timedelta(minutes=1)
    return f"{text}Z" if form % 3 == 0 else f"{text}{sign}{minutes // 60:02}:{minutes % 60:02}"


class Core(RuleBasedStateMachine):
    """Agents whose names resemble each other send to several addresses, read, come and go, at turns of the clock."""

    def __init__(self) -> None:
        super().__init__()
        self.now = START
        self.facts = Facts(hours=dict(HOURS))
        self.count = 0
        for number, session in enumerate(SESSIONS[:3]):
            self._tell("register", session, tags=[TAGS[number], TAGS[number + 3], TAGS[-number - 1]])

    # -- what happens

    def _tell(self, event: str, session: str, **said: object) -> None:
        self.facts.roster.append(
            {"event": event, "session_id": session, "timestamp": _spell(self.now, 0)}
            | {key: value for key, value in said.items() if value is not None}
        )

    def _note(self, message_id: str, session: str, event: str, way: str | None) -> None:
        line: Line = {"message_id": message_id, "reader_session_id": session, "timestamp": _spell(self.now, 0)}
        self.facts.reads.append(line | {"event": event} | ({"as": way} if way else {}))

    def _judge(self) -> Judge:
        people = fold_roster(self.facts)
        ended = {line["session_id"] for line in self.facts.roster if line.get("reason") == CLIENT_ENDED}
        self.facts.gone = {
            one for one in ended & people.keys() if people[one].state == FROZEN and self._last(one) == CLIENT_ENDED
        }
        return Judge(self.facts, self.now)

    def _last(self, session: str) -> object:
        states = [x for x in self.facts.roster if x["session_id"] == session and x["event"] in ("freeze", "register")]
        return states[-1].get("reason")

    @rule(
        sender=st.sampled_from(EVERYBODY),
        to=st.lists(st.sampled_from(ADDRESSES), min_size=1, max_size=3, unique=True),
        hours=st.sampled_from((None, None, None, None, None, 1, 24, 73)),
        until=st.sampled_from((*(None,) * 40, *STEPS)),
        kind=st.sampled_from(("message", "message", "message", "control", "system", "note")),
        more=st.tuples(st.booleans(), st.sampled_from(("normal", "high", "low")), st.integers(0, 5), st.booleans()),
    )
    def someone_sends(self, sender, to, hours, until, kind, more):
        """To one or several, in our spelling or in an older program's."""
        ack, priority, form, is_bare = more
        self.count += 1
        line: Line = {"id": f"m{self.count:03}", "timestamp": _spell(self.now, form)}
        line |= {"ttl_hours": hours, "type": kind, "ack": ack, "priority": priority, "x-unknown": {"type": "note"}}
        to = list(TAGS[:2]) if kind == "note" else to
        to = [*to, f"role:{WORD}"] if is_bare and f"role:{WORD}" not in to else to
        line |= {"bare": [WORD]} if is_bare else {}
        line |= {"expires_at": _spell(self.now + until, form)} if until else {}
        said = to if len(to) > 1 or form % 2 else to[0]
        if form > 2:
            line |= {"from": sender, "to": said, "body": BREAKS}
        else:
            line |= {"sender": sender, "recipient": said, "content": BREAKS, "subject": BREAKS}
        self.facts.messages.append(line)

    @precondition(lambda self: self.facts.messages)
    @rule(session=st.sampled_from(EVERYBODY), count=st.integers(1, 4), way=st.sampled_from(("as", "none", "claim")))
    def someone_checks(self, session, count, way):
        """Reading the first of what the judge says is unread; or a check is killed behind its claims."""
        judge = self._judge()
        person = judge.people.get(session)
        if person is not None and person.state == DEAD:
            return
        if person is None or person.state == FROZEN:
            self._tell("thaw" if person else "register", session)
            judge = self._judge()
        self.facts.looked[session] = self.now
        mail = {one.id: one for one in judge.mail}
        for message_id in judge.unread(session)[:count]:
            via, claims = judge.way(mail[message_id], session)
            if claims:
                self._note(message_id, session, "claim", via)
            if way != "claim":
                clear = {mode_of(one) for one in mail[message_id].to} in ({"role"}, {"direct"})
                clear = clear and "bare" not in mail[message_id].line
                self._note(message_id, session, "read", None if way == "none" and clear else via)

    @precondition(lambda self: self.facts.reads)
    @rule(at=place, event=st.sampled_from(("ack", "release", "seen", "reply")))
    def someone_deals_with_mail(self, at, event):
        """Who read it, or claimed it."""
        read = self.facts.reads[-1 - at % len(self.facts.reads)]
        if event != "reply":
            self._note(read["message_id"], read["reader_session_id"], event, None)
            return
        self.count += 1
        line: Line = {"id": f"m{self.count:03}", "sender": read["reader_session_id"], "recipient": "all"}
        line |= {"timestamp": _spell(self.now, 0), "thread": read["message_id"], "content": "done"}
        self.facts.messages.append(line)

    @rule(session=who, tags=st.lists(st.sampled_from(TAGS), max_size=3, unique=True), event=st.booleans())
    def someone_registers_or_changes(self, session, tags, event):
        """New, again, or back from the dead."""
        if event or session in fold_roster(self.facts):
            self._tell("register" if event else "update", session, tags=tags)

    @rule(session=who, name=st.sampled_from(NAMES))
    def someone_takes_a_name(self, session, name):
        """One that no living agent has."""
        people = fold_roster(self.facts)
        taken = {p.name.casefold() for p in people.values() if p.name and p.state != DEAD and p.id != session}
        if session in people and people[session].state != DEAD and name.casefold() not in taken:
            self._tell("update", session, name=name)

    @rule(session=who, event=st.sampled_from(("freeze", "thaw", "retire")), is_gone=st.booleans())
    def someone_comes_or_goes(self, session, event, is_gone):
        """Its clock stops, or it is dead."""
        self._tell(event, session, reason=CLIENT_ENDED if is_gone and event == "freeze" else None)

    @rule(later=who, older=who, tags=st.lists(st.sampled_from(TAGS), max_size=3, unique=True))
    def someone_continues_another(self, later, older, tags):
        """One that is dead, or frozen."""
        people = fold_roster(self.facts)
        if later != older and older in people and people[older].state != ALIVE:
            self._tell("register", later, tags=tags, continues=older)

    @rule(step=st.sampled_from(STEPS))
    def time_passes(self, step):
        """Things expire."""
        self.now += step

    @precondition(lambda self: self.facts.messages)
    @rule(at=place, beside=st.integers(-1, 1), which=st.integers(0, 2))
    def a_deadline_comes(self, at, beside, which):
        """To the millisecond: that of one of its addresses, as if nobody slept."""
        mail = self.facts.mail()[-1 - at % len(self.facts.messages)]
        hours = mail.line.get("ttl_hours") or HOURS[mode_of(mail.to[which % len(mail.to)])]
        if mail.kind != "note" and hours is not None:
            self.now = max(self.now, mail.at + timedelta(hours=hours, milliseconds=beside))
            self._compare()

    @rule(first=st.sampled_from(ADDRESSES), last=st.sampled_from(ADDRESSES), beside=st.integers(-1, 1))
    def mail_for_two_lives_as_long_as_the_longer_of_them(self, first, last, beside):
        """Asked when the time of the last address is over."""
        if first != last:
            self.someone_sends("user", [first, last], None, None, "message", (False, "normal", 0, False))
            self.a_deadline_comes(0, beside, 1)

    @rule(one=who, other=who)
    def who_read_mail_owes_an_answer_though_another_gave_one(self, one, other):
        """Its time is over, too: it is not finished before the last answer."""
        self.someone_sends("user", ["all"], 1, None, "message", (True, "normal", 0, False))
        for reader in (one, other):
            self._note(self.facts.messages[-1]["id"], reader, "read", "all")
        self.someone_deals_with_mail(0, "reply")
        self.now += timedelta(hours=1)
        self._compare()

    @rule(session=who)
    def someone_gives_mail_back(self, session):
        """It is unread again."""
        self.someone_sends("user", ["all"], None, None, "message", (False, "normal", 0, False))
        for event in ("read", "release"):
            self._note(self.facts.messages[-1]["id"], session, event, "all" if event == "read" else None)
        self._compare()

    @rule(older=who, later=who, rests=st.booleans())
    def mail_waits_for_one_that_dies_and_is_continued(self, older, later, rests):
        """It is no dead letter, and does not expire while the later one is frozen."""
        self.someone_sends("user", [older], None, None, "message", (False, "normal", 0, False))
        self._tell("retire", older)
        self.someone_continues_another(later, older, [])
        if rests:
            self._tell("freeze", later)
            self.now += timedelta(hours=25)
        self._compare()

    @rule(role=st.sampled_from(TAGS[:4]), session=who, other=who, beside=st.integers(-1, 1))
    def someone_claims_and_is_silent(self, role, session, other, beside):
        """Its claim keeps the mail from the other holder for ten minutes, unless that one continues it."""
        for one in (session, other):
            self._tell("register", one, tags=[role])
        self.someone_sends("user", [role], None, None, "message", (False, "normal", 0, False))
        self.someone_checks(session, 9, "claim")
        self.now += timedelta(minutes=10, milliseconds=beside)
        self._compare()

    @precondition(lambda self: len(self.facts.messages) > 2)
    @rule(at=place)
    def answers_branch(self, at):
        """Two answers to one message, and an answer to each of these."""
        parents = [self.facts.messages[-1 - at % len(self.facts.messages)]["id"]] * 2
        for parent in [*parents, "", ""]:
            self.someone_sends("user", ["agent-1"], None, None, "message", (False, "normal", 0, False))
            self.facts.messages[-1]["thread"] = parent or self.facts.messages[-3]["id"]
        self._compare()

    # -- what is asked

    @rule()
    def everybody_asks(self):
        """What is unread, owed, lost and finished."""
        self._compare()

    def teardown(self):
        """Ask at the end, too; then the steward comes."""
        self._compare()
        self._archive()

    def _compare(self) -> None:
        judge, state = self._judge(), self._state()
        oldest = min((message.timestamp for message in state.messages.values()), default=0)
        retold = state.replace(roster=Roster(retention.compacted(self._events(), oldest)))
        now = round(self.now.timestamp() * 1000)
        living = [one for one in EVERYBODY if one not in judge.people or judge.people[one].state != DEAD]
        for one in living:
            told = inbox.unread(one, state, now)
            mail = {m.id: m for m in judge.mail}
            assert [item.message.id for item in told] == judge.unread(one), one
            assert [item.mode for item in told] == [
                next(iter(judge.ways(mail[i.message.id], one).values())) for i in told
            ], one
            assert [item.claims for item in told] == [judge.way(mail[i.message.id], one)[1] for i in told], one
            for item in told:
                assert item.via in judge.ways(mail[item.message.id], one), one
                assert item.via.startswith("role:") == item.claims, one
            assert [item.message.id for item in inbox.unread(one, retold, now)] == judge.unread(one), one
            assert [m.id for m in state.messages.values() if address.is_concerned(m, state.roster.reader(one))] == (
                judge.history(one)
            ), one
            assert [m.id for m in obligations.obligations(one, state)] == judge.owes(one), one
        lost = [(m.id, why) for m, why in dead_letters.dead_letters(state, now)]
        assert lost == [(mail.id, why) for mail in judge.mail if (why := judge.lost(mail)) is not None]
        replies = obligations.repliers(state)
        for mail in judge.mail:
            assert state.expired(state.messages[mail.id], now) == judge.has_expired(mail), mail
            answers = conversations.thread_of(mail.id, state.messages)
            assert [message.id for message in answers] == judge.conversation(mail), mail
            concerned = reach.find_concerned([state.messages[mail.id]], state.roster)
            assert concerned is None or {one for one in living if judge.ways(mail, one)} <= concerned, mail
            if mail.kind != "note":
                told_finished = retention.is_finished(state.messages[mail.id], state, now, replies)
                assert told_finished == judge.is_finished(mail), mail

    def _archive(self) -> None:
        """The steward moves what is finished alone, all at once, and to readers nothing changes."""
        judge, state, now = self._judge(), self._state(), round(self.now.timestamp() * 1000)
        assert retention.plan(state, now, max(1, len(state.messages))).move == frozenset()
        moved = retention.plan(state, now, 0).move
        assert all(judge.is_finished(mail) for mail in judge.mail if mail.id in moved and mail.kind != "note")
        after = self._state(moved)
        for one in (who for who, person in judge.people.items() if person.state != DEAD):
            assert [item.message.id for item in inbox.unread(one, after, now)] == judge.unread(one), one
            assert [m.id for m in obligations.obligations(one, after)] == judge.owes(one), one
        assert retention.plan(after, now, 0).move == frozenset()

    def _state(self, moved: frozenset[str] = frozenset()) -> InboxState:
        lines = [json.dumps(line).encode() for line in self.facts.messages]
        messages = {m.id: m for m in reversed([codec.message(line) for line in lines])}
        messages = {i: m for i, m in reversed(messages.items()) if i not in moved}
        records = [line for line in self.facts.reads if line["message_id"] not in moved]
        reads = Reads(codec.read(json.dumps(line).encode()) for line in records)
        roster = Roster(self._events())
        looked = {one: round(at.timestamp() * 1000) for one, at in self.facts.looked.items()}
        return InboxState(messages, reads, roster, HOURS, lambda one: looked.get(one, 0))

    def _events(self) -> list[RosterEvent]:
        events = [codec.roster_event(json.dumps(line).encode()) for line in self.facts.roster]
        return [event.replace(proof=proofs.of_session(event.session_id)) for event in events]


Core.TestCase.settings = settings(stateful_step_count=40)
TestCore = Core.TestCase
TestCore.__doc__ = "After any history the core's answers are the judge's, which knows the texts alone."
