"""The hooks' shell side in a checkout of its own, which counts how often Python starts."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys

from tests.helpers import DOOR, PATIENCE, ROOT, Post, Result

ME = "b1134fc7-6f1e-4997-83ed-699c6c8ae683"

SHELLS = [shell for shell in ("dash", "bash", "busybox", "sh", "zsh") if shutil.which(shell)]
if os.path.realpath(shutil.which("sh") or "") == os.path.realpath(shutil.which("dash") or "dash"):
    SHELLS.remove("sh")  # the same program, called alike

NEW = b"you are "
"""What a session is told as it starts."""


class Shim:
    """``agent-mailbox-hook`` in a checkout whose Python writes down each time it is started."""

    def __init__(self, post: Post) -> None:
        self.post = post
        self.checkout = post.scratch / "check out"
        shutil.copytree(ROOT / "hooks", self.checkout / "hooks")
        (self.checkout / "agent_mailbox").symlink_to(DOOR / "agent_mailbox")
        self.started = post.scratch / "started"
        python = self.checkout / ".venv/bin/python"
        python.parent.mkdir(parents=True)
        python.write_text(f'#!/bin/sh\necho >>{shlex.quote(str(self.started))}\nexec "{sys.executable}" "$@"\n')
        python.chmod(0o755)
        self.env: dict[str, str | None] = {"CLAUDE_CODE_SESSION_ID": ME, "PYTHONPATH": None, "PATH": "/usr/bin:/bin"}

    def hook(self, event: str, *shell: str, env: dict[str, str | None] | None = None) -> Result:
        """One hook by the shim, run by a shell of choice."""
        call = json.dumps({"session_id": ME, "hook_event_name": event, "source": "startup"}).encode()
        command = [*shell, str(self.checkout / "hooks/agent-mailbox-hook"), event]
        surroundings = self.post.environ({**self.env, **(env or {})})
        done = subprocess.run(command, input=call, env=surroundings, capture_output=True, timeout=PATIENCE)
        assert done.returncode == 0, done
        assert (done.stderr == b"") == (b'"systemMessage":"agent-mailbox: ' not in done.stdout or NEW in done.stdout), (
            done
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def make_patient(self) -> str:
        """A PATH whose clocks never end: on a busy machine the guard would give up reading, and start Python."""
        programs = self.checkout / "bin"
        programs.mkdir()
        for name, does in {"sleep": "exec /usr/bin/sleep 3600", "timeout": 'shift; exec "$@"'}.items():
            (programs / name).write_text(f"#!/bin/sh\n{does}\n")
            (programs / name).chmod(0o755)
        return f"{programs}:/usr/bin:/bin"

    def starts(self) -> int:
        """How often Python was started since the last time this was asked."""
        count = self.started.read_text().count("\n") if self.started.exists() else 0
        self.started.unlink(missing_ok=True)
        return count


def before_tool(shim: Shim, command: str, *words: str, as_is: bytes | None = None, **more: object) -> Result:
    """PreToolUse for a Bash call, as the client writes it; ``words`` start the shell."""
    call = {
        "session_id": ME,
        "cwd": "/work/agent-mailbox",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": command, "description": "d"},
        "tool_use_id": "toolu_1",
        **more,
    }
    data = json.dumps(call, ensure_ascii=False, separators=(",", ":")).encode() if as_is is None else as_is
    program = [*words, str(shim.checkout / "hooks/agent-mailbox-hook"), "PreToolUse"]
    env = shim.post.environ(shim.env)
    done = subprocess.run(program, input=data, env=env, capture_output=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, b""), done
    return Result(done.returncode, done.stdout, done.stderr)


def why(result: Result) -> str:
    """Why the client asks; empty where nothing was said."""
    if not result.raw:
        return ""
    told = result.json["hookSpecificOutput"]
    assert (told["hookEventName"], told["permissionDecision"]) == ("PreToolUse", "ask")
    return str(told["permissionDecisionReason"])


FILE = "agent-mailbox send --to bob --body @/etc/hostname"
