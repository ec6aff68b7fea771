"""The four endpoints that peers see, as an ASGI application: bytes to ``Gateway``, its answers to bytes.

Belongs here: requests and bodies bounded before they are parsed, answers bounded in time, headers, one shape for every
error.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..core import instant
from ..errors import MailboxError
from .gateway import Gateway
from .gateway_log import log_event, tell_defect
from .listener import CUT, WRITING
from .protocol import admission, limits, signing, wire
from .protocol.limits import CROWDED, Acquaintances, Room
from .protocol.refusal import Refusal
from .readiness import Readiness

SENDING = 20.0
"""Most seconds for a body: a slow sender holds a connection no longer."""
DRAINED = 8
"""Most of a body that is read and dropped, in multiples of its limit."""
DRAINING = 3.0
"""Most seconds for that."""
PATHS = ("message", "join", "health", "info")


def json_answer(value: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return JSON, with the protocol's version as a header."""
    told = {"X-Swarm-Protocol": wire.PROTOCOL, "Cache-Control": "no-store", **(headers or {})}
    return Response(wire.dump_json(value).encode("utf-8", "replace"), status, told, "application/json")


def refusal_answer(refusal: Refusal) -> Response:
    """Return the one error envelope; with ``Retry-After`` (seconds) if there is something to wait for."""
    headers = {} if refusal.wait is None else {"Retry-After": str(refusal.wait)}
    return json_answer(refusal.body, refusal.status, headers)


async def answer_error(_: Request, error: Exception) -> Response:
    """Answer a refusal, ours or the framework's (unknown path or method). After a busy lock or a full disk nothing was
    kept, and a retry may succeed; of a defect no word is said."""
    if isinstance(error, Refusal):
        log_event(logging.INFO, "refused", code=error.code)
        return refusal_answer(error)
    if isinstance(error, HTTPException):
        code = {404: "NOT_FOUND", 405: "METHOD_NOT_ALLOWED"}.get(error.status_code, "INVALID_FORMAT")
        return refusal_answer(Refusal(code, "there is nothing here" if code == "NOT_FOUND" else "not this way"))
    if isinstance(error, MailboxError):
        log_event(logging.ERROR, "not_stored", code=error.code)
        return refusal_answer(Refusal("UNAVAILABLE", f"nothing could be stored: {error.code}", wait=5))
    tell_defect("request_failed", error)
    return refusal_answer(Refusal("INTERNAL_ERROR", "this agent failed"))


ERRORS: dict[Any, Any] = dict.fromkeys((Refusal, HTTPException, MailboxError, Exception), answer_error)


async def body_of(request: Request, most: int) -> bytes:
    """Return a request's JSON body of at most ``most`` bytes; no more is ever held. Raise ``Refusal``."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refusal("UNSUPPORTED_MEDIA_TYPE", "send application/json")
    data = bytearray()
    try:
        async with asyncio.timeout(SENDING):
            async for chunk in request.stream():
                data += chunk
                if len(data) > most:
                    raise Refusal("PAYLOAD_TOO_LARGE", f"a body has at most {most} bytes")
    except TimeoutError:
        raise Refusal("REQUEST_TIMEOUT", f"the body did not come within {SENDING:.0f} s") from None
    except ClientDisconnect:
        raise Refusal("INVALID_FORMAT", "the body broke off") from None
    return bytes(data)


class BoundedServer:
    """Gives each request a place and a count, and ends connections that do not read the answer.

    Hypercorn waits for ever for an HTTP/2 window, even of a connection that is gone: so each write has its time here.
    """

    def __init__(self, app: ASGIApp, room: Room, address: Callable[[Request], str]) -> None:
        self._app = app
        self._room = room
        self._address = address
        self.counted: Callable[[str, int], None] = lambda _, __: None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        kind = scope["path"].removeprefix("/swarm/")
        kind = kind if kind in PATHS else "other"

        gone = False

        async def timed(message: Message) -> None:
            nonlocal gone
            if message["type"] == "http.response.start":
                self.counted(kind, message["status"])
            if gone:
                return
            try:
                async with asyncio.timeout(WRITING):
                    await send(message)
            except TimeoutError:
                gone = True
                log_event(logging.INFO, "answer_not_taken", seconds=WRITING)
                CUT.get()()

        address = self._address(Request(scope))
        why = self._room.take_place(address)
        try:
            await (refusal_answer(_no_place(why)) if why else self._app)(scope, receive, timed)
        finally:
            if not why:
                self._room.give_back_place(address)


def _no_place(why: str) -> Refusal:
    if why == CROWDED:
        return Refusal("RATE_LIMITED", "too many requests at once from this address", wait=1)
    return Refusal("UNAVAILABLE", "too many requests at once", wait=5)


class DrainingServer:
    """Reads and drops the rest of a body before the answer goes out, bounded in bytes and time.

    A peer answered while it still sends would see its connection break (HTTP/2: all its requests), not the answer.
    """

    def __init__(self, app: ASGIApp, most: Callable[[], int]) -> None:
        self._app = app
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        left = True

        async def count_received() -> Message:
            nonlocal left
            message = await receive()
            left = message["type"] == "http.request" and bool(message.get("more_body"))
            return message

        async def send_after_draining(message: Message) -> None:
            if message["type"] == "http.response.start" and left:
                await self._drain_body(count_received, lambda: left)
            await send(message)

        await self._app(scope, count_received, send_after_draining)

    async def _drain_body(self, receive: Receive, left: Callable[[], bool]) -> None:
        size = 0
        try:
            async with asyncio.timeout(DRAINING):
                while left() and size <= self._most():
                    size += len((await receive()).get("body", b""))
        except TimeoutError:
            pass


def address_of(gateway: Gateway, request: Request) -> str:
    """Return the address that a request counts for: the client's, behind a trusted proxy too."""
    peer = request.client.host if request.client else ""
    hops = ",".join(request.headers.getlist("x-forwarded-for"))
    return limits.origin_address(peer, hops or None, frozenset(gateway.settings.trusted_proxies))


def public_application(gateway: Gateway, readiness: Readiness, members: Acquaintances) -> Starlette:
    """Return the public side of a gateway; it adds to ``members`` the addresses of who proved to be one."""
    address_of_request = partial(address_of, gateway)

    async def answer_message(request: Request) -> Response:
        gateway.admit_address(address_of_request(request))
        data = await body_of(request, gateway.settings.body_bytes)
        _check_headers(request, data)
        message_id, limit = await gateway.accept_message(data)
        members.add_address(address_of_request(request))
        return json_answer({"status": "queued", "message_id": message_id}, 200, limit)

    async def answer_join(request: Request) -> Response:
        gateway.admit_address(address_of_request(request))
        data = await body_of(request, gateway.settings.body_bytes)
        found = await gateway.accept_join(data, address_of_request(request))
        if found.accepted:
            return json_answer(admission.accepted_reply(found.swarm))
        return json_answer(admission.pending_reply(found.swarm), 202)

    async def answer_health(request: Request) -> Response:
        gateway.admit_address(address_of_request(request))
        problem = await run_in_threadpool(readiness.current_problem)
        told = {"status": "unhealthy" if problem else "healthy", "agent_id": gateway.agent_id}
        more = {"protocol_version": wire.PROTOCOL, "timestamp": instant.text(gateway.ledger.now())}
        message = "mail cannot be kept now" if problem else None  # no stranger learns why
        return json_answer({**told, **more, "message": message}, 503 if problem else 200)

    async def answer_info(request: Request) -> Response:
        gateway.admit_address(address_of_request(request))
        known = gateway.read_knowledge()
        value = {"agent_id": known.agent_id, "endpoint": known.endpoint, "public_key": public_key}
        return json_answer(
            {**value, "protocol_version": wire.PROTOCOL, "capabilities": list(wire.TYPES), "metadata": None}
        )

    public_key = signing.public_of(gateway.ledger.home.read_key())
    app = Starlette(
        routes=[
            Route("/swarm/message", answer_message, methods=["POST"]),
            Route("/swarm/join", answer_join, methods=["POST"]),
            Route("/swarm/health", answer_health, methods=["GET"]),
            Route("/swarm/info", answer_info, methods=["GET"]),
        ],
        exception_handlers=ERRORS,
        middleware=[Middleware(DrainingServer, most=lambda: DRAINED * gateway.settings.body_bytes)],
    )
    app.router.redirect_slashes = False  # a redirect would repeat a Host that a client made up
    return app


def _check_headers(request: Request, data: bytes) -> None:
    """Check the protocol's headers: they may be missing (the reference omits them), but must not contradict the body.

    They are unsigned, so nothing else uses them.
    """
    version, agent = request.headers.get("x-swarm-protocol"), request.headers.get("x-agent-id")
    if version is not None:
        wire.check_version(version)
    if agent is None:
        return
    sender = wire.parse_json(data).get("sender")
    if not isinstance(sender, dict) or sender.get("agent_id") != agent:
        raise Refusal("INVALID_FORMAT", "X-Agent-ID is not the sender's id")
