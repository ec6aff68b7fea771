"""The console as an ASGI application: routes, sessions, streams.

Belongs here: the answer to each path. ``views`` fill the pages, ``actions`` serve the buttons, ``guard`` checks who
may ask.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import CodeType
from typing import Any, Protocol

import jinja2
from jinja2.bccache import Bucket
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from ..core import codec
from ..core.records import PRIORITIES
from ..core.text import neutral, visible
from ..errors import MailboxError
from ..mailbox.mailbox import Mailbox
from ..mailbox.open_mailbox import random_id
from ..space import space as spaces
from ..store.files import paths, system
from ..store.user_state import replaced_program
from . import (
    actions,
    beside,
    channel_page,
    details,
    list_routes,
    mail_lists,
    presenters,
    rail,
    views,
)
from .all_mailboxes import name_mailbox
from .desk import Desk, Looking, Params
from .entrance import Entrance, describe_sessions, keep_files, local_path, read_form
from .error_pages import describe_error
from .guard import STATIC, TOO_LARGE, AllowedHosts, Gate, Guard, Session, TooMuch
from .live import Event, LiveHub, OpenPage, PageUpdater, Watcher
from .notifier import Notifier
from .survey import SurveyThread

HERE = Path(__file__).parent
SEEKING = ("/search", "/decided", "/timeline")
"""The pages that look through much."""
SETTLED = (200, 400, 404, 409)
"""The statuses after which it is known whether a message was sent. Its form then gets another id; after any other, a
second try has the same id and sends no second message."""

REPLACED = f"{replaced_program.WHAT}. This is still the earlier version: end it, and run `agent-mailbox console` again"


class Static(StaticFiles):
    """Our scripts and style. Their address carries a hash of them all, so a browser may cache them for ever. It is part
    of the path, so that a script's relative imports carry it, too."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["cache-control"] = "private, max-age=31536000, immutable"
        return response


class CompiledTemplates(jinja2.BytecodeCache):
    """The templates as this process compiled them: the console of a further mailbox does not do so again."""

    def __init__(self) -> None:
        self._codes: dict[tuple[str, str], CodeType | None] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._codes.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._codes[bucket.key, bucket.checksum] = bucket.code


COMPILED = CompiledTemplates()


def make_templates(directory: str, hint: Callable[[str], str], static: str) -> jinja2.Environment:
    """Return the templates for the pages of a mailbox, all of them compiled: an upgrade brings others. ``static``: the
    address of the static files."""
    loader = jinja2.FileSystemLoader(HERE / "templates")
    env = jinja2.Environment(
        loader=loader,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=COMPILED,
    )
    files = {path.name: f"{static}/{path.name}" for path in (HERE / "static").iterdir()}
    env.globals.update(
        link=presenters.page_link, static=files, offset=presenters.utc_offset, new_id=random_id, written={},
        mailbox=name_mailbox(directory), icons=("/icon.svg", "/icon.svg?waits=1"), later=None,
        priorities=PRIORITIES,
    )  # fmt: skip
    in_context = jinja2.pass_context(lambda _, text: hint(text))  # else its answer would be part of the code for all
    env.filters.update(visible=visible, hint=in_context)
    env.filters.update(iso=presenters.iso_instant, exactly=presenters.exact_moment)
    for name in env.list_templates():
        env.get_template(name)
    return env


class Neighbours(Protocol):
    """The consoles of all mailboxes, as one of them asks: see ``consoles``."""

    def describe_others(self, here: str) -> dict[str, Any]: ...

    async def find_way(self, key: str, page: str) -> str | None: ...


class ConsoleApp:
    """The parts of one mailbox's console: the mailbox, the sessions, the live streams. ``hint`` gives the commands in a
    text the options that they need. ``neighbours``: those of all mailboxes. ``place``: this one's real path."""

    def __init__(self, directory: str, hosts: AllowedHosts, hint: Callable[[str], str], neighbours: Neighbours) -> None:
        self._directory = directory
        self.hint = hint
        self._neighbours = neighbours
        self.surveyor = SurveyThread(directory, self._tell_counted)
        self.desk = Desk(directory, self.surveyor.current_survey)
        self.place = system.real_directory(self.desk.directory)
        self.hub = LiveHub()
        self.gate = Gate(time.monotonic, self.hub.dismiss_owner)
        self.hosts = hosts
        self._owed: list[str] = []
        self._static = _static_address()  # of now: an upgrade may be between the first mailbox's console and another's
        self.notifier = Notifier(directory, f"{hosts.origin_of('')}/" if hosts.is_secure else "")
        self.watcher = Watcher(Mailbox(directory).logs, self._note_change)
        self.reader = PageUpdater(directory, make_templates(self.desk.directory, hint, self._static))
        self.entrance = Entrance(self.gate, hosts, self.reader.templates, neighbours.find_way)
        self.app = self._make_application()

    def _note_change(self, events: list[Event]) -> None:
        self.hub.tell_pages(events)
        self.surveyor.request_count()
        self.notifier.note_change()

    def start_serving(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start what runs beside the pages."""
        self.hub.loop = loop
        self.surveyor.start_counting()
        self.watcher.start_watching()
        self.notifier.start_notifying()

    def stop_serving(self) -> None:
        self.notifier.stop_notifying()
        self.hub.close_streams()
        self.watcher.stop_watching()
        self.surveyor.stop_counting()

    def prepare_index(self, done: Callable[[bool], None]) -> None:
        """Build the index beside the pages, which reload behind it."""

        def reload_pages(there: bool) -> None:
            done(there)
            self.hub.tell_pages([Event("resync")])

        self.desk.prepare_index(reload_pages)

    def _tell_counted(self) -> None:
        self.desk.advance_cursor()
        owed = [message.id for message in self.surveyor.newest.owed]
        self.hub.tell_pages([Event("survey"), *([Event("owed")] if owed != self._owed else [])])
        self._owed = owed

    def _make_application(self) -> Starlette:
        @asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[None]:
            self.start_serving(asyncio.get_running_loop())
            yield
            self.stop_serving()

        routes = [
            *(Route(path, partial(self._answer_page, path)) for path in views.PAGES),
            *(Route(path, partial(self._answer_action, path), methods=["POST"]) for path in actions.ACTS),
            *self.entrance.routes(),
            Route("/receipts", self._answer_receipts),
            Route("/waiting", self._answer_waiting),
            Route("/icon.svg", self._answer_icon),
            Route(beside.PATH, self._answer_attachment),
            Route("/rail", partial(self._answer_part, "rail_alone.html", rail.rail_content)),
            Route("/columns", partial(self._answer_part, "columns_alone.html", channel_page.describe_columns)),
            Route("/details", partial(self._answer_part, "details_alone.html", self._view_details)),
            Route("/events", self._answer_events),
            Route("/jump", partial(list_routes.answer_jump, self.desk)),
            Route("/save", partial(list_routes.answer_save, self.desk)),
            Mount(self._static, Static(directory=HERE / "static")),
        ]
        guard = Middleware(Guard, gate=self.gate, hosts=self.hosts, sign_in=self.entrance.sign_in)
        return Starlette(
            routes=routes,
            middleware=[guard],
            lifespan=lifespan,
            exception_handlers={
                404: self._answer_unknown,
                TooMuch: lambda *_: PlainTextResponse(f"{TOO_LARGE}\n", 413),
                ClientDisconnect: lambda *_: PlainTextResponse("the request ended early\n", 400),  # to nobody
                MailboxError: self._answer_failure,
                Exception: self._answer_failure,
            },
        )

    # -- looking ------------------------------------------------------------------------------------------------------

    async def _answer_page(self, path: str, request: Request) -> Response:
        params = dict(request.query_params)
        return await run_in_threadpool(self._make_page, path, params, request)

    async def _answer_unknown(self, request: Request, _: Exception) -> Response:
        if request.state.session is None:  # a file of the console, which anyone may ask for
            return PlainTextResponse("there is no such file\n", 404)
        return await self._answer_page(request.url.path, request)

    def _make_page(self, path: str, params: Params, request: Request) -> Response:
        template, view = views.PAGES.get(path, views.UNKNOWN)
        number, status = self.hub.number, 200
        with self.desk.lock_for_seeking() if path in SEEKING else self.desk.lock_for_reading() as now:
            context: dict[str, Any] = {"details": None}
            try:
                context |= view(now, params)
            except Exception as error:
                problem, status = describe_error(error, self.hint)
                template, context = "problem.html", {**context, "title": "Not found", "problem": problem}
            shown = params.get("open") or context.get("chosen")
            if shown:
                context |= self._view_details(now, {"open": shown})
            context |= rail.rail_content(now, params) | self._neighbours.describe_others(self.place)
            context["broken"] = neutral(now.mailbox.logs.broken() or "")
            logs = now.mailbox.logs
            context["late"] = spaces.standing_troubles(logs, waiting=True) if logs.is_shared else []
            context["clock"] = now.mailbox.now()
            context["covered"] = now.queries.covered() if now.queries.newest_alone else None
        session: Session = request.state.session
        if path == "/sessions":
            context["sessions"] = describe_sessions(self.gate.sessions(), session, time.monotonic())
        # From here without the lock: other windows need not wait for this page's rendering.
        context["late"] += [REPLACED] if replaced_program.was_replaced() else []
        if context.get("wants_dead"):
            self.surveyor.want_dead()
        said: list[tuple[str, str]] = []
        written: dict[str, str] = {}
        if request.headers.get("sec-fetch-mode", "navigate") == "navigate":  # who fetches it shows no notice
            said, session.said = session.said, []
            written, session.written = session.written, {}
        text = self._render(template, path, params, **context, said=said, number=number, written=written)
        return HTMLResponse(text, status)

    def _render(self, template: str, path: str, params: Params, **context: Any) -> str:
        """Return a template's text. It has the addresses of its page: this one, with another message, with none."""
        rest = {key: value for key, value in params.items() if key != "open"}
        return self.reader.templates.get_template(template).render(
            **context, path=path, params=params, here=presenters.page_link(path, **params),
            closed=presenters.page_link(path, **rest),
            opens=lambda message_id: presenters.page_link(path, **rest, open=message_id),
        )  # fmt: skip

    def _view_details(self, now: Looking, params: Params) -> dict[str, Any]:
        """Return the opened message of a page."""
        try:
            return {"details": details.view_message(now, params.get("open", ""))}
        except Exception as error:
            return {"details": {"problem": describe_error(error, self.hint)[0]}}

    async def _answer_part(self, template: str, view: views.View, request: Request) -> Response:
        """Answer with a part of a page alone: it goes out of date more often, or one goes from one to the next."""
        params = dict(request.query_params)
        path = params.pop("page", "/")

        def render_part() -> str:
            with self.desk.lock_for_reading() as now:
                content = view(now, params)
            return self._render(template, path, params, **content, **self._neighbours.describe_others(self.place))

        return HTMLResponse(await run_in_threadpool(render_part))

    async def _answer_receipts(self, request: Request) -> Response:
        ids = request.query_params.get("ids", "").split(",")[: mail_lists.PAGE * 4]

        def look_up_receipts() -> dict[str, tuple[str, str, bool]]:
            with self.desk.lock_for_reading() as now:
                messages, reads = now.queries.known(ids)
                found = {m.id: presenters.receipt_of(m, reads, now.roster) for m in messages}
                return {i: (r.sign, r.text, r.is_quiet) for i, r in found.items()}

        return JSONResponse(await run_in_threadpool(look_up_receipts))

    async def _answer_waiting(self, _: Request) -> Response:
        """Answer with the requests that the person decides, by their ids: each one's words and page."""

        def name_requests() -> dict[str, tuple[str, str]]:
            with self.desk.lock_for_reading() as now:
                return {key: (words, href) for _, key, words, href in rail.name_requests(now)}

        return JSONResponse(await run_in_threadpool(name_requests))

    async def _answer_icon(self, request: Request) -> Response:
        """Answer with the page's icon in this mailbox's own colour: of many open consoles each is known by it."""
        name = "icon-waiting.svg" if request.query_params.get("waits") else "icon.svg"
        hue = int.from_bytes(hashlib.sha256(self.desk.directory.encode()).digest()[:2], "big") % 360
        text = (HERE / "static" / name).read_text(encoding="ascii").replace("#2f5d8a", f"hsl({hue} 49% 36%)")
        return Response(text, headers={"cache-control": "private, max-age=86400"}, media_type="image/svg+xml")

    async def _answer_attachment(self, request: Request) -> Response:
        file, name = (request.query_params.get(key, "") for key in ("file", "name"))
        return await run_in_threadpool(beside.serve_file, self._directory, file, name)

    async def _answer_events(self, request: Request) -> Response:
        path, params = request.query_params.get("page", "/"), dict(request.query_params)
        await run_in_threadpool(paths.check, self.desk.directory)  # no page is live while its mailbox is gone
        last = request.headers.get("last-event-id") or params.get("last", "")
        update = await run_in_threadpool(self.reader.updates_for, path, params)
        session: Session = request.state.session

        def write(event: Event) -> Iterable[tuple[str, str]]:
            if event.kind != "said":
                return update(event)
            if event.owner is not session:
                return ()
            session.said = [said for said in session.said if said != event.ids]
            return [("said", codec.dumps(event.ids))]

        page = OpenPage(write, session, stays=path == "/")
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(self.hub.stream_events(page, last), 200, headers, "text/event-stream")

    # -- acting -------------------------------------------------------------------------------------------------------

    async def _answer_action(self, path: str, request: Request) -> Response:
        fields, files = await read_form(request)

        def run_action() -> tuple[str, str]:
            with self.desk.lock_for_acting() as now:
                fields["attached"] = keep_files(now, files) if files else ""
                told = actions.ACTS[path](now, fields)
                return "news" if isinstance(told, presenters.Unchanged) else "done", self.hint(told)

        status = 200
        try:
            kind, said = await run_in_threadpool(run_action)
            if path in ("/seen", "/place"):
                self.hub.publish_events([Event("seen")])
            if path == "/put-off":
                self.hub.publish_events([Event("owed")])
        except Exception as error:
            problem, status = describe_error(error, self.hint)
            kind, said = "problem", f"{presenters.end_sentence(problem['what'])} {problem['hint']}".strip()
        if status in SETTLED:
            fields["message_id"] = random_id()
        session: Session = request.state.session
        if "application/json" in request.headers.get("accept", ""):
            if fields.get("leaves"):  # nobody reads this answer: the page that comes tells it
                session.said.append((kind, said))
                self.hub.publish_events([Event("said", ids=(kind, said), owner=session)])
            return JSONResponse({"kind": kind, "said": said, "message_id": fields.get("message_id")}, status)
        session.said.append((kind, said))
        session.written = fields if kind == "problem" else {}
        again = fields.get("again") if kind == "problem" else ""  # where the form is that keeps what was written
        return RedirectResponse(local_path(again or fields.get("next", "")), 303)

    def _answer_failure(self, _: Request, error: Exception) -> Response:
        problem, status = describe_error(error, self.hint)
        return PlainTextResponse(f"{presenters.end_sentence(problem['what'])} {problem['hint']}\n", status)


def _static_address() -> str:
    """Return where the static files are: the address has a hash of them all."""
    files = sorted((HERE / "static").iterdir())
    return STATIC + hashlib.sha256(b"".join(path.name.encode() + path.read_bytes() for path in files)).hexdigest()[:12]
