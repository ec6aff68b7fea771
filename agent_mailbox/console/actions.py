"""What the person does: write, answer, decide, acknowledge, give back, send anew. Each is one call of the facade.

Belongs here: from the fields of a form to that call, and a sentence of what came of it. The person acts as ``user``;
what may be done, the facade says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import codec, frame
from ..core.compose import Draft
from ..core.control import transitions
from ..core.records import USER
from ..errors import Malformed, NotFound, Refused
from . import presenters

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..core.inbox import Item
    from ..core.roster import Roster
    from ..mailbox.sending import Sent
    from .desk import Looking

    Fields = Mapping[str, str]
    Act = Callable[[Looking, Fields], str]


def send(now: Looking, fields: Fields) -> str:
    """A message from the person."""
    to = tuple(word.strip() for word in fields.get("to", "").split(",") if word.strip())
    return _told(now.mailbox.send(_draft(fields, to), strict=True), now.roster)


def reply(now: Looking, fields: Fields) -> str:
    """An answer in a message's thread; deals with it where that was asked of the person."""
    return _told(now.mailbox.reply(fields.get("id", ""), _draft(fields, ())), now.roster)


def _draft(fields: Fields, to: tuple[str, ...]) -> Draft:
    return Draft(
        sender=USER,
        to=to,
        content=fields.get("body", "").replace("\r\n", "\n"),
        subject=fields.get("subject", "").strip() or None,
        ack=bool(fields.get("ack")),
        priority=fields.get("priority") or "normal",
        id=fields.get("message_id") or None,
    )


def _told(sent: Sent, roster: Roster) -> str:
    def called(address: str) -> str:
        return presenters.label(address) if ":" in address else presenters.name(address, roster)

    reach = [f"{label}: {names}" for label, names in frame.reach(sent.delivery, called)] or [frame.UNREAD]
    said = [f"sent to {frame.target_of(sent.message, roster)}", *reach]
    return " ".join(f"{sentence[:1].upper()}{sentence[1:]}." for sentence in (*said, *sent.warnings))


def read(now: Looking, fields: Fields) -> str:
    """Mark mail to the person as read: a message, or all that the page showed (``ids``)."""
    wanted = set(fields.get("ids", "").split())
    count = now.mailbox.deliver(USER, lambda items: _shown(items, wanted))
    return f"Marked {count} as read." if count else "It was read before."


def _shown(items: list[Item], wanted: set[str]) -> list[Item]:
    """Of the unread mail what stood on the page: that was written out, and its answer taken, before this was asked."""
    return [item for item in items if item.message.id in wanted]


def ack(now: Looking, fields: Fields) -> str:
    """Deal with a message; mail to the person that is still unread is read by that."""
    message_id = fields.get("id", "")
    now.mailbox.deliver(USER, lambda items: _shown(items, {message_id}))
    return f"{frame.short(now.mailbox.ack(message_id, USER).id)} is dealt with."


def release(now: Looking, fields: Fields) -> str:
    """Give a message back that somebody has read: unread again for it, or free for who holds the role next."""
    reader = fields.get("reader") or USER
    message = now.mailbox.release(fields.get("id", ""), reader)
    return f"{frame.short(message.id)} is given back by {presenters.name(reader, now.roster)}: unread again."


def resend(now: Looking, fields: Fields) -> str:
    """Send a message once more, from the person; whose words they were stays said, for the person's weigh more."""
    message, roster = now.mailbox.find(fields.get("id", "")).message, now.roster
    to = tuple(word.strip() for word in fields.get("to", "").split(",") if word.strip())
    quoted = "\n".join(f"> {line}" for line in message.content.splitlines())
    said = f"{frame.sender_of(message, roster)} wrote on {frame.when(message.timestamp)}, sent on by the person:"
    note = fields.get("body", "").strip()
    draft = Draft(
        sender=USER,
        to=to,
        content="\n\n".join(filter(None, [note, f"{said}\n{quoted}"])),
        subject=message.subject,
        thread=message.id,
        ack=message.ack,
        priority=message.priority,
    )
    if message.type == "control":
        raise Refused("a control message is not sent on", "ask anew, with a request of your own")
    return _told(now.mailbox.send(draft, strict=True), roster)


def decide(now: Looking, fields: Fields) -> str:
    """Approve or deny a request, with a reason and, of a tool's call, another input."""
    word, decision = fields.get("decision", ""), fields.get("request", "")
    if word not in ("approve", "deny"):
        raise Malformed(f"no decision {word!r}", "approve or deny")
    request = now.control.find(decision)
    said: dict[str, Any] = {"notes": fields.get("reason", "").strip()}
    if word == "approve":
        said |= _granted(request.flow, getattr(request.payload, "input", None), fields)
    request = now.control.answer(USER, request.id, word == "approve", **said)
    changed = " with the input you changed" if said.get("updated_input") is not None else ""
    asker = presenters.name(request.asker, now.roster)
    return f"{request.id}: {request.state.replace('_', ' ')}{changed}. {asker} is told."


def _granted(flow: str, given: Any, fields: Fields) -> dict[str, Any]:
    if flow == transitions.SANDBOX:
        return {"scope": fields.get("scope", "")}
    if flow == transitions.PLAN:
        return {"mode": fields.get("mode", "")}
    text = fields.get("input")
    if given is None or text is None:
        return {}
    edited = codec.parse(text.replace("\r\n", "\n").encode("utf-8", "surrogatepass"))
    if not isinstance(edited, dict):
        raise Malformed(f"the changed input is no JSON object: {edited.reason}", "nothing was decided; mend it")
    one, other = (codec.dumps(value, -codec.MAX_DEPTH) for value in (edited, given))  # to Python 1 and true are equal
    return {"updated_input": edited} if one != other else {}


def wanted(path: str) -> Act:
    """The act of a path; raises ``NotFound``."""
    try:
        return ACTS[path]
    except KeyError:
        raise NotFound(f"no such act {path!r}", "the buttons of a page are what there is") from None


ACTS: dict[str, Act] = {
    "/send": send,
    "/reply": reply,
    "/read": read,
    "/ack": ack,
    "/release": release,
    "/resend": resend,
    "/decide": decide,
}
