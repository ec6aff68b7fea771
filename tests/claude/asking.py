"""Questions of a client about its calls, and the lead who answers meanwhile."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

from agent_mailbox.mailbox.open_mailbox import OpenMailbox
from tests.claude.shim import ME
from tests.control_desk import ControlDesk
from tests.helpers import PATIENCE, Post, until

if TYPE_CHECKING:
    from collections.abc import Callable

LEAD = "boss"

ENV = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": ME}

TOUCH = {"command": "touch x", "description": "why"}


def ask(post: Post, event: str = "Permit", tool: str = "Bash", given: dict[str, Any] | None = None, **more: Any) -> Any:
    """One question of the client's; the part of the answer that decides, None where nothing was said."""
    call = {
        "session_id": ME,
        "cwd": str(post.cwd),
        "prompt_id": "p1",
        "tool_name": tool,
        "tool_input": TOUCH if given is None else given,
        "tool_use_id": "toolu_1",
        **more,
    }
    result = post.call("hook", event, stdin=json.dumps(call), env={**ENV, "CLAUDE_PROJECT_DIR": str(post.cwd)})
    assert result.rc == 0, result
    return decision(result.stdout)


def decision(answer: str) -> Any:
    """What an answer decides: (decision, reason, input)."""
    body = json.loads(answer or "{}").get("hookSpecificOutput")
    if body is None:
        return None
    if body["hookEventName"] == "PermissionRequest":
        made = body["decision"]
        return made["behavior"], made.get("message", ""), made.get("updatedInput")
    return body["permissionDecision"], body["permissionDecisionReason"], body.get("updatedInput")


class Meanwhile:
    """Something done by the lead while the client's question waits."""

    def __init__(self, post: Post, do: Callable[[ControlDesk, Any], Any], who: str = LEAD) -> None:
        self.desk = ControlDesk(OpenMailbox(str(post.box)))
        self.who = who
        self.errors: list[BaseException] = []
        self.thread = threading.Thread(target=self._run, args=(do,), daemon=True)

    def _run(self, do: Callable[[ControlDesk, Any], Any]) -> None:
        try:
            do(self.desk, until(lambda: self.desk.pending(self.who))[0])
        except BaseException as error:
            self.errors.append(error)

    def __enter__(self) -> Meanwhile:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.thread.join(PATIENCE)
        assert not self.errors, self.errors


def command(post: Post, *words: object) -> None:
    """A command of the lead."""
    post.ok("control", *words, "--session", LEAD)
