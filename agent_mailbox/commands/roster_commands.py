"""``roster``, ``mute`` and ``unmute``: the commands about agents."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from ..cli.group import cli
from ..cli.options import App, complete_address, complete_session, option_of_session, pass_app, several_options
from ..core.address import check_id
from ..core.records import USER
from ..core.roster import STATES
from ..core.roster_changes import Registration
from ..errors import Malformed, NotFound
from . import roster_verbs


@cli.group()
def roster() -> None:
    """List agents, and manage their names, roles, tags and states.

    An agent is alive, frozen (its direct mail waits and does not expire) or dead; it is gone if its client was killed.
    Clients with hooks register their sessions themselves; register a shell or a script by hand.
    """


_one = click.option(
    "--session-id",
    "--session",
    "session_id",
    metavar="ID",
    help="The session (default: the calling client's).",
    shell_complete=complete_session,
)
_registering_options = several_options(
    _one,
    click.option("--name", metavar="N", help="A unique name; it is free again once its agent is frozen or dead."),
    click.option(
        "--role",
        "roles",
        multiple=True,
        metavar="R",
        help="Replace its roles by this one, such as reviewer; repeat for several.",
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
)


def _registering(command: Callable[[App, Registration], None]) -> Any:
    """Add the options that ``register`` and ``update`` share to a command, which takes them as a ``Registration``."""

    @wraps(command)
    def run(app: App, /, **given: Any) -> None:
        command(app, roster_verbs.change_of(**given))

    return _registering_options(pass_app(run))


@roster.command("register")
@_registering
def register_session(app: App, change: Registration) -> None:
    """Register a session, or revive a dead one.

    A session that takes the name of a frozen or dead agent continues it: mail to either reaches it.

    \b
    Example: agent-mailbox roster register --session-id ci-1 --role tester
    """
    roster_verbs.register_session(app, change)


@roster.command()
@_registering
def update(app: App, change: Registration) -> None:
    """Change a session's name, roles, tags or lead. An unknown session is registered."""
    roster_verbs.register_session(app, change.replace(event="update"))


_word = click.argument("word", metavar="[ID]", required=False, shell_complete=complete_session)


@roster.command()
@_word
@_one
@pass_app
def heartbeat(app: App, /, word: str | None, session_id: str | None) -> None:
    """Record that a session is alive; this thaws a frozen one."""
    agent = app.mailbox.logs.read_roster().find(roster_verbs.own_agent(app, session_id, word))
    app.mailbox.check_in(agent.session_id)
    roster_verbs.print_agent(app, agent)


@roster.command()
@_word
@_one
@pass_app
def freeze(app: App, /, word: str | None, session_id: str | None) -> None:
    """Freeze a session: its direct mail waits and does not expire."""
    roster_verbs.end_agent(app, "freeze", session_id, word)


@roster.command()
@_word
@_one
@pass_app
def retire(app: App, /, word: str | None, session_id: str | None) -> None:
    """End a session: it is dead. Role mail that it did not acknowledge returns to the role."""
    roster_verbs.end_agent(app, "retire", session_id, word)


def _mute_or_unmute(app: App, /, word: str, which: str) -> None:
    me = app.acting_session(app.mailbox)
    if me == USER:
        raise Malformed("no hook shows mail to you", "name a session by --session; your console mutes a conversation")
    unknown = False
    try:
        whom = app.mailbox.logs.read_roster().find(word).session_id
    except NotFound:
        whom, unknown = check_id(word), True
    request = Registration(session_id=me, event="update").replace(**{which: (whom,)})
    agent, _ = app.mailbox.register(request, app.acting_party(me))
    if unknown:
        state = "muted" if which == "mute" else "not muted"
        app.give_warning(
            f"no agent {whom!r} is known; mail from that id is {state}: `agent-mailbox roster list` shows all"
        )
    roster_verbs.print_agent(app, agent)


_muter = option_of_session("The session that mutes (default: the calling client's).", "--session")
_muted = click.argument("whom", metavar="AGENT", shell_complete=complete_session)


@cli.command()
@_muted
@_muter
@pass_app
def mute(app: App, /, whom: str) -> None:
    """Have hooks hide AGENT's mail from you. It stays unread, and `check` shows it.

    Control messages still come through.
    """
    _mute_or_unmute(app, whom, "mute")


@cli.command()
@_muted
@_muter
@pass_app
def unmute(app: App, /, whom: str) -> None:
    """Have hooks show you AGENT's mail again."""
    _mute_or_unmute(app, whom, "unmute")


@roster.command("list")
@click.option("--state", type=click.Choice(STATES), help="List only agents in this state.")
@pass_app
def list_agents(app: App, /, state: str | None) -> None:
    """List the agents: state, name, id, tags, when last seen.

    A table only counts the dead; `--state dead` lists them.
    """
    roster_verbs.show_all(app, state)


@roster.command("show")
@_word
@_one
@pass_app
def show_agent(app: App, /, word: str | None, session_id: str | None) -> None:
    """Show one agent, by id, name or id prefix (default: yours)."""
    roster_verbs.show_one(app, session_id, word)
