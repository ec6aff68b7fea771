"""Codex's rollout as evidence: what a hook gave the model, and what the model made of it (as seen with 0.169.0)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.clients import client_input
from agent_mailbox.clients.hooks import rollout
from agent_mailbox.clients.transcript import OPEN, PASSED, SEEN, SHOWN
from agent_mailbox.core import instant
from agent_mailbox.mailbox.delivery import Offer

if TYPE_CHECKING:
    from pathlib import Path

AT, BEFORE = "2026-11-23T21:06:08.000Z", "2026-11-23T21:06:06.000Z"
OFFER = Offer("1a2b3c", instant.parse("2026-11-23T21:06:07.000Z"), 0, ("m",))
TEXT = "Agent mail 1a2b3c\nf11ef1fc x → all\n| hello"
SESSION = "01a20a3a-fa66-7b40-8248-4482c9a39c1d"


def item(place: int, given: int, at: str = AT, **payload: Any) -> dict[str, Any]:
    """A line of a rollout: the item's number, and that of the last one that the model was given."""
    about = {"history_sequence": place, "sampled_through_sequence": given}
    return {"timestamp": at, "type": "response_item", "payload": payload, "metadata": about}


def message(place: int, given: int, role: str, text: str, *, hook: bool = False) -> dict[str, Any]:
    """A message; the client says whether a hook gave it."""
    about = {"content_item_metadata": [{"provenance": {"type": "harness", "hook": hook}}]}
    content = [{"type": "input_text", "text": text}]
    return item(
        place, given, type="message", role=role, content=content, internal_chat_message_metadata_passthrough=about
    )


def spoke(place: int, given: int, at: str = AT, kind: str = "message") -> dict[str, Any]:
    """Something that the model made."""
    return item(place, given, at, type=kind, **({"role": "assistant"} if kind == "message" else {"name": "shell"}))


SHOWS = message(5, 3, "developer", TEXT, hook=True)
STOPS = message(5, 3, "user", f'<hook_prompt hook_run_id="stop:7:/p/hooks.json">{TEXT}</hook_prompt>', hook=True)


@pytest.mark.parametrize(
    ("lines", "state"),
    [
        ([], OPEN),
        ([spoke(4, 3, BEFORE)], OPEN),
        ([SHOWS], SHOWN),
        ([SHOWS, item(6, 3, type="function_call_output", output="ok")], SHOWN),
        ([SHOWS, spoke(6, 3, kind="function_call")], SHOWN),
        ([SHOWS, spoke(7, 6)], SEEN),
        ([SHOWS, spoke(7, 6, kind="function_call")], SEEN),
        ([SHOWS, spoke(7, 6, kind="reasoning")], SEEN),
        ([STOPS, spoke(6, 5)], SEEN),
        ([spoke(6, 5)], PASSED),
        ([spoke(6, 4), SHOWS, spoke(8, 7)], SEEN),
        ([message(5, 3, "user", TEXT), spoke(7, 6)], PASSED),
        ([message(5, 3, "developer", TEXT), spoke(7, 6)], PASSED),
        ([message(5, 3, "assistant", TEXT, hook=True), spoke(7, 6)], PASSED),
        ([item(5, 3, type="function_call_output", output=TEXT), spoke(7, 6)], PASSED),
        ([message(5, 3, "developer", f"| {TEXT}", hook=True), spoke(7, 6)], PASSED),
        ([message(5, 3, "developer", TEXT.replace("1a2b3c", "1a2b3d"), hook=True), spoke(7, 6)], PASSED),
    ],
    ids=range(17),
)
def test_what_was_shown_and_what_was_seen(tmp_path: Path, lines: list[dict[str, Any]], state: str) -> None:
    """Seen is what the model was given before it made something; a quote by anyone else shows nothing."""
    path = tmp_path / f"rollout-2026-11-23T21-06-07-{SESSION}.jsonl"
    text = "".join(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n" for line in lines)
    path.write_text(text + '{"type":"response_item","payload":')
    assert rollout.offer_states(str(path), [OFFER]) == {"1a2b3c": state}


@pytest.mark.parametrize(
    "line",
    [
        {"type": "response_item"},
        {"type": "response_item", "payload": []},
        {"type": "response_item", "payload": {"type": "message", "role": "developer"}, "metadata": 5},
        {"type": "response_item", "payload": {**SHOWS["payload"], "content": TEXT}, "metadata": {}},
        {"type": "response_item", "payload": {**SHOWS["payload"], "content": [TEXT, {"text": 5}]}},
        {"type": "event_msg", "payload": {"type": "item_completed", "item": {"type": "HookPrompt", "text": TEXT}}},
    ],
    ids=range(6),
)
def test_rollout_lines_of_an_unknown_form_tell_nothing(tmp_path: Path, line: dict[str, Any]) -> None:
    """A rollout line of an unknown form tells nothing about an offer, and causes no error."""
    path = tmp_path / f"rollout-x-{SESSION}.jsonl"
    path.write_text(json.dumps(line, separators=(",", ":")) + "\n[]\nnull\n")
    assert rollout.offer_states(str(path), [OFFER]) == {"1a2b3c": OPEN}
    assert rollout.offer_states(str(tmp_path / "rollout-none.jsonl"), [OFFER]) is None


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        (f"rollout-2026-11-23T21-06-07-{SESSION}.jsonl", True),
        ("rollout-2026-11-23T21-06-07-01a20a3a-0000-7b40-8248-4482c9a39c1d.jsonl", False),
        (f"{SESSION}.jsonl", False),
        ("", False),
    ],
)
def test_a_session_s_own_rollout_alone_is_looked_at(name: str, kept: bool) -> None:
    """A subagent's hook has its parent's id, and another conversation."""
    call = {"session_id": SESSION, "transcript_path": name and f"/home/x/.codex/sessions/{name}", "turn_id": "t"}
    found = client_input.parse_call("Stop", call, {}, "/")
    assert (bool(found.conversation), found.transcript) == (kept, "")
