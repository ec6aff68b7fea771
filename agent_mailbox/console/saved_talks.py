"""A conversation as a file to save, and one message as its log has it.

Belongs here: Markdown and JSON lines of a list of mail. The texts are other people's. In Markdown each
is in a fence that it cannot end: it is exact, and does nothing where the file is opened.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from ..core import codec
from ..core.records import Message
from ..core.roster import Roster
from ..core.text import ascii_json, visible, visible_text
from ..errors import Malformed
from ..mailbox.mail_pages import Position
from . import beside, mail_lists, presenters, topics
from .desk import Looking, Params

MOST = 10_000
"""The newest messages of a file; ``agent-mailbox export`` has all."""
STEP = 200
"""Messages that are read at once: other pages are answered between."""
_UNUSUAL = re.compile(r"[^A-Za-z0-9_.-]+")
_MARKS = re.compile(r"([\\`*_{}\[\]<>()#+!|~-])")
_TICKS = re.compile("`+")


def view_raw(now: Looking, params: Params) -> dict[str, Any]:
    """Return the line of a message as it is in its log."""
    message = now.queries.found(params.get("id", "")).message
    line = now.queries.stored_line(message.id).decode("utf-8", "replace")
    back = presenters.page_link("/archive", open=message.id)
    return {"title": "The line of a message", "line": visible(line), "size": len(line), "back": back}


def read_conversation(lock: Callable[[], AbstractContextManager[Looking]], path: str, params: Params) -> list[Message]:
    """Return the newest messages of a list, oldest first; ``lock`` is taken for each part."""
    chosen = mail_lists.selection_of_page(path, params)
    if chosen is None or path == "/search":
        raise Malformed(f"this page is no conversation: {path!r}", "save a channel, a talk or all mail")
    topic = topics.topic_of_param(params.get("topic"))
    parts: list[tuple[Message, ...]] = []
    before: Position | None = None
    while sum(map(len, parts)) < MOST:
        with lock() as now:
            page = mail_lists.read_page(now, path, chosen, topic, before, STEP)
        parts.append(page.messages)
        before = page.before
        if before is None:
            break
    return [message for part in reversed(parts) for message in part][-MOST:]


def spell_json_lines(messages: Iterable[Message], _: Roster, __: str) -> Iterator[str]:
    """Yield the messages as records of the file format, one in a line."""
    for message in messages:
        yield ascii_json(codec.dumps(codec.message_object(message), -codec.MAX_DEPTH)) + "\n"


def spell_markdown(messages: Iterable[Message], roster: Roster, title: str) -> Iterator[str]:
    """Yield the messages as Markdown, with a heading for each day and each message."""
    yield f"# {_plain(title)}\n"
    day = ""
    for message in messages:
        if (that := presenters.local_day(message.timestamp)) != day:
            day = that
            yield f"\n## {day}\n"
        sender = presenters.sender_name(message, roster, person="user")
        to = presenters.name_addresses(message.recipients, roster)
        yield f"\n### {_plain(sender)} → {_plain(to)}, {presenters.clock_time(message.timestamp)}\n\n"
        if message.subject:
            yield f"**{_plain(message.subject)}**\n\n"
        text = visible_text(message.content)
        fence = "`" * max([3, *(len(run) + 1 for run in _TICKS.findall(text))])
        yield f"{fence}text\n{text}\n{fence}\n"
        for one in beside.links_of(message):
            yield f"\n- {_plain(one.text)}{f' ({_plain(one.size)})' if one.size else ''}\n"


def _plain(text: str) -> str:
    """Return a name or a subject as plain words of Markdown."""
    return _MARKS.sub(r"\\\1", presenters.one_line(text))


FORMS = {"markdown": ("md", "text/markdown", spell_markdown), "jsonl": ("jsonl", "application/jsonl", spell_json_lines)}


def name_conversation(now: Looking, path: str, params: Params) -> str:
    """Return the title of a list of mail, as its page has it."""
    if path == "/channel":
        topic = params.get("topic")
        return presenters.channel_label(params.get("to", "")) + (f" › {presenters.one_line(topic)}" if topic else "")
    who = params.get("with") or params.get("id")
    return presenters.party_name(now.roster.find(who).session_id, now.roster) if who else "All mail"


def name_file(title: str, suffix: str) -> str:
    """Return a name for a conversation's file, of letters and digits."""
    return f"{_UNUSUAL.sub('-', title).strip('-.')[:60] or 'mail'}.{suffix}"
