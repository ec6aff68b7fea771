"""GitHub Copilot CLI's file of a session: did a hook's text reach the model, and did the model go on after it?

Belongs here: how Copilot CLI writes a session down (observed with 1.0.102: a JSON line an event, written a tenth of a
second late). A prompt with the hooks' words around it is a ``user.message``, that of a turn's end is one itself. A
``tool.execution_complete`` ends with what hooks said behind that tool. A subagent's events name it. If the person
takes a prompt back (Escape twice), the client writes the file again without it. Then the mail beside it is missing when
the next prompt begins. A killed client leaves out its last events. Examples, shortened:

    {"type":"user.message","data":{"transformedContent":"go on\\n\\n<system_reminder>\\nAgent mail 1a2b3c\\n…"}}
    {"type":"assistant.message","data":{"content":"DONE"},"timestamp":"…"}
    {"type":"hook.start","data":{"hookType":"userPromptSubmitted","input":{"prompt":"next"}},"timestamp":"…"}
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core import instant
from ...store.files import system
from .. import budget
from ..transcript import ERASED, OPEN, PASSED, SEEN, SHOWN, event_of, fields_of, is_whole_check, read_margin

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ...mailbox.delivery import Offer

LATE = "late"
"""The state of an offer of which the client has yet to write more."""
_OPENS, _CLOSES = "<system_reminder>\n", "\n</system_reminder>"
_BEHIND = "Additional guidance from postToolUse hooks:\n"
_TELLS = (b'"user.message"', b'"assistant.message"', b'"tool.execution_complete"', b'"userPromptSubmitted"')


def offer_states(path: str, offers: Sequence[Offer], called: int, *, begins: bool) -> dict[str, str] | None:
    """Return the state of each offer, by nonce; None without its directory; raises as ``transcript.offer_states``.

    ``called``: when the client called our hook (ms). It writes that down first, so its file is whole up to there.
    ``begins``: the session begins, with a file that an earlier process left. The hook of the first prompt runs at the
    same time: what that one offers is not judged."""
    found = read_margin(path, min(offer.length for offer in offers), lambda lines: _states_in(lines, offers))
    if found is None and not system.is_directory(system.dirname(path)):
        return None
    states, written = found or (dict.fromkeys((offer.nonce for offer in offers), OPEN), 0)
    if begins:
        late = [offer.nonce for offer in offers if offer.time >= called]
    else:
        late = [nonce for nonce, state in states.items() if written < called and state in (OPEN, SHOWN)]
    return states | dict.fromkeys(late, LATE)


def _states_in(lines: Iterator[bytes], offers: Sequence[Offer]) -> tuple[dict[str, str], int]:
    """Return those states by the lines alone, and the time of the last line."""
    found = dict.fromkeys((offer.nonce for offer in offers), OPEN)
    last = b""
    for last in lines:
        if not any(word in last for word in _TELLS):
            continue
        event = event_of(last)
        if "agentId" in event or not isinstance(data := event.get("data"), dict):
            continue
        kind, time = event.get("type"), instant.told(event.get("timestamp"))
        for offer in offers:
            state = found[offer.nonce]
            if kind == "assistant.message":
                if state == SHOWN:
                    found[offer.nonce] = SEEN
                elif state == OPEN and time >= offer.time:
                    found[offer.nonce] = PASSED
            elif state in (OPEN, PASSED, ERASED) and _has_delivery(kind, data, offer.nonce):
                found[offer.nonce] = SHOWN
            elif kind == "hook.start" and state in (OPEN, PASSED) and time > offer.time:
                found[offer.nonce] = state if _begins_by(data, offer.nonce) else ERASED
    return found, instant.told(event_of(last).get("timestamp"))


def _begins_by(data: Mapping[str, Any], nonce: str) -> bool:
    """Return whether the hook is another's than a prompt's, or that prompt is our own text of a turn's end."""
    if data.get("hookType") != "userPromptSubmitted" or not isinstance(data.get("input"), dict):
        return True
    return str(data["input"].get("prompt")).partition("\n")[0] in budget.possible_heads(nonce)


def _has_delivery(kind: object, data: Mapping[str, Any], nonce: str) -> bool:
    """Return whether the event gives the model a hook's text with that delivery, or the whole output of a check."""
    heads = budget.possible_heads(nonce)
    if kind == "user.message":
        said, sent = str(data.get("content")), str(data.get("transformedContent"))
        hooks = sent.rpartition(_OPENS)[2].partition(_CLOSES)[0] if _OPENS in sent else ""
        return said.partition("\n")[0] in heads or any(line in heads for line in hooks.split("\n"))
    if kind != "tool.execution_complete":
        return False
    text = str(fields_of(data.get("result")).get("content"))
    _, behind, hooks = text.rpartition(_BEHIND)
    return bool(behind and any(line in heads for line in hooks.split("\n"))) or is_whole_check(text, nonce)
