"""The verbs that send and settle mail, for either parser: one call on the mailbox, one answer.

Belongs here: what follows once their arguments are parsed. Must not import click.
"""

from __future__ import annotations

from ..core import frame
from ..core.address import is_remote
from . import mail_output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..mailbox.facade import Mailbox
    from ..mailbox.opened import OpenMailbox
    from ..mailbox.sending import Sent
    from .context import Context


def confirm_sent(app: Context, desk: OpenMailbox, sent: Sent, *, is_carried: bool = False) -> None:
    """Print where a message went, when each reader will see it, and the warnings about it."""
    from ..mailbox.arrivals import arrival_of  # check and ack send nothing

    if sent.warnings:
        sent = sent.replace(warnings=tuple(map(app.hint, sent.warnings)))
    for warning in sent.warnings:
        app.warn(warning)
    roster = desk.logs.read_roster()
    found = arrival_of(desk, sent, roster)
    if any(map(is_remote, sent.message.recipients)):
        from ..mailbox import mailbox_gateway  # most mail stays here

        if (home := mailbox_gateway.elsewhere(desk.directory, app.environ)) is not None:
            app.given["--home"] = home
        if sent.message.ack:
            app.warn("acks do not travel to a swarm: its reader is not asked for one, and none comes back")
        if not is_carried and not mailbox_gateway.is_served(desk.directory):
            app.warn("no gateway serves here, so the mail waits: `agent-mailbox swarm serve` carries it")
    if app.json:
        app.confirm(mail_output.json(mail_output.sent_json(sent, found, desk.directory)))
    else:
        app.confirm(mail_output.sent_text(sent, found, roster, app.painter, app.command))


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
