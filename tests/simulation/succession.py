"""Succession: a session takes the name of one that ended, and a client's ``clear`` goes on under a new id.

Belongs here: the commands, and what the judge knows of each. The successor has the older one's unread direct mail and
its obligations, and what that one read counts as read (semantics, "Succession"). Before somebody was told that it
succeeded, both may be so.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from agent_mailbox.core.roster_changes import Registration
from agent_mailbox.errors import Refused
from tests.simulation import clients, hooks, hosts, sessions
from tests.simulation.letters import FREE, MAYBE, READ, TAKEN, Session
from tests.simulation.places import BOX
from tests.simulation.scene import Scene

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulation.process import Process
    from tests.simulation.stage import Stage

COMMANDS = ("succeed", "clear")
ROSTER = f"{BOX}/agent-roster.jsonl"
SCENES = {
    "a name is taken": Scene(
        2.5,
        "send send everyone check",
        "succeed! send! check register succeed run_steward ack release reply",
        "everyone check run_steward question",
    ),
    "a session that is cleared": Scene(
        2.5,
        "send send everyone check",
        "clear! send! shim check hook clear run_steward ack register",
        "everyone check shim question",
    ),
}
WITH_CLIENTS = {
    "clients that are cleared": Scene(
        2,
        "everyone launch call call send everyone turn",
        "clear! send! turn check call die run_steward clear",
        "everyone turn check run_steward",
        least=4,
    )
}


class Passing:
    """What an agent has as another session begins to take its place."""

    def __init__(self, stage: Stage, old: Session) -> None:
        stage.count += 1
        judge = stage.judge
        self.stage, self.old = stage, old
        self.was_ending = old.may_be_dead or old.is_leaving or old.is_gone
        self.had: dict[str, str] = {}
        self.waiting: list[str] = []
        for letter in judge.letters.values():
            state = judge.given.get((old.id, letter.id), (FREE, None))[0]
            if state in (READ, TAKEN):
                self.had[letter.id] = state
            elif state == FREE and letter.to in old.line and not self.was_ending:
                self.waiting.append(letter.id)
        self.heir = judge.sessions[f"{old.id}.{stage.count}"] = Session(f"{old.id}.{stage.count}", old.role, old.tag)
        self.heir.name, self.heir.line, self.heir.may_hold = old.name, [self.heir.id, *old.line], old.may_hold
        judge.dying(old)
        old.retired = True
        old.passings += 1
        self.last = old.retiring = stage.world.calls

    def fails(self) -> None:
        """The older one was alive, or another took its place."""
        self.old.passings -= 1
        if self.old.heir is None and not self.was_ending and not self.old.passings:
            self.old.may_be_dead = self.old.retired = False
            self.old.retiring = self.stage.world.calls

    def ends_well(self) -> None:
        """The session has the older one's place, and all that it had."""
        judge, old, heir = self.stage.judge, self.old, self.heir
        heir.registered = heir.registered or self.stage.world.calls
        heir.holds, heir.owns, heir.seen = old.holds, [heir.id, *old.owns], self.stage.world.now
        ended_before = self.was_ending or old.retiring != self.last or old.is_gone
        old.heir, old.retired, old.retiring = heir, True, self.stage.world.calls
        self.stage.present[old.id.partition(".")[0]] = heir.id
        for message_id, state in self.had.items():
            letter = judge.letters[message_id]
            is_owed = letter.is_role and letter.ack  # a death gives it back if nobody has that place yet
            known = judge.given.get((old.id, message_id), (FREE, None))
            if letter.was_released or known not in ((MAYBE, None), (state, None)) or (is_owed and ended_before):
                continue
            if judge.given.get((heir.id, message_id), (FREE, None))[0] not in (FREE, MAYBE):
                judge.breach(f"{heir.id} is shown {message_id}, which {old.id} had read, whose place it took")
            judge.given[heir.id, message_id] = state, None
        for message_id in () if ended_before else self.waiting:
            if judge.given.get((old.id, message_id)) == (MAYBE, None):
                del judge.given[old.id, message_id]

    def is_written(self) -> bool:
        """Does the roster say that the session continues the older one?"""
        inode = self.stage.world.kernel.look_up(ROSTER)
        return (self.heir.id, self.old.id) in set(continued(bytes(inode.data)))


def continued(roster: bytes) -> Iterator[tuple[str, str]]:
    """The sessions that continue others, each with that one; a line that a failed sync damaged says nothing."""
    for line in roster.split(b"\n"):
        if b'"continues"' not in line:
            continue
        try:
            said = json.loads(line)
        except ValueError:
            continue
        yield said["session_id"], said["continues"]


def succeed(stage: Stage, process: Process, me: Session) -> None:
    """A session takes the name of one that is frozen, retired, or still alive: then it is refused."""
    if me.registered is None or not me.holds or me.id in stage.clients:
        return
    drawn = process.chance.random()
    if drawn < 0.5:
        sessions.freeze(stage, process, me)
    elif drawn < 0.75:
        sessions.retire(stage, process, me)
    passing = Passing(stage, me)
    heir = passing.heir
    request = Registration(session_id=heir.id, roles=(me.role.removeprefix("role:"),), tags=(me.tag,), name=me.name)
    try:
        stage.desk(heir.id).register(request, heir.id)
    except Refused:
        passing.fails()
        return
    if me.heir is None and not passing.is_written():
        stage.judge.breach(f"{heir.id} took the name of {me.id}, and does not continue it")
    passing.ends_well()
    stage.judge.acknowledge(("agent", heir.id))


def clear(stage: Stage, process: Process, me: Session) -> None:
    """A client forgets its conversation: the session ends, and goes on in the same process under a new id."""
    if me.registered is None or me.may_be_dead or me.is_gone:
        return
    if stage.clients:
        _clear_client(stage, process, me)
        return
    around = {"CLAUDE_PID": str(7000 + int(me.id.partition("-")[2].partition(".")[0]))}
    others = stage.world.calls - process.calls
    hooks.hooked(stage, process, me, "SessionStart", environ=around)
    hooks.hooked(stage, process, me, "SessionEnd", environ=around, reason="clear")
    passing = Passing(stage, me)
    hooks.hooked(stage, process, passing.heir, "SessionStart", environ=around, source="clear")
    _cleared(process, passing, alone=others == stage.world.calls - process.calls)


def _cleared(process: Process, passing: Passing, *, alone: bool) -> None:
    """Hooks fail open: only the roster tells whether the session goes on."""
    judge = passing.stage.judge
    if passing.is_written():
        passing.ends_well()
        return
    if alone and not process.hurt:
        judge.breach(f"{passing.old.id} was cleared, and {passing.heir.id} does not continue it")
    passing.fails()


def _clear_client(stage: Stage, process: Process, me: Session) -> None:
    it = clients.Turn(stage, process, me)
    if stage.world.profile.lockless:  # where no hook can tell what the model took in, that may come again
        return
    if it.client.is_busy() or len(hosts.living(stage, me)) != 1:  # another process would keep the older session
        return
    it.client.process = process
    it.hook("SessionEnd", reason="clear")
    passing = Passing(stage, me)
    heir = passing.heir
    stage.judge.ends(me.id)
    goes_on = clients.Turn(stage, process, heir)
    goes_on.client.process, goes_on.client.hosts, it.client.hosts = process, it.client.hosts, []
    goes_on.client.is_recorded, heir.may_seem_gone = True, True
    goes_on.hook("SessionStart", source="clear")
    if goes_on.client.is_recorded:
        heir.may_seem_gone = False
        stage.judge.lives(heir)
    _cleared(process, passing, alone=False)
    if me.heir is None:
        stage.judge.gone(me, certainly=False)  # its process is another session's now
