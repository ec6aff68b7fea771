"""The commands about agents, for either parser: one call on the mailbox, one answer.

Belongs here: registering, ending and listing agents once the arguments are parsed. Must not import click.
"""

from __future__ import annotations

from ..cli import render
from ..cli.context import complete_id, meant_agent
from ..core import frame
from ..core.records import USER
from ..core.roster import ALIVE, DEAD
from ..core.roster_changes import Registration
from ..errors import Malformed
from ..mailbox import absence, agents, arrivals
from ..mailbox.open_mailbox import OpenMailbox
from ..mailbox.registry import Registry
from ..store.files import system
from ..store.files.board import TASKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

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
        roles=tuple(word for role in roles for word in _split_words(role) or (role,)) or None,
        tags=None if tags is None else _split_words(tags),
        add_tags=_split_words(add_tags),
        remove_tags=_split_words(remove_tags),
        lead=lead,
    )


def _split_words(given: str | None) -> tuple[str, ...]:
    return tuple(word.strip() for word in (given or "").split(",") if word.strip())


def register_session(app: Context, change: Registration) -> None:
    """Register or update a session, the caller's own_agent if the change names none. An update takes its name, too."""
    desk, who = app.open_desk(OpenMailbox), change.session_id
    known = desk.logs.read_roster() if who and change.event == "update" else None
    if known is not None:
        who = meant_agent(who, known)
    me = own_entry(app, who or None)
    if change.lead:
        roster = desk.logs.read_roster()
        change = change.replace(lead=complete_id(change.lead, roster))
        if roster.meant(str(change.lead)) is None:
            from ..cli import misspelt_session  # serves only mistakes

            misspelt_session.refuse_misspelt(str(change.lead), roster)
    if app.caller.is_person and (change.lead or change.name):
        from ..cli import widening  # only the person is asked

        widening.check_widening(app, lambda: _describe_widened(desk, me, change))
    request = change.replace(session_id=me)
    absence.note_bearer(desk, request.name, app.acting_party(me))
    agent, decision = Registry(desk).register(request, app.acting_party(me))
    warnings = [*decision.warnings]
    if known is not None and known.get(me) is None:
        from ..cli import misspelt_session  # serves only mistakes

        warnings.append(misspelt_session.registered_text(me, "update"))
    for warning in warnings:
        app.give_warning(warning)
    print_agent(app, agent, warnings)


def _describe_widened(desk: OpenMailbox, me: str, change: Registration) -> str:
    """Return whom a change makes the lead of an agent, and whose place it gives: both may allow."""
    lead, name = change.lead, change.name
    before = desk.logs.read_roster().bearer(name) if name else None
    found = [f"{lead} leads {me}, and may allow it anything"] if lead not in (None, USER) else []
    if before is not None and before.session_id != me:
        found.append(f"{me} takes the place of {before.session_id}, with all that it leads and was allowed")
    return "; ".join(found)


def print_agent(app: Context, agent: Agent, warnings: Sequence[str] = ()) -> None:
    """Print an agent after a change."""
    desk = app.open_desk(OpenMailbox)
    agent, seen = agents.one(desk, agent.session_id)
    gone = desk.gone_of([agent])
    value = {"agent": render.agent_json(agent, seen, gone), "warnings": list(warnings)}
    app.print_done(render.agent_text(agent, seen, gone, app.painter, desk.logs.read_roster()), value)


def own_entry(app: Context, session_id: str | None) -> str:
    """Return the id whose entry a command changes; raises ``Refused`` if the caller may not change it."""
    desk = app.open_desk(OpenMailbox)
    if session_id is None:
        return app.acting_session(desk)
    session_id = complete_id(session_id, desk.logs.read_roster())
    app.act_as(session_id, desk)
    return session_id


def own_agent(app: Context, session_id: str | None, word: str | None) -> str:
    """Return the id of the agent whose state a command changes; raises ``Refused`` as ``own_entry`` does."""
    return own_entry(app, agents.one(app.open_desk(OpenMailbox), agent_or_caller(app, session_id, word))[0].session_id)


def agent_or_caller(app: Context, session_id: str | None, word: str | None) -> str:
    """Return the agent that a command names, else the caller."""
    if session_id and word:
        raise Malformed("the session is named twice", "pass ID or --session-id, not both")
    return session_id or word or app.acting_session(app.open_desk(OpenMailbox))


def end_agent(app: Context, event: str, session_id: str | None, word: str | None) -> None:
    """Freeze or retire an agent."""
    who = own_agent(app, session_id, word)
    print_agent(app, Registry(app.open_desk(OpenMailbox)).end(who, event, app.acting_party(who)))


def show_all(app: Context, state: str | None) -> None:
    """Print all agents, or those in one state. A table without a state has the number of the dead alone: in a year they
    are thousands."""
    desk = app.open_desk(OpenMailbox)
    every = agents.every(desk, state)
    found = every if app.json or state else [one for one in every if one[0].state != DEAD]
    gone, running = desk.judge_clients(agent for agent, _ in found)
    if app.json:
        agents_here = [render.agent_json(agent, seen, gone) for agent, seen in found]
        app.print_answer("", {"agents": agents_here, "dir": desk.directory})
    else:
        facts = agent_facts(desk, [agent for agent, _ in found], gone, running)
        text = render.agents_text(found, gone, app.painter, facts)
        if not found:
            text = f"no {f'{state} ' if state else ''}agents\n"
        if hidden := len(every) - len(found):
            text += f"and {hidden} dead: {app.complete_command(f'roster list --state {DEAD}')}\n"
        app.write_answer(app.place_line(desk.directory) + app.fold_framed(text))


def agent_facts(
    desk: OpenMailbox, found: Sequence[Agent], gone: Collection[str], running: Collection[str]
) -> dict[str, tuple[str, str, str]]:
    """Return the lead of each agent, when it sees mail, and the first task that it holds."""
    roster, held = desk.logs.read_roster(), dict[str, str]()
    if system.exists(desk.logs.stamp_files.kept_here(TASKS)):
        from ..control.task_views import TaskViews  # a mailbox that has tasks

        for one in TaskViews(desk).tasks():
            if one.holder:
                held.setdefault(one.holder, f"{frame.word(one.task.id)} {frame.word(one.task.phase or one.state)}")
    waking = arrivals.find_armed(desk.logs.derived, [agent.session_id for agent in found])
    cut_off = {*desk.cut_off(agent.session_id for agent in found)}

    def sees(agent: Agent) -> str:
        if agent.state != ALIVE or agent.session_id in gone:
            return "-"
        if agent.session_id in cut_off:
            return "out of reach"
        return "now" if agent.session_id in waking else "next turn" if agent.session_id in running else "when it looks"

    return {
        agent.session_id: (
            frame.name_of(agent.lead, roster) if agent.lead else "-",
            sees(agent),
            held.get(agent.session_id, "-"),
        )
        for agent in found
    }


def show_one(app: Context, session_id: str | None, word: str | None) -> None:
    """Print one agent."""
    desk = app.open_desk(OpenMailbox)
    agent, seen = agents.one(desk, agent_or_caller(app, session_id, word))
    gone = desk.gone_of([agent])
    text, value = (
        render.agent_text(agent, seen, gone, app.painter, desk.logs.read_roster()),
        render.agent_json(agent, seen, gone),
    )
    from ..clients.checks import enforcing  # one agent is seldom asked for

    if why := enforcing.unenforced(desk, agent, app.environ):
        text += f"not bound: nothing enforces its lead, mode and rules: {why}\n"
        value["unenforced"] = why
    when, why = arrivals.foresee_arrival(desk, agent.session_id) if agent.state != DEAD else ("", arrivals.WAITS)
    is_there = agent.state == ALIVE and not gone and why not in (arrivals.CUT_OFF, arrivals.LEFT)
    if is_there or why != arrivals.WAITS:
        word = f"it will see it {when.replace('_', ' ').replace('at next', 'at its next')}" if is_there else "it waits"
        text += f"mail: {word} ({why})\n"
        value["mail"] = {"seen": when, "reason": why}
    app.print_answer(text, {"agent": value})
