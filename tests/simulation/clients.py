"""A client's session: turns, in which hooks offer mail, and a transcript, which tells what the model took in.

Belongs here: the client beside its hooks. It writes down what the model was given and said; it may drop a hook's text,
or be interrupted before the model speaks. The judge learns what the model certainly took in. The lines are those of
Claude Code, each with its session's id (``agent_mailbox.clients.transcript``).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agent_mailbox.core import instant
from agent_mailbox.core.compose import Draft
from agent_mailbox.errors import Refused
from agent_mailbox.store.files import system
from tests.simulation import hooks, hosts
from tests.simulation.letters import OFFERED, TAKEN
from tests.simulation.stage import LASTING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.simulation.letters import Session
    from tests.simulation.process import Process
    from tests.simulation.stage import Stage

TRANSCRIPTS = "/transcripts"
SURROUNDINGS = {"CLAUDECODE": "1"}
COMMANDS = ("turn", "resume", "begin", "prompt", "lose", "speak", "answer", "use", "stop")


class Client:
    """The client of one session, and its context: mail that the model was given, and has not spoken after. It is in the
    transcript, from which a client that comes back shows it."""

    def __init__(self) -> None:
        self.process: Process | None = None
        """The process of the last turn: no session has two at once."""
        self.given: dict[str, str] = {}
        """Message ids with the event that brought each; ids alone, for the judge knows the rest."""
        self.answers = 0
        self.writing: list[str] = []
        """Ids of mail that is being written down: if its process is killed meanwhile, nobody knows of them."""
        self.hosts: list[int] = []
        """The numbers of its processes, where these count (``hosts``)."""
        self.is_recorded = self.has_ended = False
        """Could its process be recorded? Did its session end by itself?"""

    def is_busy(self) -> bool:
        """Does a turn go on?"""
        return self.process is not None and not self.process.ended and not self.process.dead


class Turn:
    """What one process of a client does."""

    def __init__(
        self, stage: Stage, process: Process, me: Session, careful: bool = False, *, drops: bool = False
    ) -> None:
        self.stage, self.process, self.me, self.careful, self.drops = stage, process, me, careful, drops
        self.client = stage.clients.setdefault(me.id, Client())
        self.path = f"{TRANSCRIPTS}/{me.id}.jsonl"

    def drawn(self, share: float) -> bool:
        """Is it so this time? Whoever is careful leaves nothing out."""
        return not self.careful and self.process.chance.random() < share

    def hook(self, event: str, *, source: str = "startup", reason: str = "") -> None:
        """Run an event's hook; the model is given its text, unless that is lost."""

        self.stage.judge.unclear(self.me.id, self.client.writing)
        self.client.writing = []
        if event in ("SessionStart", "SessionEnd"):  # what the model did not answer by then may be told again
            self.stage.judge.unclear(self.me.id, self.client.given)
        hosts.note(self.stage, self.me, first=event == "SessionStart")
        self.client.has_ended = event == "SessionEnd" or (self.client.has_ended and event != "SessionStart")
        around = SURROUNDINGS | hosts.surroundings(self.stage, self.me)
        taken = self.stage.judge.ending(self.me.id) if event == "SessionEnd" else []
        forgotten = self.me.forgotten
        ids, answers = hooks.hooked(
            self.stage, self.process, self.me, event, self.path, around, source=source, reason=reason
        )
        if not self.process.hurt:
            self.stage.judge.ended(self.me.id, taken)
        told = [text for answer in answers if (text := _context(answer))]
        # The list of offers is derived: a failed write may lose it until the session starts again.
        is_found = event == "SessionStart" and self.me.forgotten == forgotten
        self.me.lost_list = self.process.hurt or (self.me.lost_list and not is_found)
        if not system.exists(self.path):  # a client without a transcript keeps none, as far as a hook can tell
            self.stage.judge.unclear(self.me.id, self.stage.judge.letters)
        # What was shown and not recorded, for want of a lock, may come again whatever becomes of it here.
        ids = [i for i in ids if self.stage.judge.given[self.me.id, i][0] == OFFERED]
        self.client.given = {i: event for i, event in self.client.given.items() if i not in ids}  # this delivery counts
        if not ids or not told:
            return
        if self.drops or self.drawn(0.2):  # the client drops it
            if self.drawn(0.4):
                self._ack(ids)
            return
        line = {"type": "hook_additional_context", "hookEvent": event, "content": told}
        self.client.writing = ids
        if self._write({"type": "attachment", "attachment": line}):
            self.client.given.update(dict.fromkeys(ids, event))
        else:
            self.stage.judge.unclear(self.me.id, ids)
        self.client.writing = []

    def prompt(self) -> None:
        """The person says something. An earlier prompt without an answer was taken back, and what came with it."""
        if self._write({"type": "user", "message": {"role": "user", "content": "go on"}}):
            self.client.given = {i: event for i, event in self.client.given.items() if event != "UserPromptSubmit"}
        else:
            self._lose_sight()

    def speak(self) -> None:
        """The model speaks: what it was given before, it has taken in."""
        self.client.answers += 1
        said = {"id": f"msg_{self.client.answers}", "model": "a-model", "role": "assistant", "content": []}
        self.stage.judge.taking(self.me.id, self.client.given)
        if self._write({"type": "assistant", "message": said}):
            self.stage.judge.took(self.me.id, self.client.given)
            self.client.given = {}
        else:
            self._lose_sight()

    def _lose_sight(self) -> None:
        self.stage.judge.unclear(self.me.id, self.client.given)
        self.stage.judge.replayed(self.me.id, self.client.given)
        self.client.given = {}

    def _ack(self, ids: Sequence[str]) -> None:
        self.stage.judge.taking(self.me.id, ids[:1])
        try:
            self.stage.desk(self.me.id).ack(ids[0], self.me.id)
        except Refused:
            return
        self.stage.judge.took(self.me.id, ids[:1])
        self.stage.judge.recorded_by(self.me, ids[0], "ack")

    def answer(self, given: Sequence[str]) -> None:
        """The model answers something that a role brought it, before any hook tells that it saw that."""
        letters = self.stage.judge.letters
        role = [i for i in given if letters[i].is_role and not letters[i].foreign]
        if not role or self.stage.judge.given[self.me.id, role[0]][0] != TAKEN:
            return
        parent = letters[role[0]]
        to = parent.to if parent.sender in self.me.line else parent.sender
        letter = self.stage.letter(self.me.id, to, self.process)
        draft = Draft(sender=self.me.id, to=(), content=letter.content, id=letter.id, ttl_hours=LASTING)
        try:
            self.stage.desk(self.me.id).reply(role[0], draft)
        except Refused:
            return  # its sender is gone
        self.stage.judge.sent(letter)
        self.stage.judge.replied.add((self.me.id, role[0]))

    def _write(self, said: dict[str, Any]) -> bool:
        """Write a line down; return whether it is there as a whole."""
        now = instant.text(self.stage.world.wall() // 1_000_000)
        event = {**said, "sessionId": self.me.id, "timestamp": now}
        line = b"\n" + json.dumps(event, separators=(",", ":")).encode() + b"\n"
        try:  # the newline before it ends what an earlier call left torn
            fd = system.open(self.path, system.O_WRONLY | system.O_APPEND | system.O_CREAT)
            system.write_whole(fd, line)
            system.close(fd)
        except OSError:
            return False
        return True


def _context(answer: str) -> str:
    said = json.loads(answer).get("hookSpecificOutput") or {}
    return str(said.get("additionalContext") or "")


def turn(stage: Stage, process: Process, me: Session) -> None:
    """A turn of a client: a prompt, the model's words, a tool, the end; each of these may be left out."""
    it = Turn(stage, process, me)
    if me.may_be_dead or me.is_gone or it.client.is_busy():
        return
    it.client.process = process
    if it.drawn(0.3):
        it.hook("SessionStart")
    it.prompt()
    it.hook("UserPromptSubmit")
    given = list(it.client.given)
    if not it.drawn(0.2):
        it.speak()
        if it.drawn(0.2):
            it.answer(given)
        if it.drawn(0.4):
            it.hook("PostToolUse")
            if not it.drawn(0.1):
                it.speak()
    if not it.drawn(0.2):
        it.hook("Stop")
    if it.drawn(0.1):
        it.hook("SessionEnd")


def _part(stage: Stage, process: Process, me: Session, *, drops: bool = False) -> Turn | None:
    """What goes on in a client's turn; None if it cannot."""
    it = Turn(stage, process, me, drops=drops)
    if me.may_be_dead or me.is_gone or it.client.is_busy():
        return None
    it.client.process = process
    return it


def begin(stage: Stage, process: Process, me: Session) -> None:
    """A session begins once more, as two hooks of one start do, or a client that compacts its conversation."""
    if it := _part(stage, process, me):
        it.hook("SessionStart")


def prompt(stage: Stage, process: Process, me: Session) -> None:
    """A turn begins."""
    if it := _part(stage, process, me):
        it.prompt()
        it.hook("UserPromptSubmit")


def lose(stage: Stage, process: Process, me: Session) -> None:
    """A turn begins, and the client drops what its hook says."""
    if it := _part(stage, process, me, drops=True):
        it.prompt()
        it.hook("UserPromptSubmit")


def speak(stage: Stage, process: Process, me: Session) -> None:
    """The model speaks."""
    if it := _part(stage, process, me):
        it.speak()


def answer(stage: Stage, process: Process, me: Session) -> None:
    """A turn begins, and the model answers what its hook showed, before another hook runs."""
    if it := _part(stage, process, me):
        it.prompt()
        it.hook("UserPromptSubmit")
        given = list(it.client.given)
        it.speak()
        it.answer(given)


def use(stage: Stage, process: Process, me: Session) -> None:
    """A tool was used."""
    if it := _part(stage, process, me):
        it.hook("PostToolUse")


def stop(stage: Stage, process: Process, me: Session) -> None:
    """A turn ends."""
    if it := _part(stage, process, me):
        it.hook("Stop")


def resume(stage: Stage, process: Process, me: Session) -> None:
    """In the end, when nothing goes wrong: the client comes back, and the model takes in everything that it missed."""
    it = Turn(stage, process, me, careful=True)
    it.client.process = process
    hosts.renew(stage, me)
    for _ in range(3):
        it.hook("SessionStart")
        it.prompt()
        it.speak()
        it.hook("Stop")
        it.speak()
        it.hook("Stop")
