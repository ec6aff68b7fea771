"""The call that tells a configured program of new mail (founding text, "Wake trigger").

Belongs here: the call and its secret. Our own doorbell watches the mailbox itself.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

import httpx

from ..core.records import Message
from ..errors import BadData, Refused
from .home import mode_problem
from .swarm_settings import GatewaySettings


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


class WakeCaller:
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
