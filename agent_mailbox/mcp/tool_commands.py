"""The tools: one call on the mailbox, one answer as text and as data.

Belongs here: what each tool does once its arguments are checked. The texts and errors are those of the commands.
Other people's words stay in their frame, in the data as well, because some clients show a model the data alone.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

from ..cli import boundary, mail_output, render, show_verbs, values, verbs
from ..core import frame, proofs, words
from ..core.compose import Draft
from ..core.records import USER
from ..core.roster import ALIVE, FROZEN
from ..core.showing import message_frame, thread_blocks
from ..core.text import clipped
from ..errors import MailboxError, Malformed
from ..mailbox import agents
from ..mailbox.delivery import Delivery, Offering, load_offers
from ..mailbox.mailbox import Mailbox
from ..mailbox.queries import MailQueries
from . import board_tools
from .call_context import SAID, CallContext
from .tool_schemas import MOST, TOOLS, checked_arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..core.inbox import Item
    from ..core.reach import Arrival
    from ..core.records import Message
    from ..core.roster import Agent, Roster
    from ..mailbox.sending import Sent
    from .call_context import Write

    Given = Mapping[str, Any]

TOKEN = 4
"""Characters that count as one token, as in the hooks' budget."""
AGENTS = 50
"""Agents that one answer lists."""
WHOLE = 1 << 16
"""Characters of the one message that a call asks for by its id."""


def answer_call(directory: str | None, tool: str, given: Given, write: Write) -> None:
    """Answer a call through ``write``, which returns once the client has the answer."""
    app = CallContext(directory, write)
    try:
        if tool not in TOOLS:
            raise Malformed(f"no such tool: {tool!r:.100}", f"call one of {', '.join(TOOLS)}", code="usage")
        desk = app.open_desk(Mailbox)
        desk.weigh_mail()
        checked = checked_arguments(tool, given)
        app.named = checked.get("session")
        _ANSWERS[tool](app, desk, checked)
    except Exception as error:
        known = boundary.as_mailbox_error(error)
        if known.code.startswith("output"):
            raise known from None
        _tell_failure(app, known)


def _tell_failure(app: CallContext, error: MailboxError) -> None:
    what, hint = (clipped(as_arguments(said), SAID) for said in boundary.error_lines(error, app.complete_hint))
    text = f"error: {what}\n" + (f"hint: {hint}\n" if hint else "")
    app.tell(text, {"error": {"code": error.code, "message": what, "hint": hint}}, failed=True)


def as_arguments(said: str) -> str:
    """Return an error or a hint with the tool's arguments in the place of a command's options. A command in backticks
    stays: the person may run it."""
    pieces = _HINTS.get(said, said).split("`")
    pieces[::2] = [_OPTION.sub(_as_argument, piece) for piece in pieces[::2]]
    return "`".join(pieces)


def _as_argument(found: re.Match[str]) -> str:
    word = found[1].replace("-", "_")
    return word if any(word in tool.schema["properties"] for tool in TOOLS.values()) else found[0]


_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*)(?: [A-Z]+\b)?")
_HINTS = {
    "pass --body TEXT, --body - (standard input) or --body @FILE": "pass body",
    "write it to a file and send its path": "send it in parts, or name the path of a file in the body",
}
"""Hints of commands that mean something else in a tool."""


def _check_mail(app: CallContext, desk: Mailbox, given: Given) -> None:
    """Show unread mail, as much as there is room for; it is recorded as read once the client has it."""
    me, limit = app.reading_session(desk), given.get("limit", MOST)
    room = desk.config.hook_tokens * TOKEN
    offer = Offering(None, 0, "", {}, set(), quiet=not load_offers(desk.logs, me))

    def choose_items(items: list[Item]) -> Sequence[Item]:
        return _fitting_items(items[:limit], desk.logs.read_roster(), room, desk.directory)

    def show_items(items: list[Item]) -> Sequence[Item]:
        roster, shown, box = desk.logs.read_roster(), choose_items(items), desk.directory
        delivery, fitting = desk.part(Delivery), len(items) - len(shown)
        held = mail_output.unclaimed_text(delivery.left, delivery.waits)
        more = fitting + delivery.left
        again = fitting if held else more
        rest = "\n".join(filter(None, [f"{again} more: check again" if again else "", held]))
        data = {"session": me, "messages": [_item_data(i, roster, room, box) for i in shown], "count": len(shown)}
        texts = _message_blocks(desk, shown, roster, room)
        app.tell(_check_text(me, shown, rest, roster, texts), data | {"more": more})
        offer.titles.update(i.message.id for i in shown if len(_whole_message(i, roster, box)) > room)  # those were cut
        return shown

    desk.deliver(me, show_items, choose=choose_items, offering=offer)


def _message_block(item: Item, roster: Roster, room: int, box: str) -> str:
    """Return a message in its frame, cut to the room."""
    text = _whole_message(item, roster, box)
    if len(text) <= room:
        return text
    kept = text[:room].rpartition("\n")[0] if "\n" in text[:room] else ""
    body = kept if kept.count("\n") else text[:room]
    return f"{body}\n(cut; all: search id:{frame.short(item.message.id)})"


def _whole_message(item: Item, roster: Roster, box: str) -> str:
    return "\n".join(message_frame.item(item, roster, box=box))


def _fitting_items(items: Sequence[Item], roster: Roster, room: int, box: str) -> list[Item]:
    """Return the first items whose texts fit into the room: at least one."""
    fitting: list[Item] = []
    for item in items:
        room -= len(_message_block(item, roster, room if not fitting else 1 << 30, box)) + 2
        if fitting and room < 0:
            break
        fitting.append(item)
    return fitting


def _message_blocks(desk: Mailbox, shown: Sequence[Item], roster: Roster, room: int) -> list[str]:
    """Return the messages, with those of one thread in one block."""
    whole = {item.message.id: _message_block(item, roster, room, desk.directory) for item in shown}
    if not thread_blocks.may_share(shown):
        return [*whole.values()]
    found: list[str] = []
    for block in thread_blocks.arrange(shown, desk.look_up):
        lines = block.lines()
        for row in block.rows:
            head = message_frame.row_head(row, roster, block.told_thread)
            lines += [head, *whole[row[0].message.id].split("\n")[1:]]
        found.append("\n".join(lines))
    return found


def _check_text(me: str, shown: Sequence[Item], rest: str, roster: Roster, texts: Sequence[str]) -> str:
    if not shown:
        return f"{rest or 'no new mail'}\n"
    head = f"{mail_output.count_noun(len(shown), 'unread message')} for {frame.name_of(me, roster)}"
    return "\n\n".join(filter(None, [head, *texts, rest])) + "\n"


def _item_data(item: Item, roster: Roster, room: int, box: str) -> dict[str, Any]:
    """Return a message for programs, and for models that are shown nothing else: its words are framed."""
    m = item.message
    known = {"thread": m.thread, "ack": m.ack or None, "mode": item.mode}
    said = {name: value for name, value in known.items() if value is not None}
    return _sender_object(m, roster) | said | {"text": _message_block(item, roster, room, box)}


def _sender_object(message: Message, roster: Roster) -> dict[str, Any]:
    """Return id, sender and proof; a line that merely claims to be the person's says so in its sender, too."""
    sender = frame.sender_of(message, roster) if message.sender == USER else message.sender
    return {"id": message.id, "sender": sender, "proof": proofs.told(message)}


def _send_message(app: CallContext, desk: Mailbox, given: Given) -> None:
    """Send a message."""
    draft = _draft_from(app, desk, given, verbs.split_recipients([given["to"]]))
    if draft.thread is not None:
        draft = draft.replace(thread=desk.find(draft.thread).message.id)
    verbs.confirm_sent(app, desk, desk.send(draft), tell=partial(_tell_sent, app))


def _draft_from(app: CallContext, desk: Mailbox, given: Given, to: Sequence[str] = ()) -> Draft:
    """Return what is to be sent: the text is the text, and names no file."""
    return Draft(
        sender=app.acting_session(desk),
        to=tuple(to),
        content=given["body"],
        subject=given.get("subject"),
        thread=given.get("thread"),
        expires_at=values.parse_expiry(given.get("expires_at"), desk.now()),
        ack=given.get("ack", False),
        priority=given.get("priority", "normal"),
        when=given.get("when"),
    )


def _tell_sent(app: CallContext, sent: Sent, found: Arrival) -> None:
    text = verbs.sent_text(sent, found, sent.roster, frame.plain, app.complete_command)
    whole = mail_output.arrival_json(found)
    reasons = {who: why for who, why in whole.pop("reasons").items() if who in whole["agents"][:AGENTS]}
    delivery = {way: parties[:AGENTS] for way, parties in whole.items()} | {"reasons": reasons}
    message = {"id": sent.message.id, "proof": proofs.told(sent.message)}
    app.tell(text, {"message": message, "delivery": delivery})


def _send_reply(app: CallContext, desk: Mailbox, given: Given) -> None:
    """Answer a message in its thread."""
    sent = desk.reply(given["id"], _draft_from(app, desk, given), everyone=given.get("all", False))
    verbs.confirm_sent(app, desk, sent, tell=partial(_tell_sent, app))


def _search_messages(app: CallContext, desk: Mailbox, given: Given) -> None:
    """Find messages by their words, or one by its id, whole."""
    query = given["query"]
    if query.startswith("id:"):
        _show_message(app, desk, query.removeprefix("id:").strip())
        return
    words.check(query)
    limit = given.get("limit", MOST)
    found, reads = MailQueries(desk).search(query, show_verbs.one_more(limit))
    messages, is_older = show_verbs.split_newest(found, limit)
    roster = desk.logs.read_roster()
    nothing, unsent = "no message contains all these words\n", desk.unsent()
    text = render.messages_text(messages, reads, roster, frame.plain, unsent=unsent) or nothing
    text += "older ones are left out: name more words\n" if is_older else ""
    data = [
        _sender_object(m, roster) | {"title": frame.title(m)} | mail_output.unsent_json(unsent.get(m.id))
        for m in messages
    ]
    app.tell(text, {"messages": data, "older": is_older})


def _show_message(app: CallContext, desk: Mailbox, message_id: str) -> None:
    found = desk.find(message_id)
    roster = desk.logs.read_roster()
    text = "\n".join(render.message_text(found.message, roster, frame.plain, desk.directory)) + "\n"
    is_all = len(text) <= WHOLE
    text = text if is_all else f"{text[:WHOLE]}\n(cut; it has {len(text)} characters)\n"
    app.tell(text, {"messages": [_sender_object(found.message, roster) | {"text": text}]})
    if is_all:
        try:
            me = app.acting_session(desk)
        except MailboxError:
            return  # who names no session may search, too
        show_verbs.note_told(app, desk, me, [found.message], found.reads)


def _list_agents(app: CallContext, desk: Mailbox, given: Given) -> None:
    """List the agents that are not dead, the latest seen first; tell who calls."""
    me = app.acting_session(desk)
    found: list[tuple[Agent, int]]
    if "agent" in given:
        agent, seen = agents.one(desk, given["agent"])
        found = [(agent, seen or 0)]
    else:
        living = [(agent, seen) for agent, seen in agents.every(desk) if agent.state in (ALIVE, FROZEN)]
        found = sorted(living, key=lambda one: -one[1])
    shown, more = found[:AGENTS], len(found) - AGENTS
    gone = desk.gone_of(agent for agent, _ in shown)
    text = f"you: {frame.whole_id(me)}\n" + render.agents_text(shown, gone, frame.plain)
    text += f"{more} more: who with their name or id\n" if more > 0 else ""
    whole = [render.agent_json(agent, seen, gone) for agent, seen in shown]
    data = [{key: one[key] for key in ("session_id", "name", "tags", "state")} for one in whole]
    app.tell(text, {"session": me, "agents": data, "more": max(more, 0)})


_ANSWERS: dict[str, Callable[[CallContext, Mailbox, Given], None]] = {
    "check": _check_mail,
    "send": _send_message,
    "reply": _send_reply,
    "task": board_tools.do_task,
    "note": board_tools.do_note,
    "search": _search_messages,
    "who": _list_agents,
}
