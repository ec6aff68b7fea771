"""Commands about mail: send, reply, check, and looking things up."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from typing import Any

import click
import orjson
from click.core import ParameterSource

from ..core import compose, instant
from ..core.compose import Draft
from ..core.frame import word
from ..core.records import PRIORITIES, TYPES
from ..errors import BadData, MailboxError, Malformed, NotFound
from ..posting import Sent
from . import letters, render, verbs
from .main import cli
from .options import App, Verb, complete_address, complete_session, pass_app

_session = click.option(
    "--session", metavar="ID", help="Who asks (else the client's session).", shell_complete=complete_session
)
_from = click.option(
    "--from", "sender", metavar="ID", help="Who sends (else the client's session).", shell_complete=complete_session
)
_to = click.option(
    "--to",
    "to",
    multiple=True,
    metavar="ADDR",
    help="Agent, role, namespace:value or all; repeat or separate by commas.",
    shell_complete=complete_address,
)


def _writing(command: Any) -> Any:
    """The options ``send`` and ``reply`` share."""
    for option in reversed(
        [
            click.option("--subject", metavar="S", help="One line that says what it is about."),
            click.option("--body", metavar="TEXT", help="The text; - reads standard input, @FILE a file."),
            click.option("--ttl-hours", metavar="N", help="Hours until it expires (default: by mode)."),
            click.option("--ack", is_flag=True, help="Ask for an acknowledgement."),
            click.option("--priority", metavar="P", default="normal", help=f"{', '.join(PRIORITIES)}."),
            click.option("--type", "kind", metavar="T", default="message", help=f"{', '.join(TYPES)}."),
            click.option("--id", "retry_id", metavar="UUID", help="To retry a failed send without doubling it."),
            click.option("--strict", is_flag=True, help="Refuse a recipient nobody knows."),
        ]
    ):
        command = option(command)
    return command


@cli.command(cls=Verb)
@_from
@_to
@_writing
@click.option("--thread", metavar="ID", help="The message this belongs under.")
@click.option("--jsonl", metavar="FILE", help="Send many: one JSON message a line; - reads standard input.")
@pass_app
def send(app: App, /, sender: str | None, to: Sequence[str], jsonl: str | None, strict: bool, **given: Any) -> None:
    """Send a message; done means it is on the disk."""
    if jsonl is not None:
        ctx = click.get_current_context()
        alone = {"sender", "jsonl", "strict"}
        more = [name for name in ctx.params if name not in alone and _was_given(ctx, name)]
        if more:
            raise Malformed(f"--jsonl and {more[0].replace('_', '-')} do not go together", "put it into each line")
        _send_batch(app, sender, jsonl, strict)
        return
    draft = _draft(app, app.who(sender), to, given)
    verbs.confirm_sent(app, app.mailbox, _send_one(app, draft, strict))


def _was_given(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) not in (ParameterSource.DEFAULT, ParameterSource.DEFAULT_MAP, None)


def _send_one(app: App, draft: Draft, strict: bool) -> Sent:
    """Send, with the thread's prefix resolved; an unknown thread is a warning."""
    mailbox = app.mailbox
    warnings: tuple[str, ...] = ()
    if draft.thread is not None:
        try:
            draft = draft.replace(thread=mailbox.find(draft.thread).message.id)
        except NotFound as error:
            warnings = (f"thread: {error.what}; sent all the same",)
    sent = mailbox.send(draft, strict=strict)
    return sent.replace(warnings=(*sent.warnings, *warnings))


def _draft(app: App, sender: str, to: Sequence[str], given: dict[str, Any]) -> Draft:
    return Draft(
        sender=sender,
        to=verbs.recipients(to),
        content=body(app, given["body"]),
        subject=given["subject"],
        thread=given.get("thread"),
        ttl_hours=_hours(given["ttl_hours"]),
        ack=given["ack"],
        priority=given["priority"],
        type=given["kind"],
        id=given["retry_id"],
    )


def body(app: App, given: str | None) -> str:
    """The text of ``--body``: itself, standard input for ``-``, a file for ``@FILE``, less one trailing newline."""
    if given is None:
        raise Malformed("no body", "give --body TEXT, - for standard input, or @FILE")
    if given != "-" and not given.startswith("@"):
        return given
    data = _bytes(given.removeprefix("@") if given != "-" else "-", "body", app.mailbox.config.max_content)
    try:
        return data.decode("utf-8").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise BadData(f"the body is not UTF-8 (byte {error.start})", "convert it, or send the file's path") from None


MAX_BATCH = 64 << 20
"""Bytes of a batch: a thousand of the largest messages; more is a mistake, or belongs into several batches."""


def _bytes(source: str, what: str, limit: int) -> bytes:
    """Standard input for ``-``, else the file; ``BadData`` if ``what`` it holds is over ``limit`` bytes."""
    try:
        if source == "-":
            if sys.stdin is None:
                raise Malformed("there is no standard input", "give the text as an argument")
            data = sys.stdin.buffer.read(limit + 2)
        else:
            with open(source, "rb") as file:
                data = file.read(limit + 2)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise Malformed(f"cannot read {source}: {reason}", "a text that begins with @ goes through --body -") from None
    if len(data.removesuffix(b"\n")) > limit:
        raise BadData(
            f"the {what} has more than {limit} bytes", "write it to a file and send its path", code="too_large"
        )
    return data


def _hours(given: str | None) -> int | None:
    if given is None:
        return None
    try:
        hours: Any = int(given)
    except ValueError:
        hours = given  # which no time to live is, as the check says
    compose.check_ttl(hours)
    return int(hours)


def _send_batch(app: App, /, sender: str | None, source: str, strict: bool) -> None:
    """``send --jsonl``: every line is checked before any is written."""
    numbers, drafts = [], []
    for number, line in enumerate(_bytes(source, "batch", MAX_BATCH).split(b"\n"), 1):
        if line.strip():
            numbers.append(number)
            try:
                drafts.append(_batch_draft(line, app, sender))
            except MailboxError as error:
                raise _about_line(error, number) from None
    if not drafts:
        raise Malformed("the batch is empty", "one JSON message a line")
    try:
        sent = app.mailbox.send_all(drafts, strict=strict)
    except MailboxError as error:
        raise error if error.at is None else _about_line(error, numbers[error.at]) from None
    for one, number in zip(sent, numbers, strict=True):
        for warning in one.warnings:
            app.warn(f"line {number}: {warning}")
    ids = [one.message.id for one in sent]
    app.done(f"sent {letters.plural(len(ids), 'message')}\n", {"sent": len(ids), "ids": ids})


def _about_line(error: MailboxError, number: int) -> MailboxError:
    kind = BadData if isinstance(error, Malformed) else type(error)
    return kind(f"line {number}: {error.what}; nothing was sent", error.hint, code=error.code)


def _batch_draft(line: bytes, app: App, sender: str | None) -> Draft:
    try:
        obj = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise BadData(f"not JSON: {error}", "one message a line, in the keys of `show --json`") from None
    draft = compose.draft_from(obj)
    return draft.replace(sender=app.who(draft.sender or sender))


@cli.command(cls=Verb)
@click.argument("message_id", metavar="ID")
@_from
@_to
@_writing
@pass_app
def reply(app: App, /, message_id: str, sender: str | None, to: Sequence[str], strict: bool, **given: Any) -> None:
    """Answer message ID: to its sender, in its thread; counts as the ack it asked for."""
    verbs.confirm_sent(
        app, app.mailbox, app.mailbox.reply(message_id, _draft(app, app.who(sender), to, given), strict=strict)
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
        f"{letters.plural(found.unread, 'unread message')}" + (" (agent-mailbox check)" if found.unread else ""),
    ]
    if found.obligations:
        lines.append(f"{letters.plural(len(found.obligations), 'message')} waiting for your ack or reply:")
        listing = render.messages_text(found.obligations, found.reads, roster, app.style)
        lines += ["  " + line for line in listing.splitlines()]
    if found.dead_letters:
        lines.append(f"{letters.plural(found.dead_letters, 'dead letter')} (agent-mailbox dead-letters)")
    value: dict[str, Any] = {
        "session": me,
        "unread": found.unread,
        "obligations": [letters.message_json(m, found.reads) for m in found.obligations],
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
        "message": letters.message_json(found.message, found.reads),
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
    value = {"messages": [letters.message_json(m, reads) for m in messages], "receipts": stages}
    app.out("\n\n".join(map("\n".join, blocks)) + "\n", value)


def _listing(app: App, /, messages: Sequence[Any], reads: Any) -> None:
    roster = app.mailbox.logs.read_roster()
    app.out(
        render.messages_text(messages, reads, roster, app.style),
        {"messages": [letters.message_json(m, reads) for m in messages]},
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
    start = parse_since(since, app.mailbox.now())
    _listing(app, *app.library.history(me, with_address=with_address, since=start, limit=limit))


def parse_since(given: str | None, now: int) -> int | None:
    """The ms that ``--since`` means: an RFC 3339 instant, or a number of m, h or d ago; raises ``Malformed``."""
    if given is None:
        return None
    units = {"m": 60_000, "h": instant.HOUR, "d": instant.DAY}
    number = given[:-1]
    if number.isascii() and number.isdigit() and len(number) < 10 and given[-1:] in units:
        return now - int(number) * units[given[-1]]
    try:
        return instant.parse(given)
    except ValueError:
        raise Malformed(f"{given!r} is no instant", "write 2026-03-16T14:30:00Z, 2026-03-16, or 90m, 24h, 7d") from None


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
    roster = app.mailbox.logs.read_roster()
    value = {"messages": [{**letters.message_json(m), "reason": reason} for m, reason in found]}
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
    app.out(f"{letters.plural(unread, 'unread message')}\n" if unread else "", {"unread": unread})
    return 0 if unread else 1
