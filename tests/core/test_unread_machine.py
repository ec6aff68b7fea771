"""Unread, over random histories, held against the page written down plainly."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from agent_mailbox.core import codec, inbox, obligations, reach
from agent_mailbox.core.claims import Reads
from agent_mailbox.core.expiry import DEFAULT_TTL
from agent_mailbox.core.inbox import InboxState
from agent_mailbox.core.keeping.retention import compacted
from agent_mailbox.core.roster import Roster

from .world import EVERYBODY, STEPS, World


def unread(state: InboxState, now: int) -> dict[str, list[tuple[str, str, bool]]]:
    """What the core says everybody has yet to read."""
    return {
        who: [(item.message.id, item.mode, item.claims) for item in inbox.unread(who, state, now)] for who in EVERYBODY
    }


class Unread(RuleBasedStateMachine):
    """Agents send, check, ack, release, come and go while the clock runs and is set back."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.taken: set[tuple[str, str]] = set()  # (session, message) shown and not given back

    @rule(mail=st.tuples(*STEPS["send"]))
    def someone_sends(self, mail):
        """A message of any mode, to one or several."""
        self.world.send(*mail)

    @rule(mail=st.tuples(*STEPS["send"]), look=st.tuples(*STEPS["check_who_has_mail"]))
    def someone_sends_and_someone_checks(self, mail, look):
        """What is shown was never shown to it before, unless it gave it back."""
        self.world.send(*mail)
        self._note_what_was_shown(*self.world.check_who_has_mail(*look))

    @rule(look=st.tuples(*STEPS["check"]))
    def someone_checks(self, look):
        """The frozen, the dead and the unknown too."""
        self._note_what_was_shown(look[0], self.world.check(*look))

    @rule(look=st.tuples(*STEPS["check_who_has_mail"]))
    def someone_who_has_mail_checks(self, look):
        """Reading it, by a line with or without ``as``."""
        self._note_what_was_shown(*self.world.check_who_has_mail(*look))

    @rule(place=STEPS["ack"][0], is_reply=st.booleans())
    def someone_deals_with_mail(self, place, is_reply):
        """By an ack or by a reply."""
        if is_reply:
            self.world.reply(place)
        else:
            self.world.ack(place)

    @rule(place=STEPS["release"][0])
    def someone_gives_mail_back(self, place):
        """It is unread again."""
        self._and_forget_releases(lambda: self.world.release(place))

    @rule(who=STEPS["register"][0], tags=STEPS["register"][1], is_new=st.booleans())
    def someone_registers_or_changes(self, who, tags, is_new):
        """New, again, or back from the dead; late-bound addresses bind anew."""
        if is_new:
            self.world.register(who, tags)
        else:
            self.world.retag(who, tags)

    @rule(who=STEPS["freeze"][0], is_end=st.booleans())
    def someone_freezes_or_thaws(self, who, is_end):
        """The clock of its direct mail stops, or runs again."""
        if is_end:
            self.world.thaw(who)
        else:
            self.world.freeze(who)

    @rule(nap=st.tuples(*STEPS["sleep"]))
    def someone_sleeps(self, nap):
        """Frozen for a while, perhaps for good."""
        self.world.sleep(*nap)

    @rule(who=STEPS["retire"][0], is_given_back=STEPS["retire"][1])
    def someone_retires(self, who, is_given_back):
        """Its claims go back, or not yet."""
        self._and_forget_releases(lambda: self.world.retire(who, is_given_back))

    @rule(succession=st.tuples(*STEPS["succeed"]))
    def someone_continues_another(self, succession):
        """Succession, cycles included."""
        self.world.succeed(*succession)

    @rule(hours=STEPS["pass_time"][0])
    def time_passes(self, hours):
        """Things expire."""
        self.world.pass_time(hours)

    @rule(deadline=st.tuples(*STEPS["until_it_expires"]))
    def a_deadline_comes(self, deadline):
        """To the hour."""
        self.world.until_it_expires(*deadline)

    @rule(hours=STEPS["turn_back"][0])
    def the_clock_is_set_back(self, hours):
        """Nothing is lost by it."""
        self.world.turn_back(hours)

    @rule()
    def everything_is_read_from_its_lines(self):
        """The logs' own lines, and the roster retold in fewer, give the answers that were kept up line by line."""
        world = self.world
        expected = unread(world.state, world.now)
        lines = InboxState(
            messages={m.id: m for m in map(codec.message, map(codec.spell_message, world.messages))},
            reads=Reads(map(codec.read, map(codec.spell_read, world.reads))),
            roster=Roster(map(codec.roster_event, map(codec.spell_event, world.events))),
            ttls=DEFAULT_TTL,
        )
        assert unread(lines, world.now) == expected
        oldest = min((m.timestamp for m in world.messages), default=world.now)
        retold = world.state.replace(roster=Roster(compacted(world.events, oldest)))
        assert unread(retold, world.now) == expected

    def _note_what_was_shown(self, who: str, shown: list[str]) -> None:
        for message_id in shown:
            assert (who, message_id) not in self.taken
            self.taken.add((who, message_id))

    def _and_forget_releases(self, act) -> None:
        before = len(self.world.reads)
        act()
        for read in self.world.reads[before:]:
            self.taken.discard((read.session_id, read.message_id))

    @invariant()
    def unread_is_what_the_page_says(self):
        """For every agent: the same messages in the same order, by the same mode, claimed or not."""
        plain = self.world.plainly()
        assert unread(self.world.state, self.world.now) == {who: plain.unread(who, self.world.now) for who in EVERYBODY}

    @invariant()
    def what_a_read_would_record_tells_if_it_claims(self):
        """``as: role:x`` is the claim, and of no other reading."""
        for who in EVERYBODY:
            for item in inbox.unread(who, self.world.state, self.world.now):
                assert item.via.startswith("role:") == item.claims

    @invariant()
    def obligations_are_what_the_page_says(self):
        """For every agent, too."""
        plain = self.world.plainly()
        for who in EVERYBODY:
            owed = [m.id for m in obligations.obligations(who, self.world.state)]
            assert owed == plain.obligations(who)

    @invariant()
    def whoever_a_message_reaches_is_among_those_it_concerns(self):
        """Nobody whose unread mail a message changes is left out when a writer tells them of it; the dead read none."""
        plain = self.world.plainly()
        readers = [who for who in EVERYBODY if self.world.state.roster.state(who) != "dead"]
        for mail in self.world.messages[-3:]:
            concerned = reach.find_concerned([mail], self.world.state.roster)
            for who in readers:
                assert concerned is None or who in concerned or not plain.ways(mail, who)

    @invariant()
    def a_role_message_has_one_holder(self):
        """No two standing reads through a role of one message; a bare word has a holder of its own."""
        plain = self.world.plainly()
        for mail in self.world.messages:
            assert len(plain.claimers(mail)) <= (2 if mail.bare else 1)

    @invariant()
    def own_and_read_mail_is_never_unread(self):
        """Neither what one sent nor what one was shown and did not give back, whatever else changed."""
        senders = {m.id: m.sender for m in self.world.messages}
        for who, items in unread(self.world.state, self.world.now).items():
            for message_id, _, _ in items:
                assert senders[message_id] != who
                assert (who, message_id) not in self.taken


Unread.TestCase.settings = settings(max_examples=2 * settings().max_examples, stateful_step_count=50)
TestUnread = Unread.TestCase
TestUnread.__doc__ = "After every step of any history, ``inbox.unread`` is what the page says, for every agent."
