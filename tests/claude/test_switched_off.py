"""The settings of a session that runs: do they still let its client call our hooks?"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from agent_mailbox.clients.client import Client
from tests.helpers import each

if TYPE_CHECKING:
    from pathlib import Path

OURS = {"hooks": {"Stop": "agent-mailbox-hook Stop"}}
OTHERS: dict[str, Any] = {"hooks": {"Stop": "true"}, "permissions": ["Bash(agent-mailbox send:*)"]}
OFF = {"disableAllHooks": True}


CASES = [
    ("switched", OURS, {**OURS, **OFF}, 0, True),
    ("switched back", OURS, {**OURS, "disableAllHooks": False}, 0, False),
    ("taken out", OURS, OTHERS, 0, True),
    ("another key", OURS, {**OURS, "model": "x"}, 0, False),
    ("a plugin's", OTHERS, {**OTHERS, "model": "x"}, 0, False),
    ("a plugin's, switched", OTHERS, OFF, 0, True),
    ("long ago", OURS, {**OURS, **OFF}, 60, False),
]
"""A change: the settings before and after, how many seconds before the last hook, and what that tells."""


@each("case", CASES)
def test_a_change_of_the_settings_tells_whether_our_hooks_are_called(tmp_path: Path, case: tuple[Any, ...]) -> None:
    """A switch takes them away, and so does a removal by hand. Where none of the files held them, they are a plugin's,
    and only the switch does. Settings as they were at the last hook say nothing."""
    _, before, after, age, off = case
    own, heart = tmp_path / "project/.claude/settings.local.json", tmp_path / "heart"
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text(json.dumps(before))
    with Client(os.getpid(), {"HOME": str(tmp_path / "home")}, project=str(tmp_path / "project")) as client:
        own.write_text(json.dumps(after))
        heart.touch()
        for path in (own, own.parent):
            os.utime(path, (heart.stat().st_mtime - age,) * 2)
        assert client.is_switched_off(str(heart)) is off
