"""Ids: how a UUID is spelt, and which id the beginning of one means.

Belongs here: text alone. The caller brings the digits, from chance or a digest.
"""

from __future__ import annotations

from ..errors import Ambiguous

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

EXAMPLE = "3e0372f9-8dd5-42a4-86dc-24f763ea5cb1"
"""An id as errors show it to somebody who never saw one."""

SHOWN = 8
"""Characters of a UUID that are shown."""


def uuid_of(digits: str, version: str, variant: str = "") -> str:
    """Return 32 or more hexadecimal digits as a UUID (RFC 9562), without the 8 ms of ``import uuid``.

    ``version`` takes the place of digit 12, ``variant`` that of digit 16; by default that one's last two bits stay.
    """
    variant = variant or "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-{version}{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}"


def beginning(text: str) -> str:
    """Return the part of an id that is shown: the beginning of a UUID, else all of it."""
    is_uuid = len(text) == 36 and text[8] == text[13] == text[18] == text[23] == "-"
    return text[:SHOWN] if is_uuid else text


def meant(word: str, ids: Collection[str]) -> list[str]:
    """Return which of the ids that begin with a word it means, in any case: the one that it is whole, or all.

    Any program may take an id, and so what we show of a longer one. Such an id never hides that one.
    """
    word = word.casefold()
    whole = [i for i in ids if i.casefold() == word]
    return whole if whole and not any(beginning(i).casefold() == word for i in ids if i not in whole) else [*ids]


def only_match(word: str, ids: Sequence[str], kinds: str) -> str | None:
    """Return the one id that matches a word, None if none does; raise ``Ambiguous`` with the candidates if several do.

    ``kinds`` names the things in the error: ``agents``.
    """
    if len(ids) > 1:
        shown = ", ".join(ids[:5]) + (", …" if len(ids) > 5 else "")
        raise Ambiguous(f"{word!r} could be {len(ids)} {kinds}", f"write more of the id: {shown}")
    return ids[0] if ids else None
