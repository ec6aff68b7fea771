"""The ways out of a list of mail: to a day, on to newer mail, and into a file.

Belongs here: the answers that are no page. ``date_jumps`` and ``saved_talks`` have what is in them.
"""

from __future__ import annotations

from functools import partial

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from . import date_jumps, saved_talks
from .desk import Desk


def make_routes(desk: Desk) -> list[Route]:
    """Return what is answered here, by its path."""
    return [Route("/jump", partial(answer_jump, desk)), Route("/save", partial(answer_save, desk))]


async def answer_jump(desk: Desk, request: Request) -> Response:
    """Lead on to a day of a list, or to what came after one of its pages."""
    params = dict(request.query_params)

    def find_page() -> tuple[str, str]:
        with desk.lock_for_seeking() as now:
            return date_jumps.find_page(now, params)

    address, said = await run_in_threadpool(find_page)
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
