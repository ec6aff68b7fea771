"""Ids: how a UUID is spelt, and which id the beginning of one means.

Belongs here: text alone. The caller brings the digits, from chance or a digest.
"""

from __future__ import annotations

from ..errors import Ambiguous

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

EXAMPLE = "3e0372f9-8dd5-42a4-86dc-24f763ea5cb1"
"""An id as errors show it to somebody who never saw one."""


def uuid_of(digits: str, version: str, variant: str = "") -> str:
    """Return 32 or more hexadecimal digits as a UUID (RFC 9562), without the 8 ms of ``import uuid``.

    ``version`` takes the place of digit 12, ``variant`` that of digit 16; by default that one's last two bits stay.
    """
    variant = variant or "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-{version}{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}"


def only_match(word: str, ids: Sequence[str], kinds: str) -> str | None:
    """Return the one id that matches a word, None if none does; raise ``Ambiguous`` with the candidates if several do.

    ``kinds`` names the things in the error: ``agents``.
    """
    if len(ids) > 1:
        shown = ", ".join(ids[:5]) + (", …" if len(ids) > 5 else "")
        raise Ambiguous(f"{word!r} could be {len(ids)} {kinds}", f"write more of the id: {shown}")
    return ids[0] if ids else None
