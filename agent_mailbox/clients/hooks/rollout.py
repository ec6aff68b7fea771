"""Codex's rollout: did a hook's text reach the model, and did the model go on after it?

Belongs here: how Codex writes a session down (observed with 0.169.0: a JSON line an event, only appended to, also by a
resumed session). Each item of the conversation has its number, and that of the last one which the model was given when
it made the item. A hook's text is a message of the harness, marked as a hook's; that of a turn's end is in
``<hook_prompt …>``. So mail was seen if the model made something with that message before it. An example, shortened:

    {"type":"response_item","payload":{"type":"message","role":"developer","content":[{"text":"Agent mail 1a2b3c\\n…"}],
     "internal_chat_message_metadata_passthrough":{"content_item_metadata":[{"provenance":{"hook":true}}]}},
     "metadata":{"history_sequence":5,"sampled_through_sequence":3}}
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core import instant
from .. import budget
from ..transcript import OPEN, PASSED, SEEN, SHOWN, event_of, fields_of, is_whole_check, parts_of, read_margin

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ...mailbox.delivery import Offer

_GIVEN = ("function_call_output", "custom_tool_call_output")
"""The kinds of items that the model did not make, beside messages of others."""


def offer_states(path: str, offers: Sequence[Offer]) -> dict[str, str] | None:
    """Return the state of each offer, by nonce; None if there is no rollout; raises as ``transcript.offer_states``."""
    start = min(offer.length for offer in offers)
    return read_margin(path, start, lambda lines: _states_in(lines, offers), with_end=True)


def _states_in(lines: Iterator[bytes], offers: Sequence[Offer]) -> dict[str, str]:
    found = dict.fromkeys((offer.nonce for offer in offers), OPEN)
    places: dict[str, int] = {}
    marks = {f" mail {offer.nonce}".encode(): offer.nonce for offer in offers}
    for line in lines:
        if b'"type":"response_item"' not in line:
            continue
        event = event_of(line)
        if event.get("type") != "response_item":
            continue
        item, place, given = _item_of(event)
        if _is_the_model_s(item):
            for offer in offers:
                state = found[offer.nonce]
                if state == SHOWN and given >= places[offer.nonce]:
                    found[offer.nonce] = SEEN
                elif state == OPEN and instant.told(event.get("timestamp")) >= offer.time:
                    found[offer.nonce] = PASSED
        else:
            tells = _has_delivery if _is_a_hook_s(item) else _is_whole_check
            for mark, nonce in marks.items():
                if mark in line and found[nonce] in (OPEN, PASSED) and tells(item, nonce):
                    found[nonce], places[nonce] = SHOWN, place
    return found


def _item_of(event: Mapping[str, Any]) -> tuple[dict[str, Any], int, int]:
    """Return an item, its number, and that of the last one that the model was given for it."""
    about = fields_of(event.get("metadata"))
    numbers = about.get("history_sequence"), about.get("sampled_through_sequence")
    place, given = (number if isinstance(number, int) else 0 for number in numbers)
    return fields_of(event.get("payload")), place, given


def _is_the_model_s(item: Mapping[str, Any]) -> bool:
    if item.get("type") == "message":
        return item.get("role") == "assistant"
    return "type" in item and item["type"] not in _GIVEN


def _is_a_hook_s(item: Mapping[str, Any]) -> bool:
    """Return whether the client says that a hook's text is in the item; a quote by others has another provenance."""
    about = fields_of(item.get("internal_chat_message_metadata_passthrough"))
    found = [fields_of(part.get("provenance")) for part in parts_of(about.get("content_item_metadata"))]
    return item.get("role") in ("developer", "user") and any(p.get("hook") is True for p in found)


def _is_whole_check(item: Mapping[str, Any], nonce: str) -> bool:
    """Return whether the item is a tool's result with the whole output of a check in it."""
    output = item.get("output") if item.get("type") in _GIVEN else None
    return isinstance(output, str) and is_whole_check(output, nonce)


def _has_delivery(item: Mapping[str, Any], nonce: str) -> bool:
    texts = [part.get("text") for part in parts_of(item.get("content"))]
    heads = budget.possible_heads(nonce)
    lines = [line for text in texts if isinstance(text, str) for line in text.split("\n")]
    return any(
        line in heads or (line.startswith("<hook_prompt ") and line.partition(">")[2] in heads) for line in lines
    )
