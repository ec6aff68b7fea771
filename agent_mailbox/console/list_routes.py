"""The ways out of a list of mail: to a day, on to newer mail, and into a file.

Belongs here: the answers that are no page, and from a day or an instant to the page that shows it. A page lists what
comes before a position, so the one after an instant is found by where its messages end. ``saved_talks`` has the file.
"""

from __future__ import annotations

from functools import partial

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from ..core import instant
from ..errors import Malformed
from . import mail_lists, presenters, saved_talks
from .desk import Desk, Looking, Params

FORWARD = 40
"""Messages after an instant on its page: fewer than a page, for answers in a thread are listed besides."""
STEPS = 12
"""Stretches of a channel that are looked through for a topic."""


def make_routes(desk: Desk) -> list[Route]:
    """Return what is answered here, by its path."""
    return [Route("/jump", partial(answer_jump, desk)), Route("/save", partial(answer_save, desk))]


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
    """Answer with a conversation as a file to save."""
    params = dict(request.query_params)
    path = params.pop("page", "")
    if (form := saved_talks.FORMS.get(params.pop("as", ""))) is None:
        return PlainTextResponse("no such form of a file; choose Markdown or JSON lines\n", 404)
    suffix, kind, spell = form

    def write_file() -> tuple[str, bytes]:
        found = saved_talks.read_conversation(desk.lock_for_seeking, path, params)
        with desk.lock_for_seeking() as now:
            title = saved_talks.name_conversation(now, path, params)
            return title, "".join(spell(found, now.roster, title)).encode("utf-8", "replace")

    title, data = await run_in_threadpool(write_file)
    saved = f'attachment; filename="{saved_talks.name_file(title, suffix)}"'
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
