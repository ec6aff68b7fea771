"""Honest receipts: what counts as seen, what that means for archiving and for the dead, and what mail cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_mailbox.core import dead_letters, inbox, message_reads, obligations, proofs
from agent_mailbox.core.cost import Cost, costs
from agent_mailbox.core.keeping import retention
from agent_mailbox.core.message_reads import Reads
from agent_mailbox.core.records import Read

from .build import ack, at, event, message, register, release, state

if TYPE_CHECKING:
    from agent_mailbox.core.inbox import InboxState

PEOPLE = [register("ann-1"), register("bob-1", "role:x", "project:p"), register("cat-1", "role:x", "project:p")]
ADDRESSES = {"bob-1": "bob-1", "role:x": "role:x", "project:p": "project:p", "all": "all"}


def offered(nonce: str = "aaaaaa", via: str = "bob-1", tokens: int = 10, *, title: bool = False) -> Read:
    """bob is shown m1 by a hook."""
    return Read("m1", "bob-1", at(0), "read", via, nonce, tokens, title)


IN_FULL = Read("m1", "bob-1", at(0), via="role:x")
"""bob is shown m1 by a command of his."""


def seen(nonce: str = "aaaaaa", who: str = "bob-1") -> Read:
    """bob's transcript shows that he went on after it."""
    return Read("m1", who, at(0), "seen", None, nonce)


@pytest.mark.parametrize(
    ("reads", "stage"),
    [
        ([offered()], "offered"),
        ([offered(), seen()], "seen"),
        ([offered(), seen("bbbbbb")], "offered"),
        ([offered(), seen(who="cat-1")], "offered"),
        ([offered(), ack("m1", "bob-1")], "acked"),
        ([offered(), release("m1", "bob-1"), offered("bbbbbb"), seen()], "offered"),
        ([offered(), release("m1", "bob-1"), offered("bbbbbb"), seen("bbbbbb")], "seen"),
        ([seen(), offered()], "seen"),
        ([Read("m1", "bob-1", at(0))], "read"),
        ([offered(), release("m1", "bob-1")], None),
        ([seen()], None),
        ([offered(title=True)], "offered"),
        ([offered(title=True), seen()], "seen by title"),
        ([offered(title=True).replace(nonce=None)], "seen by title"),
        ([offered(title=True), seen(), ack("m1", "bob-1")], "acked"),
        ([offered(title=True), seen(), IN_FULL], "read"),
        ([offered(title=True), IN_FULL], "read"),
        ([offered(title=True), IN_FULL, release("m1", "bob-1"), offered("bbbbbb", title=True)], "offered"),
        ([offered(), seen(), offered("bbbbbb", title=True)], "seen"),
        ([offered(title=True).replace(proof=proofs.of_session("bob-1")), seen(), IN_FULL], "seen by title"),
        ([offered(title=True), seen(), IN_FULL.replace(session_id="cat-1")], "seen by title"),
    ],
)
def test_seen_is_of_one_delivery_to_one_reader(reads: list[Read], stage: str | None) -> None:
    """The nonce decides, whatever the order the lines stand in; a receipt alone reads nothing."""
    folded = Reads(reads)
    assert folded.stages("m1").get("bob-1") == stage
    assert [r.session_id for r in folded.unseen("m1")] == (["bob-1"] if stage == "offered" else [])


def test_the_text_behind_a_title_changes_no_holder() -> None:
    """bob holds the role's mail as he did, by the line that claimed it."""
    reads = Reads([offered(via="role:x", title=True), Read("m1", "cat-1", at(0), via="role:x"), IN_FULL])
    assert message_reads.holder(message(to="role:x"), reads, state([], [], PEOPLE).roster) == "bob-1"
    assert [(r.session_id, r.via) for r in reads.of("m1")] == [("bob-1", "role:x"), ("cat-1", "role:x")]


@pytest.mark.parametrize("to", ["bob-1", "role:x"])
def test_unseen_mail_is_not_finished_until_its_session_is_dead_or_it_expired(to: str) -> None:
    """Offered and nothing known: it stays. Seen, acked, dead: it goes."""
    mail = message(to=to, ttl_hours=48)

    def moves(*reads: Read, hours: float = 1, dead: bool = False) -> bool:
        events = [*PEOPLE, *([event("retire", "bob-1", 0.5)] if dead else [])]
        return bool(retention.plan(state([mail], list(reads), events), at(hours), 0).move)

    assert not moves(offered(via=to))
    assert moves(offered(via=to), seen())
    assert moves(offered(via=to), ack("m1", "bob-1"))
    assert moves(offered(via=to), dead=True)
    assert moves(offered(via=to), hours=48)


def owed(world: InboxState) -> list[str]:
    """What bob-1 gives back."""
    return [message_id for _, message_id in obligations.owed_on_death(["bob-1"], world)]


@pytest.mark.parametrize("to", ADDRESSES)
def test_the_dead_give_back_what_they_were_offered_and_never_saw(to: str) -> None:
    """Whatever its address, also to the one who continues them; not what they saw, acked or answered."""
    mail = message(to=to)
    dead = [*PEOPLE, event("retire", "bob-1", 1)]
    assert owed(state([mail], [offered(via=to)], dead)) == ["m1"]
    assert owed(state([mail], [offered(via=to), seen()], dead)) == []
    answer = message("m2", to="ann-1", sender="bob-1", thread="m1")
    assert owed(state([mail, answer], [offered(via=to)], dead)) == []
    succeeded = [*dead, register("bob-2", hours=1, continues="bob-1")]
    assert owed(state([mail], [offered(via=to)], succeeded)) == ["m1"]


@pytest.mark.parametrize("to", ADDRESSES)
def test_a_title_settles_nothing_that_asks_for_an_ack(to: str) -> None:
    """It goes back when its reader dies, and is a dead letter when its time is over; owed until then."""
    by_title = [offered(via=to, title=True), seen()]
    dead = [*PEOPLE, event("retire", "bob-1", 1)]
    for ack_too, reads, back, reason in (
        (True, by_title, ["m1"], "expired"),
        (False, by_title, [], None),
        (True, [*by_title, Read("m1", "bob-1", at(0))], ["m1"] if to == "role:x" else [], None),
        (True, [*by_title, ack("m1", "bob-1")], [], None),
    ):
        mail = message(to=to, ack=ack_too, ttl_hours=2)
        assert owed(state([mail], reads, dead)) == back
        letters = dead_letters.dead_letters(state([mail], reads, PEOPLE), at(2))
        assert [why for _, why in letters] == ([reason] if reason else [])
    asked = message(to=to, ack=True, ttl_hours=2)
    assert obligations.obligations("bob-1", state([asked], by_title, PEOPLE)) == [asked]
    answer = message("m2", to="ann-1", sender="bob-1", thread="m1")
    assert dead_letters.dead_letters(state([asked, answer], by_title, PEOPLE), at(2)) == []
    assert owed(state([asked, answer], by_title, dead)) == []


def test_what_the_dead_never_saw_is_another_holder_s_or_a_dead_letter() -> None:
    """A role's mail goes to the other holder; direct mail to nobody any more, and its sender can tell."""
    events = [*PEOPLE, event("retire", "bob-1", 1)]
    reads = [offered(via="role:x"), release("m1", "bob-1")]
    assert [i.message.id for i in inbox.unread("cat-1", state([message(to="role:x")], reads, events), at(1))] == ["m1"]
    letters = dead_letters.dead_letters(state([message()], [offered(), release("m1", "bob-1")], events), at(1))
    assert [(m.id, reason) for m, reason in letters] == [("m1", "recipient_dead")]


def test_what_was_asked_is_unanswered_until_somebody_acks_or_answers() -> None:
    """One's own afterthought is no answer. From a swarm that the person asked, one counts that its gateway took in."""
    asked = message("m1", to="role:x", ack=True)
    own = message("m2", to="role:x", sender="ann-1", thread="m1")
    other = message("m3", to="ann-1", sender="cat-1", thread="m1")
    assert [m.id for m in obligations.unanswered("ann-1", state([asked, own], [offered()], PEOPLE))] == ["m1"]
    assert obligations.unanswered("ann-1", state([asked, other], [], PEOPLE)) == []
    assert obligations.unanswered("ann-1", state([asked], [ack("m1", "bob-1")], PEOPLE)) == []
    assert obligations.unanswered("bob-1", state([asked], [], PEOPLE)) == []
    for to, answers in (("swarm:demo/beta", 0), ("swarm:demo", 0), ("swarm:demo/eve", 1), ("cat-1", 1)):
        from_person = message("m1", to=to, sender="user", ack=True)
        for proof in (proofs.CARRIED, proofs.of_machine("desk", proofs.CARRIED), None, proofs.BEFORE):
            answer = message("m2", to="user", sender="swarm:demo/beta", thread="m1", proof=proof)
            left = obligations.unanswered("user", state([from_person, answer], [], PEOPLE))
            assert len(left) == (answers if proofs.is_carried(proof) else 1), (to, proof)


def test_staleness_says_why_dealing_with_it_may_be_pointless() -> None:
    """The sender gone (not where somebody continues it), its own later word below, its time over; else nothing."""
    mail = message(ttl_hours=2)
    gone = [*PEOPLE, event("retire", "ann-1", 1)]
    assert obligations.staleness(mail, state([mail], [], PEOPLE), at(1)) == ""
    assert obligations.staleness(mail, state([mail], [], PEOPLE), at(2)) == "expired"
    assert obligations.staleness(mail, state([mail], [], gone), at(1)) == "sender gone"
    succeeded = [*gone, register("ann-2", hours=1, continues="ann-1")]
    assert obligations.staleness(mail, state([mail], [], succeeded), at(1)) == ""
    newer = message("m2", thread="m1")
    assert obligations.staleness(mail, state([mail, newer], [], PEOPLE), at(1)) == "superseded"
    for sender, thread in (("cat-1", "m1"), ("ann-10", "m1"), ("ann-1", "m10")):
        others = message("m2", sender=sender, thread=thread)
        assert obligations.staleness(mail, state([mail, others], [], PEOPLE), at(1)) == ""


def test_costs_are_summed_by_sender_and_mode() -> None:
    """Offered twice, paid twice; what nobody counted and what nobody knows is left out; the most expensive first."""
    mail = {m.id: m for m in (message("m1"), message("m2", sender="cat-1"))}
    records = [
        *(offered(via=via, tokens=7) for via in ("bob-1", "role:x", "project:p", "all", "all")),
        Read("m2", "bob-1", at(0), "read", None, None, 50),
        Read("m2", "bob-1", at(0), "read", "bob-1"),
        Read("m3", "bob-1", at(0), "read", "bob-1", None, 9),
    ]
    assert costs(records, mail) == [
        Cost("cat-1", "direct", 1, 50),
        Cost("ann-1", "broadcast", 2, 14),
        Cost("ann-1", "direct", 1, 7),
        Cost("ann-1", "role", 1, 7),
        Cost("ann-1", "tag", 1, 7),
    ]
