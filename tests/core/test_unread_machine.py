"""Unread, over random histories, held against the page written down plainly."""

from __future__ import annotations

from agent_mailbox.core import codec, inbox
from agent_mailbox.core.claims import Reads
from agent_mailbox.core.expiry import DEFAULT_TTL
from agent_mailbox.core.inbox import State
from agent_mailbox.core.retention import compacted
from agent_mailbox.core.roster import Roster
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from .world import EVERYBODY, STEPS, World


def unread(state: State, now: int) -> dict[str, list[tuple[str, str, bool]]]:
    """What the core says everybody has yet to read."""
    return {
        who: [(item.message.id, item.mode, item.claims) for item in inbox.unread(who, state, now)]
        for who in EVERYBODY
    }


class Unread(RuleBasedStateMachine):
    """Agents send, check, ack, release, come and go while the clock runs and is set back."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.taken: set[tuple[str, str]] = set()  # (session, message) shown and not given back

    @rule(given=STEPS["send"][0], to=STEPS["send"][1], hours=STEPS["send"][2], ack=STEPS["send"][3])
    def someone_sends(self, given, to, hours, ack):
        """A message of any mode, to one or several."""
        self.world.send(given, to, hours, ack, "message", "normal")

    @rule(given=STEPS["send"][0], to=STEPS["send"][1], kind=STEPS["send"][4], priority=STEPS["send"][5])
    def someone_sends_in_haste(self, given, to, kind, priority):
        """A message that may want to be shown first."""
        self.world.send(given, to, None, False, kind, priority)

    @rule(who=STEPS["check"][0], how_many=STEPS["check"][1], by_older_writer=STEPS["check"][2])
    def someone_checks(self, who, how_many, by_older_writer):
        """What is shown was never shown to it before, unless it gave it back."""
        for message_id in self.world.check(who, how_many, by_older_writer):
            assert (who, message_id) not in self.taken
            self.taken.add((who, message_id))

    @rule(who=STEPS["ack"][0], place=STEPS["ack"][1])
    def someone_acks(self, who, place):
        """Dealt with."""
        self.world.ack(who, place)

    @rule(who=STEPS["release"][0], place=STEPS["release"][1])
    def someone_releases(self, who, place):
        """Given back."""
        self._and_forget_releases(lambda: self.world.release(who, place))

    @rule(who=STEPS["register"][0], tags=STEPS["register"][1])
    def someone_registers(self, who, tags):
        """New, again, or back from the dead."""
        self.world.register(who, tags)

    @rule(who=STEPS["retag"][0], tags=STEPS["retag"][1])
    def roles_and_tags_change(self, who, tags):
        """The late-bound addresses bind anew."""
        self.world.retag(who, tags)

    @rule(who=STEPS["freeze"][0])
    def someone_freezes(self, who):
        """The clock of its direct mail stops."""
        self.world.freeze(who)

    @rule(who=STEPS["thaw"][0])
    def someone_thaws(self, who):
        """And runs again."""
        self.world.thaw(who)

    @rule(who=STEPS["sleep"][0], hours=STEPS["sleep"][1], is_resumed=STEPS["sleep"][2])
    def someone_sleeps(self, who, hours, is_resumed):
        """Frozen for a while, perhaps for good."""
        self.world.sleep(who, hours, is_resumed)

    @rule(who=STEPS["retire"][0], is_given_back=STEPS["retire"][1])
    def someone_retires(self, who, is_given_back):
        """Its claims go back, or not yet."""
        self._and_forget_releases(lambda: self.world.retire(who, is_given_back))

    @rule(heir=STEPS["succeed"][0], old=STEPS["succeed"][1], tags=STEPS["succeed"][2])
    def someone_continues_another(self, heir, old, tags):
        """Succession, cycles included."""
        self.world.succeed(heir, old, tags)

    @rule(hours=STEPS["pass_time"][0])
    def time_passes(self, hours):
        """Things expire."""
        self.world.pass_time(hours)

    @rule(hours=STEPS["turn_back"][0])
    def the_clock_is_set_back(self, hours):
        """Nothing is lost by it."""
        self.world.turn_back(hours)

    @rule()
    def everything_is_read_from_its_lines(self):
        """The logs' own lines, and the roster retold in fewer, give the answers that were kept up line by line."""
        world = self.world
        expected = unread(world.state, world.now)
        lines = State(
            messages={m.id: m for m in map(codec.message, map(codec.message_line, world.messages))},
            reads=Reads(map(codec.read, map(codec.read_line, world.reads))),
            roster=Roster(map(codec.roster_event, map(codec.roster_line, world.events))),
            ttls=DEFAULT_TTL,
        )
        assert unread(lines, world.now) == expected
        oldest = min((m.timestamp for m in world.messages), default=world.now)
        retold = world.state.replace(roster=Roster(compacted(world.events, oldest)))
        assert unread(retold, world.now) == expected

    def _and_forget_releases(self, act) -> None:
        before = len(self.world.reads)
        act()
        for read in self.world.reads[before:]:
            self.taken.discard((read.session_id, read.message_id))

    @invariant()
    def unread_is_what_the_page_says(self):
        """For every agent: the same messages in the same order, by the same mode, claimed or not."""
        plain = self.world.plainly()
        assert unread(self.world.state, self.world.now) == {
            who: plain.unread(who, self.world.now) for who in EVERYBODY
        }

    @invariant()
    def obligations_are_what_the_page_says(self):
        """For every agent, too."""
        plain = self.world.plainly()
        for who in EVERYBODY:
            owed = [m.id for m in inbox.obligations(who, self.world.state)]
            assert owed == plain.obligations(who)

    @invariant()
    def a_role_message_has_one_holder(self):
        """No two standing reads through a role of one message."""
        plain = self.world.plainly()
        for mail in self.world.messages:
            assert len(plain.claimers(mail)) <= 1

    @invariant()
    def own_and_read_mail_is_never_unread(self):
        """Neither what one sent nor what one was shown and did not give back, whatever else changed."""
        senders = {m.id: m.sender for m in self.world.messages}
        for who, items in unread(self.world.state, self.world.now).items():
            for message_id, _, _ in items:
                assert senders[message_id] != who
                assert (who, message_id) not in self.taken

Unread.TestCase.settings = settings(max_examples=300, stateful_step_count=50)
TestUnread = Unread.TestCase
TestUnread.__doc__ = "After every step of any history, ``inbox.unread`` is what the page says, for every agent."
