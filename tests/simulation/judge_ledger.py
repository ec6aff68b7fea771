"""What the judge knows: who there is, what was sent, acknowledged and shown, and what else happened.

Belongs here: the state that several promises ask. The promises are the classes above, each in a room of its own:
``judge_durable``, ``judge_stamps``, ``judge_showings``, ``judge_clients``, and ``judge``, which is all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.telling import BROKEN

if TYPE_CHECKING:
    from tests.simulation.letters import Letter, Session
    from tests.simulation.process import Process
    from tests.simulation.world import World


class Ledger:
    """What is known of one world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.breaches: list[str] = []
        self.about: set[str] = set()
        """The ids that told and expected answers differ by: what a story is about."""
        self.rich: set[str] = set()
        """Messages that the second judge alone judges."""
        self.disturbed = -1
        """The last call at which a process ended badly, or beside others: it may have left a claim of role mail."""
        self.letters: dict[str, Letter] = {}
        self.sessions: dict[str, Session] = {}
        self.given: dict[tuple[str, str], tuple[str, Process | None]] = {}
        """(session, message) to what became of it, and by which process."""
        self.answers: list[tuple[str, ...]] = []
        """Each showing: the session, and the beginnings of the texts."""
        self.appended: set[str] = set()
        """What foreign programs appended whole since the last power failure."""
        self.doubled: set[bytes] = set()
        """Lines that foreign programs wrote more than once."""
        self.founded: int | None = None
        """The call at which somebody was told that the mailbox is made."""
        self.torn = self.strange = False
        """Did a foreign program leave a torn line? Did one write a record about mail?"""
        self.steward_died = -1
        """The last call at which a steward was killed: it may not have fetched what was written beside it."""
        self.watches: dict[int, set[str]] = {}
        """For each guard that looks at this moment: the messages that its session waits for."""
        self.shown = self.acknowledged = self.checks = 0

    def breach(self, what: str) -> None:
        """Note a broken promise."""
        self.breaches.append(what)
        self.world.tell(f"{BROKEN}{what}")

    def has_strangers(self) -> bool:
        """Did programs write that know no lock? Their lines may stand anywhere, also before those of ours."""
        return self.strange or bool(self.doubled) or any(letter.foreign for letter in self.letters.values())
