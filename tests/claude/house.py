"""A person's house: a home, a project and their settings, into which hooks are installed."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_mailbox.clients.install import hook_entries
from agent_mailbox.known_clients.known_client import BELL
from tests.helpers import Program

if TYPE_CHECKING:
    from pathlib import Path

    from tests.helpers import Program

EVENTS = (
    *("SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "SessionEnd", "PostToolBatch", "StopFailure"),
    *("PreToolUse", "PermissionRequest"),
)

FOREIGN = {"type": "command", "command": "echo 'agent-mailbox is nice'", "timeout": 3}

SETTINGS = {
    "model": "opus",
    "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [FOREIGN]}], "Stop": [{"hooks": [FOREIGN]}]},
    "permissions": {"deny": ["Read(.env)"], "allow": ["Bash(ls:*)"], "defaultMode": "plan"},
    "env": {
        "ÄÖ": "日本 \U0001f600",
        "big": 12345678901234567890,
        "float": 1.5,
        "none": None,
        "deep": [[], {}, [1, {"a": []}]],
    },
}


class House:
    """A project, the program beside it, and what it makes of the project."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.project = program.scratch / "project"
        self.project.mkdir()
        tools = program.scratch / "tools"
        tools.mkdir()
        self.script = tools / "agent-mailbox"
        self.script.write_text(f'#!/bin/sh\nexec {sys.executable} -m agent_mailbox "$@"\n')
        self.script.chmod(0o755)
        program.env["PATH"] = f"{tools}:{program.env['PATH']}"
        self.settings = self.project / ".claude/settings.local.json"
        self.memory = self.project / "CLAUDE.md"

    def write(self, data: object, path: Path | None = None) -> bytes:
        """Put a file (default: the settings) there, as bytes or as JSON; returns its bytes."""
        path = path or self.settings
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else json.dumps(data, indent=2).encode())
        return path.read_bytes()

    def say(self, word: str, *words: object) -> Any:
        """The JSON answer of ``install`` or ``uninstall``, which must succeed; nothing is said beside it."""
        result = self.program.call(word, "claude-code", "--project", self.project, *words, "--json")
        assert result.rc == 0, result
        assert result.warnings == [
            f"warning: left unchanged: {left['path']}: {left['why']}" for left in result.json["left"]
        ]
        return result.json

    def install(self) -> list[str]:
        """Install; returns the changed paths within the project."""
        return [os.path.relpath(p, self.project) for p in self.say("install")["changed"] if str(self.project) in p]

    def uninstall(self) -> list[str]:
        """The same back."""
        return [os.path.relpath(p, self.project) for p in self.say("uninstall")["changed"] if str(self.project) in p]

    def loaded(self) -> dict[str, Any]:
        """The settings."""
        return dict(json.loads(self.settings.read_text(encoding="utf-8")))

    def commands(self, event: str) -> list[str]:
        """The commands of an event that call us, but for the doorbell and what permits."""
        groups = self.loaded().get("hooks", {}).get(event, [])
        return [
            h["command"]
            for g in groups
            for h in g["hooks"]
            if hook_entries.calls_us(h) and not hook_entries.part_called(h)
        ]

    def bells(self) -> dict[str, list[dict[str, Any]]]:
        """The hooks of the doorbell, event by event."""
        found = {
            event: [h for g in groups for h in g["hooks"] if hook_entries.part_called(h) == BELL]
            for event, groups in self.loaded().get("hooks", {}).items()
        }
        return {event: hooks for event, hooks in found.items() if hooks}

    def tree(self) -> dict[str, bytes]:
        """Every file of the project, and every directory."""
        found = sorted(self.project.rglob("*"))
        return {str(p.relative_to(self.project)): p.read_bytes() if p.is_file() else b"/" for p in found}
