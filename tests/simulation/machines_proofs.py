"""What is proven on each of several simulated machines: the judge's questions about it.

Belongs here: what a machine says in the end of each line's writer, held against what our machines published. The judge
holds:

- What is proven of a line is what its machine saw, in the words of the reader's machine; and only if the person there
  lets that machine speak. Nothing else is proven, whoever copies, changes, repeats or forges lines.
- A line is proven once, however often it is there, unless the engine lost records.
- Where nothing failed, what a machine saw is proven on it and on those that believe it, though processes were killed.
- An order binds a session as soon as it is here, and is, whoever says that it is archived.
- All machines say the same of who has read a message, or claimed it, where they believe each other and
  the engine lost nothing.
- A mailbox in which a deciding line was changed says so.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from agent_mailbox.control_plane.standing import find_standing
from agent_mailbox.core import proofs
from agent_mailbox.store.log.unordered import unsealed
from agent_mailbox.store.user_state import bindings
from tests.simulation.machines_judge import MOVING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_mailbox.mailbox.mailbox import Mailbox
    from agent_mailbox.store.log.log import Log
    from tests.simulation.machines import Machine
    from tests.simulation.machines_stage import Stage
    from tests.simulation.process import Process


def look(stage: Stage, process: Process, machine: Machine) -> None:
    """Ask a machine what it believes."""
    judge, desk = stage.judge, stage.desk(machine, None)
    if (why := desk.logs.broken()) is not None:
        if machine not in judge.edited and not stage.world.befell(*MOVING):
            judge.breach(f"{machine.name} is not as it was left: {why}")
        return
    if machine in judge.edited:
        judge.breach(f"{machine.name} lost a line that decides, and does not say so")
    judge.told(machine, {who: agent.state for who, agent in desk.logs.read_roster().agents.items()})
    _holders(stage, machine, desk)
    for log in (desk.logs.messages, desk.logs.roster, desk.logs.reads):
        _log(stage, machine, log)
    for who, rule in judge.forbidden.items():
        standing = find_standing(desk, who).policy
        if rule not in standing.deny:
            judge.breach(f"{rule} was forbidden {who}, and {machine.name} says {standing.deny}")
        lives = any(one.id == who and one.machine is machine for one in judge.sessions)
        if lives and not bindings.is_bound(desk.logs.stamp_files, who):
            judge.breach(f"{who} is under an order, and not bound")


def tally(stage: Stage, process: Process, machine: Machine) -> None:
    """Ask a machine that had time to hear of everything who has each message."""
    _holders(stage, machine, stage.desk(machine, None))


def _holders(stage: Stage, machine: Machine, desk: Mailbox) -> None:
    if stage.trusted:  # else an ack from elsewhere may count for less
        reads, found = desk.state().reads, dict[str, list[str]]()
        for one in stage.judge.letters:
            claim = reads.claim(one)
            found[one] = sorted(r.session_id for r in reads.of(one))
            found[one] += [] if claim is None else [f"claimed by {claim.session_id}"]
        stage.judge.held_by(machine, found)


def _log(stage: Stage, machine: Machine, log: Log) -> None:
    """Hold what is proven of a log's lines against what our machines said."""
    judge, view, proven = stage.judge, log.view(), Counter[bytes]()
    if view is None:
        return
    must = not (judge.is_rewritten or judge.is_beset or judge.is_late or stage.world.befell(*MOVING))
    for position, line in log.lines():
        judge.checks += 1
        content, proof = unsealed(line), view.proof(line, position)
        allowed, is_ours = {*_true(stage, machine, content)}, content in stage.world.said
        if proof == proofs.BEFORE and not judge.dead:
            judge.breach(f"{content!r} counts on {machine.name} as older than the seals")
        if not proofs.proves(proof):
            if must and _is_sure(stage, machine, content, allowed):
                judge.breach(f"nothing is proven on {machine.name} of {content!r}, which is {sorted(allowed)}")
            continue
        proven[content] += 1
        if is_ours and proof not in allowed:
            judge.breach(f"{proof} is proven on {machine.name} of {content!r}, which is {sorted(allowed)}")
        if not is_ours and not (proof or "").startswith(proofs.SESSION):  # a line that was not published yet
            judge.breach(f"{proof} is proven on {machine.name} of {content!r}, which nobody of ours said")
        if proven[content] == 2 and judge.is_beset and not judge.is_rewritten:
            judge.breach(f"{content!r} is proven twice on {machine.name}")


def _is_sure(stage: Stage, machine: Machine, content: bytes, allowed: set[str]) -> bool:
    """Must something be proven of a line? Nothing is of the dead, whose lives may be retold.

    Nor of a line that the network held back until later ones were in its log: by its number it is a repetition."""
    if (machine.name, None) in stage.world.said.get(content, ()) or content in stage.world.overtaken:
        return False
    is_of_dead = any(who.encode() in content for who in stage.judge.dead)
    return bool(allowed) and not is_of_dead and all(proofs.SESSION in one for one in allowed)


def _true(stage: Stage, machine: Machine, content: bytes) -> Iterator[str]:
    """What may be proven on a machine of a line."""
    for by, proof in sorted(stage.world.said.get(content, ()), key=str):
        if by == machine.name and proof is None:  # published by a process that could not tell
            yield from (proofs.of_session(one.id) for one in stage.judge.sessions if one.machine is machine)
        elif by == machine.name and proof is not None:
            yield proof
        elif proof is None or (machine.name, by) not in stage.judge.trusting:
            continue
        elif stage.trusted == "user" or proof.startswith((proofs.SESSION, proofs.STEWARD)):
            yield proofs.of_machine(by, proof)
