"""Decisions about the roster: the results of requests to register, update, freeze or retire.

Belongs here: the rules for ids, names, roles and leads, succession, the sweep. A decision is a value (events to append,
warnings to show) or an error; the facade carries it out under the roster's lock.
"""

from __future__ import annotations

from ..errors import Malformed, Refused
from .address import check_id, check_name, check_role, check_tag, is_remote
from .frame import shown_words
from .instant import DAY, HOUR
from .records import USER, Record, RosterEvent
from .roster import ALIVE, DEAD, FROZEN, TRANSITIONS, Agent, Roster
from .text import did_you_mean, typed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

NAMED = 3
"""Other holders of a role that a warning names: agents read it, and pay for each word."""


class Registration(Record):
    """A request for a session's entry in the roster. None leaves a field as it is.

    ``lead_by_person``: the person named the lead, though the session's own client asks. ``is_unused``: without a name,
    it gets one of the list (``core.given_names``), which this is asked about. ``is_left``: whether a tag is of a swarm
    that this mailbox is not in.
    """

    session_id: str
    event: str = "register"
    name: str | None = None
    roles: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    add_tags: tuple[str, ...] = ()
    remove_tags: tuple[str, ...] = ()
    lead: str | None = None
    continues: str | None = None
    client: str | None = None
    mute: tuple[str, ...] = ()
    unmute: tuple[str, ...] = ()
    lead_by_person: bool = False
    is_unused: Callable[[str], bool] | None = None
    is_left: Callable[[str], bool] | None = None


class Decision(Record):
    """Events to append in this order (none: no change), and warnings for the caller."""

    events: tuple[RosterEvent, ...] = ()
    warnings: tuple[str, ...] = ()


def enrolled(request: Registration, roster: Roster, actor: str, now: int, namespaces: Collection[str]) -> Decision:
    """Register or update a session; ``actor`` is the caller (a session id or ``user``).

    Raise ``Malformed`` for ids, names and tags that can never be, ``Refused`` for those that cannot be now.
    """
    me = check_id(request.session_id)
    if me == USER:
        raise Malformed("'user' is the person, not a session", "name the session: --session-id ID")
    present = roster.get(me)
    _refuse_apart(present, actor)
    if present is None or present.state == DEAD:
        if present is not None and request.event == "update":
            raise Refused(f"{me} is dead", f"run `agent-mailbox roster register --session-id {typed(me)}` to revive it")
        check_name(me, "session id")
        _refuse_role_word(me, "session id", roster)
        _refuse_taken(me, me, "session id", roster)
    if request.is_unused and request.name is None and (present is None or present.name is None):
        from .given_names import free_name  # once in a session's life

        request = request.replace(name=free_name(me, roster, request.is_unused))
    alike = () if present is not None else tuple(_look_alikes("session id", me, me, roster))
    olds, ends = _succession(request, roster, actor, now)
    before = [tag for old in (me, *olds) for tag in _left_by(old, request, roster)]
    tags = _tags(request, before, tuple(namespaces))
    name = request.name if request.name is not None else present.name if present else None
    for tag in tags:
        _refuse_agent_word(tag, (me, name), me, roster)
    if actor != USER:
        _refuse_own_lead(me, request.lead, [old for old in olds if old != request.continues], roster)
    lead = _lead(request, present, roster, USER if request.lead_by_person else actor)
    _refuse_circle(me, lead, roster)
    muted = _muted(request, present or (roster.get(olds[0]) if olds else None))
    event = RosterEvent(
        event=request.event,
        session_id=me,
        timestamp=now,
        name=request.name if present is None or request.name != present.name else None,
        tags=tags if present is None or set(tags) != set(present.tags) else None,
        lead=lead,
        continues=olds[0] if olds else None,
        by=actor if actor != me else None,
        client=request.client if present is None or request.client != present.client else None,
        muted=muted if muted != (present.muted if present else ()) else None,
    )
    more = [RosterEvent(event="update", session_id=me, timestamp=now, continues=old) for old in olds[1:]]
    revives = request.event == "register" and (present is None or present.state != ALIVE)
    says = (event.name, event.tags, event.lead, event.continues, event.client, event.muted)
    changes = present is None or revives or bool(ends) or any(said is not None for said in says)
    return Decision(
        events=(*ends, event, *more) if changes else (),
        warnings=(*alike, *_shared_roles(tags, me, roster), *_unknown_lead(event.lead, roster)),
    )


def _muted(request: Registration, before: Agent | None) -> tuple[str, ...]:
    muted = before.muted if before else ()
    if USER in request.mute or request.session_id in request.mute:
        raise Refused("the person and oneself cannot be muted", "name another agent")
    return tuple(word for word in dict.fromkeys((*muted, *request.mute)) if word not in request.unmute)


def _refuse_role_word(word: str, what: str, roster: Roster) -> None:
    if roster.role_in_use(word):
        raise Refused(f"the {what} {word!r} is a role in use", "choose another", code="name_taken")


def _refuse_taken(word: str, me: str, what: str, roster: Roster) -> None:
    for agent in (roster.get(word), roster.bearer(word)):
        if agent is not None and agent.session_id != me and agent.state != DEAD:
            raise Refused(
                f"{what} {word!r} is taken by {agent.session_id} ({agent.state})",
                f"choose another, or run `agent-mailbox roster retire {typed(agent.session_id)}`"
                f"{f' on {agent.home}' if agent.home else ''} if that agent is gone",
                code="name_taken",
            )


def _look_alikes(what: str, word: str, me: str, roster: Roster) -> Iterator[str]:
    """Yield how readers would take a name or an id for another agent: it differs in case alone, or is that one's
    short id."""
    spelt = word.casefold()
    for agent in roster.mentioning(spelt):
        shown = next((one for one in shown_words(agent) if one.casefold() == spelt), None)
        if shown is not None and agent.session_id != me and agent.state != DEAD and agent.name != word:
            yield f"the {what} {word!r} looks like that of {agent.session_id}, shown as {shown}"


def _refuse_agent_word(tag: str, own: tuple[str | None, ...], me: str, roster: Roster) -> None:
    word = tag.removeprefix("role:")
    if word == tag:
        return
    others = (a for a in (roster.get(word), roster.bearer(word)) if a is not None and a.session_id != me)
    if word in own or any(a.state != DEAD for a in others):
        raise Refused(f"the role {word!r} is an agent's id or name", "choose another", code="name_taken")


def _succession(request: Registration, roster: Roster, actor: str, now: int) -> tuple[list[str], list[RosterEvent]]:
    """Return the agents that the session comes to continue, and the ends of those that are not dead yet.

    One of another machine it continues by the person's word alone: the other machines would ignore any other."""
    me = request.session_id
    olds = [] if request.continues in (None, USER) else [request.continues]
    if request.name is not None:
        check_name(request.name)
        _refuse_role_word(request.name, "name", roster)
        bearer = roster.bearer(request.name)
        is_held = bearer is not None and bearer.state == ALIVE and bearer.session_id not in olds
        if bearer is None or bearer.session_id == me or is_held or _is_apart(bearer, actor):
            _refuse_taken(request.name, me, "name", roster)
        else:
            _refuse_taken(request.name, bearer.session_id, "name", roster)
            olds.append(bearer.session_id)
        for what in _look_alikes("name", request.name, me, roster):
            raise Refused(what, "choose another", code="name_taken")
    for old in olds:
        if old != me:
            _refuse_apart(roster.get(old), actor)
    ends = [
        RosterEvent(event="retire", session_id=old, timestamp=now, by=me, reason=f"continued by {me}")
        for old in dict.fromkeys(olds)
        if old != me and roster.state(old) in (ALIVE, FROZEN)
    ]
    # No agent continues its own predecessor again, or one that a living agent continues.
    fresh = [old for old in dict.fromkeys(olds) if old not in roster.lineage(me) and set(roster.heirs(old)) <= {old}]
    return fresh, ends


def _is_apart(agent: Agent | None, actor: str) -> bool:
    """Return whether the agent lives on another machine, and the actor is neither that agent nor the person.

    No machine but this one would believe what such an actor says of it."""
    return agent is not None and agent.home is not None and actor not in (USER, agent.session_id)


def _refuse_apart(agent: Agent | None, actor: str) -> None:
    if agent is not None and _is_apart(agent, actor):
        what = f"{agent.session_id} lives on {agent.home}, and {actor} does not: no other machine would believe it"
        raise Refused(what, "only that session or the person may do this")


def _refuse_own_lead(me: str, lead: str | None, olds: Iterable[str], roster: Roster) -> None:
    """Refuse a name whose taker would come to lead itself.

    A successor leads its predecessor's workers. A led agent that takes the name of its gone lead would command its
    equals, and decide its own requests.
    """
    above, next_ones = {me}, [lead] if lead is not None and roster.get(me) is None else [me]
    while next_ones:
        for one in roster.lineage(next_ones.pop()):
            found = (one, *_leads_of(one, roster))
            next_ones += [who for who in found if who not in above]
            above.update(found)
    old = next((old for old in olds if old != me and old in above), None)
    if old is not None:
        raise Refused(
            f"{me} cannot take the place of {old}, which leads it: only the person may allow that",
            "choose another name",
            code="not_lead",
        )


def _leads_of(session_id: str, roster: Roster) -> tuple[str, ...]:
    """Return an agent's lead and those in its place; none if the person leads it."""
    agent = roster.get(session_id)
    return () if agent is None or agent.lead in (None, USER) else (agent.lead, *roster.heirs(agent.lead))


def _refuse_circle(me: str, lead: str | None, roster: Roster) -> None:
    """Refuse a lead that the agent leads itself, straight or through others: nobody would decide for them."""
    below = {lead: me} if lead not in (None, USER) else {}
    for one in (queue := [*below]):
        for above in _leads_of(str(one), roster):
            if above not in below:
                below[above] = str(one)
                queue.append(above)
    if me not in below:
        return
    chain = [me]
    while chain[-1] != lead:
        chain.append(below[chain[-1]])
    raise Refused(
        f"{lead} cannot lead {me}: it would lead itself, through {' → '.join([*chain, me])}",
        f"name another lead; or run `agent-mailbox roster update --session-id {typed(chain[1])} --lead user` before",
        code="lead_circle",
    )


def _left_by(old: str, request: Registration, roster: Roster) -> list[str]:
    """Return the tags that an agent keeps, itself or by one that it continues.

    A role that is another's name by now stays free. A place in a client's own team comes from that client alone. A
    swarm takes its tags from the living when it is left, and the dead leave none of it behind."""
    agent, me = roster.get(old), request.session_id
    is_left = request.is_left if agent is not None and agent.state == DEAD else None

    def is_free(tag: str) -> bool:
        if is_left is not None and is_left(tag):
            return False
        try:
            _refuse_agent_word(tag, (), me, roster)
        except Refused:
            return False
        return old == me or not tag.startswith("team:")

    return [tag for tag in agent.tags if is_free(tag)] if agent is not None else []


def _tags(request: Registration, before: Sequence[str], namespaces: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tags after the request: ``--tags`` replaces all but role tags; ``--role`` and ``role:`` tags replace
    roles. ``before``: those that it keeps else."""
    roles = [tag for tag in before if tag.startswith("role:")]
    others = [tag for tag in before if not tag.startswith("role:")]
    given = [check_tag(tag, namespaces) for tag in request.tags or ()]
    for tag in (*given, *request.add_tags):
        if is_remote(tag) and "/" in tag:
            raise Malformed(
                f"not a tag but an agent on another machine: {tag!r}", "use swarm:SWARM, the tag of a swarm's agents"
            )
    if request.tags is not None:
        others = [tag for tag in given if not tag.startswith("role:")]
    given_roles = [tag for tag in given if tag.startswith("role:")]
    if request.roles is not None:
        given_roles = [*map(check_role, request.roles), *given_roles]
    if given_roles:
        roles = given_roles
    added = [check_tag(tag, namespaces) for tag in request.add_tags]
    removed = {check_tag(tag, namespaces, before) for tag in request.remove_tags}
    return tuple(tag for tag in dict.fromkeys([*roles, *others, *added]) if tag not in removed)


def _lead(request: Registration, present: Agent | None, roster: Roster, actor: str) -> str | None:
    """Return the lead to record, None for no change. After registration only the person or the lead may change it."""
    if request.lead is None:
        return None
    lead = request.lead
    known = roster.meant(lead)
    lead = known.session_id if known else check_id(lead, "lead")
    if lead == request.session_id:
        raise Refused("an agent cannot be its own lead", "name another agent, or user")
    if present is None:
        return lead
    if actor == request.session_id and not (present.proven or present.client or present.lead):
        return lead  # only a foreign line registered it so far: this is its own registration
    is_proven = bool(present.proven_leads) and present.proven_leads[-1][1] == present.lead
    if lead == present.lead and (is_proven or actor != USER):
        return None
    if actor != USER and not (is_proven and actor == present.lead):  # a lead from a foreign line names no other
        raise Refused(
            f"the lead of {request.session_id} is {present.lead or 'not set'}; {actor} may not change it",
            f"ask the person{' or the present lead' if roster.meant(present.lead or USER) else ''} to change it",
        )
    return lead


def _shared_roles(tags: Iterable[str], me: str, roster: Roster) -> tuple[str, ...]:
    warnings = []
    for tag in (tag for tag in tags if tag.startswith("role:")):
        found = roster.some_carrying(tag, NAMED + 2)  # perhaps me, and one that tells of more
        others = [a.name or a.session_id for a in found if a.session_id != me]
        if others:
            named = ", ".join(others[:NAMED]) + (" and others" if len(others) > NAMED else "")
            warnings.append(f"{tag} is also held by {named}; each message goes to one holder")
    return tuple(warnings)


def _unknown_lead(lead: str | None, roster: Roster) -> tuple[str, ...]:
    if lead in (None, USER) or roster.meant(str(lead)) is not None:
        return ()
    meant = did_you_mean(roster.near(str(lead)))
    meant = f"; {meant}" if meant else "."
    return (f"no agent {lead!r} is registered{meant} Until it is, only the person decides its requests",)


def ended(session_id: str, event: str, roster: Roster, actor: str, now: int, reason: str | None = None) -> Decision:
    """Freeze, thaw or retire a known agent; idempotent.

    Raise ``NotFound`` for a stranger, ``Refused`` if the table has no such transition.
    """
    agent = roster.find(session_id)
    if agent.session_id == USER:
        raise Refused("the person cannot be frozen or retired", "name an agent")
    _refuse_apart(agent, actor)
    target = TRANSITIONS.get((agent.state, event))
    if target is None:
        if agent.state == {"freeze": FROZEN, "thaw": ALIVE, "retire": DEAD}[event]:
            return Decision()
        raise Refused(
            f"{agent.session_id} is {agent.state}: cannot {event} it",
            f"run `agent-mailbox roster register --session-id {typed(agent.session_id)}` to revive it",
        )
    by = actor if actor != agent.session_id else None
    return Decision(
        events=(RosterEvent(event=event, session_id=agent.session_id, timestamp=now, by=by, reason=reason),)
    )


def checked_in(session_id: str, roster: Roster, now: int) -> Decision:
    """Take a check as a heartbeat: register the unknown, thaw the frozen, refuse the dead."""
    agent = roster.get(session_id)
    if agent is None:
        return enrolled(Registration(session_id=session_id), roster, session_id, now, ())
    if agent.state == DEAD:
        raise Refused(
            f"{session_id} is dead ({agent.reason or 'retired'})",
            f"run `agent-mailbox roster register --session-id {typed(session_id)}` to revive it",
            code="dead",
        )
    return ended(session_id, "thaw", roster, session_id, now) if agent.state == FROZEN else Decision()


def swept(
    roster: Roster, last_seen: Mapping[str, int], now: int, freeze_hours: float, retire_days: float
) -> tuple[RosterEvent, ...]:
    """Return the steward's sweep: freeze the silent, retire the long frozen. ``last_seen`` in ms.

    Another machine may freeze an agent, and say since when: one that was seen since is not frozen for so long."""
    events = []
    for agent in roster.agents.values():
        seen = max(last_seen.get(agent.session_id, 0), agent.registered, agent.again)
        silent = now - seen
        if agent.state == ALIVE and silent >= freeze_hours * HOUR:
            events.append(("freeze", agent, f"silent for {silent // HOUR} h"))
        elif agent.state == FROZEN and (away := now - max(agent.frozen[-1][0], seen)) >= retire_days * DAY:
            events.append(("retire", agent, f"frozen for {away // DAY} days"))
    return tuple(
        RosterEvent(event=event, session_id=agent.session_id, timestamp=now, by="steward", reason=reason)
        for event, agent, reason in events
    )
