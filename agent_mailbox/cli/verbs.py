"""The verbs that send and settle mail, for either parser: one call on the mailbox, one answer.

Belongs here: what follows once their arguments are parsed, and both renderings of sent mail. Must not import click.
"""

from __future__ import annotations

from ..core import frame, reach
from ..core.address import ID_SHOWN
from ..core.text import neutral
from . import mail_output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ..core.reach import Arrival
    from ..core.roster import Roster
    from ..mailbox.mailbox import Mailbox
    from ..mailbox.open_mailbox import OpenMailbox
    from ..mailbox.sending import Sent
    from .context import Context
    from .mail_output import Style


def sent_json(sent: Sent, arrival: Arrival, box: str) -> dict[str, Any]:
    """Return the document of ``send --json``; ``box``: the mailbox's path."""
    delivery = {**mail_output.arrival_json(arrival), "warnings": list(sent.warnings)}
    found = {"message": mail_output.message_json(sent.message, box=box), "delivery": delivery}
    return {**found, "queued": True, "why": sent.queued} if sent.queued else found


def sent_text(sent: Sent, arrival: Arrival, roster: Roster, style: Style, command: Callable[[str], str]) -> str:
    """Return the text of ``send``: the id, where the message goes, and when each reader will see it.

    It says where answers wait if no agent sent it. ``command`` completes the next commands."""
    message, delivery = sent.message, sent.delivery
    sender = roster.get(message.sender)
    me = f" from {frame.name_of(message.sender, roster)}" if sender and sender.client is not None else ""
    # what is sent has a UUID (``compose.checked``)
    target = f"{style(message.id[:ID_SHOWN], 'id')}{me} to {frame.target_of(message, roster)}"
    if sent.queued:
        return f"queued {target}: {neutral(sent.queued)}\n"
    lines = [f"sent {target}"]
    lines += [f"  {label}: {names}" for label, names in reach.list_arrival(arrival, roster)]
    if sent.leaves:
        lines.append(f"  delivered or not: {command('swarm outbox')}")
    elif not delivery.agents and not delivery.waiting_for:
        lines.append(f"  {frame.unreached(message)}")
    if sender is None:
        lines.append(f"  answers wait until it checks: {frame.name_of(message.sender, roster)}, no known agent")
    return "\n".join(lines) + "\n"


def confirm_sent(
    app: Context,
    desk: OpenMailbox,
    sent: Sent,
    *,
    is_carried: bool = False,
    tell: Callable[[Sent, Arrival], None] | None = None,
) -> None:
    """Print where a message went, when each reader will see it, and the warnings about it. ``tell`` answers in place of
    printing."""
    from ..mailbox import arrivals  # check and ack send nothing

    if sent.warnings or sent.queued:
        told = tuple(map(app.complete_hint, sent.warnings))
        sent = sent.replace(warnings=told, queued=app.complete_hint(sent.queued))
    for warning in sent.warnings:
        app.give_warning(warning)
    found = arrivals.find_arrival(desk, sent.message, sent.delivery, sent.roster, queued=bool(sent.queued))
    if found.elsewhere:
        app.warn_of_machines(desk)
    if sent.leaves:
        from ..mailbox import mailbox_gateway  # most mail stays here

        if (home := mailbox_gateway.elsewhere(desk.directory, app.environ)) is not None:
            app.given["--home"] = home
        if sent.message.ack:
            app.give_warning("acks do not travel to a swarm: its reader is not asked for one, and none comes back")
        if not is_carried and not mailbox_gateway.is_served(desk.directory):
            named, is_mutual = mailbox_gateway.gateway_of(desk.directory) or ("", False)
            serve = mailbox_gateway.serve_words(named if is_mutual else "")
            app.give_warning(f"no gateway serves here, so the mail waits: `agent-mailbox {serve}` carries it")
    if tell is not None:
        tell(sent, found)
    elif app.json:
        app.confirm_change(mail_output.json_document(sent_json(sent, found, desk.directory)))
    else:
        app.confirm_change(sent_text(sent, found, sent.roster, app.painter, app.complete_command))


def acknowledge(app: Context, mailbox: Mailbox, message_id: str) -> None:
    """Record that the session dealt with a message."""
    message = mailbox.ack(message_id, app.acting_session(mailbox))
    app.print_done(f"acknowledged {frame.short(message.id)}\n", {"message_id": message.id, "event": "ack"})


def give_back(app: Context, mailbox: Mailbox, message_id: str) -> None:
    """Give a message back."""
    message = mailbox.release(message_id, app.acting_session(mailbox))
    app.print_done(f"released {frame.short(message.id)}\n", {"message_id": message.id, "event": "release"})


def split_recipients(to: Sequence[str]) -> tuple[str, ...]:
    """Return the addresses of all ``--to`` values, each split on commas."""
    return tuple(word.strip() for part in to for word in part.split(",") if word.strip())
