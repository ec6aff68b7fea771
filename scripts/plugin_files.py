"""The checkout as a plugin of the client: its files, made from what an installation would write.

They are in the repository, for the client copies it whole. ``scripts/plugin`` writes them, and a test holds them to
this module.
"""

from __future__ import annotations

import json
import os
from typing import Any

from agent_mailbox import __version__
from agent_mailbox.clients import texts
from agent_mailbox.clients.install.hook_entries import SHIM, make_group
from agent_mailbox.known_clients.claude_code import CLAUDE_CODE

NAME = "agent-mailbox"
PLACE = f'"${{CLAUDE_PLUGIN_ROOT}}"/hooks/{SHIM}'
"""The shim as a plugin's hooks call it; the client knows where it copied the plugin."""
HOOKS_FILE = "hooks/hooks.json"
_ABOUT = "Durable mail between coding-agent sessions, shown to each as it starts and stops"


def plugin_files() -> dict[str, str]:
    """Return the plugin's files by their place in the checkout."""
    author = {"name": "agent-mailbox authors"}
    entry = {"name": NAME, "source": "./", "description": _ABOUT}
    manifest = {"name": NAME, "version": __version__, "description": _ABOUT, "author": author, "license": "MIT"}
    hooks: dict[str, list[dict[str, Any]]] = {}
    for wanted in CLAUDE_CODE.hooks():
        hooks.setdefault(wanted.on, []).append(make_group(wanted, wanted.command_line(f"{PLACE} {wanted.event}")))
    return {
        ".claude-plugin/plugin.json": _pretty_json(manifest),
        ".claude-plugin/marketplace.json": _pretty_json(
            {"name": NAME, "owner": author, "description": f"{_ABOUT}.", "plugins": [entry]}
        ),
        HOOKS_FILE: _pretty_json({"hooks": hooks}),
        **CLAUDE_CODE.files(texts.make_wording(NAME)),
        "skills/agent-mailbox/SKILL.md": texts.SKILL,
        "agents/swarm-mail.md": texts.SUBAGENT,
    }


def _pretty_json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2) + "\n"


def write_plugin(directory: str) -> None:
    """Write the files into a checkout."""
    for name, text in plugin_files().items():
        path = os.path.join(directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    write_plugin(".")
