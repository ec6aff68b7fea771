"""Seals of machines: what counts here of another one's lines, and every way to make more of it."""

from __future__ import annotations

import os
import re
import sys
from binascii import a2b_base64
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from agent_mailbox import Draft, Mailbox, MailboxError, Refused, Registration
from agent_mailbox.core import codec, proofs, space_seals
from agent_mailbox.core.control import messages as m
from agent_mailbox.core.machine_rights import Rights
from agent_mailbox.core.records import USER, Read, RosterEvent
from agent_mailbox.core.space_seals import unsealed
from agent_mailbox.errors import BadData, Malformed
from agent_mailbox.mailbox.open_mailbox import OpenMailbox
from agent_mailbox.space import joining_space, replicator
from agent_mailbox.space.order.order import CLAIMS, MESSAGES, ROSTER, Ordered, reads_of
from agent_mailbox.space.trust import machine_keys, space_judge
from agent_mailbox.space.trust.space_judge import SpaceJudge
from agent_mailbox.store.archive import rotation
from agent_mailbox.store.files import system
from agent_mailbox.store.user_state import bindings, creation
from tests.control_desk import ControlDesk

from .memory_order import MemorySpace
from .mortal import Killed, Mortal, MortalOrder

LEAD, WORKER = "ann", "ben"
NORTH, SOUTH, EAST = "host-10", "host-1", "host"
"""Machines whose names begin with each other's."""


def saying(who: str) -> str:
    """The proof of whoever this test lets speak."""
    return proofs.TERMINAL if who == USER else proofs.of_session(who)


class Machine:
    """One machine: its mailbox, its copy, its key. ``space`` is the name it signs for."""

    def __init__(self, place: Path, name: str, space: MemorySpace, called: str = "team") -> None:
        self.name = name
        self.space = space
        self.path = creation.create(str(place / name), os.environ)
        self.box = Mailbox(self.path, prove=saying)
        assert self.box.logs.custody is not None
        self.directory = self.box.logs.custody.path("engine")
        system.make_directory(self.directory)
        machine_keys.make_key(self.directory)
        self.judge = SpaceJudge(called, name, self.directory)
        order = MortalOrder(space, name)
        self.copy = order.copy = Mortal(self.box.logs, order, self.directory, self.judge)
        self.box.share(self.copy)

    @property
    def control(self) -> ControlDesk:
        """The control plane, opened on the same mailbox."""
        return ControlDesk(self.box)

    @property
    def fingerprint(self) -> str:
        """The key's short form."""
        assert self.judge.key is not None
        return machine_keys.key_fingerprint(self.judge.key.public)

    def trust(self, other: Machine, *sessions: str, user: bool = False, fingerprint: str = "") -> None:
        """The person of this machine says whom the other may speak for."""
        rights = {other.name: Rights(fingerprint or other.fingerprint, user, sessions)}
        machine_keys.save_rights(self.directory, rights, applied=True)

    def catch_up(self) -> Machine:
        self.box.catch_up()
        return self

    def publish(self, log: str, line: bytes, proof: str | None, at: MemorySpace | None = None) -> bytes:
        """Publish a line as a malicious machine does: with whatever it signs. Return it as it is in the order."""
        signed = self.judge.sign_line(log, line.rstrip(b"\n"), proof)
        self.put(log, signed, at=at)
        return signed

    def put(self, log: str, line: bytes, machine: str = "", at: MemorySpace | None = None) -> None:
        """Put bytes into the order, past all that would refuse them."""
        space = at or self.space
        space.records.append(Ordered(space.end() + 1, log, line, machine or self.name))

    def again(self) -> int:
        """Judge again what waits, as `engine join` and `engine serve` do."""
        with self.copy.machine_lock():
            return joining_space.judge_waiting(self.copy)

    def proof(self, message_id: str) -> str | None:
        """What is proven here of a message's writer."""
        return self.box.state().messages[message_id].proof


class Three:
    """Two machines, and a third that takes part in what the two do."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.space = MemorySpace()
        self.north, self.south = (Machine(place, name, self.space) for name in (NORTH, SOUTH))
        self.north.box.register(Registration(session_id=LEAD, client="1"), LEAD)
        self.south.trust(self.north, "all")
        self.south.catch_up()
        self.south.box.register(Registration(session_id=WORKER, lead=LEAD, client="2"), WORKER)
        self.north.trust(self.south, "all")
        self.north.catch_up()


@pytest.fixture
def pair(tmp_path: Path) -> Three:
    """A lead in the north, and its worker in the south; each machine may speak for the sessions that live there."""
    return Three(tmp_path)


def policy(sender: str, rule: str = "Bash", message_id: str = "") -> bytes:
    """The line of an order that allows the worker something."""
    from agent_mailbox.core import compose
    from agent_mailbox.core.control import message_text

    draft = Draft(sender=sender, to=(WORKER,), content=message_text.written(m.PolicyUpdate(allow=(rule,), timestamp=1)))
    draft = draft.replace(type="control", id=message_id or os.urandom(16).hex())
    return compose.stored_line(compose.message(draft, (WORKER,), draft.id or "", 1))


def allowed(machine: Machine) -> tuple[str, ...]:
    """What the worker may do without being asked, by this machine's fold."""
    machine.catch_up()
    return machine.control.standing(WORKER).policy.allow


# -- what counts ------------------------------------------------------------------------------------------------------


def test_a_lead_decides_on_another_machine(pair: Three) -> None:
    """The lead's approval counts where the worker is; a later denial changes nothing, on either machine alike."""
    request = pair.south.control.request(WORKER, m.PermissionRequest(tool="Bash", arguments="ls"))
    pair.north.catch_up()
    assert pair.north.control.answer(LEAD, request.id, True).state == "approved"
    late = m.PermissionResponse(request_id=request.id, approved=False)
    pair.south.catch_up().control.post(USER, late, (WORKER,), thread=request.message_id)
    for machine in (pair.north, pair.south):
        machine.catch_up()
        assert (machine.control.find(request.id).state, machine.control.find(request.id).by) == (
            "approved",
            LEAD,
        )


@pytest.mark.parametrize("door", [proofs.TERMINAL, proofs.CONSOLE])
@pytest.mark.parametrize("user", [True, False])
def test_the_person_speaks_on_another_machine_if_its_person_says_so(pair: Three, user: bool, door: str) -> None:
    """Rules that the person allows in the north, at a terminal or on the console, count in the south, if the south's
    person lets it speak as the person; else they are only mail. Denials hold either way."""
    pair.south.trust(pair.north, "all", user=user)
    pair.north.box.prove = lambda _: door
    pair.north.control.set_policy(USER, [WORKER], allow=("Bash(ls:*)",), deny=("WebFetch",))
    assert allowed(pair.south) == (("Bash(ls:*)",) if user else ())
    assert pair.south.control.standing(WORKER).policy.deny == ("WebFetch",)


def test_the_verdict_is_the_machine_s_own_seal(pair: Three) -> None:
    """The bytes are equal on all machines but for the seal; a reader learns whose word the proof is."""
    sent = pair.north.box.send(Draft(sender=LEAD, to=(WORKER,), content="one", type="control")).message.id
    pair.south.catch_up()
    here, there = (Path(machine.box.logs.messages.path).read_bytes() for machine in (pair.north, pair.south))
    assert here != there
    assert [*map(unsealed, here.splitlines())] == [*map(unsealed, there.splitlines())]
    assert (pair.north.proof(sent), pair.south.proof(sent)) == (f"session:{LEAD}", f"{NORTH}/session:{LEAD}")


def test_what_is_read_and_registered_locally_is_proven_elsewhere(pair: Three) -> None:
    """Reads are written here first, and published later: with what the local seal proves of each."""
    sent = pair.north.box.send(Draft(sender=LEAD, to=(WORKER,), content="do", type="control")).message.id
    pair.south.catch_up().box.deliver(WORKER, lambda items: items)
    pair.south.catch_up()
    pair.north.catch_up()
    (read,) = [read for read in pair.north.box.logs.read_records() if read.message_id == sent]
    assert (read.session_id, read.proof) == (WORKER, f"{SOUTH}/session:{WORKER}")


def test_a_process_killed_before_it_wrote_loses_no_proof(pair: Three) -> None:
    """A process may publish a line and die before it writes the line here. The machine's own key then proves the line
    when it is read again."""
    line = policy(USER)
    pair.south.publish(MESSAGES, line, proofs.TERMINAL)
    assert allowed(pair.south) == ("Bash",)


@pytest.mark.parametrize("steps", range(12))
def test_a_kill_at_any_moment_loses_no_proof(pair: Three, steps: int) -> None:
    """The one that publishes dies after so many steps, then the one that takes in; each goes on, one without its state.
    Whatever a machine sealed is proven everywhere, and nothing was refused."""
    for machine, who in ((pair.north, "mia"), (pair.south, WORKER)):
        machine.copy.left = steps
        try:
            machine.box.register(Registration(session_id=who, name=f"{who}-1"), who)
            machine.box.send(Draft(sender=who, to=("all",), content="one"))
            machine.control.set_policy(USER, [WORKER], deny=("Write",))
        except (Killed, MailboxError):
            pass
        machine.copy.left = None
    Path(pair.south.directory, "state").unlink(missing_ok=True)
    for machine in (pair.north, pair.south) * 2:
        machine.catch_up()
    sealed = {unsealed(r.line): seal for r in pair.space.records if (seal := space_seals.of(r.line))}
    for machine in (pair.north, pair.south):
        for log in (machine.box.logs.messages, machine.box.logs.roster):
            view = log.view()
            assert view is not None
            for at, line in log.lines():
                seal, proof = sealed[unsealed(line)], view.proof(line, at)
                is_user = seal.proof == proofs.TERMINAL and seal.machine != machine.name
                wanted = seal.proof if seal.machine == machine.name else f"{seal.machine}/{seal.proof}"
                assert proof == (None if is_user else wanted), line
        assert machine.judge.refused == {}


# -- who may say what -------------------------------------------------------------------------------------------------


def test_seals_of_an_unlisted_machine_prove_nothing(pair: Three) -> None:
    """Nothing that it seals counts, though its signature is true."""
    east = Machine(pair.place, EAST, pair.space)
    east.publish(MESSAGES, policy(USER), proofs.TERMINAL)
    east.publish(MESSAGES, policy(LEAD), proofs.of_session(LEAD))
    assert allowed(pair.south) == ()


@pytest.mark.parametrize("proof", [proofs.of_session(WORKER), proofs.of_session("stranger"), proofs.STEWARD])
def test_a_machine_says_nothing_of_sessions_that_live_elsewhere(pair: Three, proof: str) -> None:
    """It neither re-leads, ends nor renames the worker of another machine, nor reads in its name."""
    for event in ("update", "retire", "register"):
        lead = "kim" if event != "retire" else None
        pair.north.publish(ROSTER, codec.spell_event(RosterEvent(event, WORKER, 5, lead=lead, client="9")), proof)
    pair.north.publish(CLAIMS, codec.spell_read(Read("x", WORKER, 5, "release")), proof)
    agent = pair.south.catch_up().box.logs.read_roster().get(WORKER)
    assert agent is not None
    assert (agent.state, agent.lead, agent.client, agent.home) == ("alive", LEAD, "2", None)
    assert [*pair.south.box.logs.read_records()] == []


def test_a_machine_takes_no_place_of_a_session_elsewhere(pair: Three) -> None:
    """One of its own sessions neither continues another machine's lead, nor takes its name while it lives."""
    pair.south.box.register(Registration(session_id="mia", name="chief", client="3"), "mia")
    pair.north.catch_up()
    for event in (RosterEvent("register", "heir", 5, continues="mia"), RosterEvent("register", "namesake", 5, "chief")):
        pair.north.publish(ROSTER, codec.spell_event(event), proofs.of_session(event.session_id))
    roster = pair.south.catch_up().box.logs.read_roster()
    assert roster.heirs("mia") == ["mia"]
    namesake = roster.get("namesake")
    assert namesake is not None
    assert namesake.name is None


def test_a_machine_says_nothing_of_sessions_of_one_whose_name_begins_with_its_own(pair: Three) -> None:
    """It speaks neither for one that was known, nor for one that is registered just before."""
    east = Machine(pair.place, EAST, pair.space)
    rights = {one.name: Rights(one.fingerprint, False, ("all",)) for one in (pair.north, east)}
    machine_keys.save_rights(pair.south.directory, rights, applied=True)
    pair.north.box.register(Registration(session_id="mia", client="3"), "mia")
    for who in (LEAD, "mia"):
        east.publish(ROSTER, codec.spell_event(RosterEvent("update", who, 5, name="thief")), saying(who))
    roster = pair.south.catch_up().box.logs.read_roster()
    assert [(agent.name, agent.home) for agent in map(roster.get, (LEAD, "mia")) if agent] == [(None, NORTH)] * 2


def test_a_name_is_free_though_an_unproven_line_took_it_or_when_its_holder_ends(pair: Three) -> None:
    """A machine is believed in what it says of its session, though the lines just before it speak of the name."""

    def publish(machine: Machine, event: str, who: str, name: str | None) -> None:
        line = codec.spell_event(RosterEvent(event, who, 5, name=name, client="3"))
        machine.publish(ROSTER, line, saying(who))

    publish(Machine(pair.place, EAST, pair.space), "register", "thief", "chief")
    publish(pair.north, "register", "mia", "chief")
    publish(pair.north, "register", "kim", "aide")
    roster = pair.south.catch_up().box.logs.read_roster()
    assert [agent.proven for agent in map(roster.get, ("thief", "mia", "kim")) if agent] == [False, True, True]
    publish(pair.north, "retire", "kim", None)
    publish(pair.north, "register", "eve", "aide")
    eve = pair.south.catch_up().box.logs.read_roster().get("eve")
    assert eve is not None
    assert (eve.proven, eve.name) == (True, "aide")


def test_a_machine_tells_of_a_session_that_never_acted_here_though_nothing_says_where_it_lives(pair: Three) -> None:
    """Lines of an earlier version name no machine, and prove nothing. Who of these acted in the south is its own, and
    nobody else ends it; who never did is ended by the word of another machine."""
    sessions = ("w-1", "w-10", "w-100")
    path = Path(pair.south.box.logs.roster.path)
    with path.open("ab") as file:
        file.write(b"".join(codec.spell_event(RosterEvent("register", who, 5)) for who in sessions))
    pair.south.box.logs.beat("w-10", pair.south.box.now())
    for who in sessions:
        pair.north.put(ROSTER, codec.spell_event(RosterEvent("retire", who, 6)).rstrip())
    roster = pair.south.catch_up().box.logs.read_roster()
    assert [(agent.home, agent.state) for agent in map(roster.get, sessions) if agent] == [
        (None, "dead"),
        (None, "alive"),
        (None, "dead"),
    ]


def test_a_machine_s_event_with_blanks_around_it_is_kept_as_it_is(pair: Three) -> None:
    """Another program wrote it there. A seal would go into its end, and nobody could read it any more."""
    lines = []
    for who, form in (("kim", b"%s \t"), ("mia", b" %s"), ("zoe", b"%s")):
        lines.append(form % codec.spell_event(RosterEvent("register", who, 5)).rstrip())
        pair.north.put(ROSTER, lines[-1])
    pair.south.catch_up()
    there = [line for _, line in pair.south.box.logs.roster.lines()][-3:]
    assert [*map(unsealed, there)] == lines
    assert [line == kept for line, kept in zip(lines, there, strict=True)] == [True, True, False]
    assert {"kim", "mia", "zoe"} <= pair.south.box.logs.read_roster().agents.keys()


def test_a_session_that_the_person_names_may_live_anywhere(pair: Three) -> None:
    """The person's list of ids goes before the question where a session was registered first."""
    pair.south.box.register(Registration(session_id="mia", client="3"), "mia")
    pair.north.catch_up()
    line = policy("mia")
    pair.south.control.set_policy(USER, [WORKER], deny=("WebFetch",))
    pair.south.trust(pair.north, "mia")
    mia = proofs.of_session("mia")
    pair.north.publish(ROSTER, codec.spell_event(RosterEvent("register", "mia", 5, name="em")), mia)
    pair.north.publish(MESSAGES, line, mia)
    agent = pair.south.catch_up().box.logs.read_roster().get("mia")
    assert agent is not None
    assert agent.name == "em"


def test_an_order_from_elsewhere_binds_at_once(pair: Three) -> None:
    """The worker is noted as bound as the line is written: a log that is cut before it looks frees it no more. Sessions
    that never lived here are not noted."""
    stamp_files = pair.south.box.logs.stamp_files
    Path(stamp_files.kept("bound", WORKER)).unlink()
    pair.north.publish(MESSAGES, policy(USER), None)
    pair.south.catch_up()
    assert bindings.is_bound(stamp_files, WORKER)
    assert not bindings.is_bound(stamp_files, LEAD)


def test_lines_wait_where_seals_cannot_be_verified(pair: Three, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the library the lines wait, and prove nothing; a process that has it goes over them."""
    pair.south.trust(pair.north, "all", user=True)
    pair.north.publish(MESSAGES, policy(USER), proofs.TERMINAL)
    for name in [one for one in sys.modules if one.partition(".")[0] == "cryptography"]:
        monkeypatch.setitem(sys.modules, name, None)
    assert allowed(pair.south) == ()
    Path(pair.south.directory, "state").unlink()
    assert allowed(pair.south) == ()
    assert pair.south.again() == 0
    monkeypatch.undo()
    assert pair.south.again() == 1
    assert allowed(pair.south) == ("Bash",)


# -- what came before the person's word -------------------------------------------------------------------------------


def said(pair: Three, *sessions: str, user: bool = False) -> int:
    """The south's person says whom the north may speak for; how many lines count by it that did not before."""
    changes = [machine_keys.RightsChange(NORTH, pair.north.fingerprint, user, sessions)]
    machine_keys.change_rights(pair.south.directory, SOUTH, changes)
    return pair.south.again()


def test_what_came_before_the_person_s_word_is_judged_again(pair: Three) -> None:
    """A machine that the person trusts has its earlier lines judged again, in their order. Each line counts once, at
    its place, and stays as it is."""
    pair.south.trust(pair.north, fingerprint="0" * 32)
    pair.north.box.register(Registration(session_id="mia", client="3"), "mia")
    pair.north.publish(ROSTER, codec.spell_event(RosterEvent("update", "mia", 5, name="em")), proofs.of_session("mia"))
    pair.north.publish(MESSAGES, policy(LEAD, "Read"), proofs.of_session(LEAD))
    pair.north.publish(MESSAGES, policy(USER, "Write"), proofs.TERMINAL)
    assert allowed(pair.south) == ()
    lines = [*map(unsealed, Path(pair.south.box.logs.messages.path).read_bytes().splitlines())]
    assert [one["lines"] for one in space_judge.unheard_lines(pair.south.box.logs)] == [4]
    end, asked = pair.space.end(), list[int]()
    order = pair.south.copy.order.engine
    read = order.read_after
    order.read_after = lambda after, most: (asked.append(after), read(after, most))[1]  # type: ignore[method-assign]
    assert said(pair, "all") == 3
    assert {*asked} == {end}  # the fresh logs are known: nothing is compared with all of the order
    agent = pair.south.box.logs.read_roster().get("mia")
    assert agent is not None
    assert (agent.home, agent.name, agent.client) == (NORTH, "em", "3")
    assert allowed(pair.south) == ("Read",)
    assert said(pair, "all", user=True) == 1
    assert allowed(pair.south) == ("Write",)
    assert [*map(unsealed, Path(pair.south.box.logs.messages.path).read_bytes().splitlines())] == lines
    assert space_judge.unheard_lines(pair.south.box.logs) == []
    assert pair.south.box.logs.broken() is None


@pytest.mark.parametrize("forged", ["changed", "by another key", ""])
def test_a_line_that_waits_counts_if_the_confirmed_key_signed_it(pair: Three, forged: str) -> None:
    """Its seal was not looked at as it came. A line that was changed since does not count, nor does one that another
    key signed. A machine is strange only by another key than a confirmed one."""
    machine_keys.save_rights(pair.south.directory, {}, applied=True)
    signer = Machine(pair.place / "other", NORTH, MemorySpace()) if forged == "by another key" else pair.north
    line = signer.judge.sign_line(MESSAGES, policy(LEAD, "Read").rstrip(b"\n"), proofs.of_session(LEAD))
    pair.north.put(MESSAGES, line.replace(b"Read", b"Bash") if forged == "changed" else line)
    assert allowed(pair.south) == ()
    assert pair.south.judge.strange == set()
    rights = {NORTH: Rights(pair.north.fingerprint, user=False, sessions=("all",))}
    machine_keys.save_rights(pair.south.directory, rights, applied=False)
    assert pair.south.again() == (not forged)
    assert allowed(pair.south) == (() if forged else ("Read",))
    pair.north.publish(MESSAGES, policy(LEAD, "Grep"), proofs.of_session(LEAD))
    assert (allowed(pair.south), pair.south.judge.strange) == (("Grep",), set())


def test_a_replicator_that_cannot_judge_again_what_waits_says_why(pair: Three) -> None:
    """A ``join`` was killed that judged lines again, and the order is away: the replicator goes on and tells it."""
    pair.south.trust(pair.north)
    machine_keys.save_rights(pair.south.directory, {}, applied=False)
    order = pair.south.copy.order.engine
    assert isinstance(order, MortalOrder)
    order.reachable = False
    told: list[str] = []
    replicator.Replicator(pair.south.copy, told.append, lambda _: None).run(lambda: True, lambda _: None)
    assert told == ["engine is out of reach: memory"]
    assert not machine_keys.is_applied(pair.south.directory)


def test_copies_of_a_waiting_line_count_once(pair: Three) -> None:
    """A line that waits, published again before the person's word and after it, appended here by a program, or taken
    from elsewhere, is no second order."""
    pair.south.trust(pair.north, fingerprint="0" * 32)
    old = pair.north.publish(MESSAGES, policy(USER, "Read"), proofs.TERMINAL)
    pair.north.publish(MESSAGES, policy(USER, "Write"), proofs.TERMINAL)
    pair.north.put(MESSAGES, old)
    pair.south.catch_up()
    path = Path(pair.south.box.logs.messages.path)
    waiting = path.read_bytes().splitlines()
    with path.open("ab") as file:
        file.write(waiting[0] + b"\n" + old + b"\n")
    assert said(pair, "all", user=True) == 2
    pair.north.put(MESSAGES, old)
    pair.south.catch_up()
    view = pair.south.box.logs.messages.view()
    assert view is not None
    found = [view.proof(line, at) for at, line in pair.south.box.logs.messages.lines()]
    assert found[:2] == [f"{NORTH}/{proofs.TERMINAL}"] * 2
    assert set(found[2:]) == {None}
    assert allowed(pair.south) == ("Write",)


def proven(machine: Machine) -> list[str | None]:
    """What is proven of each line of a machine's mail."""
    log = machine.box.logs.messages
    view = log.view()
    assert view is not None
    return [view.proof(line, at) for at, line in log.lines()]


def test_a_copy_does_not_count_ahead_of_the_line_that_waits(pair: Three) -> None:
    """The command that says the person's word is killed before it judges what waits; or it comes behind the copy."""
    pair.south.trust(pair.north, fingerprint="0" * 32)
    old = pair.north.publish(MESSAGES, policy(USER, "Read"), proofs.TERMINAL)
    pair.south.catch_up()
    changes = [machine_keys.RightsChange(NORTH, pair.north.fingerprint, True, ("all",))]
    machine_keys.change_rights(pair.south.directory, SOUTH, changes)
    pair.north.put(MESSAGES, old)
    pair.south.catch_up()
    assert proven(pair.south) == [None, None]
    assert pair.south.again() == 1
    assert proven(pair.south) == [f"{NORTH}/{proofs.TERMINAL}", None]


def test_lines_that_wait_out_of_order_count_for_nothing(pair: Three) -> None:
    """Somebody with the machine's credential held an order back, and publishes it behind the one that revoked it."""
    pair.south.trust(pair.north, fingerprint="0" * 32)
    orders = [policy(USER, rule).rstrip() for rule in ("Bash", "Read")]
    signed = [pair.north.judge.sign_line(MESSAGES, line, proofs.TERMINAL) for line in orders]
    for line in reversed(signed):
        pair.north.put(MESSAGES, line)
    pair.south.catch_up()
    assert said(pair, user=True) == 1
    assert allowed(pair.south) == ("Read",)


def test_a_foreign_line_stays_one_as_others_are_judged_again(pair: Three) -> None:
    """A roster line of another program, which proves nothing, is not taken for one from before seals."""
    pair.south.trust(pair.north, fingerprint="0" * 32)
    event = codec.spell_event(RosterEvent("update", WORKER, 5, lead="kim"))
    with open(pair.south.box.logs.roster.path, "ab") as file:
        file.write(event)
    pair.north.box.register(Registration(session_id="mia", client="3"), "mia")
    pair.south.catch_up()
    assert said(pair, "all") == 1
    agent = pair.south.box.logs.read_roster().get(WORKER)
    assert agent is not None
    assert agent.lead == LEAD


@pytest.mark.parametrize("moment", range(3))
def test_a_kill_while_lines_are_judged_again(pair: Three, moment: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before any of the three logs is replaced: the next process does the rest, and a line that was published again
    meanwhile counts for nothing."""
    pair.south.trust(pair.north, fingerprint="0" * 32)
    pair.north.box.register(Registration(session_id="mia", client="3"), "mia")
    old = pair.north.publish(MESSAGES, policy("mia", "Read"), proofs.of_session("mia"))
    pair.north.publish(CLAIMS, codec.spell_read(Read("x", "mia", 5, "claim")), proofs.of_session("mia"))
    pair.south.catch_up()
    left, reseal = iter(range(moment)), rotation.reseal

    def dying(*given: Any) -> object:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return reseal(*given)

    monkeypatch.setattr(joining_space, "reseal", dying)
    with pytest.raises(KeyboardInterrupt):
        said(pair, "all")
    monkeypatch.undo()
    pair.north.put(MESSAGES, old)
    pair.south.catch_up()
    assert pair.south.again() == 3 - moment
    messages, reads = pair.south.box.state().messages.values(), pair.south.box.logs.read_records()
    assert [one.proof for one in (*messages, *reads)] == [f"{NORTH}/session:mia"] * 2
    assert pair.south.judge.refused == {NORTH: 1}


def test_logs_that_are_not_as_they_were_left_are_not_judged_again(pair: Three) -> None:
    """Else the fresh log would hide what is missing."""
    pair.south.trust(pair.north, "all", user=True)
    pair.north.control.set_policy(USER, [WORKER], deny=("Write",))
    pair.south.catch_up()
    pair.south.trust(pair.north, fingerprint="0" * 32)
    pair.north.publish(MESSAGES, policy(USER), proofs.TERMINAL)
    pair.south.catch_up()
    path = Path(pair.south.box.logs.messages.path)
    lines = path.read_bytes().splitlines(keepends=True)
    with path.open("r+b") as file:
        file.write(b" " * (len(lines[0]) - 1))
    with pytest.raises(Refused, match="is not as it was left"):
        said(pair, "all", user=True)
    assert allowed(pair.south) == ()


# -- attacks ----------------------------------------------------------------------------------------------------------


def test_a_line_that_names_another_machine_s_seal(pair: Three) -> None:
    """A machine publishes under its own name what another one sealed, and its own line with the other's name in it."""
    pair.south.trust(pair.north, "all", user=True)
    east = Machine(pair.place, EAST, pair.space)
    stolen = pair.north.judge.sign_line(MESSAGES, policy(USER).rstrip(), proofs.TERMINAL)
    east.put(MESSAGES, stolen)
    forged = east.judge.sign_line(MESSAGES, policy(USER, "Write").rstrip(), proofs.TERMINAL)
    for name in (EAST, NORTH):
        east.put(MESSAGES, forged.replace(b'"2 host ', b'"2 host-10 '), name)
    assert allowed(pair.south) == ()
    assert pair.south.judge.refused == {EAST: 2}
    assert b'"2 host-10 ' in Path(pair.south.box.logs.messages.path).read_bytes()  # of another key: the person is told


def test_a_revoked_order_is_published_again(pair: Three) -> None:
    """The same machine's line again, by whoever has its credential: as it was, under another id, and after the state
    of the copy was lost."""
    pair.south.trust(pair.north, "all", user=True)
    allow = pair.north.publish(MESSAGES, policy(USER), proofs.TERMINAL)
    assert allowed(pair.south) == ("Bash",)
    pair.north.catch_up().control.set_policy(USER, [WORKER], deny=("WebFetch",))
    assert allowed(pair.south) == ()
    pair.north.put(MESSAGES, allow)
    assert allowed(pair.south) == ()
    content = Path(pair.south.box.logs.messages.path).read_bytes()
    assert pair.south.judge.refused == {NORTH: 1}
    Path(pair.south.directory, "state").unlink()
    pair.south.catch_up()
    assert Path(pair.south.box.logs.messages.path).read_bytes() == content
    pair.north.put(MESSAGES, allow)
    pair.south.catch_up()
    assert Path(pair.south.box.logs.messages.path).read_bytes()[len(content) :].startswith(unsealed(allow)[:-1])


def test_an_order_counts_once_though_older_lines_are_judged_again_behind_it(pair: Three) -> None:
    """The person says more of a machine: lines that waited have smaller numbers than one that counted since. None of
    theirs is the last, so that one is refused as it comes again."""
    pair.south.trust(pair.north, user=True)
    pair.north.box.register(Registration(session_id="mia", client="3"), "mia")
    pair.north.publish(MESSAGES, policy("mia", "Read"), proofs.of_session("mia"))
    allow = pair.north.publish(MESSAGES, policy(USER), proofs.TERMINAL)
    assert allowed(pair.south) == ("Bash",)
    assert said(pair, "all", user=True) == 2
    pair.north.put(MESSAGES, allow)
    pair.south.catch_up()
    assert pair.south.judge.refused == {NORTH: 1}


def test_old_orders_that_come_to_a_machine_without_its_state_count_for_nothing(pair: Three) -> None:
    """The copy's state is lost, and old orders and names of two machines come again before the next look. Each is
    refused, and the next word of both counts. So it is though somebody forged seals with a high number, or published a
    line of another machine ahead of that one."""
    east = Machine(pair.place, EAST, pair.space)
    others = ((pair.north, LEAD), (east, "eve"))
    rights = {one.name: Rights(one.fingerprint, True, ("all",)) for one, _ in others}
    machine_keys.save_rights(pair.south.directory, rights, applied=True)

    def event(who: str, called: str) -> bytes:
        return codec.spell_event(RosterEvent("update", who, 5, name=called)).rstrip()

    def names() -> list[str | None]:
        roster = pair.south.catch_up().box.logs.read_roster()
        return [agent.name for agent in (roster.get(who) for _, who in others) if agent is not None]

    east.box.register(Registration(session_id="eve", client="3"), "eve")
    mine = [east.judge.sign_line(MESSAGES, policy(USER, "Edit").rstrip(), proofs.TERMINAL) for _ in range(2)]
    forged = [re.sub(rb'"2 host [0-9]+', b'"2 host-10 9999999999999999', line) for line in mine]
    pair.north.put(MESSAGES, forged[0])
    again = []
    for machine, who in others:
        orders = [machine.publish(MESSAGES, policy(USER, rule), proofs.TERMINAL) for rule in ("Bash", "Read", "Write")]
        told = [machine.publish(ROSTER, event(who, f"{who}-{n}"), saying(who)) for n in range(3)]
        again.append((machine, orders[1], told[1]))
    pair.north.put(MESSAGES, forged[1])
    held = pair.north.judge.sign_line(ROSTER, event(LEAD, "held"), saying(LEAD))
    east.put(ROSTER, held)
    assert (allowed(pair.south), names()) == (("Write",), [f"{LEAD}-2", "eve-2"])
    Path(pair.south.directory, "state").unlink()
    for machine, order, told_before in again:
        machine.put(MESSAGES, order)
        machine.put(ROSTER, told_before)
    assert (allowed(pair.south), names()) == (("Write",), [f"{LEAD}-2", "eve-2"])
    assert pair.south.judge.refused == {NORTH: 2, EAST: 2}
    pair.north.put(ROSTER, held)
    assert names() == ["held", "eve-2"]
    for n, (machine, who) in enumerate(others):
        machine.publish(MESSAGES, policy(USER, f"Next{n}"), proofs.TERMINAL)
        machine.publish(ROSTER, event(who, f"{who}-next"), saying(who))
        assert allowed(pair.south) == (f"Next{n}",)
    assert names() == [f"{LEAD}-next", "eve-next"]


def test_a_line_that_the_network_held_counts_behind_those_of_other_logs(pair: Three) -> None:
    """An order that was signed ahead of a read, and comes behind it; one that comes behind a later order is refused."""
    pair.south.trust(pair.north, "all", user=True)
    sent = pair.north.box.send(Draft(sender="user", to=(LEAD,), content="read me")).message.id
    orders = [policy(USER, rule).rstrip() for rule in ("Read", "Bash")]
    first, second = (pair.north.judge.sign_line(MESSAGES, line, proofs.TERMINAL) for line in orders)
    pair.north.publish(reads_of(NORTH), codec.spell_read(Read(sent, LEAD, 1, "read")), saying(LEAD))
    pair.north.put(MESSAGES, second)
    pair.north.put(MESSAGES, first)
    assert allowed(pair.south) == ("Bash",)
    assert pair.south.judge.refused == {NORTH: 1}


def test_a_state_of_an_earlier_version_keeps_its_number(pair: Three) -> None:
    """It had one for all logs of a machine: what was used then is used up in each."""
    allow = pair.north.judge.sign_line(MESSAGES, policy(USER).rstrip(), proofs.TERMINAL)
    seal = space_seals.of(allow)
    assert seal is not None
    pair.south.trust(pair.north, "all", user=True)
    pair.south.judge.begin_from({NORTH: seal.number}, {})
    judged = pair.south.judge.judge_record(Ordered(99, MESSAGES, allow, NORTH))
    assert judged.proof == proofs.of_machine(NORTH, proofs.UNPROVEN), "it counts for nothing, and waits for no word"


def test_a_sealed_approval_answers_only_its_own_request(pair: Three) -> None:
    """The lead's answer, with the id of another request written over the signed one, is no answer of the lead."""
    both = [
        pair.south.control.request(WORKER, m.PermissionRequest(tool="Bash", arguments=word)) for word in ("ls", "rm")
    ]
    pair.north.catch_up().control.answer(LEAD, both[0].id, True)
    signed = next(r.line for r in pair.space.records if both[0].id.encode() in r.line and b"approved" in r.line)
    pair.north.put(MESSAGES, signed.replace(both[0].id.encode(), both[1].id.encode()))
    pair.south.catch_up()
    assert [pair.south.control.find(request.id).state for request in both] == ["approved", "open"]


def test_a_seal_for_another_space_is_rejected(pair: Three) -> None:
    """The same machine's person allowed something in another space: that line counts there alone."""
    pair.south.trust(pair.north, "all", user=True)
    away = SpaceJudge("other", NORTH, pair.north.directory)
    pair.north.put(MESSAGES, away.sign_line(MESSAGES, policy(USER).rstrip(), proofs.TERMINAL))
    assert allowed(pair.south) == ()
    assert pair.south.judge.refused == {NORTH: 1}


def test_a_seal_for_another_log_is_rejected(pair: Three) -> None:
    """A line that was signed for one log proves nothing in another."""
    event = codec.spell_event(RosterEvent("update", LEAD, 5, name="boss")).rstrip()
    for log in (MESSAGES, CLAIMS, reads_of(NORTH)):
        pair.north.put(ROSTER, pair.north.judge.sign_line(log, event, proofs.of_session(LEAD)))
    agent = pair.south.catch_up().box.logs.read_roster().get(LEAD)
    assert agent is not None
    assert agent.name is None
    assert pair.south.judge.refused == {NORTH: 3}


@pytest.mark.parametrize(
    "change",
    [
        (b"Bash", b"Read"),
        (b"user@terminal", b"user@console"),
        (b'"2 host-10 1', b'"2 host-10 2'),
        (b'"2 host-10 1', b'"2 host-10 x'),
    ],
)
def test_a_line_that_was_changed_after_signing(pair: Three, change: tuple[bytes, bytes]) -> None:
    """Neither the text, nor the proof, nor the number can be another one."""
    pair.south.trust(pair.north, "all", user=True)
    signed = pair.north.judge.sign_line(MESSAGES, policy(USER).rstrip(), proofs.TERMINAL)
    assert change[0] in signed
    pair.north.put(MESSAGES, signed.replace(*change))
    assert allowed(pair.south) == ()
    pair.north.put(MESSAGES, signed)
    assert allowed(pair.south) == ("Bash",)  # so it was the change alone


def test_a_changed_machine_key_proves_nothing_until_confirmed(pair: Three) -> None:
    """It proves nothing until the person confirms the new key."""
    pair.south.trust(pair.north, "all", user=True, fingerprint="0" * 32)
    pair.north.publish(MESSAGES, policy(USER), proofs.TERMINAL)
    assert allowed(pair.south) == ()
    assert pair.south.judge.refused == {}


def test_a_machine_cannot_vouch_for_what_it_did_not_see(pair: Three) -> None:
    """A machine vouches for what it saw itself: not for adopted lines, nor for a third machine's word."""
    pair.south.trust(pair.north, "all", user=True)
    for n, proof in enumerate((proofs.ADOPTED, f"south/{proofs.TERMINAL}", proofs.BEFORE, proofs.WAITS, "user@desk")):
        line = policy(USER).rstrip()
        key = pair.north.judge.key
        assert key is not None
        signed = space_seals.begun(line, NORTH, 10**18 + n, key.public, proof)
        sealed = space_seals.ended(signed, key.sign_bytes(space_seals.covered("team", MESSAGES, signed)))
        assert space_seals.of(sealed) is not None
        pair.north.put(MESSAGES, sealed)
    assert allowed(pair.south) == ()


def test_a_forged_verdict_line_proves_nothing(pair: Three) -> None:
    """Lines that a local program appends prove nothing: a verdict without our key, one of another line or place, and a
    machine's seal that the person's next word would count."""
    pair.south.trust(pair.north, "all", user=True)
    pair.north.publish(MESSAGES, policy(USER, "Read"), proofs.TERMINAL)
    assert allowed(pair.south) == ("Read",)
    path = Path(pair.south.box.logs.messages.path)
    good = path.read_bytes().splitlines()[-1]
    verdict = good[good.rindex(b',"seal":"1') :]
    wanted = policy(USER, "Write").rstrip()
    lines = [wanted[:-1] + verdict, wanted[:-1] + verdict.replace(b" 0 ", b" 1 ")]
    lines.append(pair.north.judge.sign_line(MESSAGES, wanted, proofs.TERMINAL))
    with path.open("ab") as file:
        file.write(b"".join(line + b"\n" for line in lines))
    pair.south.control.set_policy(USER, [WORKER], allow=("Read",))
    assert allowed(pair.south) == ("Read",)
    view = pair.south.box.logs.messages.view()
    assert view is not None
    assert not any(view.waits(line, at) for at, line in pair.south.box.logs.messages.lines())


@pytest.mark.parametrize("how", ["removed", "rolled back", "blanked"])
def test_removed_denials_keep_a_worker_bound(pair: Three, how: str) -> None:
    """Without the lines that forbade, nothing is proven any more: the worker stays bound."""
    pair.north.control.set_policy(LEAD, [WORKER], deny=("WebFetch",))
    path = Path(pair.south.box.logs.messages.path)
    before = path.read_bytes() if path.exists() else b""
    pair.south.trust(pair.north, "all", user=True)
    pair.north.control.set_policy(USER, [WORKER], allow=("Bash",), deny=("Write",))
    assert allowed(pair.south) == ("Bash",)
    whole = path.read_bytes()
    blank = b" " * len(last := whole.splitlines()[-1])
    cut = {"removed": b"", "rolled back": before, "blanked": whole.replace(last, blank)}[how]
    path.write_bytes(cut)
    assert ControlDesk(OpenMailbox(pair.south.path)).standing(WORKER).policy.allow == ()
    assert pair.south.box.logs.broken() is not None


def test_a_foreign_program_on_the_space_s_subjects(pair: Three) -> None:
    """Without a seal, with half of one, with bytes that are none: mail at most, and nobody stops at it."""
    sealed = pair.north.judge.sign_line(MESSAGES, policy(USER).rstrip(), proofs.TERMINAL)
    for line in (
        policy(USER).rstrip(),
        sealed[:-40] + b'"}',
        b'{"seal":"2 north"}',
        b"\xff\xfe",
        sealed[:-5] + b'===="}',
    ):
        pair.north.put(MESSAGES, line)
    assert allowed(pair.south) == ()


@pytest.mark.parametrize("text", ["south", "=user", "South=user"])
def test_an_option_that_names_no_machine_is_refused(text: str) -> None:
    """Neither a name without an equals sign, nor one that no machine has."""
    with pytest.raises(Malformed, match="option is not MACHINE="):
        machine_keys.read_changes([], [text])


def test_whom_a_machine_speaks_for_is_read_from_an_option() -> None:
    """The person, all sessions or some of them, each once; or nobody, which is said alone."""
    for said, user, sessions in (
        ("user,all", True, ("all",)),
        ("s-1,,user,s-1", True, ("s-1",)),
        ("s-1", False, ("s-1",)),
        ("nobody", False, ()),
    ):
        (found,) = machine_keys.read_changes([], [f"south={said}"])
        assert (found.machine, found.fingerprint, found.user, found.sessions) == ("south", None, user, sessions)
    for wrong in ("", ",", "nobody,user"):
        with pytest.raises(Malformed, match="speakers are missing"):
            machine_keys.read_changes([], [f"south={wrong}"])


def test_a_fingerprint_is_taken_as_people_write_it_and_no_other() -> None:
    """A fingerprint may have colons, dashes and capitals. A shorter one, or one with another sign, is refused."""
    whole = "0123456789abcdef" * 2
    for text in (whole, whole.upper(), ":".join(re.findall("....", whole)), "-".join(re.findall("....", whole))):
        assert machine_keys.read_changes([f"north={text}"], []) == [machine_keys.RightsChange("north", whole)]
    for text in (whole[1:], whole + "0", "g" + whole[1:]):
        with pytest.raises(Malformed, match="fingerprint is not 32 hex digits"):
            machine_keys.read_changes([f"north={text}"], [])


def test_an_unfit_record_of_rights_is_said(pair: Three) -> None:
    """A file of another form stops the judging, and says where it is."""
    Path(pair.south.directory, machine_keys.RIGHTS).write_text('{"machines": []}')
    pair.north.publish(MESSAGES, policy(USER), proofs.TERMINAL)
    with pytest.raises(BadData, match="record of the machines' rights has another form"):
        pair.south.catch_up()


def test_a_key_signs_alike_if_the_library_moves_its_inner_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then its public module is asked, which takes longer to import."""
    key = machine_keys.MachineKey(b"k" * 32)
    assert Ed25519PrivateKey.from_private_bytes(b"k" * 32).public_key().public_bytes_raw() == a2b_base64(key.public)
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.bindings._rust", ModuleType("moved"))
    other = machine_keys.MachineKey(b"k" * 32)
    assert (other.public, other.sign_bytes(b"x")) == (key.public, key.sign_bytes(b"x"))
