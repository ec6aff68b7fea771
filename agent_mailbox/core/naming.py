"""The mailbox's names for teams and their members.

Belongs here: a client's names as ids and tags of ours. ``address.teammate`` reads ``team:t/n``.
"""

from __future__ import annotations

import hashlib

from .records import MAX_WORD

_HEX = frozenset("0123456789abcdef")
_SAFE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")


def digest(*parts: str) -> str:
    """Return a digest of these texts as hexadecimal digits; other texts, or another split, have another."""
    return hashlib.sha256(ascii(parts).encode()).hexdigest()


def word(text: str) -> str:
    """Return a team's or member's name as a word of ours: unchanged if it can be one, else safe and with a digest."""
    safe = "".join(c if c in _SAFE else "_" for c in text)
    made = text[:1] == "x" and text[-9:-8] == "." and _HEX.issuperset(text[-8:])
    if safe == text and len(text) <= MAX_WORD and text[:1].isalnum() and not made:
        return text
    return f"x{safe[: MAX_WORD - 10]}.{digest(text)[:8]}"


def session_id(team_name: str, name: str) -> str:
    """Return the id under which a member is an agent here, as its client spells it: ``worker@session-1a2b3c4d``."""
    return f"{word(name)}@{word(team_name)}"


def tag(team_name: str) -> str:
    """Return the tag that every member carries."""
    return f"team:{word(team_name)}"
