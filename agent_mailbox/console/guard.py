"""Launch links and browser sessions, the checks of every request, and the headers of every answer.

Belongs here: the Host allow-list (against DNS rebinding), Origin and Fetch Metadata (against other pages), the
session's cookie, the body's size, the answer's headers. Pages of the same site count as others, because cookies and
sites ignore ports. Secrets are kept as SHA-256 sums alone, in memory: the time of a lookup reveals nothing.
Sources: OWASP "Cross-Site Request Forgery Prevention"; W3C Fetch Metadata, Content Security Policy 3; RFC 6265bis.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
import secrets
from collections import OrderedDict
from collections.abc import Callable

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LINK_SECONDS = 300.0
"""Seconds that a launch link is valid: enough to change windows, too short to matter in a scrollback."""
MAX_WAYS = 8
"""Tokens of ways from another mailbox's page at once; a further one voids the oldest."""
MAX_SESSIONS = 16
"""Browser sessions at once; a further one ends the oldest."""
MAX_AGE, MAX_REST = 7 * 86_400.0, 86_400.0
"""Seconds after which a session ends: since it was signed in, and since it was used last."""
LOOPBACK = "127.0.0.1"
MAX_BODY = 512 << 10
"""Bytes of a request's body: twice the longest message with each byte percent-encoded."""
MAX_UPLOAD = 17 << 20
"""Bytes of a body that brings files: those of one message."""
PARTED = "multipart/form-data"
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^:\[\]]+))(?::(\d+))?")
_NAME = re.compile(r"[a-z0-9._:-]+")
HTTP, HTTPS = "80", "443"
"""The ports that browsers leave out of the Host header."""
SECURE = "https://"
ENTRANCE, STATIC = "/session", "/static/"
"""The paths that need no session: signing in, and the files of the sign-in page."""
WITH_FILES = ("/send", "/reply")
"""The paths whose forms bring files."""
LOADED = ("/columns", "/details", "/events", "/rail", "/receipts", "/waiting")
"""The paths that our pages load, and nobody visits."""
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types console",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not no-referrer: under that a form's own POST says "Origin: null" (Fetch, "append a request Origin header").
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
    "permissions-policy": "camera=(), microphone=(), geolocation=(), clipboard-read=()",
}


class Session:
    """A signed-in browser. ``said``: the notices that its next page shows; ``written``: the form that was refused.

    ``clock``: monotonic seconds. ``browser``: what it calls itself."""

    def __init__(self, clock: Callable[[], float], browser: str = "") -> None:
        self.said: list[tuple[str, str]] = []
        self.written: dict[str, str] = {}
        self.browser = browser
        self.began = self.used = clock()
        self._clock = clock
        self._was_left = False

    @property
    def is_over(self) -> bool:
        """Return whether it was signed out, or is too old."""
        now = self._clock()
        return self._was_left or now - self.began >= MAX_AGE or now - self.used >= MAX_REST

    def note_use(self) -> None:
        self.used = self._clock()

    def leave(self) -> None:
        self._was_left = True


class Gate:
    """The launch link, valid once and briefly, and the sessions behind the cookies. ``clock``: monotonic seconds.
    ``ended`` is called with each session that is over: it must lose what it has open."""

    def __init__(self, clock: Callable[[], float], ended: Callable[[Session], None] = lambda _: None) -> None:
        self._clock = clock
        self._ended = ended
        self._links: dict[bytes, float] = {}
        self._ways: OrderedDict[bytes, float] = OrderedDict()
        self._sessions: OrderedDict[bytes, Session] = OrderedDict()

    def new_link_token(self) -> str:
        """Return a new launch token; it voids earlier ones."""
        token = secrets.token_urlsafe(32)
        self._links = {_digest_of(token): self._clock() + LINK_SECONDS}
        return token

    def new_way_token(self) -> str:
        """Return a token for a browser that has signed in at another mailbox's page here; it voids no link."""
        token = secrets.token_urlsafe(32)
        self._ways[_digest_of(token)] = self._clock() + LINK_SECONDS
        while len(self._ways) > MAX_WAYS:
            self._ways.popitem(last=False)
        return token

    def exchange_token(self, token: str, browser: str = "") -> str | None:
        """Exchange a token, which becomes void, for a cookie's value; return None if it is invalid."""
        if not self.take_token(token):
            return None
        cookie = secrets.token_urlsafe(32)
        self._sessions[_digest_of(cookie)] = Session(self._clock, browser)
        while len(self._sessions) > MAX_SESSIONS:
            self._end_session(self._sessions.popitem(last=False)[1])
        return cookie

    def take_token(self, token: str) -> bool:
        """Return whether the token is valid, which becomes void."""
        until = self._links.pop(_digest_of(token), None) or self._ways.pop(_digest_of(token), None)
        return until is not None and self._clock() < until

    def _end_session(self, session: Session) -> None:
        session.leave()
        self._ended(session)

    def session_of(self, cookie: str | None) -> Session | None:
        """Return the session of a cookie, if any, which is used by that."""
        for digest, old in [*self._sessions.items()]:
            if old.is_over:
                self._end_session(self._sessions.pop(digest))
        session = self._sessions.get(_digest_of(cookie)) if cookie else None
        if session is not None:
            session.note_use()
        return session

    def sessions(self) -> list[Session]:
        """Return the sessions, the one that was used last first."""
        return sorted(self._sessions.values(), key=lambda session: -session.used)

    def leave_others(self, mine: Session) -> int:
        """Forget all sessions but one; return how many."""
        others = [digest for digest, session in self._sessions.items() if session is not mine]
        for digest in others:
            self._end_session(self._sessions.pop(digest))
        return len(others)

    def leave_session(self, cookie: str | None) -> None:
        session = self._sessions.pop(_digest_of(cookie), None) if cookie else None
        if session is not None:
            self._end_session(session)


def _digest_of(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


class AllowedHosts:
    """The host names that requests may use: the name it listens on, and on loopback all loopback names.

    A server that listens everywhere allows any literal address, which no name server can rebind. ``origin``: the https
    address of the person's proxy before it; then requests use that alone. ``own``: a name that only this server has.
    """

    def __init__(self, host: str, port: int, origin: str = "", own: str = "") -> None:
        self._origin = origin
        address = _parse_address(host)
        self.port = port
        self.is_loopback = host == "localhost" or (address is not None and address.is_loopback)
        self._everywhere = address is not None and address.is_unspecified
        usual = {"localhost", LOOPBACK, "::1"}
        self._names = {host.lower(), own, *(usual if self._everywhere or host in usual else ())} - {""}

    def is_allowed(self, header: str) -> bool:
        """Return whether a request may have this Host header."""
        if self._origin:
            return header.lower() == self._origin.removeprefix(SECURE)
        found = _HOST.fullmatch(header.lower())
        if found is None or (found[3] or HTTP) != str(self.port):
            return False
        name = found[1] or found[2]
        return name in self._names or (self._everywhere and _parse_address(name) is not None)

    @property
    def is_secure(self) -> bool:
        """Return whether browsers reach it by TLS."""
        return bool(self._origin)

    @property
    def cookie(self) -> str:
        """Return the name of the session's cookie. It has the port, because browsers keep cookies by host only. By TLS
        it has the prefix that no other page can set it under (RFC 6265bis, 4.1.3.2)."""
        return f"__Host-agent-mailbox-{self.port}" if self.is_secure else f"agent-mailbox-{self.port}"

    def origin_of(self, host: str) -> str:
        """Return the origin of our own pages, as seen under an allowed Host header."""
        return self._origin or f"http://{host}"


def checked_origin(text: str) -> str:
    """Return an https origin as browsers write it; raise ``ValueError``."""
    found = _HOST.fullmatch(text.lower().removeprefix(SECURE).removesuffix("/"))
    if not text.lower().startswith(SECURE) or found is None or not _NAME.fullmatch(found[1] or found[2]):
        raise ValueError(text)
    port = "" if found[3] in (None, HTTPS) else f":{found[3]}"
    return f"{SECURE}{f'[{found[1]}]' if found[1] else found[2]}{port}"


def _parse_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


class Guard:
    """The middleware. ``sign_in`` answers a request for a page without a session."""

    def __init__(self, app: ASGIApp, gate: Gate, hosts: AllowedHosts, sign_in: Callable[[Request], Response]) -> None:
        self._app = app
        self._gate = gate
        self._hosts = hosts
        self._sign_in = sign_in

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        answer = self._refusal_of(request)
        await (answer or self._app)(scope, _limit_body(receive, _most_bytes(request)), _with_headers(send))

    def _refusal_of(self, request: Request) -> Response | None:
        headers = request.headers
        host = headers.get("host", "")
        if headers.getlist("host") != [host] or not self._hosts.is_allowed(host):
            return _refusal_response("unknown host name", 421)
        changes = request.method not in ("GET", "HEAD")
        if changes and request.method != "POST":
            return _refusal_response("method not allowed", 405)
        if not (self._is_own(request, host) if changes else _may_look(request)):
            return _refusal_response("the request came from another page", 403)
        if _content_length(headers.get("content-length", "0")) > _most_bytes(request):
            return _refusal_response(TOO_LARGE, 413)
        session = self._gate.session_of(request.cookies.get(self._hosts.cookie))
        request.state.session = session
        path = request.url.path
        if session is None and path != ENTRANCE and not path.startswith(STATIC):
            wants_page = request.method == "GET" and "text/html" in headers.get("accept", "")
            return self._sign_in(request) if wants_page else _refusal_response("sign in first", 401)
        return None

    def _is_own(self, request: Request, host: str) -> bool:
        """Return whether a change comes from our own page. If the server is neither loopback nor HTTPS, browsers send
        no Fetch Metadata, and the Origin alone decides."""
        may_lack = not (self._hosts.is_loopback or self._hosts.is_secure)
        site = request.headers.get("sec-fetch-site", "same-origin" if may_lack else "")
        return request.headers.get("origin") == self._hosts.origin_of(host) and site == "same-origin"


def _content_length(given: str) -> int:
    """Return a Content-Length header as a number; a malformed one counts as too large."""
    return int(given) if given.isascii() and given.isdigit() and len(given) < 10 else MAX_UPLOAD + 1


def _most_bytes(request: Request) -> int:
    brings_files = request.headers.get("content-type", "").startswith(PARTED)
    return MAX_UPLOAD if brings_files and request.url.path in WITH_FILES else MAX_BODY


def _may_look(request: Request) -> bool:
    """Return whether a read is allowed: other origins may link to a page, but load nothing into theirs."""
    site = request.headers.get("sec-fetch-site", "none")
    if site in ("same-origin", "none"):
        return True
    if request.url.path in LOADED:
        return False
    return request.headers.get("sec-fetch-mode") == "navigate" and request.headers.get("sec-fetch-dest") == "document"


def _refusal_response(why: str, status: int) -> Response:
    return PlainTextResponse(f"{why}\n", status)


TOO_LARGE = "the form is too large, so nothing was done. Shorten its text, or send fewer or smaller files"


class TooMuch(Exception):
    """The body is longer than a request's may be."""


def _limit_body(receive: Receive, most: int) -> Receive:
    taken = 0

    async def receive_limited() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > most:
            raise TooMuch
        return message

    return receive_limited


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.setdefault("cache-control", "no-store")  # static files' addresses change with their content
            headers.update(_HEADERS)
        await send(message)

    return send_with_headers
