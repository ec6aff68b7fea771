"""Who may in: launch links and the sessions they are exchanged for.

Belongs here: making, taking and forgetting secrets. Pure but for chance: the clock is passed in. Secrets are kept as
SHA-256 only, so that looking one up tells nothing by its time. Nothing is ever written down: sessions die with the
process.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

LINK_SECONDS = 300.0
"""How long a launch link is good: time to change windows, too short to be of use in a scrollback."""
MAX_SESSIONS = 16
"""Browsers of one person; of more the oldest is forgotten."""


class Session:
    """A browser that was let in. ``said`` is what its next page tells of what was just done."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []


class Gate:
    """Launch links, each good once and for a short time, and the sessions behind the cookies. ``clock``: seconds that
    only grow."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._links: dict[bytes, float] = {}
        self._sessions: OrderedDict[bytes, Session] = OrderedDict()

    def link(self) -> str:
        """A new launch token; earlier ones are void."""
        token = secrets.token_urlsafe(32)
        self._links = {_digest(token): self._clock() + LINK_SECONDS}
        return token

    def exchange(self, token: str) -> str | None:
        """The cookie's value for a launch token, which is void from now on; None for one that is not good."""
        until = self._links.pop(_digest(token), None)
        if until is None or self._clock() >= until:
            return None
        cookie = secrets.token_urlsafe(32)
        self._sessions[_digest(cookie)] = Session()
        while len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return cookie

    def session(self, cookie: str | None) -> Session | None:
        """Whose cookie it is; None for nobody's."""
        return self._sessions.get(_digest(cookie)) if cookie else None

    def leave(self, cookie: str | None) -> None:
        """Forget a session."""
        if cookie:
            self._sessions.pop(_digest(cookie), None)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
