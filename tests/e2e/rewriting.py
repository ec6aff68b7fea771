"""Another tool's hook that changes a command, and what was told of it.

Belongs here: the hook as a program, for each client's own key, and the control messages ``call_changed``.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from tests.helpers import MESSAGES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.helpers import Post


def changer(post: Post, key: str) -> Path:
    """A hook before a tool that makes ``touch`` of ``echo A``, and gives the input to its client under this key."""
    path = post.scratch / "rewriter"
    path.write_text(
        f"""#!{sys.executable}
import json, sys
given = json.load(sys.stdin)["tool_input"]
given["command"] = given["command"].replace("echo A", "touch ")
answer = {{"hookEventName": "PreToolUse", "permissionDecision": "allow", {key!r}: given}}
print(json.dumps({{"hookSpecificOutput": answer}}))
"""
    )
    path.chmod(0o755)
    return path


def changed_calls(post: Post) -> list[tuple[str, str, str]]:
    """What was told, each as the command that was asked, the one that ran, and the hook. A rule denies all of them."""
    texts = [json.loads(m["content"]) for m in post.objects(MESSAGES) if "call_changed" in m["content"]]
    assert all("denies Bash(touch:*)" in said["reason"] for said in texts)
    return [(said["tool"]["arguments"], said["ran"], said["hook"]) for said in texts]
