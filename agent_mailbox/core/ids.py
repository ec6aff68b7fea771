"""Ids: how a UUID is spelt, and which id the beginning of one means.

Belongs here: text alone. Where the digits come from (chance, a digest) is for the caller.
"""

from __future__ import annotations

from ..errors import Ambiguous

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def only_match(word: str, ids: Sequence[str], kinds: str) -> str | None:
    """Return the one id that matches a word, None if none does; raise ``Ambiguous`` with the candidates if several do.

    ``kinds`` names the things in the error: ``agents``.
    """
    if len(ids) > 1:
        shown = ", ".join(ids[:5]) + (", …" if len(ids) > 5 else "")
        raise Ambiguous(f"{word!r} could be {len(ids)} {kinds}", f"write more of the id: {shown}")
    return ids[0] if ids else None
