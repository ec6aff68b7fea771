"""Who has read what, and who holds a role message: claim, ack, release, re-offer."""

from __future__ import annotations

import pytest

from agent_mailbox.core import awaited, message_reads
from agent_mailbox.core.inbox import unread
from agent_mailbox.core.keeping import retention
from agent_mailbox.core.message_reads import Reads
from agent_mailbox.core.obligations import owed_on_death
from agent_mailbox.core.records import Message, Read, RosterEvent
from agent_mailbox.core.roster import Roster

from .build import ack, at, event, message, read, register, release, roster, state

PEOPLE = [
    register("ann-1"),
    register("bob-1", "role:x"),
    register("cat-1", "role:x", "project:p"),
    register("dan-1", "role:x", "role:y"),
]


def unread_by(session_id: str, messages: list[Message], reads: list[Read], *events: RosterEvent) -> list[str]:
    """Ids of what the session has yet to read, an hour after ``T0``."""
    return [i.message.id for i in unread(session_id, state(messages, reads, [*PEOPLE, *events]), at(1))]


def holder(mail: Message, *reads: Read, events: tuple[RosterEvent, ...] = ()) -> str | None:
    """Who holds the message."""
    return message_reads.holder(mail, Reads(reads), roster(*PEOPLE, *events))


# -- the fold of the reads log ----------------------------------------------------------------------------------------


def test_a_read_stands_until_its_reader_releases_it():
    """Read, read again, released, read again: the last word counts, each session for itself."""
    reads = Reads([read("m1", "bob-1"), read("m1", "cat-1")])
    assert [r.session_id for r in reads.of("m1")] == ["bob-1", "cat-1"]
    reads.apply(release("m1", "bob-1"))
    assert [r.session_id for r in reads.of("m1")] == ["cat-1"]
    reads.apply(read("m1", "bob-1", hours=2))
    assert [r.session_id for r in reads.of("m1")] == ["cat-1", "bob-1"]
    assert reads.by("m1", ("bob-1", "eve-1")) == ["bob-1"]
    assert reads.by("m2", ("bob-1",)) == []
    assert reads.of("m2") == []


def test_a_release_leaves_the_claim_of_a_session_whose_id_begins_like_its_own():
    """Bob-1 gives back what it claimed itself, and nothing of bob-10."""
    claim = read("m1", "bob-10", via="role:x", event="claim")
    reads = Reads([claim, release("m1", "bob-1")])
    assert reads.claim("m1") == claim
    reads.apply(release("m1", "bob-10"))
    assert reads.claim("m1") is None


def test_a_release_of_one_delivery_leaves_a_later_one():
    """A line that a power failure dropped is written again, behind what its reader was shown since."""
    given_back = release("m1", "bob-1").replace(nonce="first")
    reads = Reads([read("m1", "bob-1").replace(nonce="first"), given_back])
    assert reads.of("m1") == []
    for later in ("second", None):
        now = read("m1", "bob-1", hours=1).replace(nonce=later)
        for before in ([], [read("m1", "bob-1").replace(nonce="first")]):
            again = Reads([*before, now, now, given_back])
            assert again.of("m1") == [now]
            assert not again.released("m1", ("bob-1",))
            again.apply(release("m1", "bob-1").replace(nonce=later))
            assert again.of("m1") == []


def test_an_ack_implies_the_read_and_a_release_takes_both_back():
    """Given back is unread again, and what was said to be done is not."""
    reads = Reads([ack("m1", "bob-1")])
    assert reads.by("m1", ("bob-1",)) == ["bob-1"]
    assert reads.acked(message("m1"), ("bob-1",))
    reads.apply(release("m1", "bob-1"))
    assert not reads.by("m1", ("bob-1",))
    assert not reads.acked(message("m1"), ("bob-1",))
    reads.apply(read("m1", "bob-1"))
    assert not reads.acked(message("m1"), ("bob-1",))


def test_reading_does_not_ack_and_a_receipt_does_not_read():
    """``seen`` and ``read`` say what they say, no more."""
    reads = Reads([read("m1", "bob-1"), read("m1", "cat-1", event="seen")])
    assert not reads.acked(message("m1"), ("bob-1",))
    assert reads.by("m1", ("cat-1",)) == []
    assert [r.session_id for r in reads.of("m1")] == ["bob-1"]


def test_a_release_of_what_was_not_read_changes_nothing_and_is_remembered():
    """A release of a message that was not read changes nothing. The reads log remembers who gave it back."""
    reads = Reads([release("m1", "bob-1")])
    assert reads.of("m1") == []
    assert reads.released("m1", ("bob-1", "x"))
    assert not reads.released("m1", ("cat-1",))
    assert not reads.released("m2", ("bob-1",))


def test_sessions_and_messages_do_not_mix():
    """An ack by one is none by another, and of one message none of another."""
    reads = Reads([read("m1", "bob-1"), ack("m1", "cat-1"), read("m2", "bob-1"), release("m2", "bob-1")])
    assert not reads.acked(message("m1"), ("bob-1",))
    assert not reads.acked(message("m2"), ("cat-1",))
    assert reads.acked(message("m1"), ("bob-1", "cat-1"))
    assert reads.by("m1", ("bob-1",)) == ["bob-1"]


def test_readers_are_all_who_read_it_the_foreign_lines_own_included():
    """First reader first, nobody twice."""
    mail = message(read_by=("eve-1", "bob-1"))
    reads = Reads([read("m1", "cat-1"), read("m1", "bob-1")])
    assert message_reads.readers(mail, reads) == ["cat-1", "bob-1", "eve-1"]
    assert message_reads.read_by(mail, Reads(), ("eve-1",), roster())
    assert not message_reads.read_by(mail, Reads(), ("dan-1",), roster())
    assert message_reads.read_by(message(), Reads([read("m1", "old-1")]), ("new-1", "old-1"), roster())


# -- claims -----------------------------------------------------------------------------------------------------------


def test_of_two_claims_the_first_in_the_log_counts():
    """Log order decides, not the clock: exactly one holds it."""
    mail = message(to="role:x")
    first, second = read("m1", "cat-1", via="role:x", hours=5), read("m1", "bob-1", via="role:x", hours=1)
    assert holder(mail, first, second) == "cat-1"
    assert holder(mail, first, second, release("m1", "cat-1")) == "bob-1"
    assert holder(mail, first, second, release("m1", "bob-1")) == "cat-1"


def test_what_is_in_the_archive_and_live_counts_once():
    """A steward copies records before it removes them. The copy of an unproven read is behind its proven release."""
    given = [read("m1", "bob-1").replace(proof=None), release("m1", "bob-1")]
    again = read("m1", "bob-1", hours=1)
    assert Reads(message_reads.with_archived(given, given)).of("m1") == []
    assert message_reads.with_archived([*given, again], given) == [*given, again]


# -- lines of older writers -------------------------------------------------------------------------------------------


def test_a_line_without_as_is_a_claim_if_only_a_role_brought_the_message():
    """``role:x`` or the seed's bare ``x``; not where the session, a tag or ``all`` brought it too."""
    plain = read("m1", "cat-1")
    for to in ("role:x", "x", ("role:x", "role:y"), ("bob-1", "role:x"), ("concern:c", "x")):
        assert holder(message(to=to), plain) == "cat-1"
    for to in ("cat-1", "all", "project:p", ("role:x", "cat-1"), ("x", "all"), ("role:x", "project:p")):
        assert holder(message(to=to), plain) is None


def test_a_bare_word_that_is_an_agent_is_no_role_to_claim():
    """A line without ``as`` about another's direct mail holds nothing."""
    assert holder(message(to="ann-1"), read("m1", "bob-1")) is None


def test_a_line_with_as_says_itself_whether_it_claims():
    """The key ``as`` of a read tells whether it claims the message, whatever the roster says now."""
    mail = message(to=("role:x", "project:p"))
    assert holder(mail, read("m1", "cat-1", via="role:x")) == "cat-1"
    assert holder(mail, read("m1", "bob-1", via="project:p")) is None


def test_what_the_first_line_recorded_stands_whatever_follows_it():
    """An ack after the read, or a second line, changes neither that it was a claim nor that it was none."""
    mail = message(to=("role:x", "project:p"))
    untagged = event("update", "cat-1", tags=("role:x",))
    for later in (ack("m1", "cat-1"), read("m1", "cat-1", via="role:x"), read("m1", "cat-1")):
        assert holder(mail, read("m1", "cat-1", via="project:p"), later, events=(untagged,)) is None
    for later in (ack("m1", "cat-1"), read("m1", "cat-1", via="project:p"), read("m1", "cat-1")):
        assert holder(mail, read("m1", "cat-1", via="role:x"), later) == "cat-1"


def test_an_ack_of_an_older_writer_claims_as_its_read_would():
    """An ack implies the read, so it implies the claim."""
    assert holder(message(to="role:x"), ack("m1", "bob-1")) == "bob-1"
    assert holder(message(to="all"), ack("m1", "bob-1")) is None
    assert holder(message(to=("role:x", "all")), read("m1", "bob-1", via="all"), ack("m1", "bob-1")) is None


# -- what the dead owe ------------------------------------------------------------------------------------------------


def owed(mails: list[Message], reads: list[Read], *events: RosterEvent, of: str = "bob-1") -> list[str]:
    """What goes back to its role when the session dies."""
    world = state(mails, reads, [*PEOPLE, event("retire", of), *events])
    return [message_id for _, message_id in owed_on_death([of], world)]


def test_whoever_read_nothing_is_asked_for_nothing():
    """A name of years has hundreds of former bearers: finding the successors of each takes their square."""

    class Unasked(Roster):
        def line(self, session_id):
            assert session_id == "bob-1"
            return super().line(session_id)

    world = state([message(to="role:x", ack=True)], [read("m1", "bob-1", via="role:x")], [])
    world = world.replace(roster=Unasked([*PEOPLE, event("retire", "bob-1")]))
    assert list(owed_on_death(["bob-0", "bob-1"], world)) == [("bob-1", "m1")]


def test_the_dead_give_back_the_claims_that_asked_for_an_ack_and_got_none():
    """Those and no others: not what asked for none, was acked, was released, was another's, or was its own mail."""
    mails = [
        message("asked", to="role:x", ack=True),
        message("asked too", to=("x", "role:y"), ack=True),
        message("not asked", to="role:x"),
        message("acked", to="role:x", ack=True),
        message("released", to="role:x", ack=True),
        message("another's", to="role:x", ack=True),
        message("unread", to="role:x", ack=True),
        message("direct", to="bob-1", ack=True),
        message("broadcast", to="all", ack=True),
        message("second claim", to="role:x", ack=True),
    ]
    reads = [
        *(read(m, "bob-1", via="role:x") for m in ("asked", "asked too", "not asked", "acked", "released")),
        ack("acked", "bob-1"),
        release("released", "bob-1"),
        read("another's", "cat-1", via="role:x"),
        read("direct", "bob-1", via="bob-1"),
        read("broadcast", "bob-1", via="all"),
        read("second claim", "dan-1", via="role:x"),
        read("second claim", "bob-1", via="role:x"),
    ]
    assert owed(mails, reads) == ["asked", "asked too"]


ASKED = message("m1", to="role:x", ack=True)
CLAIM = read("m1", "bob-1", via="role:x")


def test_once_given_back_nothing_is_owed_and_the_role_has_it_again():
    """The release is what the next holder needs, and repeating the bookkeeping adds nothing."""
    log = [CLAIM, release("m1", "bob-1")]
    assert owed([ASKED], log) == []
    assert unread_by("cat-1", [ASKED], log, event("retire", "bob-1")) == ["m1"]


def test_a_claim_that_was_answered_is_not_given_back():
    """A reply by the holder is an ack: nobody else must answer the same mail again."""
    reply = message("m2", to="ann-1", sender="bob-1", thread="m1")
    assert owed([ASKED, reply], [CLAIM]) == []
    assert owed([ASKED, reply.replace(sender="cat-1")], [CLAIM]) == ["m1"]


SUCCESSOR = register("bob-2", "role:x", continues="bob-1")


@pytest.mark.parametrize("end", [None, "freeze"])
def test_a_claim_goes_to_the_successor_and_not_back_to_the_role(end):
    """The new agent has the old one's obligations, as long as it is not dead."""
    more = [SUCCESSOR, *([event(end, "bob-2")] if end else [])]
    assert owed([ASKED], [CLAIM], *more) == []
    assert owed([ASKED], [CLAIM], SUCCESSOR, event("retire", "bob-2")) == ["m1"]


@pytest.mark.parametrize("end", [None, "freeze", "retire"])
def test_a_claim_that_the_successor_dealt_with_is_never_given_back(end):
    """It got its ack or its reply; that the successor died since does not undo it."""
    more = [SUCCESSOR, *([event(end, "bob-2")] if end else [])]
    assert owed([ASKED], [CLAIM, ack("m1", "bob-2")], *more) == []
    assert owed([ASKED, message("m2", sender="bob-2", thread="m1")], [CLAIM], *more) == []


# -- claims before showing --------------------------------------------------------------------------------------------


def claim(session_id: str, minutes: float = 0, proof: str | None = "") -> Read:
    """The line by which a session takes ``m1`` before it is shown."""
    line = read("m1", session_id, "role:x", "claim", minutes / 60)
    return line if proof == "" else line.replace(proof=proof)


def finds(
    who: str, *reads: Read, minutes: float = 0, seen: dict[str, int] | None = None, events: tuple[RosterEvent, ...] = ()
) -> list[str]:
    """What the session has yet to read so many minutes after ``T0``; ``seen`` are the last signs of life."""
    folded = state([message("m1", "role:x")], list(reads), [*PEOPLE, *events])
    signs = {"bob-1": at(0), **(seen or {})}
    return [i.message.id for i in unread(who, folded.replace(sign=lambda s: signs.get(s, 0)), at(minutes / 60))]


def test_a_claim_hides_the_message_from_other_holders_and_not_from_its_claimer():
    """Killed before it read, it is shown the message again; it holds it once it read it."""
    assert finds("bob-1", claim("bob-1")) == ["m1"]
    assert finds("cat-1", claim("bob-1")) == []
    assert finds("cat-1", claim("bob-1"), release("m1", "cat-1")) == []
    assert finds("cat-1", claim("bob-1"), release("m1", "bob-1")) == ["m1"]
    read_too = (claim("bob-1"), read("m1", "bob-1", "role:x"))
    assert finds("bob-1", *read_too) == finds("cat-1", *read_too, minutes=1000) == []
    assert holder(message("m1", "role:x"), claim("bob-1")) is None


@pytest.mark.parametrize(
    ("minutes", "seen", "events", "is_free"),
    [
        (9.9, 0, (), False),
        (10, 0, (), True),
        (19.9, 10, (), False),  # it checked since
        (20, 10, (), True),
        (20, 30, (), True),  # a sign of life ahead of the clock is none
        (20, message_reads.DELIVERING, (), False),  # its check goes on
        (-11, -11, (), False),
        (-11, 0, (), True),  # the clock was set back: the claim is ahead of it
        (1, 0, (event("retire", "bob-1"),), True),
        (1, message_reads.DELIVERING, (event("retire", "bob-1"),), False),
        (1, 0, (event("freeze", "bob-1", reason="its client's process ended"),), True),
        (1, 0, (event("freeze", "bob-1"),), False),
        (10, 0, (event("freeze", "bob-1"),), True),
        (1, 0, (event("update", "bob-1", tags=()),), True),  # the mail is not for it any more
        (1, 0, (event("update", "cat-1", continues="bob-1"),), True),  # cat has bob's place
        (1, message_reads.DELIVERING, (event("update", "cat-1", continues="bob-1"),), False),
    ],
)
def test_a_claim_lapses(minutes: float, seen: float, events: tuple[RosterEvent, ...], is_free: bool):
    """Its claimer is dead or gone, has another role, or has neither read nor checked for ten minutes."""
    sign = {"bob-1": message_reads.DELIVERING if seen == message_reads.DELIVERING else at(seen / 60)}
    assert finds("cat-1", claim("bob-1"), minutes=minutes, seen=sign, events=events) == ["m1"] * is_free


def test_a_claim_of_one_who_would_not_be_shown_the_message_hides_nothing():
    """Any program may write a claim: for its sender, for a stranger, for one that had it."""
    sent = state([message("m1", "role:x", sender="dan-1")], [claim("dan-1")], PEOPLE)
    assert [i.message.id for i in unread("cat-1", sent, at(0))] == ["m1"]
    assert finds("cat-1", claim("../zed")) == ["m1"]
    assert finds("cat-1", read("m1", "bob-1", "bob-1"), claim("bob-1")) == ["m1"]


def test_role_mail_lacks_the_ack_of_its_claimer_before_that_read_it():
    """Unclaimed, it is the role that owes the ack."""
    asked = message("m1", "role:x", ack=True)
    for claims, who in (([], "role:x"), ([claim("bob-1")], "bob-1")):
        assert [one.who for one in awaited.owing(asked, state([asked], claims, PEOPLE), (), at(0))] == [who]


def test_the_next_holder_s_claim_takes_the_place_of_a_lapsed_one():
    """The claimer that comes back finds it; so does a third. An unproven claim ends no proven one."""
    taken = (claim("bob-1"), claim("cat-1", 11))
    assert finds("bob-1", *taken, minutes=11) == finds("dan-1", *taken, minutes=11) == []
    assert finds("cat-1", *taken, minutes=11) == ["m1"]
    forged = (claim("bob-1"), claim("cat-1", 1, proof=None))
    assert finds("bob-1", *forged, minutes=1) == ["m1"]
    assert finds("cat-1", *forged, minutes=1) == []
    unproven_release = release("m1", "bob-1").replace(proof=None)
    assert finds("cat-1", claim("bob-1"), unproven_release) == []


def test_who_read_role_mail_behind_one_whose_id_begins_with_its_own_holds_nothing():
    """The first that read it so is its holder. Of two bare words each has its taker, whichever begins with another."""
    people = [*PEOPLE, register("bob-10", "role:x")]
    mail = message("m1", "role:x")
    reads = Reads([read("m1", "bob-10", "role:x"), read("m1", "bob-1", "role:x")])
    held = [who for who in ("bob-1", "bob-10") if message_reads.is_holder(who, mail, reads, Roster(people))]
    assert held == ["bob-10"]
    words = message("m1", ("role:new", "role:newer"), extra={"bare": ["new", "newer"]})
    assert message_reads.is_taken("role:new", "role:new", words)
    assert not message_reads.is_taken("role:newer", "role:new", words)


def test_mail_that_was_taken_through_an_address_does_not_wait_there_for_another():
    """It was the only bearer of the tag that took it. Mail that came to another part waits all the same."""
    people = [register("ann-1"), register("bob-1"), register("cat-1", "role:y")]
    mail = Message("m1", "ann-1", ("bob-1", "project:p"), at(0), "text")
    for via, lonely in (("project:p", []), (None, []), ("bob-1", ["project:p"]), ("project:pq", ["project:p"])):
        assert awaited.lonely_addresses(mail, Reads([read("m1", "bob-1", via)]), Roster(people)) == lonely, via


def test_a_message_that_is_claimed_and_not_read_is_pending():
    """The steward counts it, and moves it never."""
    there = state([message("m1", "role:x")], [claim("bob-1")], PEOPLE)
    assert retention.plan(there, at(1000), 0) == retention.RetentionPlan(move=frozenset(), pending=1)
