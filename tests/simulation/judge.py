"""The judge: a model of the mailbox that knows nothing but what was acknowledged and shown.

Belongs here: all promises together, checked while the world runs, what a power failure leaves of them, and the end:

- Acknowledged is durable: after each acknowledgement, each change of names and each power failure (``judge_durable``).
- Mail is shown once, unless its showing was interrupted, or it was released; role mail to one holder. It is shown to
  those it was for, as it was sent; mail that was sent later is shown behind (``judge_showings``).
- No quiet stamp is over unread mail (``judge_showings``).
- Nobody is frozen while its client's process runs.
- In the end everyone alive was shown all of their mail.
- A request is decided once, for everyone.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from agent_mailbox.core import instant
from tests.simulation.judge_showings import Showings
from tests.simulation.letters import BACK, FREE, LEFT, MAYBE, OFFERED, READ, SHOWN, TAKEN, TAKING
from tests.simulation.places import ARCHIVE, BOX

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from tests.simulation.letters import Session
    from tests.simulation.world import World

CLIENT_ENDED = b'"reason":"its client\'s process ended"'


class Judge(Showings):
    """The model of one world."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.spans: dict[str, list[tuple[int, int]]] = {}
        """When each session had a client's process, in ms; the last one goes on."""
        self.replied: set[tuple[str, str]] = set()
        self.decisions: dict[str, tuple[str, str]] = {}
        world.on_appeared = self._appeared
        world.on_renamed = self.durable
        world.on_power = self._power

    def lives(self, session: Session) -> None:
        """A session has a client's process, from now on for sure."""
        spans = self.spans.setdefault(session.id, [])
        if not spans or spans[-1][1]:
            spans.append((self._ms(), 0))

    def ends(self, session_id: str) -> None:
        """A session has no client's process any more."""
        spans = self.spans.get(session_id, [])
        if spans and not spans[-1][1]:
            spans[-1] = spans[-1][0], self._ms()

    def _ms(self) -> int:
        return self.world.wall() // 1_000_000

    def has_unseen(self, session_id: str) -> bool:
        """Was it offered role mail, after which the model did not speak yet?"""
        key_of = ((who, i) for (who, i), (state, _) in self.given.items() if state == OFFERED)
        return any(who == session_id and self.letters[i].is_role for who, i in key_of)

    def gone(self, session: Session, *, certainly: bool) -> None:
        """Its client's process is killed: role mail that it did not see goes back, if it is certain that it is gone."""
        self.ends(session.id)
        session.is_gone = True
        for key, (state, _) in self.given.items():
            if key[0] != session.id or not self.letters[key[1]].is_role or key in self.replied:
                continue
            if state in (OFFERED, BACK) and certainly:
                self.given[key] = LEFT, None
            elif state in (OFFERED, BACK, TAKING, TAKEN):
                self.given[key] = MAYBE, None

    def returns(self, session: Session) -> list[str]:
        """Its client is back: until its first hook has told it, what the conversation holds may be seen. Return what
        was left."""
        left = [i for (who, i), (state, _) in self.given.items() if who == session.id and state == LEFT]
        self.given.update({(session.id, i): (MAYBE, None) for i in left})
        return left

    def left(self, session: Session, ids: Iterable[str], held: Collection[str]) -> None:
        """Its first hook ended well and did not show these: they are left to the role still, but for those that its
        client shows from its own file (``held``). A lock that another held for long has the hook end without a word."""
        if self.world.befell("long"):
            return
        for message_id in ids:
            if self.given[session.id, message_id][0] == MAYBE:
                self.given[session.id, message_id] = BACK if message_id in held else LEFT, None

    def ending(self, session_id: str) -> list[str]:
        """The hook of a session's end begins: if it is killed before it told what the model took in, the steward gives
        role mail back. Return what the model took in."""
        taken = [i for (who, i), (state, _) in self.given.items() if who == session_id and state == TAKEN]
        self.given.update({(session_id, i): (MAYBE, None) for i in taken})
        return taken

    def ended(self, session_id: str, taken: Iterable[str]) -> None:
        """That hook ended well, and told it, unless a lock was not to be had."""
        if not self.world.befell("long", "slow", "stop"):
            self._goes_on(session_id, taken, MAYBE, TAKEN)

    def unclear(self, session_id: str, ids: Iterable[str]) -> None:
        """Nobody can tell whether the model took offered mail in."""
        self._goes_on(session_id, ids, OFFERED, MAYBE)

    def taking(self, session_id: str, ids: Iterable[str]) -> None:
        """The model begins to speak after offered mail."""
        self._goes_on(session_id, ids, OFFERED, TAKING)
        self.replayed(session_id, ids)

    def replayed(self, session_id: str, ids: Iterable[str]) -> None:
        """What a client that came back has in its own file, the model may have taken in."""
        self._goes_on(session_id, ids, BACK, MAYBE)

    def took(self, session_id: str, ids: Iterable[str]) -> None:
        """The model spoke, and that is written down."""
        self._goes_on(session_id, ids, TAKING, TAKEN)

    def _goes_on(self, session_id: str, ids: Iterable[str], before: str, after: str) -> None:
        for message_id in ids:
            if self.given.get((session_id, message_id), (FREE, None))[0] == before:
                self.given[session_id, message_id] = after, None

    def _frozen_alive(self) -> None:
        """Was a session frozen because of its client's process, which ran?"""
        if self.world.befell("jump"):
            return
        for _, inode in self._logs(solid_names=False):
            for line in bytes(inode.data).split(b"\n"):
                said = json.loads(line) if CLIENT_ENDED in line else {}
                at = instant.parse(said["timestamp"]) if said.get("event") == "freeze" else 0
                who = self.sessions.get(said.get("session_id", ""))
                for begin, end in self.spans.get(who.id, ()) if who and not who.may_seem_gone else ():
                    if begin < at and (not end or at < end):
                        self.breach(f"{said['session_id']} is frozen as gone, and its client's process runs")

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
