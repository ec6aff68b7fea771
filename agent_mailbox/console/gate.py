"""Access: launch links, and the browser sessions that they open.

Belongs here: making, exchanging and forgetting secrets. Pure except for randomness; the caller passes the clock. It
stores only SHA-256 sums, so that the time of a lookup reveals nothing, and only in memory.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Callable

LINK_SECONDS = 300.0
"""Seconds that a launch link is valid: enough to change windows, too short to matter in a scrollback."""
MAX_WAYS = 8
"""Tokens of ways from another mailbox's page at once; a further one voids the oldest."""
MAX_SESSIONS = 16
"""Browser sessions at once; a further one ends the oldest."""
MAX_AGE, MAX_REST = 7 * 86_400.0, 86_400.0
"""Seconds after which a session ends: since it was signed in, and since it was used last."""


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
        """Note that it is used now."""
        self.used = self._clock()

    def leave(self) -> None:
        """End it."""
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
        """Forget a session."""
        session = self._sessions.pop(_digest_of(cookie), None) if cookie else None
        if session is not None:
            self._end_session(session)


def _digest_of(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
