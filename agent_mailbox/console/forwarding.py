"""Sending mail again from the person: one message, or the dead letters that a form chose.

Belongs here: to whom it goes now, and what it says. The facade decides each message, as it would alone.
"""

from __future__ import annotations

from hashlib import sha256

from ..core import frame
from ..core.address import uuid_of
from ..core.compose import Draft, check_id_form
from ..core.records import USER, Message
from ..core.roster import Roster
from ..errors import MailboxError, Malformed, Refused
from ..mailbox.sending import Sent
from . import presenters
from .decided_requests import list_chosen
from .desk import Looking, Params


def new_recipients(message: Message, roster: Roster) -> list[str]:
    """Return where to send a message again: the successors of a dead agent, or its roles if it has none."""
    return list(dict.fromkeys(to for address in message.recipients for to in _heirs_of_address(address, roster)))


def _heirs_of_address(address: str, roster: Roster) -> tuple[str, ...]:
    agent = None if ":" in address else roster.meant(address)
    if agent is None or agent.session_id == USER:
        return (address,)
    return (frame.name_of(agent.session_id, roster),) if roster.heirs(agent.session_id) else agent.roles


def resend_message(now: Looking, fields: Params) -> str:
    """Send a message again. It quotes the first sender, because the person's words weigh more."""
    to = [word.strip() for word in fields.get("to", "").split(",") if word.strip()]
    message_id = fields.get("message_id") or None
    return presenters.describe_sent(
        _send_again(now, fields.get("id", ""), to, fields.get("body", ""), message_id), now.mailbox, now.roster
    )


def resend_chosen(now: Looking, fields: Params) -> str:
    """Send each chosen message again, to whoever has its recipient's place; tell what became of each.

    A form that is sent twice sends each message once. Raise ``Malformed`` if none is chosen.
    """
    done, failed = 0, []
    for message_id in list_chosen(fields, "messages", "send"):
        try:
            _send_again(now, message_id, None, fields.get("body", ""), _id_of_resending(message_id, fields))
            done += 1
        except MailboxError as error:
            failed.append(presenters.end_sentence(f"{presenters.one_line(message_id[:8])} was not sent: {error.what}"))
    if not done:
        raise Malformed(" ".join(failed).removesuffix("."), "open a message to choose who gets it")
    return " ".join([f"{done} sent again.", *failed])


def _id_of_resending(message_id: str, fields: Params) -> str | None:
    form = check_id_form(fields["message_id"]) if fields.get("message_id") else ""
    said = f"{form} {message_id}".encode("utf-8", "surrogatepass")
    return uuid_of(sha256(said).hexdigest(), "8", variant="8") if form else None


def _send_again(now: Looking, message_id: str, to: list[str] | None, note: str, new_id: str | None) -> Sent:
    message, roster = now.mailbox.find(message_id).message, now.roster
    if message.type == "control":
        raise Refused("a control message cannot be forwarded", "make a new request instead")
    quoted = "\n".join(f"> {line}" for line in message.content.splitlines())
    said = f"{frame.sender_of(message, roster)} wrote on {frame.when(message.timestamp)}, forwarded by the person:"
    draft = Draft(
        sender=USER,
        to=tuple(new_recipients(message, roster) if to is None else to),
        content="\n\n".join(filter(None, [note.strip(), f"{said}\n{quoted}"])),
        subject=message.subject,
        thread=message.id,
        ack=message.ack,
        priority=message.priority,
        id=new_id,
    )
    return now.mailbox.send(draft, strict=True)
