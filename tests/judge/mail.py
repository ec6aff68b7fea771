"""Whom mail reaches, until when, who has it, and who owes an answer."""

from __future__ import annotations

from datetime import datetime, timedelta

from tests.judge.lines import ANSWER, MODES, Facts, Line, Mail, mode_of, read_time
from tests.judge.people import DEAD, Person, fold_roster, is_over, selves


class Judge:
    """Answers about mail, each from all the lines, at one instant."""

    def __init__(self, facts: Facts, now: datetime) -> None:
        """Fold nothing but the roster: every answer looks at all lines again."""
        self.facts, self.now = facts, now
        self.mail = facts.mail()
        self._reads: dict[str, list[Line]] = {}
        for line in facts.reads:
            self._reads.setdefault(line["message_id"], []).append(line)
        self.people = fold_roster(facts)

    # whom it reaches

    def mode(self, address: str) -> str:
        """Return how an address reaches people. A bare word that is nobody's id is a role, as others write it."""
        mode = mode_of(address)
        return "role" if mode == "direct" and address not in self.people else mode

    def modes(self, mail: Mail, who: str) -> list[str]:
        """Return how a message reaches a session, the most specific way first; empty if it does not."""
        found = {self._mode(address, who) for address in mail.to if self._is_for(mail, address, who)}
        return [mode for mode in MODES if mode in found]

    def _mode(self, address: str, who: str) -> str:
        return "direct" if address in selves(self.people, who) else self.mode(address)

    def _is_for(self, mail: Mail, address: str, who: str) -> bool:
        mode = self._mode(address, who)
        if mode == "broadcast":
            return True
        if mode == "direct":
            return address in selves(self.people, who)
        person = self.people.get(who, Person(who))
        word = address.removeprefix("role:")
        if address in person.tags or (mode == "role" and f"role:{word}" in person.tags):
            return True
        return mode == "role" and word in mail.line.get("bare", ()) and word in {person.id, person.name}

    def way(self, mail: Mail, who: str) -> tuple[str, bool]:
        """Return through which address a session reads a message, and whether that takes it for a role.

        Empty, if it is for roles alone, and somebody has each part of it.
        """
        modes = self.modes(mail, who)
        own = [mode for mode in modes if mode != "role"]
        wanted = own[0] if own else modes[0]
        ways = [one for one in mail.to if self._mode(one, who) == wanted and self._is_for(mail, one, who)]
        free = [one for one in ways if own or self.holder(mail, one) is None]
        return max(free, key=lambda one: self._part(mail, one) == one, default=""), not own

    # until when

    def has_expired(self, mail: Mail) -> bool:
        """Return whether its time is over at every address."""
        if mail.waits_elsewhere:
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
            passed -= self.people[address].rested(mail.at, self.now)
        return passed >= timedelta(hours=hours)

    # who has it

    def standing(self, mail: Mail) -> dict[str, tuple[str | None, bool]]:
        """Return who read it and did not give it back, in order: each with the address, and whether it acknowledged.

        An ack says that it was read, too. The first line of a standing read tells through what.
        """
        found: dict[str, tuple[str | None, bool]] = {}
        for line in self._reads.get(mail.id, ()):
            who, event = line["reader_session_id"], line.get("event", "read")
            if event == "release":
                found.pop(who, None)
            elif event in {"read", "ack"}:
                way, acked = found.get(who, (line.get("as"), False))
                found[who] = way, acked or event == "ack"
        return found

    def has_seen_title(self, mail: Mail, who: str) -> bool:
        """Return whether all that this session was given since it gave it back last is the title."""
        given = False
        for line in self._reads.get(mail.id, ()):
            if line["reader_session_id"] == who and line.get("event", "read") in {"read", "ack", "release"}:
                given = bool(line.get("title")) and line.get("event", "read") == "read"
        return given

    def has_read_before(self, mail: Mail, who: str) -> bool:
        """Return whether this session read it, or one that it continues."""
        return not selves(self.people, who).isdisjoint(self.standing(mail))

    def holder(self, mail: Mail, address: str) -> str | None:
        """Return who read role mail as a role, and so has it; the first of those.

        Each word that nobody had when it was written (``bare``) has a taker of its own; all roles have one together.
        """
        for who, (way, _) in self.standing(mail).items():
            is_same = way is None or self._part(mail, way) == self._part(mail, address)
            if is_same and self._was_as_role(mail, way, who):
                return who
        return None

    def claimer(self, mail: Mail) -> str | None:
        """Return who claims it and has yet to read it: the last that did, unless it gave it back, or its time is over.

        While one claims one part of it, the other parts wait, too.
        """
        found, since = None, self.now
        for line in self._reads.get(mail.id, ()):
            who, event = line["reader_session_id"], line.get("event", "read")
            if event == "claim":
                found, since = who, read_time(line["timestamp"])
            elif who == found and event in {"read", "release"}:
                found = None
        return None if found is None or self._has_lapsed(mail, found, since) else found

    def _part(self, mail: Mail, address: str) -> str:
        return address if address.removeprefix("role:") in mail.line.get("bare", ()) else "roles"

    def _was_as_role(self, mail: Mail, way: str | None, who: str) -> bool:
        if way is not None:
            return self.mode(way) == "role" and way in mail.to
        return self.modes(mail, who) in ([], ["role"]) and any(self.mode(one) == "role" for one in mail.to)

    def _has_lapsed(self, mail: Mail, who: str, since: datetime) -> bool:
        person = self.people.get(who)
        if person is None or person.state == DEAD or who in self.facts.gone:
            return True
        if "role" not in self.modes(mail, who):
            return True
        return self.now - max(since, self.facts.looked.get(who, since)) >= ANSWER

    def unread(self, who: str) -> list[str]:
        """Return the ids of what a check shows this session: control first, then what is urgent, then the rest."""
        found = [mail for mail in self.mail if self._is_unread(mail, who)]
        found.sort(key=lambda mail: 0 if mail.kind == "control" else 1 if mail.line.get("priority") == "high" else 2)
        return [mail.id for mail in found]

    def _is_unread(self, mail: Mail, who: str) -> bool:
        modes = self.modes(mail, who)
        if not modes or mail.sender == who or mail.waits_elsewhere:
            return False
        if self.has_expired(mail) or self.has_read_before(mail, who):
            return False
        if modes != ["role"]:
            return True
        return self.way(mail, who)[0] != "" and self.claimer(mail) in (None, who)

    # what became of it

    def was_read(self, mail: Mail) -> bool:
        """Return whether anyone it was for has read it. A title settles nothing that asks for an ack."""
        return any(not (mail.asks and self.has_seen_title(mail, who)) for who in self.standing(mail))

    def is_dead_letter(self, mail: Mail) -> bool:
        """Return whether it expired, or all it was for died, before anyone read it."""
        if mail.waits_elsewhere or self.was_read(mail):
            return False
        ended = all(self.mode(address) == "direct" and is_over(self.people, address) for address in mail.to)
        return ended or self.has_expired(mail)

    def has_answered(self, mail: Mail, who: str) -> bool:
        """Return whether this session, or one that it continues, acknowledged or replied."""
        own = selves(self.people, who)
        acked = any(acked for one, (_, acked) in self.standing(mail).items() if one in own)
        return acked or any(reply.line.get("thread") == mail.id and reply.sender in own for reply in self.mail)

    def owes(self, who: str) -> list[str]:
        """Return the ids of what this session read and owes an answer for."""
        return [
            mail.id
            for mail in self.mail
            if mail.asks and self.has_read_before(mail, who) and not self.has_answered(mail, who)
        ]

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
        return [mail.id for mail in self.mail if mail.sender in own or self.modes(mail, who)]
