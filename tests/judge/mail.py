"""Whom mail reaches, until when, who has it, and who owes an answer."""

from __future__ import annotations

from datetime import datetime, timedelta

from tests.judge.lines import ANSWER, MODES, USER, Facts, Mail, mode_of, read_time
from tests.judge.people import DEAD, Person, fold_roster, is_over, selves


class Judge:
    """Answers about mail, each from all the lines, at one instant."""

    def __init__(self, facts: Facts, now: datetime) -> None:
        """Fold nothing but the roster: every answer looks at all lines again."""
        self.facts, self.now = facts, now
        self.mail = facts.mail()
        self.people = fold_roster(facts)

    # whom it reaches

    def modes(self, mail: Mail, who: str) -> list[str]:
        """Return how a message reaches a session, the most specific way first; empty if it does not."""
        found = {mode_of(address) for address in mail.to if self._is_for(mail, address, who)}
        return [mode for mode in MODES if mode in found]

    def _is_for(self, mail: Mail, address: str, who: str) -> bool:
        mode = mode_of(address)
        if mode == "broadcast":
            return True
        if mode == "direct":
            return address in selves(self.people, who)
        person = self.people.get(who, Person(who))
        if address in person.tags:
            return True
        word = address.removeprefix("role:")
        return mode == "role" and word in mail.line.get("bare", ()) and word in {person.id, person.name}

    # until when

    def has_expired(self, mail: Mail) -> bool:
        """Return whether its time is over at every address."""
        if mail.waits_elsewhere:
            return False
        if mail.line.get("expires_at") is not None:
            return self.now >= read_time(mail.line["expires_at"])
        return all(self._has_expired_at(mail, address) for address in mail.to)

    def _has_expired_at(self, mail: Mail, address: str) -> bool:
        mode = mode_of(address)
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

    def has_read(self, mail: Mail, who: str) -> bool:
        """Return whether this session read it and did not give it back."""
        state = False
        for line in self.facts.reads:
            if line["message_id"] == mail.id and line["reader_session_id"] == who:
                event = line.get("event", "read")
                state = event == "read" or (state and event != "release")
        return state

    def has_read_before(self, mail: Mail, who: str) -> bool:
        """Return whether this session read it, or one that it continues."""
        return any(self.has_read(mail, one) for one in selves(self.people, who))

    def holder(self, mail: Mail) -> str | None:
        """Return to whom role mail belongs: the first that read it as a role, else the last that claims it."""
        holder, firm, since = None, False, self.now
        for line in self.facts.reads:
            if line["message_id"] != mail.id:
                continue
            who, event = line["reader_session_id"], line.get("event", "read")
            if event == "release" and who == holder:
                holder, firm = None, False
            elif event == "claim" and not firm:
                holder, since = who, read_time(line["timestamp"])
            elif event == "read" and not firm and self._was_as_role(mail, line.get("as"), who):
                holder, firm = who, True
        if holder is None or firm:
            return holder
        return None if self._has_lapsed(mail, holder, since) else holder

    def _was_as_role(self, mail: Mail, way: str | None, who: str) -> bool:
        if way is not None:
            return mode_of(way) == "role" and way in mail.to
        return self.modes(mail, who) == ["role"]

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
        found.sort(key=lambda mail: (mail.kind != "control", mail.line.get("priority") != "high"))
        return [mail.id for mail in found]

    def _is_unread(self, mail: Mail, who: str) -> bool:
        modes = self.modes(mail, who)
        if not modes or mail.sender == who or mail.waits_elsewhere:
            return False
        if self.has_expired(mail) or self.has_read_before(mail, who):
            return False
        return modes != ["role"] or self.holder(mail) in (None, who)

    # what became of it

    def was_read(self, mail: Mail) -> bool:
        """Return whether anyone it was for has read it."""
        readers = {line["reader_session_id"] for line in self.facts.reads if line["message_id"] == mail.id}
        return any(self.has_read(mail, who) for who in readers - {mail.sender})

    def is_dead_letter(self, mail: Mail) -> bool:
        """Return whether it expired, or all it was for died, before anyone read it."""
        if mail.waits_elsewhere or self.was_read(mail):
            return False
        ended = all(mode_of(address) == "direct" and is_over(self.people, address) for address in mail.to)
        return ended or self.has_expired(mail)

    def has_answered(self, mail: Mail, who: str) -> bool:
        """Return whether this session, or one that it continues, acknowledged or replied."""
        own = selves(self.people, who)
        acked = any(
            line["message_id"] == mail.id and line["reader_session_id"] in own and line.get("event") == "ack"
            for line in self.facts.reads
        )
        return acked or any(reply.line.get("thread") == mail.id and reply.sender in own for reply in self.mail)

    def owes(self, who: str) -> list[str]:
        """Return the ids of what this session read and owes an answer for."""
        return [
            mail.id
            for mail in self.mail
            if mail.asks and mail.sender != who and self.has_read_before(mail, who) and not self.has_answered(mail, who)
        ]

    def is_finished(self, mail: Mail) -> bool:
        """Return whether the steward may move it: nobody waits for it, and nobody owes an answer."""
        if mail.kind == "note" or mail.waits_elsewhere:
            return False
        living = [who for who, person in self.people.items() if person.state != DEAD]
        if any(mail.id in self.owes(who) for who in living):
            return False
        return all(self._is_part_finished(mail, address) for address in mail.to)

    def _is_part_finished(self, mail: Mail, address: str) -> bool:
        if self.has_expired(mail):
            return True
        mode = mode_of(address)
        if mode == "direct":
            later = [who for who in self.people if address in selves(self.people, who)]
            read = any(self.has_read(mail, who) for who in {address, *later})
            return read or (address != USER and is_over(self.people, address))
        holder = self.holder(mail) if mode == "role" else None
        return holder is not None and self.has_read(mail, holder)
