"""The settings of the two streams of a space.

Belongs here: those with which ``engine join`` makes them, and which others are refused. The first machine that joins
makes the streams. A stream may write in any name what it takes from elsewhere, and elsewhere what it has. One that a
machine made so would pass its records off as another's.
"""

from __future__ import annotations

from typing import Any

from ...core.text import neutral
from ...errors import Refused
from .answers import object_at

REPLICAS = 3
"""Copies of a space in a cluster: two of them answer for it."""
_LIMITS = {
    "max_consumers",
    "max_msgs",
    "max_bytes",
    "max_age",
    "max_msgs_per_subject",
    "max_msg_size",
    "consumer_limits",
}
_RIGHTS = {"allow_direct", "allow_atomic", "deny_delete", "deny_purge"}
_KEEPING = {"retention", "discard", "storage", "num_replicas", "duplicate_window", "compression", "placement"}
HARMLESS = {"name", "description", "metadata", "subjects", *_LIMITS, *_RIGHTS, *_KEEPING}
"""The settings by which no record comes from elsewhere, goes elsewhere, or is replaced by its publisher."""


def of_records(space: str, info: dict[str, Any]) -> dict[str, Any]:
    """Return those of the stream with the records; ``info`` is what the server says of itself."""
    return {**_common_settings(f"MBX_{space}", f"mbx.{space}.>", info), "allow_atomic": True, "allow_direct": True}


def of_files(space: str, info: dict[str, Any]) -> dict[str, Any]:
    """Return those of the stream with the attached files: of each part the last one counts."""
    return {**_common_settings(f"MBXF_{space}", f"mbxf.{space}.>", info), "max_msgs_per_subject": 1}


def refuse_strange(found: dict[str, Any], subject: str) -> None:
    """Raise ``Refused`` for a stream, as the server describes it, that has other subjects or does more."""
    config = object_at(found, "config")
    strange = sorted(key for key, value in config.items() if value and key not in HARMLESS)
    if config.get("subjects") != [subject]:
        strange.append("subjects")
    if strange:
        raise Refused(
            f"stream of the space was not made by agent-mailbox: {', '.join(map(neutral, strange))}",
            "who runs the servers deletes it; then `agent-mailbox engine join` makes it from the machines' files",
        )


def _common_settings(name: str, subjects: str, info: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "subjects": [subjects],
        "storage": "file",
        "retention": "limits",
        "discard": "new",
        "num_replicas": REPLICAS if info.get("cluster") else 1,
        "duplicate_window": 0,
    }
