"""Mail is shown once, to those it was for, as it was sent and in order; role mail to one holder.

Belongs here: this promise, and whatever has a message shown again or to another: an interrupted showing, a release, a
death. Then no quiet stamp is over unread mail: looked at when a stamp appears, a message is acknowledged or offered.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.simulation.judge_durable import Durable
from tests.simulation.letters import BACK, FREE, LEFT, MAYBE, OFFERED, READ, RELEASING, SHOWN, TAKEN, TAKING
from tests.simulation.places import BOX, QUIET

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.simulation.judge_durable import Fact
    from tests.simulation.letters import Letter, Session
    from tests.simulation.process import Process
    from tests.simulation.world import World


NOTE = f"{BOX}/.cache/ends/agent-mailbox"
HOUR = 3600 * 1_000_000_000
LAPSES = HOUR // 6
"""A claim goes back after so long."""
REPLACING = ("run_steward", "repair")
"""Commands that replace a log, and then fetch what foreign programs wrote to the old one meanwhile."""


class Showings(Durable):
    """What sessions are shown, held against what was sent and shown before."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._settling: list[tuple[str, str]] = []

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

    def sent(self, letter: Letter) -> None:
        """A sender was told that its message is sent."""
        if letter.acked is None and self.founded is not None:
            letter.acked = self.world.calls
            self._stamps(letter)
        self.acknowledge(("message", letter.id))

    def show(self, session_id: str, shown: Iterable[tuple[str, str]], process: Process) -> None:
        """A session is shown messages: pairs of id and content, in order."""
        session, shown = self.sessions[session_id], list(shown)
        session.seen = self.world.now
        self.world.tell(f"{process.name} shows {session_id} {[one[:8] for one, _ in shown]}")
        self.answers.append((session_id, *(content.partition(" “")[0] for _, content in shown)))
        before: dict[int, Letter] = {}
        for message_id, content in shown:
            self.shown += 1
            letter = self.letters.get(message_id)
            if message_id in self.rich:
                continue
            if letter is None:
                self.breach(f"{session_id} is shown {message_id}, which nobody sent")
                continue
            if letter.content != content:
                self.breach(f"{session_id} is shown {message_id} with another text")
            if not session.may_get(letter):
                self.breach(f"{session_id} is shown {message_id}, which is for {letter.to}")
            self._once(session, letter, process)
            self._order(session, letter, before)

    def _once(self, session: Session, letter: Letter, process: Process) -> None:
        for watch in self.watches.values():
            watch.discard(letter.id)
        state, by = self.given.get((session.id, letter.id), (FREE, None))
        if state in (READ, TAKEN):
            self.breach(f"{session.id} is shown {letter.id} a second time")
        elif (
            state == SHOWN
            and by is not None
            and not by.dead
            and not by.ended
            and by is not process
            and not self._delivers(session, process)
        ):
            self.breach(f"{session.id} is shown {letter.id} by {by.name} and by {process.name} at once")
        if letter.is_role:
            for other in self.sessions.values():
                state, by = self.given.get((other.id, letter.id), (FREE, None))
                busy = state == SHOWN and by is not None and not by.dead and not by.ended
                busy = busy or (state == MAYBE and by is not None and self._claims(other, session, by))
                taken = state == READ or (state == TAKEN and not other.may_seem_gone)
                if other is not session and (taken or busy) and not other.may_be_dead:
                    self.breach(f"{session.id} and {other.id} are shown {letter.id}, which is for one of {letter.to}")
        self.given[session.id, letter.id] = SHOWN, process

    def _delivers(self, session: Session, process: Process) -> bool:
        """Does the process hold the session's delivery lock? Then nobody else does: another that failed gave it up."""
        lock = self.world.kernel.look_up(f"{BOX}/agent-heartbeats/{session.id}").lock
        return any(file is lock for file in process.files.values())

    def _claims(self, other: Session, session: Session, by: Process) -> bool:
        """Does the other still claim what a process showed it, and could not record? Whose client is gone does not."""
        return (
            not other.is_gone
            and other.id not in session.line
            and not other.retiring
            and abs(self.world.wall() - by.begun) < LAPSES
        )

    def _order(self, session: Session, letter: Letter, before: dict[int, Letter]) -> None:
        last = before.get(letter.class_)
        settled = not any(other.foreign for other in self.letters.values())  # a foreign line may displace a sealed one
        if settled and last is not None and letter.acked is not None and letter.acked < last.begun:
            self.breach(f"{session.id} is shown {last.id} before {letter.id}, which was sent before it began")
        if not letter.foreign:
            before[letter.class_] = letter

    def recorded(self, session_id: str, ids: Iterable[str], read: str = READ) -> None:
        """A delivery ended well: what was shown counts as read, or as offered."""
        facts: list[Fact] = []
        for message_id in ids:
            if self.given.get((session_id, message_id), (FREE, None))[0] == SHOWN:
                letter = self.letters[message_id]
                owed = self.sessions[session_id].may_be_dead and letter.ack and letter.is_role  # death gives it back
                self.given[session_id, message_id] = MAYBE if self.founded is None or owed else read, None
                facts.append(("record", message_id, session_id, "read"))
        if facts:
            self.acknowledge(*facts)
        if read == OFFERED:  # no stamp may spare the hook that will settle it
            self._stamp(self.sessions[session_id], [self.letters[message_id] for _, message_id, *_ in facts])

    def noted(self, session: Session, message_id: str) -> None:
        """A foreign program writes that a session read a message, gave it back, or claimed it: it may count."""
        self.strange = True
        if message_id in self.letters:
            for member in self._line(session.id):
                self.given[member, message_id] = MAYBE, None
            self.letters[message_id].was_released = True

    def interrupted(self, process: Process) -> None:
        """A process ended badly: what it showed may be shown again."""
        if process.dead or process.hurt or process.error or not process.was_alone():
            self.disturbed = self.world.calls
        if (process.dead or process.faults - {"fsync", "fdatasync"}) and process.command in REPLACING:
            self.steward_died = self.world.calls
            self.appended.clear()
        for key, (state, by) in self.given.items():
            if by is process and state == SHOWN:
                self.given[key] = MAYBE, by

    def settles(self, session_id: str) -> None:
        """A hook looks at the conversation: it may give back what an earlier hook showed, which was killed."""
        for key, (state, by) in self.given.items():
            if key[0] == session_id and state == MAYBE and by is not None:
                self.given[key] = MAYBE, None

    def releasing(self, session_id: str, message_id: str) -> None:
        """A session begins to give a message back."""
        self.letters[message_id].was_released = True
        for member in self._line(session_id):
            if (member, message_id) in self.given:
                self.given[member, message_id] = RELEASING, None

    @contextmanager
    def settling(self, session_id: str, message_id: str) -> Iterator[None]:
        """While a session acks or answers a message that is also given back: either may count, however this ends."""
        self._settling.append((session_id, message_id))
        try:
            yield
        finally:
            self._settling.remove((session_id, message_id))
            self._may_count(session_id, message_id)

    def _may_count(self, session_id: str, message_id: str) -> None:
        if self.given.get((session_id, message_id), (FREE, None))[0] in (FREE, RELEASING):
            self.given[session_id, message_id] = MAYBE, None

    def released(self, session_id: str, message_id: str) -> None:
        """It was told that the message is given back."""
        for member in self._line(session_id):
            if self.given.get((member, message_id), (FREE, None))[0] == RELEASING:
                self.given[member, message_id] = FREE, None
            if (member, message_id) in self._settling:
                self._may_count(member, message_id)

    def dying(self, session: Session) -> None:
        """A session may die from now on: what it owes is given back then."""
        session.may_be_dead, session.deaths = True, session.deaths + 1
        for (who, message_id), (state, _) in self.given.items():
            letter = self.letters[message_id]
            gives_back = state == READ and letter.ack and letter.is_role
            if who == session.id and (gives_back or state in (OFFERED, TAKING, TAKEN, LEFT, BACK)):
                self.given[who, message_id] = MAYBE, None
        for letter in () if session.heir else self.letters.values():  # dead letters, which the steward may archive
            if letter.to in session.line and self.given.get((session.id, letter.id), (FREE, None))[0] == FREE:
                self.given[session.id, letter.id] = MAYBE, None

    def _line(self, session_id: str) -> list[str]:
        """The session, those it continues, and those that continue it: what one reads or gives back, all do."""
        heirs = (session.id for session in self.sessions.values() if session_id in session.line)
        return list(dict.fromkeys((*self.sessions[session_id].line, *heirs)))
