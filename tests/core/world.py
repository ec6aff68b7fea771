"""A small mailbox in memory: three logs that grow by what its agents do, and the core's fold of them.

Steps are plain tuples, so that a random list of them is a random history; a step that makes no sense where it comes
(an ack without anything read) does nothing. Time goes in whole hours, forward and back.
"""

from __future__ import annotations

from hypothesis import strategies as st

from agent_mailbox.core import inbox
from agent_mailbox.core.address import DEFAULT_TTL
from agent_mailbox.core.inbox import InboxState
from agent_mailbox.core.message_reads import Reads
from agent_mailbox.core.records import TYPES, Message, Read, RosterEvent
from agent_mailbox.core.roster import Roster

from .build import T0, at, message
from .plainly import HOUR, HOURS_TO_LIVE, Logs

SESSIONS = ["s-1", "s-2", "s-3", "s-4"]
EVERYBODY = [*SESSIONS, "user", "stranger"]
ROLES = ["role:x", "role:y"]
TAGS = ["project:p", "concern:c"]
BARE = "role:s-4"
"""Mail to a word that nobody had when it was written: for who takes it as name or role."""
ADDRESSES = [*SESSIONS, *SESSIONS, *ROLES, BARE, "role:s-3", "x", *TAGS, "all", "user"]

START = [
    RosterEvent("register", "s-1", T0, tags=("role:x", "project:p")),
    RosterEvent("register", "s-2", T0, tags=("role:x", "role:y")),
    RosterEvent("register", "s-3", T0, tags=("project:p", "concern:c")),
]

someone = st.sampled_from(SESSIONS)
which = st.integers(0, 9)
one_address = st.sampled_from([*ADDRESSES, "all", *TAGS]).map(lambda address: (address,))
addresses = one_address | st.lists(st.sampled_from(ADDRESSES), min_size=1, max_size=3, unique=True).map(tuple)
tags = st.lists(st.sampled_from([*ROLES, *TAGS]), max_size=3, unique=True).map(tuple)
kinds = st.sampled_from([*("message",) * 4, *(one for one in TYPES if one != "note")])  # a note is no mail to be read
priorities = st.sampled_from(["normal", "normal", "low", "high"])
lifetimes = st.none() | st.none() | st.integers(1, 30)

STEPS = {
    "send": (st.sampled_from([*SESSIONS, "user"]), addresses, lifetimes, st.booleans(), kinds, priorities),
    "reply": (which,),
    "check": (st.sampled_from(EVERYBODY), st.integers(1, 5), st.booleans()),
    "check_who_has_mail": (which, st.integers(1, 5), st.booleans()),
    "ack": (which,),
    "release": (which,),
    "register": (someone, tags),
    "retag": (someone, tags),
    "freeze": (someone,),
    "thaw": (someone,),
    "sleep": (someone, st.integers(1, 50), st.booleans()),
    "retire": (someone, st.booleans()),
    "succeed": (someone, someone, tags),
    "pass_time": (st.integers(1, 50),),
    "until_it_expires": (which, st.integers(-1, 1)),
    "turn_back": (st.integers(1, 60),),
}
"""Each step by name, with what it needs."""

steps = st.one_of(*(st.tuples(st.just(name), *needs) for name, needs in STEPS.items()))


class World:
    """The logs, the clock, and ``state``: the core's fold, kept up line by line."""

    def __init__(self) -> None:
        self.hours = 1000
        self.messages: list[Message] = []
        self.reads: list[Read] = []
        self.events: list[RosterEvent] = []
        self._plainly: tuple[tuple[int, int, int], Logs] | None = None
        self.state = InboxState(messages={}, reads=Reads(), roster=Roster(), ttls=DEFAULT_TTL)
        for event in START:
            self._tell(event)

    @property
    def now(self) -> int:
        """The present instant."""
        return at(self.hours)

    def plainly(self) -> Logs:
        """The logs as the page reads them; read again only after something was appended."""
        lengths = (len(self.messages), len(self.reads), len(self.events))
        if self._plainly is None or self._plainly[0] != lengths:
            self._plainly = (lengths, Logs(list(self.messages), list(self.reads), list(self.events)))
        return self._plainly[1]

    def play(self, step: tuple) -> None:
        """Carry out one step."""
        name, *given = step
        getattr(self, name)(*given)

    # -- mail ---------------------------------------------------------------------------------------------------------

    def send(self, sender, to, ttl_hours, ack, kind, priority, thread=None) -> Message:
        """Someone, known or not, sends a message."""
        sent = message(
            f"m{len(self.messages)}",
            to=to,
            sender=sender,
            hours=self.hours,
            ttl_hours=ttl_hours,
            ack=ack,
            type=kind,
            priority=priority,
            thread=thread,
            extra={"bare": ["s-4"]} if BARE in to else None,
            proof=None,  # of nothing here is anything proven: `plainly` knows no seals
        )
        self.messages.append(sent)
        self.state.messages[sent.id] = sent
        return sent

    def reply(self, place) -> None:
        """Who read a message answers it, by its thread alone; the answer sometimes asks for an ack too."""
        for message_id, who in self._one_of_the_reads(place):
            parent = next(m for m in self.messages if m.id == message_id)
            self.send(who, (parent.sender,), None, place % 2 == 0, "message", "normal", parent.id)

    def check(self, who, how_many, by_older_writer) -> list[str]:
        """Someone looks, and reads the first of what is unread; an older writer leaves out through what."""
        if self.state.roster.state(who) == "dead":
            return []
        if who != "user" and self.state.roster.state(who) != "alive":
            known = who in self.state.roster.agents
            self._tell(RosterEvent("thaw" if known else "register", who, self.now, tags=None if known else ()))
        shown = inbox.unread(who, self.state, self.now)[:how_many]
        for item in shown:
            via = None if by_older_writer and self._is_clear(item.message) else item.via
            self._note(item.message.id, who, "read", via)
        return [item.message.id for item in shown]

    def check_who_has_mail(self, place, how_many, by_older_writer) -> tuple[str, list[str]]:
        """One of those who would be shown something looks."""
        waiting = [
            who
            for who in EVERYBODY
            if self.state.roster.state(who) != "dead" and inbox.unread(who, self.state, self.now)
        ]
        who = waiting[place % len(waiting)] if waiting else "stranger"
        return who, self.check(who, how_many, by_older_writer)

    def _is_clear(self, mail: Message) -> bool:
        """Can a line without ``as`` mean one thing only, whatever the roster becomes?"""
        by_role = [address in (*ROLES, BARE, "role:s-3", "x") for address in mail.recipients]
        return all(by_role) or not any(by_role)

    def ack(self, place) -> None:
        """Who read a message acks it."""
        for message_id, who in self._one_of_the_reads(place):
            self._note(message_id, who, "ack")

    def release(self, place) -> None:
        """Who read a message gives it back."""
        for message_id, who in self._one_of_the_reads(place):
            self._note(message_id, who, "release")

    def _one_of_the_reads(self, place: int) -> list[tuple[str, str]]:
        standing = list(self.plainly().standing)
        return [standing[-1 - place % len(standing)]] if standing else []

    def _note(self, message_id: str, who: str, event: str, via: str | None = None) -> None:
        self.reads.append(Read(message_id, who, self.now, event=event, via=via))
        self.state.reads.apply(self.reads[-1])

    # -- roster -------------------------------------------------------------------------------------------------------

    def _tell(self, event: RosterEvent) -> None:
        self.events.append(event)
        self.state.roster.apply(event)

    def register(self, who, carried) -> None:
        """Someone registers: for the first time, again, or from the dead."""
        self._tell(RosterEvent("register", who, self.now, tags=carried))

    def retag(self, who, carried) -> None:
        """Someone's roles and tags change."""
        self._tell(RosterEvent("update", who, self.now, tags=carried))

    def freeze(self, who) -> None:
        """Someone's session ends, or falls silent."""
        self._tell(RosterEvent("freeze", who, self.now))

    def thaw(self, who) -> None:
        """Someone is resumed."""
        self._tell(RosterEvent("thaw", who, self.now))

    def sleep(self, who, hours, is_resumed) -> None:
        """Someone's session ends and time passes; it may be resumed then."""
        self.freeze(who)
        self.pass_time(hours)
        if is_resumed:
            self.thaw(who)

    def retire(self, who, is_given_back) -> None:
        """Someone dies; whoever records it gives back what it owes, unless killed in between."""
        self._tell(RosterEvent("retire", who, self.now))
        if is_given_back and self.state.roster.state(who) == "dead":
            for message_id, holder in self.plainly().given_back(who):
                self._note(message_id, holder, "release")

    def succeed(self, heir, old, carried) -> None:
        """One session continues another, which is dead from then on."""
        if heir != old and old in self.state.roster.agents:
            self._tell(RosterEvent("retire", old, self.now, by=heir))
            self._tell(RosterEvent("register", heir, self.now, tags=carried, continues=old))

    # -- time ---------------------------------------------------------------------------------------------------------

    def pass_time(self, hours) -> None:
        """The clock goes on."""
        self.hours += hours

    def until_it_expires(self, place, margin) -> None:
        """The clock goes on to when a message's time would be up if it never stood still; or just beside that."""
        if self.messages:
            mail = self.messages[-1 - place // 3 % len(self.messages)]
            hours = [mail.ttl_hours or HOURS_TO_LIVE[self.plainly().mode(address)] for address in mail.recipients]
            end = (mail.timestamp - T0) // HOUR + max(one or 0 for one in hours) + margin
            self.hours = max(self.hours, end)

    def turn_back(self, hours) -> None:
        """The clock is set back."""
        self.hours -= hours


def played(history: list[tuple]) -> World:
    """The world after these steps."""
    world = World()
    for step in history:
        world.play(step)
    return world
