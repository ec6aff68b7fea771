"""The settings that a backup brings, in words for the person who restores it.

Belongs here: comparing a configuration with the defaults. The text comes from elsewhere: it is shown short and neutral.
"""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

from ..config import config_file
from ..config.config import Config
from ..core.codec import BOM
from ..core.text import clipped, neutral
from ..store.files.paths import CONFIG

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_BYTES = 64 << 10
"""Bytes of a configuration that are looked at; every setting of ours takes two."""
MOST_LINES = 30
WIDTH = 100


def describe_settings(text: bytes) -> tuple[str, ...]:
    """Return the settings that differ from the defaults, one a line: ``[ttl] broadcast = 5``."""
    if len(text) > MOST_BYTES:
        return (f"{CONFIG} is too long to show",)
    try:
        table = tomllib.loads(text.removeprefix(BOM).decode())
        found = [line for section, content in table.items() for line in _describe_section(section, content)]
    except (ValueError, RecursionError):
        return (f"{CONFIG} is not valid TOML",)
    more = len(found) - MOST_LINES
    return (*found[:MOST_LINES], *([f"and {more} more"] if more > 0 else []))


def _describe_section(section: str, content: Any) -> Iterator[str]:
    for key, value in content.items() if isinstance(content, dict) else [("", content)]:
        why = _remark_on(section, key, value)
        if why is not None:
            yield clipped(neutral(f"[{section}] {key}"), WIDTH) + clipped(neutral(f" = {value}"), WIDTH) + why


def _remark_on(section: str, key: str, value: Any) -> str | None:
    """Return a remark on a setting (empty for most); None if the setting is the default."""
    fields = config_file.parse_config({section: {key: value} if key else value})
    if fields.pop("faults"):
        return " (wrong: it does not count)"
    if fields.pop("misplaced"):
        return " (ignored: it counts in your own configuration alone)"
    default = Config()
    return None if all(getattr(default, name) == said for name, said in fields.items()) else ""
