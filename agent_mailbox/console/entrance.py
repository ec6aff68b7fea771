"""Signing in and out, the way on to another mailbox's page, and what forms bring.

Belongs here: the answers about browser sessions, and the sessions in words; ``guard`` has them and their secrets. Also
what is taken of a form's body (RFC 7578): one that has too much, or is wrong, is refused. A browser's name for itself
is its own text, shortened. A token is in an address's fragment alone, which no browser sends.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import parse_qs

import jinja2
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from ..core import attachments, codec
from ..core.records import Record
from ..errors import Malformed
from ..store.attachments import attachment_files
from . import presenters
from .desk import Looking
from .guard import ENTRANCE, PARTED, AllowedHosts, Gate, Session

MAX_FIELDS = 512
"""Fields of a form: a page of boxes that are chosen, and the others."""
MOST_PARTS = 64
"""Fields of a form in parts, and its files."""
_ESCAPED = {"%22": '"', "%0D": "\r", "%0A": "\n"}
"""The characters that browsers escape in the names of files (WHATWG HTML, 4.10.21.8)."""
_BROWSERS = (("Edg", "Edge"), ("OPR", "Opera"), ("Firefox", "Firefox"), ("Chrome", "Chrome"), ("Safari", "Safari"))
_SYSTEMS = (("iPhone", "iPhone"), ("iPad", "iPad"), ("Android", "Android"), ("Windows", "Windows"), ("Mac OS", "macOS"),
            ("Linux", "Linux"))  # fmt: skip


class Entrance:
    """The answers of one mailbox's console. ``find_way`` takes another mailbox's key and the page to continue at. It
    gives the address that takes this browser in there; None if there is no such mailbox."""

    def __init__(
        self,
        gate: Gate,
        hosts: AllowedHosts,
        templates: jinja2.Environment,
        find_way: Callable[[str, str], Awaitable[str | None]],
    ) -> None:
        self._gate = gate
        self._hosts = hosts
        self._templates = templates
        self._find_way = find_way

    def routes(self) -> list[Route]:
        """Return what is answered here, by its path."""
        return [
            Route(ENTRANCE, self._enter_session, methods=["POST"]),
            Route(ENTRANCE, self._show_entrance),
            Route("/leave", self._leave_session, methods=["POST"]),
            Route("/leave-others", self._leave_others, methods=["POST"]),
            Route("/mailbox", self._lead_to_mailbox),
        ]

    async def _lead_to_mailbox(self, request: Request) -> Response:
        """Lead on to another mailbox's page, which takes this browser in."""
        page = local_path(request.query_params.get("next", ""))
        way = await self._find_way(request.query_params.get("to", ""), page)
        return PlainTextResponse("no such mailbox\n", 404) if way is None else RedirectResponse(way, 303)

    async def _enter_session(self, request: Request) -> Response:
        fields, _ = await read_form(request)
        # people paste the whole link, too
        token, browser = fields.get("token", "").strip().rpartition("token=")[2], request.headers.get("user-agent", "")
        if request.state.session is not None and self._gate.take_token(token):
            return RedirectResponse(local_path(fields.get("next", "")), 303)  # a way back to where it has signed in
        cookie = self._gate.exchange_token(token, browser)
        if cookie is None:
            return self.sign_in(request, "The link was used already or has expired.", fields.get("next", ""))
        response = RedirectResponse(local_path(fields.get("next", "")), 303)
        secure = self._hosts.is_secure
        response.set_cookie(self._hosts.cookie, cookie, httponly=True, samesite="strict", path="/", secure=secure)
        return response

    async def _show_entrance(self, request: Request) -> Response:
        """Answer with the page that takes a browser in, which comes from another mailbox's page with a token."""
        target = local_path(request.query_params.get("next", ""))
        if request.state.session is not None:
            return RedirectResponse(target, 303)
        return HTMLResponse(self._render_sign_in(target))

    async def _leave_session(self, request: Request) -> Response:
        name, secure = self._hosts.cookie, self._hosts.is_secure
        self._gate.leave_session(request.cookies.get(name))
        response = RedirectResponse("/", 303)
        response.delete_cookie(name, httponly=True, samesite="strict", path="/", secure=secure)
        return response

    async def _leave_others(self, request: Request) -> Response:
        session: Session = request.state.session
        count = self._gate.leave_others(session)
        session.said.append(("done", f"Signed out {count} other {'browser' if count == 1 else 'browsers'}."))
        return RedirectResponse("/sessions", 303)

    def sign_in(self, request: Request, problem: str = "", target: str = "") -> Response:
        """Answer with the sign-in page, which leads on to where the person wanted to go.

        A browser sends no strict cookie where it follows another site's link. So the page then goes to itself once."""
        if request.method == "GET":
            target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        comes_from_elsewhere = request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none")
        again = comes_from_elsewhere and request.method == "GET"
        text = self._render_sign_in(local_path(target), problem, again=again)
        return HTMLResponse(text, 401 if problem or request.method == "GET" else 200)

    def _render_sign_in(self, target: str, problem: str = "", *, again: bool = False) -> str:
        return self._templates.get_template("sign_in.html").render(problem=problem, next=target, again=again)


def describe_sessions(sessions: Sequence[Session], mine: Session, clock: float) -> list[dict[str, Any]]:
    """Return the sessions as the page shows them; ``clock``: monotonic seconds."""

    def ago(then: float) -> str:
        return presenters.elapsed_time(round(then * 1000), round(clock * 1000))

    return [
        {"browser": name_browser(one.browser), "began": ago(one.began), "used": ago(one.used), "is_mine": one is mine}
        for one in sessions
    ]


def name_browser(said: str) -> str:
    """Return a browser's own description in few words."""
    browser = next((name for mark, name in _BROWSERS if re.search(rf"\b{mark}\w*/", said)), "")
    system = next((name for mark, name in _SYSTEMS if mark in said), "")
    return " on ".join(filter(None, (browser, system))) or presenters.one_line(said[:60]) or "unknown"


class UploadedFile(Record):
    """A file as the browser sent it: its name there, and its bytes."""

    name: str
    content: bytes


async def read_form(request: Request) -> tuple[dict[str, str], list[UploadedFile]]:
    """Return the fields of a form in either form of a body, of a repeated field the last, and its files.

    Raises ``Malformed`` for parts that are too many, or wrong."""
    fields: dict[str, str] = {}
    files: list[UploadedFile] = []
    try:
        if not request.headers.get("content-type", "").startswith(PARTED):
            body = (await request.body()).decode()  # Starlette would put other letters for what is no UTF-8
            pairs = parse_qs(body, keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict")
            return {key: values[-1] for key, values in pairs.items()}, []
        async with request.form(max_files=MOST_PARTS, max_fields=MOST_PARTS) as form:
            for name, value in form.multi_items():
                if isinstance(value, str):
                    fields[name] = value
                elif value.filename or value.size:
                    files.append(UploadedFile(_unescape(value.filename or ""), await value.read()))
    except ValueError:
        return {}, []
    except HTTPException as error:
        why = error.detail.rstrip(".").lower()
        hint = f"send at most {attachments.MOST} files with one message"
        raise Malformed(f"the form was not understood, so nothing was done: {why}", hint) from error
    return fields, files


def _unescape(name: str) -> str:
    for escaped, plain in _ESCAPED.items():
        name = name.replace(escaped, plain)
    return name


def keep_files(now: Looking, files: list[UploadedFile]) -> str:
    """Keep files in the mailbox; return the entries that name them, as a JSON object.

    Raises ``Malformed`` for too many."""
    if len(files) > attachments.MOST:
        raise Malformed(f"too many attachments: {len(files)}", f"send at most {attachments.MOST} with one message")
    kept = [attachment_files.put(now.mailbox.directory, one.name or "file", [one.content]) for one in files]
    return codec.dumps({"files": [file.entry() for file in kept]})


def local_path(path: str) -> str:
    """Return the path to continue at if it is ours, else the first page."""
    safe = path.startswith("/") and not path.startswith("//") and path.isprintable() and "\\" not in path
    return path if safe else "/"
