"""Who lives, under which name and tags, whom each obeys and continues: the fold of the roster."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from tests.judge.lines import USER, Facts, Line, read_time

if TYPE_CHECKING:
    from collections.abc import Iterator

ALIVE, FROZEN, DEAD = "alive", "frozen", "dead"
STATES = {"register": ALIVE, "thaw": ALIVE, "freeze": FROZEN, "retire": DEAD}
"""What a session is after each event. The dead come back by registering alone."""
NEVER, FOREVER = (one.replace(tzinfo=UTC) for one in (datetime.min, datetime.max))


@dataclass
class Person:
    """One session, or the user."""

    id: str
    state: str = ALIVE
    name: str | None = None
    tags: set[str] = field(default_factory=set)
    before: dict[str, datetime] = field(default_factory=dict)
    """Whom it continues, and since when."""
    places: list[str] = field(default_factory=list)
    """Those of them whose place it has: the person said so, or that session's own client."""
    lead: str | None = None
    bound: str | None = None
    """Whom it obeys, if not the person; and who may forbid it things, too: whom an unproven line names."""
    has_client: bool = False
    ended: bool = False
    """Frozen, since its client ended."""
    back: datetime = NEVER
    """When it last came back from the dead."""
    rests: list[list[datetime]] = field(default_factory=list)
    """From when until when it was frozen."""


def fold_roster(facts: Facts, until: datetime | None = None) -> dict[str, Person]:
    """Return everyone who ever registered. A line is proven to be its session's own, unless ``by`` says whose."""
    people = {USER: Person(USER)}
    for line in facts.roster:
        if line["session_id"] != USER and (until is None or read_time(line["timestamp"]) <= until):
            counts = line if line.get("by", USER) else _narrow(people.get(line["session_id"]), line)
            _apply(people, counts)
            _free(people, counts)
    return people


def _narrow(person: Person | None, line: Line) -> Line:
    """Return what counts of a line that nobody is proven to have written."""
    has_lead = person is not None and (person.lead or person.bound) is not None
    kept = {key: value for key, value in line.items() if key != "client" and not (key == "lead" and has_lead)}
    if person is None or not person.has_client:
        return kept
    lead = kept.get("lead") if line["event"] in {"register", "update"} else None
    return {"event": "update", "session_id": person.id, "timestamp": line["timestamp"], "lead": lead, "by": None}


def _apply(people: dict[str, Person], line: Line) -> None:
    who, event, at = line["session_id"], line["event"], read_time(line["timestamp"])
    if event == "register":
        people.setdefault(who, Person(who))
    person = people.get(who)
    if person is None or (person.state == DEAD and event != "register"):
        return
    old, person.state = person.state, STATES.get(event, person.state)
    if old != person.state:
        if old == FROZEN:
            person.rests[-1][1] = at
        if person.state == FROZEN:
            person.rests.append([at, FOREVER])
        person.ended = person.state == FROZEN and line.get("reason") == "its client's process ended"
        person.back = at if old == DEAD else person.back
    if event in {"register", "update"}:
        _change(person, line)


def _free(people: dict[str, Person], line: Line) -> None:
    """Take a name from the dead, if another takes that word as its name, its id or its role."""
    who = line["session_id"]
    words = {who, line.get("name"), *(tag.removeprefix("role:") for tag in line.get("tags") or () if "role:" in tag)}
    for other in people.values():
        if other.id != who and other.state == DEAD and other.name in words:
            other.name = None


def _change(person: Person, line: Line) -> None:
    person.name = line.get("name") or person.name
    person.tags = set(line["tags"]) if line.get("tags") is not None else person.tags
    person.has_client |= line.get("client") is not None
    by, lead, old = line.get("by", person.id), line.get("lead"), line.get("continues")
    person.bound = lead or person.bound
    person.lead = lead if lead and by else person.lead
    if old not in (None, USER, person.id, *person.before):
        person.before[old] = read_time(line["timestamp"])
        person.places += [old] if by in (USER, old) else []


def selves(people: dict[str, Person], who: str, *, by_place: bool = False) -> set[str]:
    """Return a session and all that it continues, the oldest too; ``by_place``: those whose place it has."""
    found = [who]
    for one in found:  # it grows meanwhile
        person = people.get(one, Person(one))
        found += [old for old in (person.places if by_place else person.before) if old not in found]
    return set(found)


def rested(people: dict[str, Person], who: str, since: datetime, until: datetime) -> timedelta:
    """Return how long a session, or one that continues it since then, was frozen between two instants."""
    total = timedelta()
    for start, end in sorted(_rests(people, who, since, {who})):
        total, since = total + max(timedelta(), min(end, until) - max(start, since)), max(since, min(end, until))
    return total


def _rests(people: dict[str, Person], who: str, since: datetime, seen: set[str]) -> Iterator[tuple[datetime, datetime]]:
    yield from ((max(start, since), end) for start, end in people[who].rests if end > since)
    for later in people.values():
        if who in later.before and later.id not in seen:
            yield from _rests(people, later.id, max(since, later.before[who]), seen | {later.id})


def is_over(people: dict[str, Person], who: str) -> bool:
    """Return whether nobody can read this session's mail any more: it is dead, and no living one continues it."""
    if who not in people or people[who].state != DEAD:
        return False
    return not any(p.state != DEAD and who in selves(people, p.id) for p in people.values())
