"""The page of signed-in browsers: since when, used when, and which one this is.

Belongs here: sessions in words. ``gate`` has them; a browser's name for itself is its own text, shortened.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from . import presenters
from .desk import Looking
from .gate import Session

_BROWSERS = (("Edg", "Edge"), ("OPR", "Opera"), ("Firefox", "Firefox"), ("Chrome", "Chrome"), ("Safari", "Safari"))
_SYSTEMS = (("iPhone", "iPhone"), ("iPad", "iPad"), ("Android", "Android"), ("Windows", "Windows"), ("Mac OS", "macOS"),
            ("Linux", "Linux"))  # fmt: skip


def view_sessions(_: Looking, __: Mapping[str, str]) -> dict[str, Any]:
    """Return the page without its sessions, which the application adds."""
    return {"title": "Signed-in browsers", "sessions": []}


def describe_sessions(sessions: Sequence[Session], mine: Session, clock: float) -> dict[str, Any]:
    """Return the sessions as the page shows them; ``clock``: monotonic seconds."""

    def ago(then: float) -> str:
        return presenters.elapsed_time(round(then * 1000), round(clock * 1000))

    return {
        "sessions": [
            {
                "browser": name_browser(one.browser),
                "began": ago(one.began),
                "used": ago(one.used),
                "is_mine": one is mine,
            }
            for one in sessions
        ]
    }


def name_browser(said: str) -> str:
    """Return a browser's own description in few words."""
    browser = next((name for mark, name in _BROWSERS if re.search(rf"\b{mark}\w*/", said)), "")
    system = next((name for mark, name in _SYSTEMS if mark in said), "")
    return " on ".join(filter(None, (browser, system))) or presenters.one_line(said[:60]) or "unknown"
