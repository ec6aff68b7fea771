"""Refusals of requests: the status, a stable word, a sentence. One shape for every endpoint.

Belongs here: the table of refusals (founding text, "Status codes"; the reference's words, if it has one).
"""

from __future__ import annotations

from typing import Any

_STATUS = {
    "INVALID_FORMAT": 400,
    "UNSUPPORTED_VERSION": 400,
    "WRONG_RECIPIENT": 400,
    "STALE_TIMESTAMP": 400,
    "MESSAGE_EXPIRED": 400,
    "INVALID_TOKEN": 400,
    "INVALID_SIGNATURE": 401,
    "TOKEN_EXPIRED": 401,
    "UNAUTHORIZED": 401,
    "NOT_AUTHORIZED": 403,
    "NOT_MEMBER": 403,
    "NOT_MASTER": 403,
    "TOKEN_EXHAUSTED": 403,
    "TOKEN_REVOKED": 403,
    "KEY_MISMATCH": 403,
    "JOIN_DENIED": 403,
    "SWARM_NOT_FOUND": 404,
    "NOT_FOUND": 404,
    "METHOD_NOT_ALLOWED": 405,
    "REQUEST_TIMEOUT": 408,
    "PAYLOAD_TOO_LARGE": 413,
    "UNSUPPORTED_MEDIA_TYPE": 415,
    "RATE_LIMITED": 429,
    "INTERNAL_ERROR": 500,
    "UNAVAILABLE": 503,
}


def is_code(word: str) -> bool:
    """Return whether a word is one of the codes above."""
    return word in _STATUS


class Refusal(Exception):
    """A refused request. ``wait``: seconds after which it may be tried again."""

    def __init__(self, code: str, message: str, *, wait: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.wait = wait

    @property
    def status(self) -> int:
        return _STATUS[self.code]

    @property
    def body(self) -> dict[str, Any]:
        """Return the error envelope: ``{"error": {"code", "message", "details"}}``."""
        details = None if self.wait is None else {"retry_after": self.wait}
        return {"error": {"code": self.code, "message": self.message, "details": details}}
