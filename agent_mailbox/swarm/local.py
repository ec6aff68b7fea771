"""The local API: what programs beside the gateway may ask of it. Never on the public side.

Belongs here: a Unix socket that is its owner's alone, or loopback with a token; inbox, outbox, statuses, counts, wake.
Answers have the reference's shapes, with JSON where it has TOON.
"""

from __future__ import annotations

import hmac
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..core import codec, instant
from ..core.records import Message
from ..errors import NotFound
from .carrier import Carrier
from .outbox import listed
from .protocol.envelope import Model, Uuid, read
from .protocol.refusal import Refusal
from .protocol.wire import parse_json
from .server import DRAINED, ERRORS, Draining, answer, body_of, refused
from .statuses import ACTIONS, READ, STATUSES, Statuses

MAX_BODY = 64 * 1024
MAX_LIST = 100


class Batch(Model):
    """A change of many messages."""

    message_ids: list[Uuid]
    action: str


def _entry(message: Message, status: str, read_at: str | None) -> dict[str, Any]:
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


def application(statuses: Statuses, carrier: Carrier, token: str | None, wake_secret: str | None) -> Starlette:
    """The local side of a gateway. ``token``: what a caller must show (None: the socket's owner is enough)."""

    def admit(request: Request) -> None:
        if token is not None:
            given = request.headers.get("authorization", "").removeprefix("Bearer ")
            if not hmac.compare_digest(given.encode(), token.encode()):
                raise Refusal("UNAUTHORIZED", "show the token: Authorization: Bearer …")
            # a page in a browser has no token; one that guessed it still may not call us by a name of its own
            if request.headers.get("host", "").rpartition(":")[0] not in ("127.0.0.1", "localhost", "[::1]"):
                raise Refusal("NOT_AUTHORIZED", "not by that name")

    async def inbox(request: Request) -> Response:
        admit(request)
        wanted = request.query_params
        status = wanted.get("status", "unread")
        limit = wanted.get("limit", "50")
        if status not in (*STATUSES, "all") or not (limit.isascii() and limit.isdigit() and len(limit) < 6):
            raise Refusal("INVALID_FORMAT", f"status is one of {', '.join(STATUSES)} or all, limit a number")
        rows = await run_in_threadpool(statuses.chosen, status, wanted.get("swarm_id"), wanted.get("sender_id"))
        rows = rows[: max(1, min(int(limit), MAX_LIST))]
        return answer({"count": len(rows), "messages": [_entry(*row) for row in rows]})

    async def count(request: Request) -> Response:
        admit(request)
        return answer(await run_in_threadpool(statuses.counts, request.query_params.get("swarm_id")))

    async def one(request: Request) -> Response:
        admit(request)
        message = await run_in_threadpool(statuses.mark, [request.path_params["message_id"]], READ, True)
        if not message:
            raise Refusal("NOT_FOUND", "no such message")
        return answer(_entry(*message[0]))

    async def change(request: Request) -> Response:
        admit(request)
        action = ACTIONS.get(request.path_params["action"])
        if action is None:
            raise Refusal("NOT_FOUND", "read, archive or delete")
        done = await run_in_threadpool(statuses.mark, [request.path_params["message_id"]], action)
        if not done:
            raise Refusal("NOT_FOUND", "no such message")
        return answer({"message_id": done[0][0].id, "status": done[0][1]})

    async def batch(request: Request) -> Response:
        admit(request)
        given = read(Batch, parse_json(await body_of(request, MAX_BODY)), "the batch")
        action = ACTIONS.get(given.action)
        if action is None or not 1 <= len(given.message_ids) <= MAX_LIST:
            raise Refusal("INVALID_FORMAT", f"action is read, archive or delete, of 1 to {MAX_LIST} messages")
        done = await run_in_threadpool(statuses.mark, given.message_ids, action)
        return answer({"action": given.action, "updated": len(done), "total": len(given.message_ids)})

    async def outbox(request: Request) -> Response:
        admit(request)
        rows = await run_in_threadpool(listed, carrier.outbox.path)
        swarm = request.query_params.get("swarm_id")
        rows = [row for row in rows if swarm in (None, row["swarm_id"])]
        if request.url.path.endswith("/count"):
            return answer({"count": len(rows)})
        return answer({"count": len(rows), "messages": rows[-MAX_LIST:]})

    async def wake(request: Request) -> Response:
        admit(request)
        given = request.headers.get("x-wake-secret", "")
        if wake_secret is not None and not hmac.compare_digest(given.encode(), wake_secret.encode()):
            raise Refusal("NOT_AUTHORIZED", "X-Wake-Secret is not the one")
        carrier.poke.set()
        return answer({"status": "invoked", "detail": None}, 202)

    return Starlette(
        routes=[
            Route("/api/inbox", inbox, methods=["GET"]),
            Route("/api/inbox/count", count, methods=["GET"]),
            Route("/api/inbox/batch", batch, methods=["POST"]),
            Route("/api/inbox/{message_id}", one, methods=["GET"]),
            Route("/api/inbox/{message_id}/{action}", change, methods=["POST"]),
            Route("/api/outbox", outbox, methods=["GET"]),
            Route("/api/outbox/count", outbox, methods=["GET"]),
            Route("/api/wake", wake, methods=["POST"]),
        ],
        exception_handlers={**ERRORS, NotFound: _on_nothing},
        middleware=[Middleware(Draining, most=DRAINED * MAX_BODY)],
    )


async def _on_nothing(_: Request, __: Exception) -> Response:
    return refused(Refusal("NOT_FOUND", "there is nothing by that id"))
