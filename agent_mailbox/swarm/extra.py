"""The extra ``[swarm]``: is it there?

Belongs here: the one sentence that says how to install it.
"""

from __future__ import annotations

from importlib.util import find_spec

from ..errors import Refused

_NEEDED = ("starlette", "hypercorn", "pydantic", "cryptography", "jwt", "httpx", "h2", "rfc8785")
HOW = "pip install 'agent-mailbox[swarm]'"


def missing() -> list[str]:
    """The libraries of the extra that are not installed."""
    return [name for name in _NEEDED if find_spec(name) is None]


def need() -> None:
    """Raise ``Refused`` if a library of the extra is missing, saying how to get it."""
    absent = missing()
    if absent:
        raise Refused(f"the swarm gateway needs {', '.join(absent)}", HOW, code="no_extra")
