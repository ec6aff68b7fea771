"""The commands about agents, for either parser: one call on the mailbox, one answer.

Belongs here: registering, ending and listing agents once the arguments are parsed. Must not import click.
"""

from __future__ import annotations

from ..cli import render
from ..core.records import USER
from ..core.roster_changes import Registration
from ..errors import Malformed
from ..mailbox import absence, agents
from ..mailbox.opened import OpenMailbox
from ..mailbox.registry import Registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..cli.context import Context
    from ..core.roster import Agent


def change_of(
    session_id: str | None,
    name: str | None,
    roles: Sequence[str],
    tags: str | None,
    add_tags: str | None,
    remove_tags: str | None,
    lead: str | None,
) -> Registration:
    """Return the change that options ask for; without a session it is the caller's own."""
    return Registration(
        session_id=session_id or "",
        name=name,
        roles=tuple(word for role in roles for word in _listed(role) or (role,)) or None,
        tags=None if tags is None else _listed(tags),
        add_tags=_listed(add_tags),
        remove_tags=_listed(remove_tags),
        lead=lead,
    )


def _listed(given: str | None) -> tuple[str, ...]:
    return tuple(word.strip() for word in (given or "").split(",") if word.strip())


def register(app: Context, change: Registration) -> None:
    """Register or update a session, the caller's own if the change names none."""
    me, desk = named(app, change.session_id or None), app.desk(OpenMailbox)
    if app.caller.is_person and (change.lead or change.name):
        from ..cli import widening  # only the person is asked

        widening.check(app, lambda: _widened(desk, me, change))
    request = change.replace(session_id=me)
    absence.note_bearer(desk, request.name, app.acts(me))
    agent, decision = Registry(desk).register(request, app.acts(me))
    for warning in decision.warnings:
        app.warn(warning)
    answer(app, agent, decision.warnings)


def _widened(desk: OpenMailbox, me: str, change: Registration) -> str:
    """Return whom a change makes the lead of an agent, and whose place it gives: both may allow."""
    lead, name = change.lead, change.name
    before = desk.logs.read_roster().bearer(name) if name else None
    found = [f"{lead} leads {me}, and may allow it anything"] if lead not in (None, USER) else []
    if before is not None and before.session_id != me:
        found.append(f"{me} takes the place of {before.session_id}, with all that it leads and was allowed")
    return "; ".join(found)


def answer(app: Context, agent: Agent, warnings: Sequence[str] = ()) -> None:
    """Print an agent after a change."""
    desk = app.desk(OpenMailbox)
    agent, seen = agents.one(desk, agent.session_id)
    gone = desk.gone_of([agent])
    value = {"agent": render.agent_json(agent, seen, gone), "warnings": list(warnings)}
    app.done(render.agent_text(agent, seen, gone, app.style), value)


def named(app: Context, session_id: str | None) -> str:
    """Return the id whose entry a command changes; raises ``Refused`` if the caller may not change it."""
    desk = app.desk(OpenMailbox)
    if session_id is None:
        return app.me(None, desk)
    app.act_as(session_id, desk)
    return session_id


def own(app: Context, session_id: str | None, word: str | None) -> str:
    """Return the id of the agent whose state a command changes; raises ``Refused`` as ``named`` does."""
    return named(app, agents.one(app.desk(OpenMailbox), which(app, session_id, word))[0].session_id)


def which(app: Context, session_id: str | None, word: str | None) -> str:
    """Return the agent that a command names, else the caller."""
    if session_id and word:
        raise Malformed("the session is named twice", "pass ID or --session-id, not both")
    return session_id or word or app.me(None, app.desk(OpenMailbox))


def end(app: Context, event: str, session_id: str | None, word: str | None) -> None:
    """Freeze or retire an agent."""
    who = own(app, session_id, word)
    answer(app, Registry(app.desk(OpenMailbox)).end(who, event, app.acts(who)))


def show_all(app: Context, state: str | None) -> None:
    """Print all agents, or those in one state."""
    desk = app.desk(OpenMailbox)
    found = agents.every(desk, state)
    gone = desk.gone_of(agent for agent, _ in found)
    if app.json:
        agents_here = [render.agent_json(agent, seen, gone) for agent, seen in found]
        app.out("", {"agents": agents_here, "dir": desk.directory})
    else:
        text = render.agents_text(found, gone, app.painter) if found else f"no {f'{state} ' if state else ''}agents\n"
        app.print(app.place(desk.directory) + app.framed(text))


def show_one(app: Context, session_id: str | None, word: str | None) -> None:
    """Print one agent."""
    desk = app.desk(OpenMailbox)
    agent, seen = agents.one(desk, which(app, session_id, word))
    gone = desk.gone_of([agent])
    text, value = render.agent_text(agent, seen, gone, app.style), render.agent_json(agent, seen, gone)
    from ..clients.checks import enforcing  # one agent is seldom asked for

    if why := enforcing.unenforced(desk, agent, app.environ):
        text += f"not bound: nothing enforces its lead, mode and rules: {why}\n"
        value["unenforced"] = why
    app.out(text, {"agent": value})
