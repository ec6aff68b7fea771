"""Who lives, under which name and tags, and whom each continues: the fold of the roster."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tests.judge.lines import USER, Facts, Line, read_time

ALIVE, FROZEN, DEAD = "alive", "frozen", "dead"


@dataclass
class Person:
    """One session, or the user."""

    id: str
    state: str = ALIVE
    name: str | None = None
    tags: set[str] = field(default_factory=set)
    before: list[str] = field(default_factory=list)
    """Whom it continues."""
    leads: list[tuple[datetime, str]] = field(default_factory=list)
    rests: list[tuple[datetime, datetime | None]] = field(default_factory=list)
    """From when until when it was frozen."""

    def lead_at(self, when: datetime) -> str:
        """Return whom it obeyed at that time: by default the person."""
        return next((lead for since, lead in reversed(self.leads) if since <= when), USER)

    def rested(self, since: datetime, until: datetime) -> timedelta:
        """Return how long it was frozen between two instants."""
        total = timedelta()
        for start, end in self.rests:
            total += max(timedelta(), min(end or until, until) - max(start, since))
        return total


def fold_roster(facts: Facts) -> dict[str, Person]:
    """Return everyone who ever registered."""
    people = {USER: Person(USER)}
    for line in facts.roster:
        if line["session_id"] != USER:
            _apply(people, line)
            _free(people, line)
    return people


def _apply(people: dict[str, Person], line: Line) -> None:
    who, event, at = line["session_id"], line["event"], read_time(line["timestamp"])
    person = people.get(who)
    if event == "register":
        person = people.setdefault(who, Person(who))
        _wake(person, at)
        _change(person, line, at)
    elif person is None or person.state == DEAD:
        return
    elif event == "update":
        _change(person, line, at)
    elif event == "freeze" and person.state == ALIVE:
        person.state = FROZEN
        person.rests.append((at, None))
    elif event == "thaw":
        _wake(person, at)
    elif event == "retire":
        _wake(person, at)
        person.state = DEAD


def _free(people: dict[str, Person], line: Line) -> None:
    """Take a name from the dead, if another takes that word as its name, its id or its role."""
    who = line["session_id"]
    words = {who, line.get("name"), *(tag.removeprefix("role:") for tag in line.get("tags") or () if "role:" in tag)}
    for other in people.values():
        if other.id != who and other.state == DEAD and other.name in words:
            other.name = None


def _wake(person: Person, at: datetime) -> None:
    if person.state == FROZEN:
        person.rests[-1] = (person.rests[-1][0], at)
    person.state = ALIVE


def _change(person: Person, line: Line, at: datetime) -> None:
    if line.get("name") is not None:
        person.name = line["name"]
    if line.get("tags") is not None:
        person.tags = set(line["tags"])
    person.before += [line["continues"]] if line.get("continues") not in (None, USER) else []
    if line.get("lead") is not None:
        person.leads.append((at, line["lead"]))


def selves(people: dict[str, Person], who: str) -> set[str]:
    """Return a session and all that it continues, the oldest too."""
    found, ahead = set[str](), [who]
    while ahead:
        here = ahead.pop()
        if here not in found:
            found.add(here)
            ahead += people[here].before if here in people else []
    return found


def is_over(people: dict[str, Person], who: str) -> bool:
    """Return whether nobody can read this session's mail any more: it is dead, and no living one continues it."""
    if who not in people or people[who].state != DEAD:
        return False
    return not any(p.state != DEAD and who in selves(people, p.id) for p in people.values())
