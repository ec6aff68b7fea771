"""The local API: for programs beside the gateway, never on the public side.

Belongs here: a Unix socket private to its owner, or loopback with a token; inbox, outbox, statuses, counts, wake,
readiness, metrics. Also the call that tells a configured program of new mail (founding text, "Wake trigger"). Answers
have the reference's shapes, with JSON where it has TOON.
"""

from __future__ import annotations

import asyncio
import hmac
import os
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..core import codec, instant
from ..core.records import Message
from ..errors import BadData, NotFound, Refused
from .carrier import Carrier
from .home import mode_problem
from .protocol.envelope import Model, Uuid, read_model
from .protocol.refusal import Refusal
from .protocol.wire import parse_json
from .readiness import CONTENT_TYPE, GatewayMetrics, Readiness
from .server import DRAINED, ERRORS, DrainingServer, body_of, json_answer, refusal_answer
from .statuses import ACTIONS, READ, STATUSES, AllStatuses
from .swarm_settings import GatewaySettings

MAX_BODY = 64 * 1024
MAX_LIST = 100
Handler = Callable[[AllStatuses, Request], Awaitable[Response]]
"""It answers a request about the mailboxes that this means."""


class Batch(Model):
    """A change of many messages."""

    message_ids: list[Uuid]
    action: str


def local_application(
    statuses: AllStatuses, meter: GatewayMetrics, readiness: Readiness, token: str | None, waker: LocalWaker
) -> Starlette:
    """Return the local side of a gateway. ``token``: what a caller must show (None: the socket's owner is enough)."""
    carrier = meter.carrier
    return Starlette(
        routes=[
            Route(path, _guard_handler(handler, token, statuses), methods=[method])
            for method, path, handler in (
                ("GET", "/api/inbox", _answer_inbox),
                ("GET", "/api/inbox/count", _answer_count),
                ("POST", "/api/inbox/batch", _mark_batch),
                ("GET", "/api/inbox/{message_id}", _answer_message),
                ("POST", "/api/inbox/{message_id}/{action}", _answer_mark),
                ("GET", "/api/outbox", partial(_answer_outbox, carrier)),
                ("GET", "/api/outbox/count", partial(_answer_outbox, carrier)),
                ("POST", "/api/wake", partial(_answer_wake, carrier, waker)),
                ("GET", "/api/ready", partial(_answer_readiness, readiness)),
                ("GET", "/metrics", partial(_answer_metrics, meter)),
            )
        ],
        exception_handlers={
            **ERRORS,
            NotFound: lambda *_: refusal_answer(Refusal("NOT_FOUND", "there is nothing by that id")),
        },
        middleware=[Middleware(DrainingServer, most=lambda: DRAINED * MAX_BODY)],
    )


def _guard_handler(
    handler: Handler, token: str | None, statuses: AllStatuses
) -> Callable[[Request], Awaitable[Response]]:
    """Return the handler that refuses callers without the token, and those who mean another mailbox."""

    async def guarded_handler(request: Request) -> Response:
        if token is not None:
            given = request.headers.get("authorization", "").removeprefix("Bearer ")
            if not hmac.compare_digest(given.encode(), token.encode()):
                raise Refusal("UNAUTHORIZED", "show the token: Authorization: Bearer …")
            # a page in a browser has no token; one that guessed it still cannot call us by its own host name
            if request.headers.get("host", "").rpartition(":")[0] not in ("127.0.0.1", "localhost", "[::1]"):
                raise Refusal("NOT_AUTHORIZED", "not by that name")
        meant = statuses.statuses_within(request.query_params.get("mailbox"))
        if meant is None:
            raise Refusal("NOT_FOUND", "this gateway has another mailbox")
        return await handler(meant, request)

    return guarded_handler


async def _answer_inbox(meant: AllStatuses, request: Request) -> Response:
    wanted = request.query_params
    status = wanted.get("status", "unread")
    limit = wanted.get("limit", "50")
    if status not in (*STATUSES, "all") or not (limit.isascii() and limit.isdigit() and len(limit) < 6):
        raise Refusal("INVALID_FORMAT", f"status is one of {', '.join(STATUSES)} or all, limit a number")
    most = max(1, min(int(limit), MAX_LIST))
    rows = await run_in_threadpool(meant.choose_rows, status, wanted.get("swarm_id"), wanted.get("sender_id"), most)
    return json_answer({"count": len(rows), "messages": [_entry_of(*row) for row in rows]})


async def _answer_count(meant: AllStatuses, request: Request) -> Response:
    return json_answer(await run_in_threadpool(meant.count_statuses, request.query_params.get("swarm_id")))


async def _answer_message(meant: AllStatuses, request: Request) -> Response:
    """Answer one message; looking at it marks it as read."""
    message = await run_in_threadpool(meant.set_status, [request.path_params["message_id"]], READ, True)
    if not message:
        raise Refusal("NOT_FOUND", "no such message")
    return json_answer(_entry_of(*message[0]))


async def _answer_mark(meant: AllStatuses, request: Request) -> Response:
    action = ACTIONS.get(request.path_params["action"])
    if action is None:
        raise Refusal("NOT_FOUND", "read, archive or delete")
    done = await run_in_threadpool(meant.set_status, [request.path_params["message_id"]], action)
    if not done:
        raise Refusal("NOT_FOUND", "no such message")
    return json_answer({"message_id": done[0][0].id, "status": done[0][1]})


async def _mark_batch(meant: AllStatuses, request: Request) -> Response:
    given = read_model(Batch, parse_json(await body_of(request, MAX_BODY)), "the batch")
    action = ACTIONS.get(given.action)
    if action is None or not 1 <= len(given.message_ids) <= MAX_LIST:
        raise Refusal("INVALID_FORMAT", f"action is read, archive or delete, of 1 to {MAX_LIST} messages")
    done = await run_in_threadpool(meant.set_status, given.message_ids, action)
    return json_answer({"action": given.action, "updated": len(done), "total": len(given.message_ids)})


async def _answer_outbox(carrier: Carrier, _: AllStatuses, request: Request) -> Response:
    outbox = carrier.outbox_at(request.query_params.get("mailbox"))
    count, rows = await run_in_threadpool(outbox.latest_rows, MAX_LIST, request.query_params.get("swarm_id"))
    if request.url.path.endswith("/count"):
        return json_answer({"count": count, "open": await run_in_threadpool(outbox.open_parcels)})
    return json_answer({"count": count, "messages": rows})


async def _answer_readiness(readiness: Readiness, _: AllStatuses, __: Request) -> Response:
    """Answer 200 if mail can be kept, else 503 and why it cannot."""
    problem = await run_in_threadpool(readiness.current_problem)
    away = {} if problem else await run_in_threadpool(readiness.unusable_mailboxes)
    told = {"ready": not problem, "problem": problem or None, **({"away": away} if away else {})}
    return json_answer(told, 503 if problem else 200)


async def _answer_metrics(meter: GatewayMetrics, _: AllStatuses, __: Request) -> Response:
    return Response(await run_in_threadpool(meter.metrics_text), media_type=CONTENT_TYPE)


async def _answer_wake(carrier: Carrier, waker: LocalWaker, _: AllStatuses, request: Request) -> Response:
    secret = waker.secret
    given = request.headers.get("x-wake-secret", "")
    if secret is not None and not hmac.compare_digest(given.encode(), secret.encode()):
        raise Refusal("NOT_AUTHORIZED", "X-Wake-Secret is not the one")
    carrier.poke.set()
    return json_answer({"status": "invoked", "detail": None}, 202)


def _entry_of(message: Message, status: str, read_at: str | None) -> dict[str, Any]:
    about = (message.extra or {}).get("swarm") or {}
    return {
        "message_id": message.id,
        "swarm_id": about.get("swarm_id"),
        "sender_id": about.get("agent_id"),
        "recipient_id": about.get("recipient"),
        "message_type": message.type,
        "status": status,
        "received_at": instant.text(message.timestamp),
        "read_at": read_at,
        "content_preview": codec.dumps(codec.message_object(message)),
    }


def secret_in(path: str | None, what: str) -> str | None:
    """Return the secret in a file of its own; None without a path. Raise ``Refused`` if others may read it,
    ``BadData``."""
    if path is None:
        return None
    problem = mode_problem(os.path.expanduser(path))
    if problem:
        raise Refused(f"{what} is unsafe: {path} {problem}", f"own it yourself, then run `chmod 600 {path}`")
    try:
        with open(os.path.expanduser(path), encoding="utf-8-sig") as file:
            secret = file.read(4096).strip()
        secret.encode("ascii")
    except (OSError, ValueError) as error:
        raise BadData(f"{what} is unreadable: {path} ({error})", "write one line of ASCII into it") from None
    if not secret:
        raise BadData(f"{what} is empty: {path}", "write one line of ASCII into it")
    return secret


class LocalWaker:
    """Tells a program of new mail, after it was kept."""

    def __init__(self, settings: GatewaySettings) -> None:
        self.apply_settings(settings)
        self._queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue(100)

    def apply_settings(self, settings: GatewaySettings) -> None:
        """Go on with other settings; raise what ``secret_in`` raises, and then change nothing."""
        self.secret = secret_in(settings.wake_secret_file, "the wake secret")
        """The value that ``X-Wake-Secret`` must have."""
        self._url = settings.wake_url

    def note_arrival(self, loop: asyncio.AbstractEventLoop, messages: list[Message]) -> None:
        """Queue new mail to tell of, from any thread, without waiting: the mail is kept already."""
        if self._url is None:
            return
        for message in messages:
            about = (message.extra or {})["swarm"]
            value = {"message_id": message.id, "swarm_id": about["swarm_id"], "sender_id": about["agent_id"]}
            loop.call_soon_threadsafe(self._put_in_queue, {**value, "notification_level": message.priority})

    def _put_in_queue(self, value: dict[str, Any]) -> None:
        if not self._queue.full():
            self._queue.put_nowait(value)

    async def wake_forever(self) -> None:
        """Tell of each message once, in order; a failed call is not repeated."""
        async with httpx.AsyncClient(trust_env=False, timeout=5) as client:
            while True:
                value = await self._queue.get()
                headers = {"X-Wake-Secret": self.secret} if self.secret else {}
                try:
                    await client.post(self._url or "", json=value, headers=headers)
                except (httpx.HTTPError, httpx.InvalidURL):
                    pass
