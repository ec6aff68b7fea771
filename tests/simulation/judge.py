"""The judge: a model of the mailbox that knows nothing but what was acknowledged and shown.

Belongs here: all promises together, checked while the world runs, what a power failure leaves of them, and the end:

- Acknowledged is durable: after each acknowledgement, each change of names and each power failure (``judge_durable``).
- Mail is shown once, unless its showing was interrupted, or it was released; role mail to one holder. It is shown to
  those it was for, as it was sent; mail that was sent later is shown behind (``judge_showings``).
- No quiet stamp is over unread mail (``judge_stamps``).
- Nobody is frozen while its client's process runs (``judge_clients``).
- In the end everyone alive was shown all of their mail.
- A request is decided once, for everyone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.judge_clients import Clients
from tests.simulation.letters import BACK, FREE, LEFT, MAYBE, OFFERED, READ, SHOWN, TAKEN, TAKING
from tests.simulation.places import ARCHIVE, BOX

if TYPE_CHECKING:
    from tests.simulation.letters import Session
    from tests.simulation.world import World


class Judge(Clients):
    """The model of one world."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.decisions: dict[str, tuple[str, str]] = {}
        world.on_appeared = self._appeared
        world.on_renamed = self.durable
        world.on_power = self._power

    def _power(self) -> None:
        """After a power failure: is everything there?"""
        self.survives("after a power failure")
        for session_id in self.spans:
            self.ends(session_id)
        self.appended.clear()
        self.torn = True  # a torn end may be left, which a foreign program does not isolate
        for session in self.sessions.values():
            if ("agent", session.id) not in self.facts:
                session.registered = None  # nobody was told that it is registered
                self._alone(session)
        for key, (state, _) in self.given.items():
            if state in (SHOWN, MAYBE, OFFERED, TAKING, TAKEN, LEFT, BACK):
                self.given[key] = MAYBE, None  # a claim is not synced before showing, a transcript never

    def _alone(self, session: Session) -> None:
        """Nobody was told that a session continues others: it may, and need not."""
        if len(session.line) > 1:
            session.owns = [session.id]
            for key, (state, _) in self.given.items():
                if key[0] == session.id and state == READ:
                    self.given[key] = MAYBE, None

    def finish(self) -> None:
        """Everyone alive was shown everything, nothing was lost, and nothing is in the archive twice."""
        self.durable()
        self._frozen_alive()
        for key, (state, _) in self.given.items():
            if state in (LEFT, BACK):
                self.given[key] = FREE, None
        there = self.found(BOX)
        appended = self.appended if not self.world.befell("short", "full") else frozenset()
        for message_id in appended:
            if ("message", message_id) not in there:
                self.breach(f"{message_id}, which a foreign program appended, is gone")
        for letter in self.letters.values():
            if letter.stored and letter.acked is not None and not self.has_file(letter, letter.stored):
                self.breach(f"the file that {letter.id} brings is gone")
        for path, inode in self._logs(solid_names=False):
            lines = [line for line in bytes(inode.data).split(b"\n") if line not in self.doubled and self._says(line)]
            if path.startswith(ARCHIVE) and len(lines) != len({*lines}) and not path.endswith("roster.jsonl"):
                self.breach(f"{path} holds a line twice")
        for session in self.sessions.values():
            if session.registered is None or session.may_be_dead or session.retired or session.is_gone:
                continue
            for letter in self.letters.values():
                if (letter.acked is not None or letter.id in appended) and self.is_unread(session, letter):
                    self.breach(f"{session.id} was never shown {letter.id} from {letter.sender} to {letter.to}")

    def decided(self, request: str, state: str, by: str) -> None:
        """Somebody was told how a request was decided."""
        known = self.decisions.setdefault(request, (state, by))
        if known != (state, by):
            self.breach(f"{request} was decided {known[0]} by {known[1]}, and {state} by {by}")
