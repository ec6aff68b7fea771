"""Whom mail reaches, until when, who has it, and who owes an answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from tests.judge.lines import ANSWER, HOURS, Facts, Line, Mail, mode_of, read_time
from tests.judge.people import DEAD, Person, fold_roster, is_over, rested, selves


@dataclass
class Reading:
    """What one session has of a message that it read, and did not give back."""

    way: str | None
    """Through which address it read it first, if the line says so."""
    acked: bool = False
    is_title: bool = False
    """It was shown the title alone."""


class Judge:
    """Answers about mail, each from all the lines, at one instant."""

    def __init__(self, facts: Facts, now: datetime) -> None:
        """Fold nothing but the roster: every answer looks at all lines again."""
        self.facts, self.now = facts, now
        self.mail = facts.mail()
        self._reads: dict[str, list[tuple[str, str, Line]]] = {}
        for line in facts.reads:
            told = line["reader_session_id"], line.get("event", "read"), line
            self._reads.setdefault(line["message_id"], []).append(told)
        self.people = fold_roster(facts)

    # whom it reaches

    def mode(self, address: str) -> str:
        """Return how an address reaches people. A bare word that is nobody's id is a role, as others write it."""
        mode = mode_of(address)
        return "role" if mode == "direct" and address not in self.people else mode

    def ways(self, mail: Mail, who: str) -> dict[str, str]:
        """Return the addresses by which a message reaches a session, with their modes, the most specific first."""
        found = {address: self._mode_for(mail, address, who) for address in mail.to}
        return {address: mode for mode in HOURS for address, one in found.items() if one == mode}

    def _mode_for(self, mail: Mail, address: str, who: str) -> str | None:
        if address in selves(self.people, who):
            return "direct"
        person, mode, word = self.people.get(who, Person(who)), self.mode(address), address.removeprefix("role:")
        named: set[str | None] = {*person.tags}
        if mode == "role":
            named |= {tag.removeprefix("role:") for tag in person.tags if tag.startswith("role:")}
            named |= {person.id, person.name} & {*mail.line.get("bare", ())}
        return mode if mode == "broadcast" or (mode != "direct" and not named.isdisjoint({address, word})) else None

    def way(self, mail: Mail, who: str) -> tuple[str, bool]:
        """Return through which address a session reads a message, and whether that takes it for a role.

        Empty, if it is for roles alone, and somebody has each part of it.
        """
        ways = self.ways(mail, who)
        best = next((mode for mode in ways.values() if mode != "role"), "role")
        free = [one for one in ways if ways[one] == best and (best != "role" or self.holder(mail, one) is None)]
        return max(free, key=lambda one: self._part(mail, one) == one, default=""), best == "role"

    # until when

    def has_expired(self, mail: Mail) -> bool:
        """Return whether its time is over at every address. A note has no end."""
        if mail.waits_elsewhere or mail.kind == "note":
            return False
        if mail.line.get("expires_at") is not None:
            return self.now >= read_time(mail.line["expires_at"])
        return all(self._has_expired_at(mail, address) for address in mail.to)

    def _has_expired_at(self, mail: Mail, address: str) -> bool:
        mode = self.mode(address)
        hours = mail.line.get("ttl_hours")
        if hours is None:
            hours = self.facts.hours[mode]
        if hours is None:
            return False
        passed = self.now - mail.at
        if mode == "direct" and address in self.people:
            passed -= rested(self.people, address, mail.at, self.now)
        return passed >= timedelta(hours=hours)

    # who has it

    def standing(self, mail: Mail) -> dict[str, Reading]:
        """Return who read it and did not give it back, in order. An ack says that it was read, too."""
        found: dict[str, Reading] = {}
        for who, event, line in self._reads.get(mail.id, ()):
            if event == "release":
                found.pop(who, None)
            elif event in {"read", "ack"}:
                reading = found.setdefault(who, Reading(line.get("as")))
                reading.acked |= event == "ack"
                reading.is_title = event == "read" and bool(line.get("title"))
        return found

    def has_read_before(self, mail: Mail, who: str) -> bool:
        """Return whether this session read it, or one that it continues."""
        return not selves(self.people, who).isdisjoint(self.standing(mail))

    def holder(self, mail: Mail, address: str) -> str | None:
        """Return who read role mail as a role, and so has it; the first of those.

        Each word that nobody had when it was written (``bare``) has a taker of its own; all roles have one together.
        """
        for who, reading in self.standing(mail).items():
            if reading.way is None:  # an older writer: it is a claim, if a role alone brought the mail
                is_role = {*self.ways(mail, who).values()} <= {"role"} and "role" in map(self.mode, mail.to)
            else:
                is_role = self.mode(reading.way) == "role" and reading.way in mail.to
            if is_role and (reading.way is None or self._part(mail, reading.way) == self._part(mail, address)):
                return who
        return None

    def _part(self, mail: Mail, address: str) -> str:
        return address if address.removeprefix("role:") in mail.line.get("bare", ()) else "roles"

    def claimer(self, mail: Mail) -> str | None:
        """Return who claims it and has yet to read it: the last that did, unless it gave it back, or its time is over.

        While one claims one part of it, the other parts wait, too.
        """
        found, since = None, self.now
        for who, event, line in self._reads.get(mail.id, ()):
            if event == "claim":
                found, since = who, read_time(line["timestamp"])
            elif who == found and event in {"read", "release"}:
                found = None
        if found not in self.people or self.people[found].state == DEAD or found in self.facts.gone:
            return None
        is_late = self.now - max(since, self.facts.looked.get(found, since)) >= ANSWER
        return None if is_late or "role" not in self.ways(mail, found).values() else found

    def unread(self, who: str) -> list[str]:
        """Return the ids of what a check shows this session: control first, then what is urgent, then the rest."""
        last = {mail.sender: mail.id for mail in self.mail if mail.is_idle_notice and self.ways(mail, who)}
        found = [mail for mail in self.mail if self._is_unread(mail, who)]
        found = [mail for mail in found if not mail.is_idle_notice or last[mail.sender] == mail.id]
        found.sort(key=lambda mail: 0 if mail.kind == "control" else 1 if mail.line.get("priority") == "high" else 2)
        return [mail.id for mail in found]

    def _is_unread(self, mail: Mail, who: str) -> bool:
        if mail.sender == who or mail.waits_elsewhere or not self.ways(mail, who):
            return False
        if self.has_expired(mail) or self.has_read_before(mail, who):
            return False
        address, claims = self.way(mail, who)
        return address != "" and not (claims and self.claimer(mail) not in (None, *selves(self.people, who)))

    # what became of it

    def lost(self, mail: Mail) -> str | None:
        """Return why it is a dead letter: it expired, or all it was for died, before anyone read it. None if it is not.

        A title settles nothing that asks for an ack.
        """
        asks = mail.line.get("ack")
        if (
            mail.waits_elsewhere
            or mail.is_idle_notice
            or any(not (asks and one.is_title) for one in self.standing(mail).values())
        ):
            return None
        ended = all(self.mode(address) == "direct" and is_over(self.people, address) for address in mail.to)
        return "expired" if self.has_expired(mail) else "recipient_dead" if ended else None

    def owes(self, who: str) -> list[str]:
        """Return the ids of what this session, or one that it continues, read and neither acknowledged nor answered."""
        own, asked = selves(self.people, who), [mail for mail in self.mail if mail.line.get("ack")]
        done = {reply.line.get("thread") for reply in self.mail if reply.sender in own}
        done |= {m.id for m in asked for one, reading in self.standing(m).items() if one in own and reading.acked}
        return [mail.id for mail in asked if mail.id not in done and self.has_read_before(mail, who)]

    def is_finished(self, mail: Mail) -> bool:
        """Return whether the steward may move it: nobody waits for it, and nobody owes an answer."""
        living = [who for who, person in self.people.items() if person.state != DEAD]
        if mail.waits_elsewhere or any(mail.id in self.owes(who) for who in living):
            return False
        return self.has_expired(mail) or all(self._is_part_finished(mail, address, living) for address in mail.to)

    def _is_part_finished(self, mail: Mail, address: str, living: list[str]) -> bool:
        mode = self.mode(address)
        if mode == "direct":
            return all(self.has_read_before(mail, who) for who in living if address in selves(self.people, who))
        return mode == "role" and self.holder(mail, address) is not None

    # history

    def conversation(self, mail: Mail) -> list[str]:
        """Return the ids of all that hangs together with a message by answers, oldest first."""
        ids, found, size = {one.id for one in self.mail}, {mail.id}, 0
        while size < len(found):
            size = len(found)
            for one in self.mail:
                ends = ids & {one.id, one.line.get("thread")}
                if ends & found:
                    found |= ends
        return [one.id for one in sorted(self.mail, key=lambda one: one.at) if one.id in found]

    def history(self, who: str) -> list[str]:
        """Return the ids of what a session, or one that it continues, sent, and what was for it."""
        own = selves(self.people, who)
        return [mail.id for mail in self.mail if mail.sender in own or self.ways(mail, who)]
