"""The extra ``[swarm]``, and whether it is installed.

Belongs here: the libraries that the gateway needs.
"""

from __future__ import annotations

from ..upkeep import extras

_NEEDED = ("starlette", "hypercorn", "pydantic", "cryptography", "jwt", "httpx", "h2", "rfc8785", "prometheus_client")


def missing_libraries() -> list[str]:
    """Return the libraries of the extra that are not installed."""
    return extras.find_missing(_NEEDED)


def require_extra() -> None:
    """Raise ``Refused`` if a library of the extra is missing, saying how to get it."""
    extras.refuse_missing("swarm", "the swarm", _NEEDED)
