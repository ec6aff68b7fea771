"""The judge: a model of the mailbox that knows nothing but what was acknowledged and shown.

Belongs here: the promises, checked while the world runs. It reads logs by its own eyes (``json``), never through the
product. It holds:

- Acknowledged is durable: after each acknowledgement, each change of names and each power failure.
- Mail is shown once, unless its showing was interrupted, or it was released; role mail to one holder.
- Mail is shown to those it was for, as it was sent; mail that was sent later is shown behind.
- No quiet stamp stands over unread mail.
- In the end everyone alive was shown all of their mail.
- A request is decided once, for everyone.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

from agent_mailbox.core import instant
from tests.simulation.places import ARCHIVE, BOX, QUIET

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from tests.simulation.disk import Inode
    from tests.simulation.world import Process, World

HOUR = 3600 * 1_000_000_000
REPLACING = ("run_steward", "repair")
"""Commands that replace a log, and then fetch what foreign programs wrote to the old one meanwhile."""
CLIENT_ENDED = b'"reason":"its client\'s process ended"'
LAPSES = HOUR // 6
"""A claim goes back after so long."""
Fact = tuple[str, ...]
SHOWN, READ, FREE, MAYBE, RELEASING = "shown", "read", "free", "maybe", "releasing"
OFFERED, TAKING, TAKEN, LEFT = "offered", "taking", "taken", "left"
"""``OFFERED``: a hook gave it to the client, and nobody knows whether the model took it in. ``TAKING``: the model
speaks after it, which may not be written down. ``LEFT``: its client was killed first, and a role brought it: so another
holder gets it, once somebody looks. ``TAKEN``: it did, and need not be told again. ``RELEASING``: it is
being given back, and nobody was shown it since. ``MAYBE``: its showing was interrupted, before or after it was
recorded; it may come again, and need not."""


class Letter:
    """A message as its sender meant it."""

    def __init__(self, number: int, message_id: str, sender: str, to: str, content: str, begun: int) -> None:
        self.number = number
        self.id = message_id
        self.sender = sender
        self.to = to
        self.content = content
        self.begun = begun
        self.acked: int | None = None
        """The call at which it was acknowledged."""
        self.ack = False
        self.lasting = True
        self.class_ = 1
        self.foreign = False
        self.times = (0, 0)
        """Of a foreign one: the log's time before it was written, and with it."""
        self.was_released = False
        self.attachments: list[dict[str, Any]] | None = None
        self.stored = ""
        """The path of the file that it brings, once it is sent."""

    @property
    def is_role(self) -> bool:
        """Is it for one holder of a role?"""
        return self.to.startswith("role:")


class Session:
    """An agent as the judge knows it."""

    def __init__(self, session_id: str, role: str, tag: str) -> None:
        self.id = session_id
        self.role = role
        self.tag = tag
        self.registered: int | None = None
        self.may_hold = self.holds = False
        """Did it begin to register with its role and tag? Was that confirmed? A check registers it without them."""
        self.retired = False
        self.retiring = 0
        """The last call at which a process began or ended to retire it."""
        self.retirer: Process | None = None
        self.may_be_dead = False
        self.lost_list = False
        """May the list of its open offers be lost, until it starts again?"""
        self.forgotten = 0
        """How often something removed that list."""
        self.may_seem_gone = False
        """Could its client's process not be recorded once? Then others may have got what it was offered."""
        self.is_gone = False
        """Was its client's process killed?"""
        self.trusts_stamps = True
        """After a power failure a stamp may be back until the session starts."""
        self.led = self.may_be_frozen = False
        self.deaths = 0
        """How often it may have died."""
        self.seen = 0
        self.name = f"n-{session_id}"
        self.line = [session_id]
        """It and those it continues, as far as it may."""
        self.owns = [session_id]
        """It and those that it continues for sure."""
        self.heir: Session | None = None
        """Who continues it."""
        self.passings = 0
        """How many sessions may have taken its place, or may be about to."""

    def may_get(self, letter: Letter) -> bool:
        """May it be shown the letter? What those sent that it continues, it may."""
        return letter.sender != self.id and letter.to in (
            "all",
            *(self._words if self.may_hold else ()),
            *self.line,
        )

    def must_get(self, letter: Letter) -> bool:
        """Is the letter for it?"""
        return letter.sender not in self.line and letter.to in ("all", *(self._words if self.holds else ()), *self.owns)

    @property
    def is_leaving(self) -> bool:
        """Is it retired, or just being retired?"""
        return self.retired or (self.retirer is not None and not self.retirer.ended)

    @property
    def _words(self) -> tuple[str, str]:
        return self.role, self.tag


class Judge:
    """The model of one world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.breaches: list[str] = []
        self.disturbed = -1
        """The last call at which a process ended badly, or beside others: it may have left a claim of role mail."""
        self.letters: dict[str, Letter] = {}
        self.sessions: dict[str, Session] = {}
        self.facts: dict[Fact, int] = {}
        self.given: dict[tuple[str, str], tuple[str, Process | None]] = {}
        """(session, message) to what became of it, and by which process."""
        self.holders: dict[str, set[str]] = {}
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
        self.decisions: dict[str, tuple[str, str]] = {}
        self.spans: dict[str, list[tuple[int, int]]] = {}
        """When each session had a client's process, in ms; the last one goes on."""
        self.replied: set[tuple[str, str]] = set()
        self._settling: list[tuple[str, str]] = []
        self._kept: dict[int, tuple[int, Inode, set[Fact]]] = {}
        self._lines: dict[bytes, Fact | None] = {}
        self.shown = self.acknowledged = self.checks = 0
        world.on_appeared = self._appeared
        world.on_renamed = self.durable
        world.on_power = self._power

    def breach(self, what: str) -> None:
        """Note a broken promise."""
        self.breaches.append(what)

    def has_strangers(self) -> bool:
        """Did programs write that know no lock? Their lines may stand anywhere, also before those of ours."""
        return self.strange or bool(self.doubled) or any(letter.foreign for letter in self.letters.values())

    # -- durable ------------------------------------------------------------------------------------------------------

    def acknowledge(self, *facts: Fact) -> None:
        """Something was confirmed: it must be durable now, and for ever."""
        if self.founded is None:
            return  # nobody was told yet that the mailbox is made, and its own name may be lost
        self.acknowledged += 1
        for fact in facts:
            self.facts[fact] = self.world.calls
        self.durable()

    def recorded_by(self, session: Session, message_id: str, event: str) -> None:
        """A session was told that it dealt with a message: in its own name, or in that of one it continues."""
        facts = [("record", message_id, who, event) for who in session.line]
        there = self.found(BOX) if len(facts) > 1 else {*facts}
        self.acknowledge(next((fact for fact in facts if fact in there), facts[0]))

    def durable(self) -> None:
        """Would everything that was acknowledged survive a power failure at this moment, at its worst?"""
        if not self.facts:
            return
        self.checks += 1
        for solid in (True, False):
            found = self._found(solid_names=solid)
            lost = [fact for fact in self.facts if fact not in found]
            if lost:
                how = "with" if not solid else "without"
                self.breach(f"{_told(lost[0])} was acknowledged and is not durable ({how} the changes of names)")
                for fact in lost:
                    del self.facts[fact]

    def survives(self, when: str) -> None:
        """Is everything there that was acknowledged, after a power failure?"""
        found = self._found(solid_names=False)
        lost = [fact for fact in self.facts if fact not in found]
        if lost:
            self.breach(f"{_told(lost[0])} was acknowledged and is lost {when}")
        for letter in self.letters.values():
            if letter.stored and letter.acked is not None and not self.has_file(letter, letter.stored):
                self.breach(f"the file that {letter.id} brings is lost {when}")

    def _power(self) -> None:
        """After a power failure: is everything there?"""
        self.survives("after a power failure")
        for session_id in self.spans:
            self.ends(session_id)
        self.appended.clear()
        self.torn = True  # a torn end may be left, which a foreign program does not isolate
        for session in self.sessions.values():
            session.trusts_stamps = False
            if ("agent", session.id) not in self.facts:
                session.registered = None  # nobody was told that it is registered
                self._alone(session)
        for key, (state, _) in self.given.items():
            if state in (SHOWN, MAYBE, OFFERED, TAKING, TAKEN, LEFT):
                self.given[key] = MAYBE, None  # a claim is not synced before showing, a transcript never

    def _alone(self, session: Session) -> None:
        """Nobody was told that a session continues others: it may, and need not."""
        if len(session.line) > 1:
            session.owns = [session.id]
            for key, (state, _) in self.given.items():
                if key[0] == session.id and state == READ:
                    self.given[key] = MAYBE, None

    def _found(self, *, solid_names: bool) -> set[Fact]:
        found: set[Fact] = set()
        for path, inode in self._logs(solid_names=solid_names):
            kept = self._kept.get(id(inode))
            if kept is None or kept[0] != inode.version or kept[1] is not inode:
                facts = set(self._parsed(bytes(inode.solid), path))
                kept = self._kept[id(inode)] = inode.version, inode, facts
            found |= kept[2]
        return found

    def found(self, place: str) -> set[Fact]:
        """Everything in the logs of another mailbox, as processes see it."""
        found: set[Fact] = set()
        for path, inode in self.world.disk.files(solid=False):
            if path.startswith(f"{place}/") and path.endswith(".jsonl"):
                found.update(self._parsed(bytes(inode.data), path))
        return found

    def _logs(self, *, solid_names: bool) -> Iterator[tuple[str, Inode]]:
        root = self.world.disk.root
        box = (root.solid_entries if solid_names else root.entries).get(BOX[1:])
        if box is None:
            return
        names = box.solid_entries if solid_names else box.entries
        for name, inode in names.items():
            if inode.is_directory and name == "agent-mailbox-archive":
                for below, there in (inode.solid_entries if solid_names else inode.entries).items():
                    if below.endswith(".jsonl"):
                        yield f"{ARCHIVE}/{below}", there
            elif name in ("agent-mailbox.jsonl", "agent-mailbox-reads.jsonl", "agent-roster.jsonl"):
                yield f"{BOX}/{name}", inode

    def _parsed(self, data: bytes, path: str) -> Iterator[Fact]:
        for line in data.split(b"\n"):
            if line not in self._lines:
                self._lines[line] = self._fact(line)
            fact = self._lines[line]
            if fact is not None:
                yield fact

    def _fact(self, line: bytes) -> Fact | None:
        try:
            said = json.loads(line)
        except ValueError:
            return None
        if not isinstance(said, dict):
            return None
        if "message_id" in said and "reader_session_id" in said:
            return "record", said["message_id"], said["reader_session_id"], said.get("event", "read")
        if "id" in said and "sender" in said:
            letter = self.letters.get(said["id"])
            if letter is not None and said.get("content") != letter.content:
                self.breach(f"{said['id']} holds another text than was sent")
            return "message", said["id"]
        return ("agent", said["session_id"]) if "session_id" in said else None

    # -- mail ---------------------------------------------------------------------------------------------------------

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
        self.answers.append((session_id, *(content.partition(" “")[0] for _, content in shown)))
        before: dict[int, Letter] = {}
        for message_id, content in shown:
            self.shown += 1
            letter = self.letters.get(message_id)
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

    # -- clients' processes -------------------------------------------------------------------------------------------

    def lives(self, session: Session) -> None:
        """A session has a client's process, from now on for sure."""
        spans = self.spans.setdefault(session.id, [])
        if not spans or spans[-1][1]:
            spans.append((self._ms(), 0))

    def _ms(self) -> int:
        return self.world.wall() // 1_000_000

    def ends(self, session_id: str) -> None:
        """A session has no client's process any more."""
        spans = self.spans.get(session_id, [])
        if spans and not spans[-1][1]:
            spans[-1] = spans[-1][0], self._ms()

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
            if state == OFFERED and certainly:
                self.given[key] = LEFT, None
            elif state in (OFFERED, TAKING, TAKEN):
                self.given[key] = MAYBE, None

    def returns(self, session: Session) -> list[str]:
        """Its client is back: until its first hook has told it, what the conversation holds may be seen. Return what
        was left."""
        left = [i for (who, i), (state, _) in self.given.items() if who == session.id and state == LEFT]
        self.given.update({(session.id, i): (MAYBE, None) for i in left})
        return left

    def left(self, session: Session, ids: Iterable[str]) -> None:
        """Its first hook ended well and did not show these: they are left to the role still. A lock that another held
        for long has the hook end without a word."""
        if self.world.befell("long"):
            return
        for message_id in ids:
            if self.given[session.id, message_id][0] == MAYBE:
                self.given[session.id, message_id] = LEFT, None

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

    def unclear(self, session_id: str, ids: Iterable[str]) -> None:
        """Nobody can tell whether the model took offered mail in."""
        self._goes_on(session_id, ids, OFFERED, MAYBE)

    def taking(self, session_id: str, ids: Iterable[str]) -> None:
        """The model begins to speak after offered mail."""
        self._goes_on(session_id, ids, OFFERED, TAKING)

    def took(self, session_id: str, ids: Iterable[str]) -> None:
        """The model spoke, and that is written down."""
        self._goes_on(session_id, ids, TAKING, TAKEN)

    def _goes_on(self, session_id: str, ids: Iterable[str], before: str, after: str) -> None:
        for message_id in ids:
            if self.given.get((session_id, message_id), (FREE, None))[0] == before:
                self.given[session_id, message_id] = after, None

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

    def _line(self, session_id: str) -> list[str]:
        """The session, those it continues, and those that continue it: what one reads or gives back, all do."""
        heirs = (session.id for session in self.sessions.values() if session_id in session.line)
        return list(dict.fromkeys((*self.sessions[session_id].line, *heirs)))

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

    def dying(self, session: Session) -> None:
        """A session may die from now on: what it owes is given back then."""
        session.may_be_dead, session.deaths = True, session.deaths + 1
        for (who, message_id), (state, _) in self.given.items():
            letter = self.letters[message_id]
            gives_back = state == READ and letter.ack and letter.is_role
            if who == session.id and (gives_back or state in (OFFERED, TAKING, TAKEN, LEFT)):
                self.given[who, message_id] = MAYBE, None
        for letter in () if session.heir else self.letters.values():  # dead letters, which the steward may archive
            if letter.to in session.line and self.given.get((session.id, letter.id), (FREE, None))[0] == FREE:
                self.given[session.id, letter.id] = MAYBE, None

    def released(self, session_id: str, message_id: str) -> None:
        """It was told that the message is given back."""
        for member in self._line(session_id):
            if self.given.get((member, message_id), (FREE, None))[0] == RELEASING:
                self.given[member, message_id] = FREE, None
            if (member, message_id) in self._settling:
                self._may_count(member, message_id)

    # -- quiet stamps -------------------------------------------------------------------------------------------------

    def _appeared(self, path: str) -> None:
        if path.startswith(QUIET):
            self._stamp(self.sessions.get(path.removeprefix(QUIET)), self.letters.values())

    def _stamps(self, letter: Letter) -> None:
        for session in self.sessions.values():
            self._stamp(session, (letter,))

    def _stamp(self, session: Session | None, letters: Iterable[Letter]) -> None:
        if session is None or session.registered is None or session.may_be_dead or not session.trusts_stamps:
            return
        if not self._is_stamped(session.id):
            return
        is_hurt = (
            self.world.running is not None and self.world.running.hurt
        )  # a failed call may hide the list of offers
        for letter in letters:
            if (is_hurt or session.lost_list) and self.given.get((session.id, letter.id), (FREE, None))[0] == OFFERED:
                continue
            if letter.acked is not None and not letter.foreign and self.is_unread(session, letter):
                self.breach(f"{session.id} has a quiet stamp over {letter.id}, which it was not shown")

    def _is_stamped(self, session_id: str) -> bool:
        try:
            self.world.kernel.look_up(QUIET + session_id)
        except OSError:
            return False
        return True

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

    # -- the end ------------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Everyone alive was shown everything, nothing was lost, and nothing is in the archive twice."""
        self.durable()
        self._frozen_alive()
        for key, (state, _) in self.given.items():
            if state == LEFT:
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

    def _says(self, line: bytes) -> bool:
        """Is the line a message or a record? Torn lines may be the same."""
        fact = self._lines[line] if line in self._lines else self._fact(line)
        return fact is not None

    def has_file(self, letter: Letter, place: str) -> bool:
        """Is the file that a letter brings at that place, whole?"""
        try:
            return bytes(self.world.kernel.look_up(place).data) == letter.content.encode()
        except OSError:
            return False

    def decided(self, request: str, state: str, by: str) -> None:
        """Somebody was told how a request was decided."""
        known = self.decisions.setdefault(request, (state, by))
        if known != (state, by):
            self.breach(f"{request} was decided {known[0]} by {known[1]}, and {state} by {by}")


def _told(fact: Fact) -> str:
    if fact[0] == "record":
        return f"the {fact[3]} of {fact[1]} by {fact[2]}"
    return f"the {fact[0]} {fact[1]}"
