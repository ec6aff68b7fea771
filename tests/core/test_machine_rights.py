"""What the word of another machine counts for: it speaks for the sessions that live there, by whole names."""

from __future__ import annotations

from agent_mailbox.core import proofs
from agent_mailbox.core.address import ALL
from agent_mailbox.core.machine_rights import Rights, SessionMachines, may_say
from agent_mailbox.core.roster import Roster, narrowed

from .build import event, message, register, roster

RIGHTS = Rights("f" * 64, sessions=(ALL,))


def on(machine: str, session_id: str) -> proofs.Proof:
    """A session's own word, as its machine tells it."""
    return proofs.of_machine(machine, proofs.of_session(session_id))


def test_a_machine_speaks_for_no_session_of_one_whose_name_begins_with_its_own() -> None:
    """Neither for one in the roster, nor for one whose registration is about to be written; its first word about a new
    session must be that session's own."""
    known = roster(register("bob-1", proof=on("desk-2", "bob-1"), client="claude-code"))
    for homes in (SessionMachines(known), SessionMachines(Roster())):
        homes.note(register("bob-1"), "desk-2", counts=True)
        for machine, lives in (("desk-2", True), ("desk", False)):
            assert homes.lives("bob-1", machine) is lives
            told = event("update", "bob-1", name="bob")
            assert may_say(machine, RIGHTS, proofs.of_session("bob-1"), told, homes) is lives
    for who in ("cat-10", "cat-1"):
        first = may_say("desk", RIGHTS, proofs.of_session(who), register("cat-10"), SessionMachines(known))
        assert first is (who == "cat-10")


def test_a_machine_s_bare_word_continues_no_session_of_one_whose_name_begins_with_its_own() -> None:
    """The predecessor is a client's of its own machine, or nobody's."""
    old = roster(register("bob-1", proof=on("desk-2", "bob-1"), client="claude-code")).get("bob-1")
    for machine, continues in (("desk-2", "bob-1"), ("desk", None)):
        bare = register("new-1", continues="bob-1", proof=proofs.of_machine(machine, proofs.UNPROVEN))
        told = narrowed(None, bare, old)
        assert told is not None
        assert told.continues == continues


def test_a_machine_s_gateway_writes_for_members_of_its_swarms_and_for_no_session() -> None:
    """The person lets that machine speak for all its sessions. Its word proves nothing of anybody here."""
    homes = SessionMachines(roster(register("bob-1", proof=on("desk", "bob-1"))))
    for sender, rights, counts in (
        ("swarm:demo/beta", RIGHTS, True),
        ("bob-1", RIGHTS, False),
        ("swarm:demo/beta", Rights("f" * 64, sessions=("bob-1",)), False),
    ):
        told = message(sender=sender, proof=None)
        assert may_say("desk", rights, proofs.CARRIED, told, homes) is counts
    word = proofs.of_machine("desk", proofs.CARRIED)
    assert (proofs.proves(word), proofs.decides(word), proofs.is_person(word)) == (False, False, False)
    assert proofs.parse(str(word).encode()) == word
