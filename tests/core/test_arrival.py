"""When a reader will see a message: only what is proven is promised."""

from __future__ import annotations

from typing import Any

import pytest

from agent_mailbox.core import reach

from .build import event, message, register, roster

READERS = ("ann-1", "bob-1", "cid-1")
PEOPLE = tuple(event("register", who, tags=("role:qa",)) for who in READERS)


def sorted_for(
    to: str | tuple[str, ...], *events: object, kind: str = "message", by: str = "sender-1", **signs: Any
) -> reach.Arrival:
    """The arrival of a message from outside."""
    people = roster(*PEOPLE, *events)
    mail = message(to=to, sender=by, type=kind, ack=True)
    return reach.sort_arrival(mail, reach.find_reach(mail, people), people, **signs)


def words(found: reach.Arrival) -> list[tuple[str, str]]:
    """The lines for people, in which ids are the names."""
    return reach.list_arrival(found, roster(), lambda who, _: who)


def test_without_a_sign_a_reader_sees_it_when_it_looks():
    """A session that only registered is promised nothing, and neither is the person."""
    found = sorted_for("all")
    assert (found.now, found.at_next_turn, found.when_it_looks) == ((), (), READERS)
    assert words(found) == [("will see it when it looks", "ann-1, bob-1, cid-1")]
    assert sorted_for("user", waking=["user"], hooked=["user"]).when_it_looks == ("user",)


def test_each_sign_has_its_word_and_its_reason():
    """A process that waits beside it: now; a client that runs and called our hooks: at its next turn."""
    found = sorted_for("all", waking=["ann-1"], hooked=["ann-1", "bob-1"])
    assert (found.now, found.at_next_turn, found.when_it_looks) == (("ann-1",), ("bob-1",), ("cid-1",))
    assert found.reasons.keys() == {*READERS}
    assert len({*found.reasons.values()}) == 3
    assert words(found) == [
        ("will see it now", "ann-1"),
        ("will see it at its next turn", "bob-1"),
        ("will see it when it looks", "cid-1"),
    ]


@pytest.mark.parametrize("signs", [{"elsewhere": ["ann-1"]}, {"queued": True}])
def test_what_has_yet_to_travel_is_seen_when_it_looks(signs: dict[str, Any]):
    """No doorbell of this machine tells of another's session, nor of mail that waits for the engine."""
    found = sorted_for("ann-1", waking=["ann-1"], hooked=["ann-1"], **signs)
    assert (found.now, found.at_next_turn, found.when_it_looks) == ((), (), ("ann-1",))


def test_a_reader_that_muted_the_sender_sees_it_when_it_looks():
    """Neither doorbell nor hook brings it up; control and the person are always heard. A session whose id begins as the
    person's word is not the person."""
    muted = event("update", "ann-1", muted=("sender-1", "user-1", "user"))
    assert sorted_for("ann-1", muted, waking=["ann-1"]).when_it_looks == ("ann-1",)
    assert sorted_for("ann-1", muted, by="user-1", waking=["ann-1"]).when_it_looks == ("ann-1",)
    assert sorted_for("ann-1", muted, by="user", waking=["ann-1"]).now == ("ann-1",)
    assert sorted_for("ann-1", muted, kind="control", waking=["ann-1"]).now == ("ann-1",)


def test_mail_to_a_word_concerns_who_took_it_as_a_name_and_keeps_its_time():
    """Low priority waits for the turn of that agent, too, though it holds no such role."""
    people = roster(register("ann-1", name="new"))
    mail = message(to="role:new", sender="sender-1", priority="low", extra={"bare": ["new"]})
    found = reach.sort_arrival(mail, reach.find_reach(mail, people), people, waking=["ann-1"])
    assert found.at_next_turn == ("ann-1",)
    assert "ann-1" in (reach.find_concerned([mail], people) or ())


def test_of_several_holders_of_a_role_one_is_promised_it():
    """They are rivals; one of them who is also addressed by name is sure of it, and the others no rivals of it."""
    assert words(sorted_for("role:qa")) == [("will see it when it looks", "one of ann-1, bob-1, cid-1")]
    mixed = words(sorted_for("role:qa", waking=["bob-1"]))
    assert mixed == [
        ("one of these will see it", "bob-1 (now), ann-1 (when it looks), cid-1 (when it looks)"),
    ]
    retired = [event("retire", who) for who in ("bob-1", "cid-1")]
    assert words(sorted_for("role:qa", *retired)) == [("will see it when it looks", "ann-1")]
    both = sorted_for(("ann-1", "role:qa"), waking=["ann-1"])
    assert words(both) == [
        ("will see it now", "ann-1"),
        ("will see it when it looks", "one of bob-1, cid-1"),
    ]


def test_mail_to_a_tag_waits_for_those_that_are_frozen_or_whose_client_is_gone() -> None:
    """Each gets it on its return; a role's mail waits for nobody as long as one is there."""
    tags = ("project:p", "role:builder")
    people = roster(*(register(who, *tags) for who in ("ann-1", "bob-1", "cat-1")), event("freeze", "cat-1"))
    for to, waits in (("project:p", ("bob-1", "cat-1")), ("role:builder", ())):
        told = reach.find_reach(message(to=to, sender="dan-1"), people, {"bob-1"})
        assert (told.agents, told.waiting_for, told.gone) == (("ann-1",), waits, ("bob-1",))
