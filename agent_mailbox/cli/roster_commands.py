"""``roster``, ``mute`` and ``unmute``: the commands about agents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from ..core.address import check_id
from ..core.roster import STATES, Agent
from ..core.roster_changes import Registration
from ..errors import Malformed, NotFound
from ..mailbox import absence
from . import render
from .group import Commands, cli
from .options import App, Verb, complete_address, complete_session, pass_app


@cli.group(cls=Commands)
def roster() -> None:
    """List agents, and manage their names, roles, tags and states.

    An agent is alive, frozen (away: its direct mail waits and does not expire) or dead; it is gone if its client was
    killed. Clients with hooks register their sessions themselves; register a shell or a script by hand.
    """


def _shared_options(command: Any) -> Any:
    """Add the options that ``register`` and ``update`` share."""
    for option in reversed(
        [
            click.option(
                "--session-id",
                "--session",
                "session_id",
                metavar="ID",
                help="The session (default: the calling client's).",
                shell_complete=complete_session,
            ),
            click.option(
                "--name", metavar="N", help="A unique name; it is free again once its agent is frozen or dead."
            ),
            click.option(
                "--role",
                "roles",
                multiple=True,
                metavar="R",
                help="A role it holds, such as reviewer; repeat for several.",
            ),
            click.option("--tags", metavar="T,…", help="Replace its tags, except roles; separate by commas."),
            click.option("--add-tags", metavar="T,…", help="Add these tags; separate by commas."),
            click.option("--remove-tags", metavar="T,…", help="Remove these tags; separate by commas."),
            click.option(
                "--lead",
                metavar="ID",
                help="The lead: the agent (or user) that decides its requests and sets its mode.",
                shell_complete=complete_address,
            ),
        ]
    ):
        command = option(command)
    return command


def _listed(given: str | None) -> tuple[str, ...]:
    return tuple(word.strip() for word in (given or "").split(",") if word.strip())


def _register(app: App, /, event: str, given: dict[str, Any]) -> None:
    me = _named(app, given["session_id"])
    roles = tuple(word for role in given["roles"] for word in _listed(role))
    request = Registration(
        session_id=me,
        event=event,
        name=given["name"],
        roles=roles or None,
        tags=None if given["tags"] is None else _listed(given["tags"]),
        add_tags=_listed(given["add_tags"]),
        remove_tags=_listed(given["remove_tags"]),
        lead=given["lead"],
    )
    absence.note_bearer(app.mailbox, request.name, app.acts(me))
    agent, decision = app.mailbox.register(request, app.acts(me))
    for warning in decision.warnings:
        app.warn(warning)
    _answer(app, agent, decision.warnings)


def _answer(app: App, /, agent: Agent, warnings: Sequence[str] = ()) -> None:
    agent, seen = app.library.agent(agent.session_id)
    gone = app.library.gone([agent])
    value = {"agent": render.agent_json(agent, seen, gone), "warnings": list(warnings)}
    app.done(render.agent_text(agent, seen, gone, app.style), value)


@roster.command(cls=Verb)
@_shared_options
@pass_app
def register(app: App, /, **given: Any) -> None:
    """Register a session, or revive a dead one.

    A session that takes the name of a frozen or dead agent continues it: mail to either reaches it.

    \b
    Example: agent-mailbox roster register --session-id ci-1 --name Ci --role tester --tags project:shop
    """
    _register(app, "register", given)


@roster.command(cls=Verb)
@_shared_options
@pass_app
def update(app: App, /, **given: Any) -> None:
    """Change a session's name, roles, tags or lead; register it if it is unknown."""
    _register(app, "update", given)


def _named(app: App, session_id: str | None) -> str:
    """Return the id whose entry a command changes; raises ``Refused`` if the caller may not change it."""
    if session_id is None:
        return app.who(None)
    app.act_as(session_id, app.mailbox)
    return session_id


def _own(app: App, session_id: str | None, word: str | None) -> str:
    """Return the id of the agent whose state a command changes; raises ``Refused`` as ``_named`` does."""
    found = app.library.agent(_which(app, session_id, word))[0].session_id
    return _named(app, found)


def _which(app: App, /, session_id: str | None, word: str | None) -> str:
    if session_id and word:
        raise Malformed("the session is named twice", "pass ID or --session-id, not both")
    return session_id or word or app.who(None)


_one = click.option(
    "--session-id",
    "--session",
    "session_id",
    metavar="ID",
    help="The session (default: the calling client's).",
    shell_complete=complete_session,
)
_word = click.argument("word", metavar="[ID]", required=False, shell_complete=complete_session)


@roster.command(cls=Verb)
@_word
@_one
@pass_app
def heartbeat(app: App, /, word: str | None, session_id: str | None) -> None:
    """Record that a session is alive; this thaws a frozen one."""
    agent, _ = app.library.agent(_own(app, session_id, word))
    app.mailbox.check_in(agent.session_id)
    _answer(app, agent)


@roster.command(cls=Verb)
@_word
@_one
@pass_app
def freeze(app: App, /, word: str | None, session_id: str | None) -> None:
    """Mark a session as away: its direct mail waits and does not expire."""
    _end(app, session_id, word, "freeze")


@roster.command(cls=Verb)
@_word
@_one
@pass_app
def retire(app: App, /, word: str | None, session_id: str | None) -> None:
    """Mark a session as gone for good; role mail that it did not acknowledge returns to the role."""
    _end(app, session_id, word, "retire")


def _end(app: App, /, session_id: str | None, word: str | None, event: str) -> None:
    who = _own(app, session_id, word)
    _answer(app, app.mailbox.end(who, event, app.acts(who)))


def _mute(app: App, /, session: str | None, word: str, which: str) -> None:
    me = app.who(session)
    try:
        whom = app.library.agent(word)[0].session_id
    except NotFound:
        whom = check_id(word)
        app.warn(f"no agent {whom!r} is known; mail from that id will be muted")
    request = Registration(session_id=me, event="update").replace(**{which: (whom,)})
    agent, _ = app.mailbox.register(request, app.acts(me))
    _answer(app, agent)


_muter = click.option(
    "--session",
    metavar="ID",
    help="The session that mutes (default: the calling client's).",
    shell_complete=complete_session,
)
_muted = click.argument("whom", metavar="AGENT", shell_complete=complete_session)


@cli.command(cls=Verb)
@_muted
@_muter
@pass_app
def mute(app: App, /, whom: str, session: str | None) -> None:
    """Have hooks hide AGENT's mail from you; it stays unread, and `check` shows it.

    Control messages still come through.
    """
    _mute(app, session, whom, "mute")


@cli.command(cls=Verb)
@_muted
@_muter
@pass_app
def unmute(app: App, /, whom: str, session: str | None) -> None:
    """Have hooks show you AGENT's mail again."""
    _mute(app, session, whom, "unmute")


@roster.command("list", cls=Verb)
@click.option("--state", type=click.Choice(STATES), help="List only agents in this state.")
@pass_app
def list_agents(app: App, /, state: str | None) -> None:
    """List all agents with their state, name, id, tags and the time each was last seen."""
    agents = app.library.agents(state)
    gone = app.library.gone(agent for agent, _ in agents)
    value = {"agents": [render.agent_json(agent, seen, gone) for agent, seen in agents]}
    app.out(render.agents_text(agents, gone, app.style), value)


@roster.command("show", cls=Verb)
@_word
@_one
@pass_app
def show_agent(app: App, /, word: str | None, session_id: str | None) -> None:
    """Show one agent, by id, name or id prefix (default: yours)."""
    agent, seen = app.library.agent(_which(app, session_id, word))
    gone = app.library.gone([agent])
    app.out(render.agent_text(agent, seen, gone, app.style), {"agent": render.agent_json(agent, seen, gone)})
