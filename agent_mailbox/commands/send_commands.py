"""The commands that write mail: ``send`` (one message or a batch) and ``reply``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, Unpack

import click
from click.core import ParameterSource

from ..cli import mail_output, values, verbs, widening
from ..cli.context import FROM
from ..cli.group import cli
from ..cli.options import App, complete_address, one_of, option_of_session, pass_app, several_options
from ..core import attachments, codec, compose, references
from ..core.compose import Draft
from ..core.records import PRIORITIES, TYPES, WHENS, BadLine
from ..core.text import neutral
from ..errors import BadData, MailboxError, Malformed, NotFound
from ..mailbox.leaving import ALLOWED
from ..mailbox.open_mailbox import nobody
from ..mailbox.sending import Sending, Sent
from . import widened_output

CONTROL = "control"
"""The type of mail that decides."""
MAX_BATCH = 64 << 20
"""Bytes of a batch: a thousand of the largest messages; more is probably a mistake."""


_from = option_of_session("The sender's session (default: the calling client's).", "--from")
_to = click.option(
    "--to",
    "to",
    multiple=True,
    metavar="ADDR",
    help="An agent's name or id, a role, a tag such as project:NAME, or all. Repeat it, or separate by commas.",
    shell_complete=complete_address,
)


class Written(TypedDict):
    """The options that ``send`` and ``reply`` share, as the command line has them."""

    subject: str | None
    body: str | None
    ttl_hours: str | None
    expires_at: str | None
    ack: bool
    priority: str
    kind: str
    when: str | None
    retry_id: str | None
    allow_secret: bool
    refs: Sequence[str]
    attach: Sequence[str]


_writing_options = several_options(
    click.option("--subject", metavar="S", help="A one-line summary."),
    click.option("--body", metavar="TEXT", help="The text; - reads standard input, @FILE reads a file."),
    click.option("--ttl-hours", metavar="N", help="Hours until it expires (default: by kind of recipient)."),
    click.option(
        "--expires-at",
        metavar="T",
        help="When it expires: a time such as 2026-03-16T14:30Z, or 90m, 24h or 7d from now.",
    ),
    click.option("--ack", is_flag=True, help="Ask the reader to acknowledge it."),
    click.option(
        "--priority",
        metavar="P",
        default="normal",
        show_default=True,
        help=f"One of {', '.join(PRIORITIES)}.",
        shell_complete=one_of(PRIORITIES),
    ),
    click.option(
        "--type",
        "kind",
        metavar="T",
        default="message",
        show_default=True,
        help=f"One of {', '.join(TYPES)}.",
        shell_complete=one_of(TYPES),
    ),
    click.option(
        "--when",
        metavar="W",
        help="When a session sees it: now (between its tools, or by a wake), turn (never by a wake) or idle "
        "(by a wake, its turn over). Default: turn for a tag, all and low priority, else now.",
        shell_complete=one_of(WHENS),
    ),
    click.option(
        "--id",
        "retry_id",
        metavar="UUID",
        help="The message's id, of any version (default: a new one, of version 4). "
        "A retry with the same id sends it only once.",
    ),
    click.option(
        "--allow-secret",
        is_flag=True,
        help="Send it to another machine though it looks like a secret (only the person may).",
    ),
    click.option(
        "--ref",
        "refs",
        multiple=True,
        metavar="KIND:VALUE",
        help="Refer to something, such as issue:OWNER/REPO#3, claimed:pr:OWNER/REPO#7, commit:OWNER/REPO@SHA, "
        "repo:OWNER/REPO, url:URL or file:PATH. Repeat it for more.",
    ),
    click.option(
        "--attach",
        "attach",
        multiple=True,
        metavar="PATH",
        help="Attach a file: the mailbox keeps a copy. Repeat it for more, up to "
        f"{attachments.MOST}. A client's session attaches files of its project alone.",
    ),
    click.option("--strict", is_flag=True, help="Fail if a recipient is unknown."),
)
"""The options that ``send`` and ``reply`` share."""


@cli.command()
@_from
@_to
@_writing_options
@click.option("--thread", metavar="ID", help="Put it into the thread of message ID.")
@click.option("--now", is_flag=True, help="Fail if the engine of a shared mailbox is out of reach, and queue nothing.")
@click.option(
    "--jsonl",
    metavar="FILE",
    help="Send a batch: one JSON object per line with the keys of `show --json`; - reads standard input.",
)
@pass_app
def send(
    app: App,
    /,
    to: Sequence[str],
    now: bool,
    jsonl: str | None,
    strict: bool,
    thread: str | None,
    **given: Unpack[Written],
) -> None:
    """Send a message; exit 0 means that it is on disk.

    \b
    Example: agent-mailbox send --to role:reviewer --body @notes.md --ack
    """
    app.mailbox.part(Sending).at_once = now
    if jsonl is not None:
        ctx = click.get_current_context()
        others = ctx.params.keys() - {"jsonl", "strict", "now"}
        unset = (ParameterSource.DEFAULT, ParameterSource.DEFAULT_MAP, None)
        given_too = {name for name in others if ctx.get_parameter_source(name) not in unset}
        more = [param.opts[0] for param in ctx.command.params if param.name in given_too]
        if more:
            raise Malformed(f"--jsonl excludes {more[0]}", "write it into each line of the batch")
        _send_batch(app, jsonl, strict)
        return
    draft = _draft_from(app, to, given).replace(thread=thread)
    _ask_first(app, draft, draft.to)
    verbs.confirm_sent(app, app.mailbox, _send_one(app, draft, strict))


def _ask_first(app: App, draft: Draft, to: Sequence[str]) -> None:
    """Ask the person about a control message that widens, as about the command of ``control`` that would send it."""
    if draft.type == CONTROL:
        if app.caller.is_served:
            app.caller.refuse_deciding("a control message")
        widening.check_widening(app, lambda: widened_output.of_text(app, draft.content, to))


def _send_one(app: App, draft: Draft, strict: bool) -> Sent:
    """Send a draft; resolve its thread's prefix, and warn if no message has it."""
    mailbox = app.mailbox
    warnings: tuple[str, ...] = ()
    if draft.thread is not None:
        try:
            draft = draft.replace(thread=mailbox.find(draft.thread).message.id)
        except NotFound as error:
            warnings = (f"--thread: {error.what}; sent with this thread id all the same",)
    sent = mailbox.send(draft, strict=strict)
    return sent.replace(warnings=(*sent.warnings, *warnings))


def _draft_from(app: App, to: Sequence[str], given: Written) -> Draft:
    return Draft(
        sender=app.acting_session(app.mailbox, FROM),
        to=verbs.split_recipients(to),
        content=values.read_body(app, given["body"]),
        subject=given["subject"],
        ttl_hours=values.parse_hours(given["ttl_hours"]),
        expires_at=values.parse_expiry(given["expires_at"], app.mailbox.now()),
        ack=given["ack"],
        priority=given["priority"],
        type=given["kind"],
        when=given["when"],
        id=given["retry_id"],
        references=[references.parse(text) for text in given["refs"]] or None,
        attachments=values.attach_files(app, given["attach"]) or None,
        extra={ALLOWED: True} if given["allow_secret"] else None,
    )


@cli.command()
@click.argument("message_id", metavar="ID")
@_from
@_to
@_writing_options
@click.option("--all", "everyone", is_flag=True, help="Answer everyone the message was for, and its sender.")
@pass_app
def reply(
    app: App, /, message_id: str, to: Sequence[str], strict: bool, everyone: bool, **given: Unpack[Written]
) -> None:
    """Answer message ID, in its thread. This counts as the ack it asked for.

    The answer goes to the message's sender unless --all or --to widens it. An answer to your own message goes to
    those it was for.
    """
    if everyone and to:
        raise Malformed("--all excludes --to", "leave --to out, or name each recipient with --to")
    draft = _draft_from(app, to, given)
    if draft.type == CONTROL:
        parent = app.mailbox.find(message_id).message
        _ask_first(app, draft, draft.to or (parent.sender, *parent.recipients))
    verbs.confirm_sent(app, app.mailbox, app.mailbox.reply(message_id, draft, strict=strict, everyone=everyone))


def _send_batch(app: App, /, source: str, strict: bool) -> None:
    """Send a batch of lines; check every line before any is written."""
    app.proves = nobody  # a file's lines are mail; none proves its sender
    sender = app.named
    numbers, drafts = [], []
    for number, line in enumerate(values.read_source(app, source, "batch", MAX_BATCH).split(b"\n"), 1):
        if line.strip():
            numbers.append(number)
            try:
                drafts.append(_batch_draft(line, app, sender))
            except MailboxError as error:
                raise _about_line(error, number) from None
    if not drafts:
        raise Malformed(f"the batch is empty: {source}", "write one JSON message per line")
    try:
        sent = app.mailbox.send_all(drafts, strict=strict, sealed=False)
    except MailboxError as error:
        raise error if error.at is None else _about_line(error, numbers[error.at]) from None
    for one, number in zip(sent, numbers, strict=True):
        for warning in one.warnings:
            app.give_warning(f"line {number}: {warning}")
    ids = [one.message.id for one in sent]
    if why := next((app.complete_hint(one.queued) for one in sent if one.queued), ""):
        found = {"sent": 0, "queued": len(ids), "why": why, "ids": ids}
        app.print_done(f"queued {mail_output.count_noun(len(ids), 'message')}: {neutral(why)}\n", found)
        return
    app.print_done(f"sent {mail_output.count_noun(len(ids), 'message')}\n", {"sent": len(ids), "ids": ids})


def _about_line(error: MailboxError, number: int) -> MailboxError:
    kind = BadData if isinstance(error, Malformed) else type(error)
    return kind(f"line {number}: {error.what}; nothing was sent", error.hint, code=error.code)


def _batch_draft(line: bytes, app: App, sender: str | None) -> Draft:
    obj = codec.parse(line, once=True)
    if isinstance(obj, BadLine):
        raise BadData(obj.reason, "write one JSON object per line, with the keys of `agent-mailbox show ID --json`")
    draft = compose.draft_from(obj)
    return draft.replace(sender=app.session_for(draft.sender or sender, FROM))
