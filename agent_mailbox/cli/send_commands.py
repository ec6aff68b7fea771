"""Commands that write mail: send, one message or a batch, and reply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
import orjson
from click.core import ParameterSource

from ..core import compose
from ..core.compose import Draft
from ..core.records import PRIORITIES, TYPES
from ..errors import BadData, MailboxError, Malformed, NotFound
from ..mailbox.opened import nobody
from ..mailbox.sending import Sent
from . import mail_output, values, verbs
from .group import cli
from .options import App, Verb, complete_address, complete_session, one_of, pass_app

MAX_BATCH = 64 << 20
"""Bytes of a batch: a thousand of the largest messages; more is a mistake, or belongs into several batches."""


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


def _one_of(*names: str, words: Sequence[str], **how: Any) -> Any:
    return click.option(*names, help=f"{', '.join(words)}.", shell_complete=one_of(words), **how)


def _writing(command: Any) -> Any:
    """The options ``send`` and ``reply`` share."""
    for option in reversed(
        [
            click.option("--subject", metavar="S", help="One line that says what it is about."),
            click.option("--body", metavar="TEXT", help="The text; - reads standard input, @FILE a file."),
            click.option("--ttl-hours", metavar="N", help="Hours until it expires (default: by mode)."),
            click.option("--ack", is_flag=True, help="Ask for an acknowledgement."),
            click.option(
                "--priority",
                metavar="P",
                default="normal",
                help=f"{', '.join(PRIORITIES)}.",
                shell_complete=one_of(PRIORITIES),
            ),
            click.option(
                "--type",
                "kind",
                metavar="T",
                default="message",
                help=f"{', '.join(TYPES)}.",
                shell_complete=one_of(TYPES),
            ),
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
        content=values.body(app, given["body"]),
        subject=given["subject"],
        thread=given.get("thread"),
        ttl_hours=values.hours(given["ttl_hours"]),
        ack=given["ack"],
        priority=given["priority"],
        type=given["kind"],
        id=given["retry_id"],
    )


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


def _send_batch(app: App, /, sender: str | None, source: str, strict: bool) -> None:
    """``send --jsonl``: every line is checked before any is written."""
    app.proves = nobody  # a file's lines are mail, whoever wrote them
    numbers, drafts = [], []
    for number, line in enumerate(values.read(app, source, "batch", MAX_BATCH).split(b"\n"), 1):
        if line.strip():
            numbers.append(number)
            try:
                drafts.append(_batch_draft(line, app, sender))
            except MailboxError as error:
                raise _about_line(error, number) from None
    if not drafts:
        raise Malformed("the batch is empty", "one JSON message a line")
    try:
        sent = app.mailbox.send_all(drafts, strict=strict, sealed=False)
    except MailboxError as error:
        raise error if error.at is None else _about_line(error, numbers[error.at]) from None
    for one, number in zip(sent, numbers, strict=True):
        for warning in one.warnings:
            app.warn(f"line {number}: {warning}")
    ids = [one.message.id for one in sent]
    app.done(f"sent {mail_output.plural(len(ids), 'message')}\n", {"sent": len(ids), "ids": ids})


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
