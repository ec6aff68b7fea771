"""Membership: the agents of each swarm, as the fold of the ledger's events.

Belongs here: this gateway's knowledge of swarms (``Memberships``) and how one event changes it. ``admission`` and
``lifecycle`` decide which event follows from a request. An event of an unknown kind, or about a swarm it does not fit,
changes nothing: the tables below have the kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ...core import instant
from ...core.records import Record
from . import wire

ASKED = 4 * wire.FRESH
"""Milliseconds a signed request to join is remembered: longer than its timestamp counts as fresh."""
MAX_MEMBERS = 1000
"""Most members of a swarm, those who wait included. A master names as many as it likes, and all records and requests
grow with them."""
ACTIVE, JOINING = "active", "joining"
LEFT, KICKED, DISSOLVED, DENIED = "left", "kicked", "dissolved", "denied"
Event = Mapping[str, Any]


class Member(Record):
    """An agent in a swarm; its key in base64, pinned while it is a member. Without a key its mail is refused."""

    agent_id: str
    endpoint: str
    public_key: str
    joined_at: str

    @property
    def object(self) -> dict[str, Any]:
        """Return it as the wire and the state file spell it."""
        return {name: getattr(self, name) for name in self._fields}


class Use(Record):
    """The uses of an invite token: the agents it let in, or would once approved, each with its key.

    A bare id is no use: once that agent has left, another bearer of the token could take its id.
    """

    by: tuple[tuple[str, str], ...] = ()
    revoked: bool = False


class Swarm(Record):
    """A swarm as this gateway knows it.

    ``alias`` is its word in our addresses. ``waiting``: agents that need approval, with the token's fingerprint;
    ``denied``: agents that were refused. ``departed``: agent to the instant it last left; nothing older brings it back.
    ``handed``: master to the instant (by its own clock) it last handed the swarm over. ``asked``: signed requests to
    join that were answered lately, and when. ``invitation``: the URL by which we joined, or ask to. ``mailbox``: the
    one of this gateway's mailboxes that it belongs to; empty: the first.
    """

    swarm_id: str
    name: str
    alias: str
    master: str
    state: str = ACTIVE
    members: Mapping[str, Member] = {}
    settings: Mapping[str, bool] = {}
    joined_at: str = ""
    waiting: Mapping[str, tuple[Member, str]] = {}
    uses: Mapping[str, Use] = {}
    denied: tuple[str, ...] = ()
    asked: Mapping[str, str] = {}
    departed: Mapping[str, str] = {}
    handed: Mapping[str, str] = {}
    invitation: str = ""
    confirmed_at: str = ""
    mailbox: str = ""


class Memberships(Record):
    """Everything the ledger says: our identity, our swarms by id, the mutes. ``sealing``: keys that sealed a message
    once, and must since.

    ``here``: the mailbox that looks; it sees its own swarms alone. Empty: the gateway itself, which sees all.
    ``first``: the gateway's first mailbox.
    """

    agent_id: str = ""
    endpoint: str = ""
    swarms: Mapping[str, Swarm] = {}
    muted_swarms: tuple[str, ...] = ()
    muted_agents: tuple[str, ...] = ()
    sealing: frozenset[str] = frozenset()
    here: str = ""
    first: str = ""

    def is_visible(self, swarm: Swarm) -> bool:
        """Return whether the swarm belongs to the mailbox that looks."""
        return not self.here or (swarm.mailbox or self.first) == self.here

    @property
    def seen(self) -> list[Swarm]:
        """Return the swarms of the mailbox that looks."""
        return [swarm for swarm in self.swarms.values() if self.is_visible(swarm)]

    def place_of(self, swarm_id: str) -> str:
        """Return the mailbox to which a swarm belongs; the first one for an unknown swarm."""
        swarm = self.swarms.get(swarm_id)
        return swarm.mailbox or self.first if swarm is not None else self.first

    def active_swarm(self, swarm_id: str) -> Swarm | None:
        """Return the swarm of that id, if we are in it."""
        swarm = self.swarms.get(swarm_id)
        return swarm if swarm is not None and swarm.state == ACTIVE and self.is_visible(swarm) else None

    def swarm_by_word(self, word: str) -> Swarm | None:
        """Return the swarm a person means: by alias, else id, else name; an active one first.

        The master chooses the name, so it never hides an alias or an id.
        """
        for name in ("alias", "swarm_id", "name"):
            found = [s for s in self.seen if getattr(s, name) == word]
            if found:
                return next((s for s in found if s.state == ACTIVE), found[-1])
        return None

    def swarm_by_alias(self, alias: str) -> Swarm | None:
        """Return the swarm of an address: only its alias counts, which is ours to give."""
        return next((s for s in self.seen if s.alias == alias), None)


NOTHING = Memberships()


def member_from(value: Mapping[str, Any], at: str) -> Member:
    """Return a member from its object; ``at``: since when, if it does not say."""
    return Member(value["agent_id"], value["endpoint"], value.get("public_key") or "", value.get("joined_at") or at)


def bearer_of(public_key: str, swarm: Swarm, less: str) -> str:
    """Return the agent, other than ``less``, that is in the swarm, or waits, with this key; empty without one.

    The six signed fields name no sender: with one key under two ids, unsealed mail of one passes for the other's.
    """
    asked = [one for one, _ in swarm.waiting.values()]
    both = (one.agent_id for one in (*swarm.members.values(), *asked) if one.public_key == public_key)
    return next((agent for agent in both if agent != less), "") if public_key else ""


def fold_events(events: Iterable[Event], start: Memberships = NOTHING) -> Memberships:
    known = start
    for event in events:
        kind = event.get("event", "")
        if kind in _CHANGES:
            known = _CHANGES[kind](known, event)
        elif kind in _SWARM_CHANGES and (swarm := known.swarms.get(event["swarm_id"])) is not None:
            known = _put_swarm(known, _SWARM_CHANGES[kind](swarm, event))
    return known


def _put_swarm(known: Memberships, swarm: Swarm) -> Memberships:
    return known.replace(swarms={**known.swarms, swarm.swarm_id: swarm})


def _fold_created(known: Memberships, event: Event) -> Memberships:
    at = event["at"]
    fresh = Swarm(
        swarm_id=event["swarm_id"],
        name=event["name"],
        alias=event["alias"],
        master=event["member"]["agent_id"],
        members={event["member"]["agent_id"]: member_from(event["member"], at)},
        settings=dict(event["settings"]),
        joined_at=at,
        confirmed_at=at,
    )
    return _put_swarm(known, fresh)


def _fold_joining(known: Memberships, event: Event) -> Memberships:
    swarm_id = event["swarm_id"]
    before = known.swarms.get(swarm_id)
    if before is not None and before.state == ACTIVE:
        return _put_swarm(known, before.replace(invitation=event["invitation"]))
    blank = before or Swarm(
        swarm_id=swarm_id, name=swarm_id, alias=event["alias"], master=event["master"], joined_at=event["at"]
    )
    return _put_swarm(known, blank.replace(state=JOINING, master=event["master"], invitation=event["invitation"]))


def _fold_entered(swarm: Swarm, event: Event) -> Swarm:
    """Take the membership of a reply that accepted, or confirmed, our joining; known keys stay."""
    at = event["at"]
    before = swarm.members if swarm.state == ACTIVE else {}
    members = {}
    for value in event["members"]:
        new, old = member_from(value, at), before.get(value["agent_id"])
        if old is not None:
            joined_at = max(old.joined_at, new.joined_at)
            new = new.replace(public_key=old.public_key or new.public_key, joined_at=joined_at)
        members[new.agent_id] = new
    return swarm.replace(
        state=ACTIVE,
        name=event.get("name") or swarm.name,
        alias=event.get("alias") or swarm.alias,
        master=event["master"],
        members=members,
        settings={**swarm.settings, **(event.get("settings") or {})},
        joined_at=swarm.joined_at if before else at,
        confirmed_at=at,
    )


def _fold_asked(swarm: Swarm, event: Event) -> Swarm:
    """Remember a signed request that was answered: it is good for nothing else."""
    if event.get("request") is None:
        return swarm
    oldest = instant.text(instant.parse(event["at"]) - ASKED)
    lately = {request: at for request, at in swarm.asked.items() if at >= oldest}
    return swarm.replace(asked={**lately, event["request"]: event["at"]})


def _fold_requested(swarm: Swarm, event: Event) -> Swarm:
    asked = member_from(event["member"], event["at"])
    return _fold_asked(swarm, event).replace(
        waiting={**swarm.waiting, asked.agent_id: (asked, event["token"])},
        uses=_count_use(swarm, event["token"], asked),
        denied=tuple(agent for agent in swarm.denied if agent != asked.agent_id),
    )


def _count_use(swarm: Swarm, token: str | None, who: Member) -> Mapping[str, Use]:
    if token is None:
        return swarm.uses
    use, one = swarm.uses.get(token, Use()), (who.agent_id, who.public_key)
    return {**swarm.uses, token: use if one in use.by else use.replace(by=(*use.by, one))}


def _drop_agent(known: Mapping[str, Any], agent_id: str) -> dict[str, Any]:
    return {agent: value for agent, value in known.items() if agent != agent_id}


def _fold_joined(swarm: Swarm, event: Event) -> Swarm:
    new = member_from(event["member"], event["at"])
    return _fold_asked(swarm, event).replace(
        members={**swarm.members, new.agent_id: new},
        waiting=_drop_agent(swarm.waiting, new.agent_id),
        uses=_count_use(swarm, event.get("token"), new),
        denied=tuple(agent for agent in swarm.denied if agent != new.agent_id),
        departed=_drop_agent(swarm.departed, new.agent_id),
    )


def _fold_gone(swarm: Swarm, event: Event) -> Swarm:
    """Remove a member. A kicked one needs a new token: those it used let it in no more."""
    agent_id = event["agent_id"]
    return swarm.replace(
        members=_drop_agent(swarm.members, agent_id),
        departed={**swarm.departed, agent_id: event["at"]},
        denied=(*swarm.denied, agent_id) if event["event"] == "kicked" else swarm.denied,
    )


def _fold_denied(swarm: Swarm, event: Event) -> Swarm:
    agent_id = event["agent_id"]
    return swarm.replace(waiting=_drop_agent(swarm.waiting, agent_id), denied=(*swarm.denied, agent_id))


def _fold_key(swarm: Swarm, event: Event) -> Swarm:
    """Add a missing key; never replace one."""
    known = swarm.members.get(event["agent_id"])
    if known is None or known.public_key or bearer_of(event["public_key"], swarm, event["agent_id"]):
        return swarm
    return swarm.replace(members={**swarm.members, known.agent_id: known.replace(public_key=event["public_key"])})


def _fold_revoked(swarm: Swarm, event: Event) -> Swarm:
    use = swarm.uses.get(event["token"], Use())
    return swarm.replace(uses={**swarm.uses, event["token"]: use.replace(revoked=True)})


def _fold_mastered(swarm: Swarm, event: Event) -> Swarm:
    return swarm.replace(master=event["master"], handed={**swarm.handed, swarm.master: event["at"]})


def _fold_muting(known: Memberships, event: Event) -> Memberships:
    field = "muted_swarms" if event["what"] == "swarm" else "muted_agents"
    others = tuple(word for word in getattr(known, field) if word != event["id"])
    return known.replace(**{field: (*others, event["id"]) if event["event"] == "muted" else others})


def _fold_imported(known: Memberships, event: Event) -> Memberships:
    """Take a state file's swarms and mutes; keep what only we know (uses of tokens, waiting agents)."""
    merged = event["how"] == "merge"
    swarms = dict(known.swarms) if merged else {}
    for value in event["swarms"]:
        before = known.swarms.get(value["swarm_id"])
        if merged and before is not None and before.state == ACTIVE:
            swarms[before.swarm_id] = _complete_swarm(before, value)
        else:
            swarms[value["swarm_id"]] = _swarm_from_file(known, before, value)
    return known.replace(
        swarms=swarms,
        muted_swarms=tuple(dict.fromkeys((*(known.muted_swarms if merged else ()), *event["muted_swarms"]))),
        muted_agents=tuple(dict.fromkeys((*(known.muted_agents if merged else ()), *event["muted_agents"]))),
    )


def _complete_swarm(swarm: Swarm, value: Mapping[str, Any]) -> Swarm:
    """Add the members that only the file has. It may be old: known members, departures and the master stay."""
    listed = [member_from(one, value["joined_at"]) for one in value["members"]]
    new = {one.agent_id: one for one in listed if one.joined_at > swarm.departed.get(one.agent_id, "")}
    return swarm.replace(members=each_by_its_key({**swarm.members, **new, **swarm.members}))


def each_by_its_key(members: Mapping[str, Member]) -> dict[str, Member]:
    """Return the members, without those whose key an earlier one has (``bearer_of`` says why)."""
    first: dict[str, str] = {}
    for agent, one in members.items():
        first.setdefault(one.public_key or agent, agent)
    return {agent: one for agent, one in members.items() if first[one.public_key or agent] == agent}


def _swarm_from_file(known: Memberships, before: Swarm | None, value: Mapping[str, Any]) -> Swarm:
    """Return a swarm as the file has it."""
    made = {**value, "member": value["members"][0], "at": value["joined_at"]}
    swarm = before or _fold_created(known, made).swarms[value["swarm_id"]]
    return swarm.replace(
        name=value["name"],
        master=value["master"],
        state=ACTIVE,
        members=each_by_its_key({one["agent_id"]: member_from(one, value["joined_at"]) for one in value["members"]}),
        settings=dict(value["settings"]),
        joined_at=value["joined_at"],
        confirmed_at=swarm.confirmed_at or value["joined_at"],
    )


_CHANGES: Mapping[str, Callable[[Memberships, Event], Memberships]] = {
    "identity": lambda known, event: known.replace(agent_id=event["agent_id"], endpoint=event["endpoint"]),
    "created": _fold_created,
    "joining": _fold_joining,
    "sealed": lambda known, event: known.replace(sealing=known.sealing | {event["public_key"]}),
    "muted": _fold_muting,
    "unmuted": _fold_muting,
    "imported": _fold_imported,
}
_SWARM_CHANGES: Mapping[str, Callable[[Swarm, Event], Swarm]] = {
    "entered": _fold_entered,
    "asked": _fold_asked,
    "requested": _fold_requested,
    "joined": _fold_joined,
    "left": _fold_gone,
    "kicked": _fold_gone,
    "denied": _fold_denied,
    "key": _fold_key,
    "revoked": _fold_revoked,
    "ended": lambda swarm, event: swarm.replace(state=event["how"], members={}, waiting={}),
    "mastered": _fold_mastered,
    "placed": lambda swarm, event: swarm.replace(mailbox=event["mailbox"]),
}
"""Kinds that change a swarm that is known; about another they change nothing."""
