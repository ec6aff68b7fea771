"""The plugin's files are what an installation would write, and stand in the checkout as they would be written."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from agent_mailbox import __version__
from agent_mailbox.clients import texts
from agent_mailbox.clients.install import hook_entries, merge
from agent_mailbox.known_clients.claude_code import CLAUDE_CODE
from scripts import plugin_files
from tests.helpers import ROOT

if TYPE_CHECKING:
    from pathlib import Path


def test_the_checkout_holds_the_files_as_they_would_be_written(tmp_path: Path) -> None:
    """Byte for byte; else `scripts/plugin` was forgotten. Nothing else lies where the client would take it up."""
    plugin_files.write_plugin(str(tmp_path))
    written = {str(p.relative_to(tmp_path)): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    for name, data in written.items():
        assert (ROOT / name).read_bytes() == data, f"{name}: run scripts/plugin"
    for place in (".claude-plugin", "commands", "skills", "agents"):
        there = {str(p.relative_to(ROOT)) for p in (ROOT / place).rglob("*") if p.is_file()}
        assert there == {name for name in written if name.startswith(f"{place}/")}


def test_its_hooks_are_those_of_an_installation() -> None:
    """Every event, matcher and timeout; only where the shim lies is told otherwise."""
    shim = "/x/agent-mailbox-hook"
    ours = merge.Ours(
        [(one, one.command_line(texts.hook_command(shim, one.event, CLAUDE_CODE))) for one in CLAUDE_CODE.hooks()], {}
    )
    installed = merge.merge_ours("x", {}, ours)["hooks"]
    plugged = json.loads(
        plugin_files.plugin_files()[plugin_files.HOOKS_FILE].replace(json.dumps(plugin_files.PLACE)[1:-1], f"{shim}")
    )["hooks"]
    assert plugged == installed
    assert all(hook_entries.is_ours(hook) for groups in plugged.values() for group in groups for hook in group["hooks"])
    assert os.access(ROOT / "hooks/agent-mailbox-hook", os.X_OK)


def test_its_manifests_name_this_version_and_one_another() -> None:
    """The market has one entry, which is the checkout itself."""
    files = plugin_files.plugin_files()
    manifest = json.loads(files[".claude-plugin/plugin.json"])
    market = json.loads(files[".claude-plugin/marketplace.json"])
    assert manifest["version"] == __version__
    ((name, source),) = [(entry["name"], entry["source"]) for entry in market["plugins"]]
    assert (name, source) == (manifest["name"], "./")


def test_the_skill_is_short_and_names_only_what_needs_no_asking() -> None:
    """Under 300 tokens, counted as characters / 4; its commands are among the free ones."""
    assert len(texts.SKILL) / 4 < 300
    spoken = [part.split("`")[0].split() for part in texts.SKILL.split("`agent-mailbox ")[1:]]
    assert {words[0] for words in spoken} <= set(texts.FREE)
    assert {"check", "reply", "send", "ack"} <= {words[0] for words in spoken}
