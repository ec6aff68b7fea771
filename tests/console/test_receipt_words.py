"""Who has not seen a message, of all that it was for when it was sent."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from agent_mailbox.console.receipt_words import describe_receipt
from agent_mailbox.core import proofs
from agent_mailbox.core.expected_readers import find_exceptions
from agent_mailbox.core.message_reads import Reads
from agent_mailbox.core.records import Message, Read, RosterEvent
from agent_mailbox.core.roster import Roster
from tests.core.build import ack, at, event, message, read, register

TEAM = [register(who, "project:p", hours=-2) for who in ("ann-1", "bob-1", "cat-1")]
DAN = register("dan-1", "role:x", "project:p", hours=-2)


def offered(who: str) -> Read:
    """A hook shows m1 to a session."""
    return Read("m1", who, at(1), "read", who, "aaaaaa", proof=proofs.of_session(who))


@dataclass
class Case:
    """A message, who read it, what became of the agents, and what is said of it."""

    said: str
    to: str | tuple[str, ...] = "project:p"
    reads: list[Read] = field(default_factory=list)
    events: list[RosterEvent] = field(default_factory=list)
    sender: str = "ann-1"
    type: str = "message"


CASES = {
    "everyone saw it": Case("read by bob-1 and cat-1", reads=[read("m1", "bob-1"), read("m1", "cat-1")]),
    "the least that all did is said": Case(
        "seen by bob-1 and cat-1",
        reads=[
            offered("bob-1"),
            read("m1", "bob-1", event="seen").replace(nonce="aaaaaa"),
            read("m1", "cat-1"),
            ack("m1", "cat-1"),
        ],
    ),
    "all acked": Case("acked by bob-1", to="bob-1", reads=[ack("m1", "bob-1")]),
    "one did not": Case("cat-1 has not seen it", reads=[read("m1", "bob-1")]),
    "nobody did": Case("bob-1 and cat-1 have not seen it"),
    "no sign yet": Case("cat-1 has not seen it; no sign yet that bob-1 saw it", reads=[offered("bob-1")]),
    "an ack is a look": Case("cat-1 has not seen it", reads=[offered("bob-1"), ack("m1", "bob-1")]),
    "the title alone": Case(
        "cat-1 has not seen it; bob-1 saw the title alone",
        reads=[offered("bob-1").replace(title=True), read("m1", "bob-1", event="seen").replace(nonce="aaaaaa")],
    ),
    "who came later is not expected": Case(
        "read by bob-1 and cat-1",
        reads=[read("m1", "bob-1"), read("m1", "cat-1")],
        events=[register("eve-1", "project:p", hours=1)],
    ),
    "who came later and saw it is told": Case(
        "read by bob-1, cat-1 and eve-1",
        reads=[read("m1", who) for who in ("bob-1", "cat-1", "eve-1")],
        events=[register("eve-1", "project:p", hours=1)],
    ),
    "who died before is not expected": Case(
        "read by bob-1", reads=[read("m1", "bob-1")], events=[event("retire", "cat-1", -1)]
    ),
    "who died at that instant is not": Case(
        "read by bob-1", reads=[read("m1", "bob-1")], events=[event("retire", "cat-1", 0)]
    ),
    "who died after it is": Case(
        "cat-1 ended without seeing it", reads=[read("m1", "bob-1")], events=[event("retire", "cat-1", 1)]
    ),
    "who continues it takes that place": Case(
        "fay-1 has not seen it",
        reads=[read("m1", "bob-1")],
        events=[event("retire", "cat-1", 1), register("fay-1", "project:p", hours=2, continues="cat-1")],
    ),
    "who continues it without the tag does not": Case(
        "cat-1 ended without seeing it",
        reads=[read("m1", "bob-1")],
        events=[event("retire", "cat-1", 1), register("fay-1", hours=2, continues="cat-1")],
    ),
    "of both selves the one that saw more counts": Case(
        "read by bob-1 and fay-1",
        reads=[read("m1", "bob-1"), read("m1", "cat-1"), offered("fay-1")],
        events=[event("retire", "cat-1", 1), register("fay-1", "project:p", hours=2, continues="cat-1")],
    ),
    "what the older self saw counts": Case(
        "read by bob-1 and fay-1",
        to=("bob-1", "cat-1"),
        reads=[read("m1", "bob-1"), read("m1", "cat-1")],
        events=[event("retire", "cat-1", 1), register("fay-1", hours=2, continues="cat-1")],
    ),
    "the frozen are expected": Case("bob-1 and cat-1 have not seen it", events=[event("freeze", "cat-1", 1)]),
    "many are counted": Case(
        "none of 4 has seen it", to="all", events=[DAN, register("gil-1", hours=-2), register("hal-1", hours=1)]
    ),
    "a role waits for one": Case(
        "none of bob-1 and dan-1 has seen it; one is enough",
        to="role:x",
        events=[DAN, register("bob-1", "role:x", hours=-1)],
    ),
    "its holder alone counts": Case(
        "read by dan-1",
        to="role:x",
        reads=[read("m1", "dan-1", "role:x")],
        events=[DAN, register("bob-1", "role:x", hours=-1)],
    ),
    "who claimed it is to see it": Case(
        "dan-1 has not seen it",
        to="role:x",
        reads=[read("m1", "dan-1", "role:x", "claim")],
        events=[DAN, register("bob-1", "role:x", hours=-1)],
    ),
    "nobody holds the role": Case("it waits for role:y", to="role:y"),
    "the person": Case("you have not marked it as read", to="user"),
    "a name that a foreign writer stored": Case(
        "bob-1 has not seen it", to="Bob", events=[register("bob-1", hours=-1, name="Bob")]
    ),
    "nobody else": Case("it reaches nobody else", to="domain:z"),
    "a note is for no inbox": Case("", type="note"),
    "a request stands in a list": Case("", to="user", type="control"),
    "another program's line ends no doubt about the person's question": Case(
        "bob-1 has not seen it", to="bob-1", sender="user", reads=[Read("m1", "bob-1", at(1))],
        events=[event("update", "bob-1", client="claude")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_receipt_says_who_has_not_seen_the_message(name: str) -> None:
    """A receipt names the exceptions alone; without any, its words are those of who saw it."""
    case = CASES[name]
    sent: Message = message(to=case.to, sender=case.sender, type=case.type, ack=case.sender == "user")
    told = describe_receipt(sent, Reads(case.reads), Roster([*TEAM, *case.events]), str)
    assert told.text == case.said
    assert told.is_quiet == (case.said.partition(" by ")[0] in ("", "read", "seen", "acked"))


LATER = {
    "starts again": [register("cat-1", "project:p", hours=1)],
    "has another tag": [event("update", "cat-1", 1, tags=("project:p", "domain:d"))],
    "freezes": [event("freeze", "cat-1", 1)],
    "thaws": [event("freeze", "cat-1", 1), event("thaw", "cat-1", 2)],
    "dies and comes back": [event("retire", "cat-1", 1), register("cat-1", "project:p", hours=2)],
}


@pytest.mark.parametrize("what", LATER)
@pytest.mark.parametrize("to", ["project:p", "all", "cat-1", ("bob-1", "project:p")])
def test_whatever_a_reader_does_later_it_has_not_seen_the_message(to: str | tuple[str, ...], what: str) -> None:
    """A receipt names it until it reads the message, by whichever address that came."""
    roster = Roster([*TEAM, *LATER[what]])
    for reads, unseen in (([], ("cat-1",)), ([read("m1", "cat-1")], ())):
        found = find_exceptions(message(to=to), Reads([read("m1", "bob-1"), *reads]), roster)
        assert (found.unseen, "cat-1" in found.seen) == (unseen, not unseen)


def test_no_reader_is_an_exception_and_none_at_once() -> None:
    """Each expected reader is in one group, whatever was read."""
    roster = Roster([*TEAM, DAN])
    for count in range(4):
        reads = Reads([offered("bob-1"), read("m1", "cat-1"), ack("m1", "dan-1")][:count])
        found = find_exceptions(message(to=("all", "bob-1", "role:x")), reads, roster)
        groups = [*found.unseen, *found.offered, *found.titles, *found.ended, *found.seen]
        assert sorted(groups) == ["bob-1", "cat-1", "dan-1"]
        assert found.rivals == ()
