"""``check``, ``send`` and ``search`` themselves, for whichever parser: one call on the mailbox, one answer.

Belongs here: what the hot verbs do once their arguments are known. Must not import click.
"""

from __future__ import annotations

from . import mail_output
from .output import PATIENCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.inbox import Item
    from ..mailbox.delivery import Delivery
    from ..mailbox.facade import Mailbox
    from ..mailbox.opened import OpenMailbox
    from ..mailbox.sending import Sent
    from .context import Context


def check(app: Context, desk: Delivery, session: str | None, peek: bool, limit: int) -> None:
    """Show unread mail, then record it as read (``peek``: only show it). ``limit`` 0 shows all."""
    desk = desk.read_only() if peek else desk
    me = app.me(session, desk)
    patience = None if peek else PATIENCE  # a look holds no lock that others wait for

    def show(items: list[Item]) -> Sequence[Item]:
        shown = items[: limit or None]
        if app.json or shown:
            more = len(items) - len(shown)
            if app.json:
                app.print(mail_output.json(mail_output.check_json(me, shown, more)), patience)
            else:
                app.print(mail_output.check_text(me, shown, more, desk.logs.read_roster(), app.style), patience)
        else:
            app.nothing("no new mail\n")
        return shown

    if peek:
        show(desk.peek(me))
    else:
        desk.deliver(me, show)


SEARCH_LIMIT = 20
"""Messages a search shows unless told otherwise."""


def search(app: Context, mailbox: Mailbox, query: str, limit: int) -> None:
    """Messages in which every word of the query occurs, newest last."""
    from ..mailbox.queries import Library  # check and send look nothing up
    from . import render

    messages, reads = Library(mailbox).search(query, limit)
    if app.json:
        app.print(mail_output.json({"messages": [mail_output.message_json(m, reads) for m in messages]}))
    elif messages:
        app.print(render.messages_text(messages, reads, mailbox.logs.read_roster(), app.style, app.columns))
    else:
        app.nothing("no such message\n")


def confirm_sent(app: Context, desk: OpenMailbox, sent: Sent) -> None:
    """Tell a sender where its message went, and what to think of it."""
    for warning in sent.warnings:
        app.warn(warning)
    if app.json:
        app.confirm(mail_output.json(mail_output.sent_json(sent)))
    else:
        app.confirm(mail_output.sent_text(sent.message, sent.delivery, desk.logs.read_roster(), app.style))


def recipients(to: Sequence[str]) -> tuple[str, ...]:
    """The addresses of all ``--to``, each split on commas."""
    return tuple(word.strip() for part in to for word in part.split(",") if word.strip())
