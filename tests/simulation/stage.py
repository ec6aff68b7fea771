"""A world with its judge and its agents, as commands see them, and the words that commands draw from.

Belongs here: what every command may use: the mailbox as a process opens it, a new letter, one of many by a process's
own chance. Must not know any command.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_mailbox.core import proofs
from agent_mailbox.core.address import uuid_of
from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.mailbox.open_mailbox import wall_clock
from tests.simulation.coordination_told import Told
from tests.simulation.judge import Judge
from tests.simulation.letters import Letter, Session
from tests.simulation.places import BOX
from tests.simulation.policies import Ruled
from tests.simulation.side_files import Waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_mailbox.core.compose import Draft
    from agent_mailbox.core.records import Proof
    from tests.simulation.clients import Client
    from tests.simulation.process import Process
    from tests.simulation.world import World

ROLES = ("role:ops", "role:dev")
TAGS = ("project:sun", "project:moon")
LEAD = "agent-0"
LASTING = 40_000
"""Hours that mail lives: longer than any world."""


class Stage:
    """A world with its judge and its agents, as commands see them."""

    def __init__(self, world: World, judge: Judge, agents: int, max_live: int) -> None:
        self.world = world
        self.judge = judge
        self.max_live = max_live
        self.count = 0
        self.requests: list[str] = []
        self.reserved: list[tuple[str, str]] = []
        """Ids of messages to come, each with a session of which a record says already that it read that."""
        self.early: set[str] = set()
        """Such messages that came: a cursor, which begins behind that record, counts them as unread."""
        self.drafts: dict[str, Draft] = {}
        """What was sent, by id, to be sent again."""
        self.clients: dict[str, Client] = {}
        self.cache: dict[str, tuple[bytes, int]] = {}
        """A copy of the derived files: the content of each, and its time."""
        self.cached = 0
        """When that was made."""
        self.told = Told()
        self.waiting = Waiting()
        self.ruled = Ruled()
        self.noted: dict[str, str] = {}
        """The notes that somebody was told are kept, each with the directory that it names."""
        self.pointed: set[tuple[str, str]] = set()
        """Sessions, each with a note that it was pointed to, or perhaps."""
        self.present: dict[str, str] = {}
        """Who has the place of each agent that another session continues."""
        for number in range(agents):
            name = f"agent-{number}"
            judge.sessions[name] = Session(name, ROLES[number % 2], TAGS[number // 2 % 2])

    def desk(
        self,
        session_id: str | None = None,
        *,
        proof: Proof | None = None,
        wait: float | None = None,
        clock: Callable[[], int] = wall_clock,
    ) -> Mailbox:
        """The mailbox as a process of that session opens it."""
        said = proof or (proofs.of_session(session_id) if session_id else None)
        return Mailbox(BOX, prove=lambda _: said, wait=wait, clock=clock)

    def letter(self, sender: str, to: str, process: Process) -> Letter:
        """A new letter, about to be sent."""
        self.count += 1
        message_id = uuid_of(f"{process.chance.getrandbits(128):032x}", "4")
        early = ""
        if self.reserved and process.chance.random() < 0.5:
            message_id, early = self.reserved.pop()
        size = (20, 20, 20, 300, 3000)[int(process.chance.random() * 5)]
        text = f"number {self.count} of {sender} to {to} “ünharmed” ".ljust(size, ".")
        letter = Letter(self.count, message_id, sender, to, text, self.world.calls)
        self.judge.letters[message_id] = letter
        if early:
            self.early.add(message_id)
            self.judge.noted(self.judge.sessions[early], message_id)
        return letter

    def registered(self) -> list[Session]:
        """The sessions that are alive as far as the judge knows."""
        return [s for s in self.judge.sessions.values() if s.registered is not None and not s.may_be_dead]


def pick(process: Process, words: Sequence[Any]) -> Any:
    """One of them, by the process's own chance."""
    return words[int(process.chance.random() * len(words))]
