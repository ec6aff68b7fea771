"""Commands about mail that is there: check, what it owes and says, what became of it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import click

from ..core.frame import word
from ..errors import Malformed
from . import mail_output, render, values, verbs
from .group import cli
from .options import App, Verb, complete_address, complete_session, pass_app

_session = click.option(
    "--session", metavar="ID", help="Who asks (else the client's session).", shell_complete=complete_session
)


@cli.command(cls=Verb)
@_session
@click.option("--peek", is_flag=True, help="Look only: nothing is written, nothing marked as read.")
@click.option(
    "--limit", type=click.IntRange(min=0), default=20, show_default=True, help="Most messages to show; 0 for all."
)
@pass_app
def check(app: App, /, session: str | None, peek: bool, limit: int) -> None:
    """Show unread mail, then record it as read."""
    verbs.check(app, app.mailbox, session, peek, limit)


@cli.command(cls=Verb)
@_session
@click.option("--cost", is_flag=True, help="Also the tokens that hooks spent on showing you mail, by sender and mode.")
@pass_app
def status(app: App, /, session: str | None, cost: bool) -> None:
    """Where you stand: unread mail, what you owe, dead letters, your line in the roster."""
    me = app.who(session)
    found = app.library.status(me)
    agent = found.agent
    roster = app.mailbox.logs.read_roster()
    lines = [
        f"{me}: {agent.state if agent else 'not registered'}"
        + (f", {' '.join(map(word, agent.tags))}" if agent and agent.tags else ""),
        f"{mail_output.plural(found.unread, 'unread message')}" + (" (agent-mailbox check)" if found.unread else ""),
    ]
    if found.obligations:
        lines.append(f"{mail_output.plural(len(found.obligations), 'message')} waiting for your ack or reply:")
        listing = render.messages_text(found.obligations, found.reads, roster, app.style)
        lines += ["  " + line for line in listing.splitlines()]
    if found.dead_letters:
        lines.append(f"{mail_output.plural(found.dead_letters, 'dead letter')} (agent-mailbox dead-letters)")
    value: dict[str, Any] = {
        "session": me,
        "unread": found.unread,
        "obligations": [mail_output.message_json(m, found.reads) for m in found.obligations],
        "dead_letters": found.dead_letters,
        "state": agent.state if agent else None,
        "tags": list(agent.tags) if agent else [],
    }
    if cost:
        costs = app.library.costs(me)
        lines += render.costs_text(costs, roster)
        value["cost"] = [render.cost_json(c) for c in costs]
    app.out("\n".join(lines) + "\n", value)


@cli.command(cls=Verb)
@click.argument("message_id", metavar="ID")
@pass_app
def show(app: App, /, message_id: str) -> None:
    """One message, whom it reaches now, and its receipts; ID may be a unique prefix.

    Receipts: offered (a hook showed it; nobody knows yet if that was taken in) or read (by a check), seen (the model
    went on after it was shown), ack, release.
    """
    found = app.mailbox.find(message_id)
    receipts = app.mailbox.receipts(found.message)
    roster = app.mailbox.logs.read_roster()
    lines = render.message_text(found.message, roster, app.style)
    resolved = app.mailbox.delivery(found.message, roster)
    lines += ["", *render.receipts_text(found.message, resolved, receipts, roster)]
    lines += [] if receipts else ["nobody has read it"]
    value = {
        "message": mail_output.message_json(found.message, found.reads),
        "delivery": {"agents": list(resolved.agents), "waiting_for": list(resolved.waiting_for)},
        "receipts": [render.receipt_json(r) for r in receipts],
    }
    app.out("\n".join(lines) + "\n", value)


@cli.command(cls=Verb)
@click.argument("message_id", metavar="ID")
@pass_app
def thread(app: App, /, message_id: str) -> None:
    """The whole chain message ID stands in with its receipts, archives included."""
    messages, reads = app.library.thread(message_id)
    roster = app.mailbox.logs.read_roster()
    stages = {m.id: reads.stages(m.id) for m in messages}
    blocks = [[*render.message_text(m, roster, app.style), *render.stages_text(stages[m.id], roster)] for m in messages]
    value = {"messages": [mail_output.message_json(m, reads) for m in messages], "receipts": stages}
    app.out("\n\n".join(map("\n".join, blocks)) + "\n", value)


def _listing(app: App, /, messages: Sequence[Any], reads: Any) -> None:
    if not messages and not app.json:
        app.nothing("no mail\n")
        return
    roster = app.mailbox.logs.read_roster()
    app.out(
        render.messages_text(messages, reads, roster, app.style, app.columns),
        {"messages": [mail_output.message_json(m, reads) for m in messages]},
    )


@cli.command(cls=Verb)
@_session
@click.option(
    "--with",
    "with_address",
    metavar="ADDR",
    help="Only mail from or to this agent, role, tag or all.",
    shell_complete=complete_address,
)
@click.option(
    "--since", metavar="T", help="Only mail from then on: an instant (2026-03-16T14:30Z), or 90m, 24h, 7d ago."
)
@click.option("--limit", type=click.IntRange(min=0), default=50, show_default=True, help="The newest N; 0 for all.")
@click.option("--all", "everyones", is_flag=True, help="Everyone's mail, not only yours.")
@pass_app
def history(
    app: App, /, session: str | None, with_address: str | None, since: str | None, limit: int, everyones: bool
) -> None:
    """Your mail, sent and received, archives included, newest last."""
    me = None if everyones else app.who(session)
    start = values.since(since, app.mailbox.now())
    _listing(app, *app.library.history(me, with_address=with_address, since=start, limit=limit))


@cli.command(cls=Verb)
@click.argument("query", nargs=-1, required=True)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=verbs.SEARCH_LIMIT,
    show_default=True,
    help="The newest N; 0 for all.",
)
@pass_app
def search(app: App, /, query: Sequence[str], limit: int) -> None:
    """Messages in which every word of QUERY occurs, live and archived, newest last."""
    verbs.search(app, app.mailbox, " ".join(query), limit)


@cli.command(cls=Verb)
@click.argument("message_id", metavar="ID")
@_session
@pass_app
def ack(app: App, /, message_id: str, session: str | None) -> None:
    """Say that you have dealt with message ID."""
    message = app.mailbox.ack(message_id, app.who(session))
    app.done(f"acknowledged {word(message.id)}\n", {"message_id": message.id, "event": "ack"})


@cli.command(cls=Verb)
@click.argument("message_id", metavar="ID")
@_session
@pass_app
def release(app: App, /, message_id: str, session: str | None) -> None:
    """Give message ID back: it is unread again, and role mail free for another holder."""
    message = app.mailbox.release(message_id, app.who(session))
    app.done(f"released {word(message.id)}\n", {"message_id": message.id, "event": "release"})


@cli.command("dead-letters", cls=Verb)
@_session
@click.option("--all", "everyones", is_flag=True, help="Everyone's, not only yours.")
@pass_app
def dead_letters(app: App, /, session: str | None, everyones: bool) -> None:
    """Mail that expired, or whose recipient died, before anyone read it."""
    found = app.library.dead_letters(None if everyones else app.who(session))
    if not found and not app.json:
        app.nothing("no dead letters\n")
        return
    roster = app.mailbox.logs.read_roster()
    value = {"messages": [{**mail_output.message_json(m), "reason": reason} for m, reason in found]}
    app.out(render.dead_letters_text(found, roster, app.style), value)


@cli.command(cls=Verb)
@_session
@click.option("--timeout", type=click.FloatRange(min=0), metavar="S", help="Give up after S seconds (default: never).")
@pass_app
def wait(app: App, /, session: str | None, timeout: float | None) -> int:
    """Block until there is unread mail (exit 0), or not in time (exit 1)."""
    if timeout is not None and not 0 <= timeout <= threading.TIMEOUT_MAX:
        raise Malformed(f"--timeout {timeout} is no number of seconds", "leave it out to wait for ever")
    unread = app.library.wait(app.who(session), timeout)
    app.out(f"{mail_output.plural(unread, 'unread message')}\n" if unread else "", {"unread": unread})
    return 0 if unread else 1
