"""The person's actions: send, reply, decide, acknowledge, release, resend. Each is one call of the facade.

Belongs here: turning a form's fields into that call, and its result into a sentence. The person acts as ``user``; the
facade decides what is allowed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..control.requests import always_updates
from ..control.steps import find_request
from ..core import codec, conversations, frame
from ..core.address import derived_uuid
from ..core.compose import Draft, check_id_form
from ..core.control import transitions
from ..core.records import USER, Message
from ..core.roster import Roster
from ..errors import MailboxError, Malformed, NotFound, Refused
from ..mailbox.sending import Sent
from . import (
    agent_orders,
    calls,
    cards,
    channel_page,
    decided_requests,
    inbox_page,
    note_board,
    presenters,
    rail,
    task_board,
    topics,
)
from .decided_requests import list_chosen
from .desk import Looking, Params
from .presenters import Unchanged

Act = Callable[[Looking, Params], str]


def send_message(now: Looking, fields: Params) -> str:
    """Send a message from the person; in a direct thread it may answer a ``question`` there. One to a
    channel (``mentions``) also goes to those that it names."""
    to = tuple(word.strip() for word in fields.get("to", "").split(",") if word.strip())
    if fields.get("mentions"):
        to = tuple(dict.fromkeys((*to, *channel_page.find_mentioned(fields.get("body", ""), now.roster))))
    if fields.get("question"):
        return _answer_message(now, fields["question"], _draft_from(fields, to), everyone=False)
    return presenters.describe_sent(now.mailbox.send(_draft_from(fields, to), strict=True), now.mailbox, now.roster)


def send_reply(now: Looking, fields: Params) -> str:
    """Reply in a message's thread; this acknowledges it if its sender asked the person to.

    The reply goes to everyone the thread's message was for and to its sender, or (``answers``) to its sender alone."""
    everyone = fields.get("answers") != "sender"
    return _answer_message(now, fields.get("id", ""), _draft_from(fields, ()), everyone)


def _answer_message(now: Looking, message_id: str, draft: Draft, everyone: bool) -> str:
    """Answer a message, which the person has read by that, and tell who gets the answer."""
    now.record_read({message_id})
    return presenters.describe_sent(now.mailbox.reply(message_id, draft, everyone=everyone), now.mailbox, now.roster)


def _draft_from(fields: Params, to: tuple[str, ...]) -> Draft:
    return Draft(
        sender=USER,
        to=to,
        content=fields.get("body", "").replace("\r\n", "\n"),
        subject=fields.get("subject", "").strip() or None,
        thread=fields.get("thread") or None,
        ack=bool(fields.get("ack")),
        priority=fields.get("priority") or "normal",
        attachments=_attached_entries(fields.get("attached", "")),
        id=fields.get("message_id") or None,
    )


def _attached_entries(given: str) -> Any:
    """Return the entries of the files that the form brought; None without any."""
    found = codec.parse(given.encode()) if given else None
    return found.get("files") if isinstance(found, dict) else None


def mark_read(now: Looking, fields: Params) -> str:
    """Mark the person's mail as read: the messages that the page showed (``ids``)."""
    count = now.record_read(set(fields.get("ids", "").split()))
    return f"Marked {count} as read." if count else Unchanged("All of it is read already.")


def mark_seen(now: Looking, fields: Params) -> str:
    """Note how far the person has seen a channel, or a topic of it."""
    address, until = fields.get("to", ""), presenters.parse_instant(fields.get("until", ""))
    if address not in {channel.address for channel in presenters.list_channels(now.roster)}:
        raise NotFound(f"no channel {address!r}", "choose one of the channels")
    topic = topics.topic_of_param(fields.get("topic"))
    now.unread.move_mark(address, None if topic is None else conversations.folded(topic), until)
    return f"{presenters.channel_label(address)} is marked as seen."


def acknowledge_message(now: Looking, fields: Params) -> str:
    """Acknowledge a message, and mark it as read if it is the person's."""
    message_id = fields.get("id", "")
    now.record_read({message_id})
    found = now.mailbox.find(message_id)
    now.mailbox.ack(found.message.id, USER)
    short = frame.short(found.message.id)
    if found.reads.acked(found.message, now.roster.lineage(USER)):
        return Unchanged(f"{short} is acknowledged already.")
    return f"{short} is acknowledged."


def release_message(now: Looking, fields: Params) -> str:
    """Give back a message for its reader: it becomes unread again, and role mail free for another holder."""
    reader = fields.get("reader") or USER
    before = now.mailbox.find(fields.get("id", ""))
    message = now.mailbox.release(before.message.id, reader)
    short, name = frame.short(message.id), presenters.party_name(reader, now.roster)
    if not before.reads.standing(message.id, now.roster.lineage(reader)):
        return Unchanged(f"{short} is unread for {name} already.")
    return f"{short} is unread again for {name}."


def decide_request(now: Looking, fields: Params) -> str:
    """Approve or deny a request, with a reason and, for a tool call, perhaps another input."""
    word, decision = fields.get("decision", ""), fields.get("request", "")
    if word not in ("approve", "always", "deny"):
        raise Malformed(f"unknown decision: {word!r}", "choose Approve or Deny")
    request = find_request(now.mailbox, decision)
    was_open = request.is_open
    said: dict[str, Any] = {"notes": fields.get("reason", "").strip()}
    if word != "deny":
        said |= _granted_input(request.flow, getattr(request.payload, "input", None), fields)
    if word == "always":
        said["updates"] = always_updates(request)
    request = decided_requests.decide_as_person(now, request, word != "deny", **said)
    unread = now.settle_read({request.message_id})
    changed = " with your changed input" if said.get("updated_input") is not None else ""
    asker = presenters.party_name(request.asker, now.roster)
    what, became = cards.tell_request(request, now.roster), request.state.replace("_", " ")
    if not was_open:
        return Unchanged(f"{what}: {became} already.")
    return f"{what}: {became}{changed}. {asker} was told.{unread}"


def _granted_input(flow: str, given: Any, fields: Params) -> dict[str, Any]:
    if flow == transitions.SANDBOX:
        return {"scope": fields.get("scope", "")}
    if flow == transitions.PLAN:
        return {"mode": fields.get("mode", "")}
    text = fields.get("input")
    if given is None or text is None:
        return {}
    edited = codec.parse(text.replace("\r\n", "\n").encode("utf-8", "surrogatepass"))
    if not isinstance(edited, dict):
        where = calls.place_of_error(text) or edited.reason
        raise Malformed(f"the changed input is not a JSON object: {where}", "correct it; nothing was decided")
    return {} if calls.is_same_json(edited, given) else {"updated_input": edited}


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
    return derived_uuid(f"{form} {message_id}") if form else None


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


ACTS: dict[str, Act] = {
    "/send": send_message,
    "/reply": send_reply,
    "/read": mark_read,
    "/seen": mark_seen,
    "/place": rail.set_place,
    "/put-off": inbox_page.put_off,
    "/ack": acknowledge_message,
    "/release": release_message,
    "/resend": resend_message,
    "/resend-chosen": resend_chosen,
    "/decide": decide_request,
    "/decide-chosen": decided_requests.decide_several,
    "/assign": task_board.assign_task,
    "/give": task_board.give,
    "/take-back": task_board.take_back,
    "/cancel-task": task_board.cancel,
    "/add-note": note_board.add,
    "/drop-note": note_board.drop,
    "/mode": agent_orders.set_mode,
    "/revoke": agent_orders.revoke_grant,
    "/shutdown": agent_orders.shut_down,
    "/state": agent_orders.change_state,
    "/wake": agent_orders.wake_agent,
    "/hand-over": agent_orders.hand_over_tasks,
    "/rename": agent_orders.rename_agent,
}
