"""The roster: the fold of its events into agents, and the questions asked of it.

Belongs here: the living agents, the holders of roles, the meaning of names, succession. The states and their changes
are the table below; a pair that is not in it changes nothing.
"""

from __future__ import annotations

from ..errors import NotFound
from . import address, proofs
from .records import USER, Record, RosterEvent
from .text import did_you_mean, near

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

ALIVE, FROZEN, DEAD = "alive", "frozen", "dead"
STATES = (ALIVE, FROZEN, DEAD)
CLIENT_ENDED = "its client's process ended"
"""The reason by which the gone are frozen."""

TRANSITIONS = {
    (None, "register"): ALIVE,
    (None, "update"): ALIVE,
    (ALIVE, "register"): ALIVE,
    (FROZEN, "register"): ALIVE,
    (DEAD, "register"): ALIVE,
    (ALIVE, "update"): ALIVE,
    (FROZEN, "update"): FROZEN,
    (ALIVE, "freeze"): FROZEN,
    (FROZEN, "thaw"): ALIVE,
    (ALIVE, "retire"): DEAD,
    (FROZEN, "retire"): DEAD,
}

MIN_PREFIX = 6
"""Characters of an id that may name it: fewer would match by accident."""
TOO_SHORT = f"write at least {MIN_PREFIX} characters of a session id"


class Agent(Record):
    """One session as the roster knows it.

    Times in milliseconds; ``changed`` is that of its last event. ``frozen`` holds (since, until or None) spans.
    ``heir`` holds the instants from which it continues each of ``continues``. Hooks do not show the mail of the
    ``muted``. ``leads`` holds every lead it had, each with the instant of the change: a command counts by the lead of
    that time. ``again`` is when a known agent last registered: its earlier consent is void. ``returned`` is when it
    last did so as one of the dead: what ended with its session stays ended. ``proven_leads`` are the leads that a
    proven event named: only these may allow it anything.

    ``inherits`` are those of ``continues`` whose place it has: the person said so, or the older session's own client.
    From the others it has only their mail and their prohibitions: not their workers, not their permissions. ``proven``:
    at least one of its events was. ``home`` is the other machine that was the first to register it; None for a
    session of this one.
    """

    session_id: str
    state: str = ALIVE
    name: str | None = None
    tags: tuple[str, ...] = ()
    lead: str | None = None
    continues: tuple[str, ...] = ()
    heir: tuple[int, ...] = ()
    registered: int = 0
    changed: int = 0
    frozen: tuple[tuple[int, int | None], ...] = ()
    reason: str | None = None
    client: str | None = None
    muted: tuple[str, ...] = ()
    leads: tuple[tuple[int, str], ...] = ()
    again: int = 0
    proven_leads: tuple[tuple[int, str], ...] = ()
    inherits: tuple[str, ...] = ()
    proven: bool = False
    home: str | None = None
    returned: int = 0

    @property
    def roles(self) -> tuple[str, ...]:
        """Return the role tags it carries."""
        return tuple(tag for tag in self.tags if tag.startswith("role:"))

    @property
    def may_be_gone(self) -> bool:
        """Return whether it counts as alive, or as frozen since its client's process was gone."""
        return self.state == ALIVE or self.has_ended

    @property
    def has_ended(self) -> bool:
        """Return whether it is frozen since its client's process was gone."""
        return self.state == FROZEN and self.reason == CLIENT_ENDED


def changed(agent: Agent | None, event: RosterEvent) -> Agent | None:
    """Return the agent after the event; the same object (or None) if the table has no such transition."""
    state = TRANSITIONS.get((agent.state if agent else None, event.event))
    if state is None:
        return agent
    again = event.event == "register" and agent is not None
    before = agent or Agent(session_id=event.session_id, registered=event.timestamp)
    if event.event not in ("register", "update"):
        # such an event says no more
        event = RosterEvent(event.event, event.session_id, event.timestamp, reason=event.reason, proof=event.proof)
    continues, heir, inherits = before.continues, before.heir, before.inherits
    old = event.continues
    if old is not None and old not in (USER, *continues, event.session_id):
        continues, heir = (old, *continues), (event.timestamp, *heir)
        inherits = (old, *inherits) if proofs.speaker(event.proof, old) in (USER, old) else inherits
    said = {name: event.__dict__[name] for name in ("name", "tags", "lead", "client", "muted")}
    return before.replace(
        **{name: value for name, value in said.items() if value is not None},
        state=state,
        continues=continues,
        heir=heir,
        changed=event.timestamp,
        frozen=_spans(before, state, event.timestamp),
        reason=event.reason if state != before.state or event.reason else before.reason,
        leads=(*before.leads, (event.timestamp, event.lead)) if event.lead not in (None, before.lead) else before.leads,
        again=event.timestamp if again else before.again,
        proven_leads=_proven_leads(before, event),
        inherits=inherits,
        proven=before.proven or proofs.proves(event.proof),
        home=_home(agent, event),
        returned=event.timestamp if again and before.state == DEAD else before.returned,
    )


def _home(before: Agent | None, event: RosterEvent) -> str | None:
    """Return the other machine on which the agent lives; a registration that this one proves brings it here."""
    if before is None:
        return proofs.machine(event.proof)
    is_here = event.event == "register" and proofs.proves(event.proof) and proofs.machine(event.proof) is None
    return None if is_here else before.home


def _proven_leads(before: Agent, event: RosterEvent) -> tuple[tuple[int, str], ...]:
    known = before.proven_leads
    if event.lead is None or not proofs.proves(event.proof) or (known and known[-1][1] == event.lead):
        return known
    return (*known, (event.timestamp, event.lead))


def narrowed(agent: Agent | None, event: RosterEvent, continued: Agent | None) -> RosterEvent | None:
    """Return the part of another program's line that counts; None for nothing of it.

    It may register, tag, rename and end an agent without a client, or of the machine whose word it is. One with a
    client but no lead may get a lead by it: that binds, and frees nobody. ``continued``: whom it comes to continue.
    """
    machine = proofs.machine(event.proof) or ""
    if agent is None or agent.client is None or agent.home == machine:
        mine = agent is None or agent.lead is None
        is_open = continued is not None and (continued.client is None or continued.home == machine)
        older = event.continues if is_open else None
        return event.replace(client=None, lead=event.lead if mine else None, continues=older)
    if event.event in ("register", "update") and event.lead is not None and agent.lead is None:
        return RosterEvent("update", event.session_id, event.timestamp, lead=event.lead)
    return None


def _spans(before: Agent, state: str, at: int) -> tuple[tuple[int, int | None], ...]:
    if before.state != FROZEN and state == FROZEN:
        return (*before.frozen, (at, None))
    if before.state == FROZEN and state != FROZEN:
        since = before.frozen[-1][0]
        return (*before.frozen[:-1], (since, max(since, at)))
    return before.frozen


def led_word(session_id: str) -> str:
    """Return the word that finds the agents whose lead the session is."""
    return f"led by {session_id}"


class Roster:
    """The agents, by session id, in the order they registered. ``user`` is always there and always lives."""

    agents: dict[str, Agent]
    roles_ever: set[str]

    def __init__(self, events: Iterable[RosterEvent] = ()) -> None:
        self.agents = {}
        self.roles_ever = set()
        self._bearers: dict[str, dict[str, None]] = {}  # of those alone that bear a name now
        self._lineages: dict[str, tuple[str, ...]] = {}
        self._got: dict[str, Agent | None] = {}
        """Answers that were given since the last change."""
        self._line: dict[str, list[Agent]] | None = None
        for event in events:
            self.apply(event)

    def apply(self, event: RosterEvent) -> None:
        """Fold one more event in."""
        if event.session_id == USER:
            return
        before = self._known(event.session_id)
        if event.proof is None or proofs.is_bare_word(event.proof):
            known = narrowed(before, event, self._known(event.continues or ""))
            if known is None or (before is None and self.means_another(event.session_id, event.session_id)):
                return
            is_free = known.name is None or not self.means_another(known.name, event.session_id)
            event = known if is_free else known.replace(name=None)
        agent = changed(before, event)
        if agent is None or agent is before:
            return
        if event.event in ("register", "update"):
            roles = [tag.removeprefix("role:") for tag in event.tags or () if tag.startswith("role:")]
            for word in (event.session_id, event.name, *roles):
                self._free(word, agent)
        self._put(agent)  # behind that: to put two bearers of a name in order takes a look at all agents
        self._lineages.clear()
        self.roles_ever.update(agent.roles)

    def _known(self, session_id: str) -> Agent | None:
        return self.agents.get(session_id)

    def _put(self, agent: Agent) -> None:
        before = self.agents.get(agent.session_id)
        if before is not None and before.name is not None and before.name != agent.name:
            del self._bearers[before.name][agent.session_id]
        self.agents[agent.session_id] = agent
        if agent.name is not None:
            self._bearers.setdefault(agent.name, {})[agent.session_id] = None
        self._line = None
        self._got.clear()

    def means_another(self, word: str, session_id: str) -> bool:
        """Return whether the word is an id, name or role of another agent not dead, or is shown (``address.SHOWN``)."""
        agent = self.meant(word)
        if agent is None or agent.state == DEAD:
            return address.is_shown(word) or self.role_in_use(word)
        return agent.session_id != session_id

    def _free(self, word: str | None, taker: Agent) -> None:
        """Take a name from its dead bearer, if another agent takes it as name, id or role."""
        for bearer in self._named(word) if word else ():
            if bearer.session_id != taker.session_id and bearer.state == DEAD:
                self._put(bearer.replace(name=None))

    def get(self, session_id: str) -> Agent | None:
        """Return the agent of that session id, ``user`` included; None for a stranger."""
        if session_id not in self._got:
            self._got[session_id] = Agent(session_id=USER) if session_id == USER else self._known(session_id)
        return self._got[session_id]

    def has_client(self, session_id: str) -> bool:
        """Return whether a client's process was known to run the session."""
        agent = self.get(session_id)
        return agent is not None and agent.client is not None

    def state(self, session_id: str) -> str | None:
        """Return its state, or None for a stranger."""
        agent = self.get(session_id)
        return agent.state if agent else None

    def reader(self, session_id: str) -> address.Reader:
        """Return the agent as a reader; a stranger reads as an agent without name or tags."""
        agent = self.get(session_id) or Agent(session_id=session_id)
        return address.Reader(session_id, self.lineage(session_id), agent.name, frozenset(agent.tags), agent.muted)

    def lineage(self, session_id: str) -> tuple[str, ...]:
        """Return the session and all those it continues, itself first."""
        known = self._lineages.get(session_id)
        if known is None:
            found = dict.fromkeys([session_id])
            queue = [session_id]
            while queue:
                agent = self._known(queue.pop(0))
                fresh = [old for old in (agent.continues if agent else ()) if old not in found]
                found.update(dict.fromkeys(fresh))
                queue += fresh
            known = self._lineages[session_id] = tuple(found)
        return known

    def estate(self, session_id: str) -> tuple[str, ...]:
        """Return the session and those whose place it has, itself first (``Agent.inherits``)."""
        found = [session_id]
        for one in found:
            agent = self.get(one)
            found += [old for old in (agent.inherits if agent else ()) if old not in found]
        return tuple(found)

    def line(self, session_id: str) -> list[Agent]:
        """Return the agents, dead or not, in whose lineage the session is, itself among them."""
        if self._line is None:
            self._line = {}
            for agent in self.agents.values():
                for old in self.lineage(agent.session_id):
                    self._line.setdefault(old, []).append(agent)
        return self._line.get(session_id, [])

    def heirs(self, session_id: str) -> list[str]:
        """Return the agents not dead in whose lineage the session is (itself, if not dead)."""
        if session_id == USER:
            return [USER]
        return [agent.session_id for agent in self.line(session_id) if agent.state != DEAD]

    def heirs_of(self, word: str) -> list[str]:
        """Return the agents not dead to whom mail to an id or a name goes: its agent, or those that continue it."""
        agent = self.meant(word)
        return self.heirs(agent.session_id if agent else word)

    def named(self, word: str) -> list[Agent]:
        """Return the agents not dead that have the word as name or id, or continue that id (``address.has_name``)."""
        found = {a.session_id: a for a in (*self._named(word), *self.line(word)) if a.state != DEAD}
        return list(found.values())

    def mentioning(self, _word: str, /) -> Iterable[Agent]:
        """Return all agents that a word of theirs (``roster_cache``) finds, and perhaps others, as they registered."""
        return self.agents.values()

    def carriers(self, tag: str) -> list[Agent]:
        """Return the agents, alive or frozen, that carry the tag."""
        return [a for a in self.mentioning(tag) if tag in a.tags and a.state != DEAD]

    def carrying(self, tag: str) -> list[Agent]:
        """Return the living ones of these."""
        return [a for a in self.carriers(tag) if a.state == ALIVE]

    def some_carrying(self, tag: str, most: int) -> list[Agent]:
        """Return at most so many of the living ones; which ones is not defined."""
        return self.carrying(tag)[:most]

    def crowd(self, tag: str) -> int:
        """Return how many agents that are not dead may carry the tag, without a look at each: no fewer than do."""
        return len(self.carriers(tag))

    def led_by(self, session_id: str) -> list[Agent]:
        """Return the agents, dead or not, whose lead the session is."""
        return [a for a in self.mentioning(led_word(session_id)) if a.lead == session_id]

    def bearer(self, name: str) -> Agent | None:
        """Return the agent that a name means: its bearer that is not dead, else the last one."""
        bearers = self._named(name)
        return next((a for a in bearers if a.state != DEAD), max(bearers, key=lambda a: a.changed, default=None))

    def _named(self, name: str) -> list[Agent]:
        """Return the agents that bear the name now, in the order they registered."""
        found = [self.agents[session_id] for session_id in self._bearers.get(name, ())]
        if len(found) > 1:  # by foreign lines alone
            order = list(self.agents)
            found.sort(key=lambda agent: order.index(agent.session_id))
        return found

    def meant(self, word: str) -> Agent | None:
        """Return the agent with that id or name: one not dead before a dead one, an id before a name."""
        agent = self.get(word)
        if agent is not None and agent.state != DEAD:
            return agent
        bearer = self.bearer(word)
        return bearer if agent is None or (bearer is not None and bearer.state != DEAD) else agent

    def mode(self, stored: str) -> str:
        """Return the mode of a stored address: a bare word is a role's, unless it is an agent's id or name. A role ever
        held goes before a dead bearer."""
        if stored == address.ALL:
            return address.BROADCAST
        if stored.startswith("role:"):
            return address.ROLE
        if ":" in stored:
            return address.TAG
        agent = self.meant(stored)
        is_agent = agent is not None and (agent.state != DEAD or f"role:{stored}" not in self.roles_ever)
        return address.DIRECT if is_agent else address.ROLE

    def role_in_use(self, word: str) -> bool:
        """Return whether the word is a role that an agent not dead holds."""
        return f"role:{word}" in self.roles_ever and bool(self.carriers(f"role:{word}"))

    def find(self, word: str) -> Agent:
        """Return the agent of a word: id, else name, else unique id prefix of ``MIN_PREFIX`` or more; ``team:t/n``.

        Raise ``NotFound``, or ``Ambiguous`` with the candidates."""
        word = (":" in word and address.teammate(word)) or word
        agent = self.meant(word)
        if agent is not None and not (len(word) == address.ID_SHOWN and self.is_shown_of_another(word, agent)):
            return agent
        if len(word) >= MIN_PREFIX:
            matches = [a for a in self.agents.values() if a.session_id.startswith(word) or a is agent]
            matches = [a for a in matches if a.state != DEAD] or matches
            if (found := address.only_match(word, [a.session_id for a in matches], "agents")) is not None:
                return self.agents[found]
        meant = TOO_SHORT if self.begins_too_shortly(word) else did_you_mean(self.near(word))
        raise NotFound(f"no agent {word!r}", meant or "run `agent-mailbox roster list` for the known agents")

    def is_shown_of_another(self, word: str, agent: Agent | None = None) -> bool:
        """Return whether the word is what is shown of another living agent's id. Any program may take that word."""
        others = (a.session_id for a in self.agents.values() if a is not agent and a.state != DEAD)
        return len(word) == address.ID_SHOWN and any(address.shorten_id(one) == word != one for one in others)

    def begins_too_shortly(self, word: str) -> bool:
        """Return whether the word is the beginning of an agent's id, but too short to name it."""
        return 0 < len(word) < MIN_PREFIX and any(a.session_id.startswith(word) for a in self.agents.values())

    def near(self, word: str) -> list[str]:
        """Return known agents and roles that look like a misspelt word, likeliest first."""
        living = [a for a in self.agents.values() if a.state != DEAD]
        roles = [role.removeprefix("role:") for role in sorted(self.roles_ever)]
        return near(word, [*(a.name for a in living if a.name), *roles, *(a.session_id for a in living)])
