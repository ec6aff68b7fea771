"""No quiet stamp is over unread mail, and what a session must be shown.

Belongs here: this promise, looked at when a stamp appears, when a message is acknowledged and when it is offered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.judge_durable import Durable
from tests.simulation.letters import FREE, LEFT, OFFERED
from tests.simulation.places import BOX, QUIET

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.simulation.letters import Letter, Session

NOTE = f"{BOX}/.cache/ends/agent-mailbox"


class Stamped(Durable):
    """The stamps of sessions, held against what waits for each."""

    def _appeared(self, path: str) -> None:
        if path.startswith(QUIET):
            self._stamp(self.sessions.get(path.removeprefix(QUIET)), self.letters.values())

    def _stamps(self, letter: Letter) -> None:
        for session in self.sessions.values():
            self._stamp(session, (letter,))

    def _stamp(self, session: Session | None, letters: Iterable[Letter]) -> None:
        if session is None or session.registered is None or session.may_be_dead:
            return
        if not self._is_stamped(session.id):
            return
        is_hurt = (
            self.world.running is not None and self.world.running.hurt
        )  # a failed call may hide the list of offers
        lets_turns_through = self._says_turn(session.id)
        for letter in letters:
            if lets_turns_through and letter.is_for_turn:
                continue
            if (is_hurt or session.lost_list) and self.given.get((session.id, letter.id), (FREE, None))[0] == OFFERED:
                continue
            if letter.acked is not None and not letter.foreign and self.is_unread(session, letter):
                self.breach(f"{session.id} has a quiet stamp over {letter.id}, which it was not shown")

    def _says_turn(self, session_id: str) -> bool:
        """Does its stamp let the hooks of a prompt and of a turn's end through?"""
        return bytes(self.world.kernel.look_up(QUIET + session_id).data) == b"turn\n"

    def _is_stamped(self, session_id: str) -> bool:
        """Has it a stamp of this start of the machine, which the guard believes?"""
        try:
            if self.world.kernel.look_up(NOTE).mtime == 0:  # a writer could not remove a stamp, and took the time away
                return False
        except OSError:
            pass
        try:
            made = self.world.kernel.look_up(QUIET + session_id).mtime
        except OSError:
            return False
        return made >= self.world.hosts.started

    def is_unread(self, session: Session, letter: Letter) -> bool:
        """Must the session still be shown the letter?"""
        if not letter.lasting or not session.must_get(letter):
            return False
        if any(self.given.get((who, letter.id), (FREE, None))[0] not in (FREE, OFFERED) for who in session.line):
            return False
        return self._is_free(session, letter, (FREE,))

    def _is_free(self, session: Session, letter: Letter, states: tuple[str, ...]) -> bool:
        others = self.sessions.keys() - {*session.line} if letter.is_role else ()
        return all(self.given.get((other, letter.id), (FREE, None))[0] in states for other in others)

    def waits(self, session: Session, letter: Letter) -> bool:
        """Must the session be shown the letter if it looks at this moment, and nobody disturbs it? A role's mail whose
        claimer was interrupted waits until that claim lapses."""
        if letter.acked is None or letter.foreign or not letter.lasting or not session.must_get(letter):
            return False
        if any(self.given.get((who, letter.id), (FREE, None))[0] != FREE for who in session.line):
            return False
        return not letter.is_role or (letter.acked > self.disturbed and self._is_free(session, letter, (FREE, LEFT)))
