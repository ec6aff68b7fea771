"""Gemini CLI's tools as rules and guards know them, and our answers as it takes them (observed with 0.61.0).

Belongs here: both translations. Its tools have names of its own, and a command may name its directory. It takes a
refusal, or another input for the tool; a word beside a tool that runs it drops.
"""

from __future__ import annotations

from os import path
from typing import TYPE_CHECKING, Any

from ...core import codec
from ...core.records import BadLine
from ...core.text import ascii_json
from ...known_clients.gemini_cli import GEMINI_CLI, TOOLS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..client_input import ClientInput

    Said = dict[str, Any] | BadLine
    Write = Callable[[str], None]


def translated(said: Said, environ: Mapping[str, str], write: Write) -> tuple[Said, Write]:
    """Return a call with our name for its tool, and how to answer it; both as they are if another client calls."""
    if isinstance(said, BadLine) or not GEMINI_CLI.calls(str(said.get("session_id")), said, environ):
        return said, write
    tool, given, here = said.get("tool_name"), said.get("tool_input"), said.get("cwd")
    found = {**said, "tool_name": our_name(tool) if isinstance(tool, str) else tool}
    if found["tool_name"] == "Bash" and isinstance(here, str):
        found["cwd"] = place_of(given, here)

    def answer(text: str) -> None:
        if shown := as_it_takes(text):
            write(shown)

    return found, answer


def named_as_ours(call: ClientInput) -> ClientInput:
    """Return a call of Gemini CLI as rules know it; another client's as it is."""
    if call.client is not GEMINI_CLI:
        return call
    tool = our_name(call.tool)
    return call.replace(tool=tool, here=place_of(call.given, call.here) if tool == "Bash" else call.here)


def our_name(tool: str) -> str:
    """Return the name by which rules and guards know a tool."""
    return TOOLS.get(tool, f"mcp__{tool}")


def place_of(given: Any, here: str) -> str:
    """Return where a command runs."""
    place = given.get("dir_path") if isinstance(given, dict) else None
    return path.join(here, place) if isinstance(place, str) else here


def as_it_takes(text: str) -> str:
    """Return one of our answers before a tool as Gemini CLI takes it; empty if it takes no such answer."""
    told = codec.parse(text.encode("utf-8", "surrogatepass"), ours=False)
    if isinstance(told, BadLine):
        return ""
    said = told.pop("hookSpecificOutput", {})
    if said.get("permissionDecision") == "deny":
        told |= {"decision": "deny", "reason": said.get("permissionDecisionReason", "")}
    elif isinstance(changed := said.get("updatedInput"), dict):
        told["hookSpecificOutput"] = {"hookEventName": "BeforeTool", "tool_input": changed}
    return ascii_json(codec.dumps(told)) + "\n" if told else ""
