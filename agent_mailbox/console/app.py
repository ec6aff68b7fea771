"""The console as an ASGI application: routes, sessions, streams.

Belongs here: the answer to each path. ``views`` fill the pages, ``actions`` serve the buttons, ``guard`` checks who
may ask.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import jinja2
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from ..core.text import neutral, visible
from ..errors import MailboxError
from ..mailbox.facade import Mailbox
from ..mailbox.opened import random_id
from . import actions, beside, details, presenters, views
from .desk import Desk
from .error_pages import answered
from .gate import Gate
from .guard import ENTRANCE, STATIC, AllowedHosts, Guard, TooMuch
from .live import Event, Hub, OpenPage, Watcher
from .notifier import Notifier
from .page_updates import EventReader
from .survey import Surveyor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Scope

    from .gate import Session

HERE = Path(__file__).parent
MAX_FIELDS = 64
SETTLED = (200, 400, 404, 409)
"""The statuses after which it is known whether a message was sent. Its form then gets another id; after any other, a
second try has the same id and sends no second message."""


class Static(StaticFiles):
    """Our scripts and style. Their address carries a hash of them all, so a browser may cache them for ever. It is part
    of the path, so that a script's relative imports carry it, too."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["cache-control"] = "private, max-age=31536000, immutable"
        return response


class Console:
    """The parts of one console process: the mailbox, the sessions, the live streams. ``hint`` gives the commands in a
    text the options that they need."""

    def __init__(self, directory: str, hosts: AllowedHosts, hint: Callable[[str], str]) -> None:
        self._directory = directory
        self.hint = hint
        self.desk = Desk(directory)
        self.hub = Hub()
        self.gate = Gate(time.monotonic, self.hub.dismiss)
        self.hosts = hosts
        self.surveyor = Surveyor(directory, self._counted)
        self.notifier = Notifier(directory)
        self.watcher = Watcher(Mailbox(directory).logs, self._changed)
        self.reader = EventReader(directory, self._templates())
        self.app = self._application()

    def _changed(self, events: list[Event]) -> None:
        self.hub.tell(events)
        self.surveyor.changed()
        self.notifier.changed()

    def prepare(self, done: Callable[[bool], None]) -> None:
        """Build the index beside the pages, which reload behind it."""

        def built(there: bool) -> None:
            done(there)
            self.hub.tell([Event("resync")])

        self.desk.prepare(built)

    def _counted(self) -> None:
        self.desk.follow()
        self.hub.tell([Event("survey")])

    def _templates(self) -> jinja2.Environment:
        loader = jinja2.FileSystemLoader(HERE / "templates")
        env = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, auto_reload=False)
        env.trim_blocks = env.lstrip_blocks = True
        env.globals.update(link=presenters.link, static=_static(), offset=presenters.offset)
        env.filters.update(visible=visible, hint=self.hint)
        return env

    def _application(self) -> Starlette:
        @asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[None]:
            self.hub.belong(asyncio.get_running_loop())
            self.surveyor.start()
            self.watcher.start()
            self.notifier.start()
            yield
            self.notifier.stop()
            self.hub.close()
            self.watcher.stop()
            self.surveyor.stop()

        routes = [
            *(Route(path, partial(self._page, path)) for path in views.PAGES),
            *(Route(path, partial(self._act, path), methods=["POST"]) for path in actions.ACTS),
            Route(ENTRANCE, self._enter, methods=["POST"]),
            Route("/leave", self._leave, methods=["POST"]),
            Route("/receipts", self._receipts),
            Route(beside.PATH, self._attached),
            Route("/rail", self._rail),
            Route("/events", self._events),
            Mount(f"{STATIC}{_version()}", Static(directory=HERE / "static")),
        ]
        guard = Middleware(Guard, gate=self.gate, hosts=self.hosts, sign_in=self._sign_in)
        return Starlette(
            routes=routes,
            middleware=[guard],
            lifespan=lifespan,
            exception_handlers={
                TooMuch: _too_much,
                ClientDisconnect: _left,
                MailboxError: self._failed,
                Exception: self._failed,
            },
        )

    # -- looking ------------------------------------------------------------------------------------------------------

    async def _page(self, path: str, request: Request) -> Response:
        params = dict(request.query_params)
        return await run_in_threadpool(self._made, path, params, request)

    def _made(self, path: str, params: Mapping[str, str], request: Request) -> Response:
        template, view = views.PAGES[path]
        number, survey, status = self.hub.number, self.surveyor.current(), 200
        with self.desk.looking() as now:
            context: dict[str, Any] = {"problem": None, "details": None, "rows": [], "older": None, "is_newest": True}
            try:
                context |= view(now, survey, params)
            except Exception as error:
                problem, status = answered(error, self.hint)
                template, context = "problem.html", {**context, "title": "Not found", "problem": problem}
            try:
                if params.get("open"):
                    context["details"] = details.details(now, survey, params["open"])
            except Exception as error:
                context["details"] = {"problem": answered(error, self.hint)[0]}
            context |= details.rail(now, survey)
            context["broken"] = neutral(now.mailbox.broken() or "")
            context["covered"] = now.library.covered() if self.desk.prepares else None
        # From here without the lock: other windows need not wait for this page's rendering.
        if context.get("wants_dead"):
            self.surveyor.want_dead()
        session: Session = request.state.session
        said, session.said = session.said, []
        written, session.written = session.written, {}
        here = presenters.link(path, **params)
        rest = {key: value for key, value in params.items() if key != "open"}
        text = self.reader.templates.get_template(template).render(
            **context, path=path, params=params, here=here, closed=presenters.link(path, **rest),
            opens=lambda message_id: presenters.link(path, **rest, open=message_id), said=said, number=number,
            written=written, new_id=random_id,
        )  # fmt: skip
        return HTMLResponse(text, status)

    async def _rail(self, request: Request) -> Response:
        """Answer with the rail of a page alone, which goes out of date more often than the page."""
        params = dict(request.query_params)
        path = params.pop("page", "/")

        def look() -> str:
            with self.desk.looking() as now:
                content = details.rail(now, self.surveyor.current())
            return self.reader.templates.get_template("rail_alone.html").render(**content, path=path, params=params)

        return HTMLResponse(await run_in_threadpool(look))

    async def _receipts(self, request: Request) -> Response:
        ids = request.query_params.get("ids", "").split(",")[: views.PAGE * 4]

        def look() -> dict[str, tuple[str, str]]:
            with self.desk.looking() as now:
                return {i: (r.sign, r.text) for i, r in now.receipts(ids).items()}

        return JSONResponse(await run_in_threadpool(look))

    async def _attached(self, request: Request) -> Response:
        file, name = (request.query_params.get(key, "") for key in ("file", "name"))
        return await run_in_threadpool(beside.served, self._directory, file, name)

    async def _events(self, request: Request) -> Response:
        path, params = request.query_params.get("page", "/"), dict(request.query_params)
        last = request.headers.get("last-event-id") or params.get("last", "")
        write = await run_in_threadpool(self.reader.follow, path, params)
        page = OpenPage(write, request.state.session, stays=path == "/")
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(self.hub.stream(page, last), 200, headers, "text/event-stream")

    # -- acting -------------------------------------------------------------------------------------------------------

    async def _act(self, path: str, request: Request) -> Response:
        fields = await _fields(request)

        def act() -> str:
            with self.desk.acting() as now:
                return self.hint(actions.wanted(path)(now, fields))

        kind, status = "done", 200
        try:
            said = await run_in_threadpool(act)
            if path == "/seen":
                self.hub.publish([Event("seen")])
        except Exception as error:
            problem, status = answered(error, self.hint)
            kind, said = "problem", f"{problem['what']}. {problem['hint']}".strip()
        if status in SETTLED:
            fields["message_id"] = random_id()
        if request.headers.get("accept") == "application/json":
            return JSONResponse({"kind": kind, "said": said, "message_id": fields.get("message_id")}, status)
        session: Session = request.state.session
        session.said.append((kind, said))
        session.written = fields if kind == "problem" else {}
        return RedirectResponse(_local(fields.get("next", "")), 303)

    async def _enter(self, request: Request) -> Response:
        token = (await _fields(request)).get("token", "").strip()
        cookie = self.gate.exchange(token.rpartition("token=")[2])  # people paste the whole link, too
        if cookie is None:
            return self._sign_in(request, "The link was used already or has expired.")
        response = RedirectResponse("/", 303)
        secure = self.hosts.is_secure
        response.set_cookie(self.hosts.cookie, cookie, httponly=True, samesite="strict", path="/", secure=secure)
        return response

    async def _leave(self, request: Request) -> Response:
        name, secure = self.hosts.cookie, self.hosts.is_secure
        self.gate.leave(request.cookies.get(name))
        response = RedirectResponse("/", 303)
        response.delete_cookie(name, httponly=True, samesite="strict", path="/", secure=secure)
        return response

    def _sign_in(self, request: Request, problem: str = "") -> Response:
        text = self.reader.templates.get_template("sign_in.html").render(problem=problem)
        return HTMLResponse(text, 401 if problem or request.method == "GET" else 200)

    def _failed(self, _: Request, error: Exception) -> Response:
        problem, status = answered(error, self.hint)
        return PlainTextResponse(f"{problem['what']}. {problem['hint']}\n", status)


def _version() -> str:
    """Return a hash of the static files."""
    files = sorted((HERE / "static").iterdir())
    return hashlib.sha256(b"".join(path.name.encode() + path.read_bytes() for path in files)).hexdigest()[:12]


def _static() -> Mapping[str, str]:
    """Return the static files' addresses by name."""
    return {path.name: f"{STATIC}{_version()}/{path.name}" for path in (HERE / "static").iterdir()}


async def _fields(request: Request) -> dict[str, str]:
    """Return the fields of a URL-encoded form; of a repeated field the last."""
    body = await request.body()
    try:
        pairs = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict")
    except ValueError:
        return {}
    return {key: values[-1] for key, values in pairs.items()}


def _local(path: str) -> str:
    """Return the path to continue at if it is ours, else the first page."""
    safe = path.startswith("/") and not path.startswith("//") and path.isprintable() and "\\" not in path
    return path if safe else "/"


def _too_much(*_: object) -> Response:
    return PlainTextResponse("the request is too large\n", 413)


def _left(*_: object) -> Response:
    """Answer nobody: the browser left amid its request."""
    return PlainTextResponse("the request ended early\n", 400)
