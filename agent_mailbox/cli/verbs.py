"""The hot verbs, for either parser: one call on the mailbox, one answer.

Belongs here: the hot verbs once their arguments are parsed. Must not import click.
"""

from __future__ import annotations

from ..core import claims, frame
from ..errors import MailboxError
from . import mail_output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.awaited import Owing
    from ..core.inbox import Item
    from ..core.records import Message
    from ..mailbox.delivery import Delivery
    from ..mailbox.facade import FoundMessage, Mailbox
    from ..mailbox.opened import OpenMailbox
    from ..mailbox.sending import Sent
    from .context import Context


def check(app: Context, desk: Delivery, session: str | None, peek: bool, limit: int) -> None:
    """Show unread mail, then record it as read (``peek``: only show it). ``limit`` 0 shows all."""
    desk = desk.read_only() if peek else desk
    me = app.me(session, desk)
    failed: list[MailboxError] = []

    def show(items: list[Item]) -> Sequence[Item]:
        shown = items[: limit or None]
        more = len(items) - len(shown) + desk.left
        if app.json:
            pieces = [mail_output.json(mail_output.check_json(me, shown, more, desk.directory))]
        elif shown:
            roster, named = desk.logs.read_roster(), session is not None
            pieces = mail_output.check_pieces(me, shown, more, roster, app.style, desk.directory, named=named)
        else:
            app.nothing("no new mail\n")
            return shown
        if peek:  # it holds no lock that others wait for
            app.print(app.framed("".join(pieces)))
            return shown
        taken, error = app.hand_over(pieces)
        if error is not None:
            failed.append(_partly(error, taken, len(shown)) if taken else error)
        return shown[:taken] if error is not None else shown

    if peek:
        show(desk.peek(me))
        return
    desk.deliver(me, show, choose=lambda items: items[: limit or None])
    if failed:
        raise failed[0]
    if desk.registered and session is not None:
        app.warn(
            f"no agent {me} was known, and this check registered it: `agent-mailbox roster list` shows all,"
            f" `agent-mailbox roster retire {me}` removes this one"
        )


def _partly(error: MailboxError, taken: int, of: int) -> MailboxError:
    """Return the error of an output whose reader took the first messages."""
    error.what = f"{error.what.partition(';')[0]}; {taken} of {of} messages were marked as read"
    error.hint = "run it again for the others"
    return error


SEARCH_LIMIT = 20
"""Messages that a search shows by default."""


def search(app: Context, mailbox: Mailbox, query: str, limit: int) -> None:
    """Print the messages that contain every word of the query, newest last."""
    from ..core import words  # check and send look nothing up
    from ..mailbox.queries import Library
    from . import render

    words.check(query)
    messages, reads = Library(mailbox).search(query, limit)
    if app.json:
        box = mailbox.directory
        app.print(mail_output.json({"messages": [mail_output.message_json(m, reads, box) for m in messages]}))
    elif messages:
        app.print(render.messages_text(messages, reads, mailbox.logs.read_roster(), app.style, app.columns))
    else:
        app.nothing("no message contains all these words\n")


def confirm_sent(app: Context, desk: OpenMailbox, sent: Sent) -> None:
    """Print where a message went, when each reader will see it, and the warnings about it."""
    from ..mailbox import arrivals  # check and ack send nothing

    for warning in sent.warnings:
        app.warn(warning)
    found = arrivals.arrival_of(desk, sent)
    if app.json:
        app.confirm(mail_output.json(mail_output.sent_json(sent, found, desk.directory)))
    else:
        app.confirm(mail_output.sent_text(sent, found, desk.logs.read_roster(), app.style))


def show(app: Context, mailbox: Mailbox, message_id: str) -> None:
    """Print one message with its receipts, and the agents it reaches now."""
    from . import render

    found = mailbox.find(message_id)
    roster, shown = mailbox.logs.read_roster(), mailbox.here(found.message)
    resolved = mailbox.delivery(found.message, roster)
    lines = render.message_text(shown, roster, app.style, mailbox.directory)
    lines += ["", *render.receipts_text(found.message, resolved, found.receipts, roster)]
    lines += [] if any(r.event != "claim" for r in found.receipts) else ["no agent has read it"]
    owed = _owing(mailbox, found) if found.message.ack else []
    lines += [f"ack owed by: {render.owing_text(owed, roster)}"] if owed else []
    value = {
        "message": mail_output.message_json(shown, found.reads, mailbox.directory),
        "delivery": mail_output.reach_json(resolved),
        "receipts": render.receipts_json(found.receipts),
        **({"owed_by": render.owing_json(owed)} if found.message.ack else {}),
    }
    tell(app, mailbox, "\n".join(lines) + "\n", value, [found.message], found.reads)


def _owing(mailbox: Mailbox, found: FoundMessage) -> list[Owing]:
    from ..mailbox.queries import Library  # most mail asks for no ack

    return Library(mailbox).owing(found)


def tell(
    app: Context, mailbox: Mailbox, text: str, value: object, messages: Sequence[Message], reads: claims.Reads
) -> None:
    """Print whole messages. Record that the calling session now has the texts that it was given by title."""
    me = app.own_session if any(claims.untold(message, reads) for message in messages) else None
    if me is None:
        app.out(app.framed(text), value)
    elif (error := app.out_in_full(app.framed(text), value)) is not None:
        app.warn(f"{error.what.partition(';')[0]}; the receipt was not recorded")
    else:
        note_told(app, mailbox, me, messages, reads)


def note_told(app: Context, mailbox: Mailbox, me: str, messages: Sequence[Message], reads: claims.Reads) -> None:
    """Record that a session now has the texts that it was given by title."""
    from ..mailbox import receipts  # where there was no room for a text

    try:
        receipts.tell_in_full(mailbox, me, messages, reads)
    except MailboxError as error:
        app.warn(f"the receipt was not recorded: {error.what}")


def ack(app: Context, mailbox: Mailbox, message_id: str, session: str | None) -> None:
    """Record that the session dealt with a message."""
    message = mailbox.ack(message_id, app.me(session, mailbox))
    app.done(f"acknowledged {frame.word(message.id)}\n", {"message_id": message.id, "event": "ack"})


def release(app: Context, mailbox: Mailbox, message_id: str, session: str | None) -> None:
    """Give a message back."""
    message = mailbox.release(message_id, app.me(session, mailbox))
    app.done(f"released {frame.word(message.id)}\n", {"message_id": message.id, "event": "release"})


def recipients(to: Sequence[str]) -> tuple[str, ...]:
    """Return the addresses of all ``--to`` values, each split on commas."""
    return tuple(word.strip() for part in to for word in part.split(",") if word.strip())
