"""The ways out of a list of mail: to a day, on to newer mail, and into a file.

Belongs here: the answers that are no page. A page lists what comes before a position, so the one after an instant is
found by where its messages end. The texts of a file are other people's. In Markdown each is in a fence that it cannot
end: it is exact, and does nothing where the file is opened.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from ..core import codec, instant
from ..core.records import Message
from ..core.roster import Roster
from ..core.text import ascii_json, visible_text
from ..errors import Malformed
from ..mailbox.selection import Position
from . import beside, mail_lists, presenters, topics
from .desk import Desk, Looking, Params

FORWARD = 40
"""Messages after an instant on its page: fewer than a page, for answers in a thread are listed besides."""
STEPS = 12
"""Stretches of a channel that are looked through for a topic."""
MOST = 10_000
"""The newest messages of a file; ``agent-mailbox export`` has all."""
STEP = 200
"""Messages that are read at once: other pages are answered between."""
_UNUSUAL = re.compile(r"[^A-Za-z0-9_.-]+")
_MARKS = re.compile(r"([\\`*_{}\[\]<>()#+!|~-])")
_TICKS = re.compile("`+")


async def answer_jump(desk: Desk, request: Request) -> Response:
    """Lead on to a day of a list, or to what came after one of its pages."""
    params = dict(request.query_params)

    def look_for_page() -> tuple[str, str]:
        with desk.lock_for_seeking() as now:
            return find_page(now, params)

    address, said = await run_in_threadpool(look_for_page)
    if said:
        request.state.session.said.append(("done", said))
    return RedirectResponse(address, 303)


async def answer_save(desk: Desk, request: Request) -> Response:
    params = dict(request.query_params)
    path = params.pop("page", "")
    if (form := FORMS.get(params.pop("as", ""))) is None:
        return PlainTextResponse("no such form of a file; choose Markdown or JSON lines\n", 404)
    suffix, kind, spell = form

    def write_file() -> tuple[str, bytes]:
        found = read_conversation(desk.lock_for_seeking, path, params)
        with desk.lock_for_seeking() as now:
            title = name_conversation(now, path, params)
            return title, "".join(spell(found, now.roster, title)).encode("utf-8", "replace")

    title, data = await run_in_threadpool(write_file)
    saved = f'attachment; filename="{name_file(title, suffix)}"'
    return Response(data, headers={"content-disposition": saved}, media_type=kind)


def find_page(now: Looking, params: Params) -> tuple[str, str]:
    """Return the address of the page of a list (``page``) at a day (``day``), or after an instant (``after``, ms).

    The second value says what the person is to know, empty if all is as they asked."""
    path = params.get("page", "/archive")
    rest = {key: value for key, value in params.items() if key not in ("page", "day", "after", "open", "before")}
    chosen = mail_lists.selection_of_page(path, rest)
    if chosen is None:
        raise Malformed(f"this page lists no mail: {path!r}", "jump from a channel, a talk or all mail")
    end: int | None
    since = end = _since_of(params)
    for _ in range(STEPS):
        end = now.queries.end_after(chosen, end, FORWARD)
        place = {} if end is None else {"before": f"{end + 1}.z"}
        shown = mail_lists.list_mail(now, path, {**rest, **place})["rows"]
        first = next((row for row in shown if row["at"] > since), None)
        if first is not None:
            return f"{presenters.page_link(path, **rest, **place)}#m-{first['id']}", ""
        if end is None:
            break
    said = f"Nothing was written here since {presenters.local_day(since + 1)}. This is the newest."
    return presenters.page_link(path, **rest), said


def _since_of(params: Params) -> int:
    if after := params.get("after"):
        return presenters.parse_instant(after)
    found = mail_lists.parse_date(params.get("day", ""))
    if found is None:
        raise Malformed("no day is given", "choose the day to go to")
    return max(found, instant.MINUTE) - 1


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
