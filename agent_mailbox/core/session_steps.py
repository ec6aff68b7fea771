"""A session's steps, as its client writes them into the conversation's file: prompts, words, calls of tools.

Belongs here: how Claude Code's transcript and Codex's rollout write each step; ``hooks.transcript`` and
``hooks.rollout`` tell what mail was seen. All of it is other people's text. It tells a person what goes on, and decides
nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import codec, instant
from .records import BadLine, Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

LONGEST = 2 << 20
"""Bytes of a line that is read."""
LONG = 20_000
"""Characters of a step; the rest is left out."""
PROMPT, TOLD, SAID, CALL = "prompt", "told", "said", "call"
"""Kinds of steps: a prompt, a hook's text, the model's words, a tool's call."""


class Step(Record):
    """One step, at an instant (ms; 0 if untold). ``text``: a call's outcome, None until it ended. ``is_aside``: by a
    subagent."""

    kind: str
    at: int
    text: str | None
    tool: str = ""
    given: Mapping[str, Any] | None = None
    has_failed: bool = False
    is_aside: bool = False


def of_transcript(lines: Iterable[bytes]) -> list[Step]:
    """Return the steps in lines of Claude Code's transcript (observed with 2.1.329)."""
    return _steps(lines, _of_transcript_event)


def of_rollout(lines: Iterable[bytes]) -> list[Step]:
    """Return the steps in lines of Codex's rollout (observed with 0.169.0)."""
    return _steps(lines, _of_rollout_event)


def _steps(lines: Iterable[bytes], told: Any) -> list[Step]:
    """Return the steps that lines tell; ``told`` yields those of an event, each call and each result with its id."""
    found: list[Step] = []
    calls: dict[object, int] = {}
    for line in lines:
        event = codec.parse(line, LONGEST, ours=False)
        if isinstance(event, BadLine):
            continue
        for step, call in told(event):
            if step.kind != CALL:
                found.append(step)
            elif step.given is not None:
                calls[call] = len(found)
                found.append(step)
            elif call in calls:
                place = calls.pop(call)
                found[place] = found[place].replace(text=step.text, has_failed=step.has_failed)
    return found


def _of_transcript_event(event: dict[str, Any]) -> Iterator[tuple[Step, object]]:
    at, aside, kind = instant.told(event.get("timestamp")), event.get("isSidechain") is True, event.get("type")
    if kind == "attachment":
        said = event.get("attachment")
        if isinstance(said, dict) and said.get("type") == "hook_additional_context":
            yield Step(TOLD, at, _text(said.get("content")), is_aside=aside), None
    message = event.get("message")
    if kind not in ("user", "assistant") or not isinstance(message, dict) or event.get("isMeta") is True:
        return
    content = message.get("content")
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else _dicts(content):
        if block.get("type") == "text":
            yield Step(PROMPT if kind == "user" else SAID, at, _text(block.get("text")), is_aside=aside), None
        elif block.get("type") == "tool_use":
            yield Step(CALL, at, None, _name(block), _input(block.get("input")), is_aside=aside), block.get("id")
        elif block.get("type") == "tool_result":
            failed = block.get("is_error") is True
            yield Step(CALL, at, _text(block.get("content")), has_failed=failed), block.get("tool_use_id")


def _of_rollout_event(event: dict[str, Any]) -> Iterator[tuple[Step, object]]:
    item, at = event.get("payload"), instant.told(event.get("timestamp"))
    if event.get("type") != "response_item" or not isinstance(item, dict):
        return
    kind = item.get("type")
    if kind == "message":
        by = {"assistant": SAID, "user": PROMPT}.get(str(item.get("role")), TOLD)
        text = _text(item.get("content"))
        yield Step(TOLD if text.startswith(("<", "# AGENTS.md")) else by, at, text), None
    elif kind in ("function_call", "custom_tool_call"):
        given = item.get("arguments", item.get("input"))
        yield Step(CALL, at, None, _name(item), _input(given)), item.get("call_id")
    elif kind in ("function_call_output", "custom_tool_call_output"):
        yield Step(CALL, at, _text(item.get("output"))), item.get("call_id")


def _name(block: Mapping[str, Any]) -> str:
    return str(block.get("name") or "")[:200]


def _input(given: object) -> dict[str, Any]:
    """Return a call's input by field; that of a call with a text alone is ``input``."""
    if isinstance(given, str):
        parsed = codec.parse(given.encode("utf-8", "surrogatepass"), LONGEST, ours=False)
        given = {"input": given} if isinstance(parsed, BadLine) else parsed
    if not isinstance(given, dict):
        return {}
    return {str(key): value[:LONG] if isinstance(value, str) else value for key, value in given.items()}


def _text(content: object) -> str:
    """Return the texts of a content, which has one or a list of parts, with a word for each part that is none."""
    if isinstance(content, str):
        return content[:LONG]
    parts = content if isinstance(content, list) else []
    found = (p if isinstance(p, str) else _part(p) if isinstance(p, dict) else "" for p in parts)
    return "\n".join(found)[:LONG]


def _part(part: Mapping[str, Any]) -> str:
    text = part.get("text")
    return text if isinstance(text, str) else f"[{str(part.get('type') or 'something')[:40]}]"


def _dicts(content: object) -> list[dict[str, Any]]:
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
