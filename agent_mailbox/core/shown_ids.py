"""The ids of agents within an error, a warning or a hook's line: as short as lists show them.

Belongs here: that rule, for every sentence of ours that names an agent by its id. JSON has whole ids.
"""

from __future__ import annotations

import re

from .address import shorten_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

_HEX = "[0-9a-f]"
_ID = re.compile(rf"(?<![\w./=-])(?<!--resume ){_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}(?![\w./=-])")
"""A UUID that is a word of its own: no part of a path, and no id for a client, which takes whole ones alone."""


def shorten_ids(text: str, known: Collection[str]) -> str:
    """Return a text in which each ``known`` id is short, unless another one begins alike."""

    def shown(found: re.Match[str]) -> str:
        whole = found[0]
        short = shorten_id(whole)
        return short if whole in known and sum(one.startswith(short) for one in known) == 1 else whole

    return _ID.sub(shown, text)
