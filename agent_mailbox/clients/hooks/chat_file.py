"""Gemini CLI's file of a conversation: did a hook's text reach the model, and did the model go on after it?

Belongs here: how Gemini CLI writes a session down (observed with 0.61.0: a JSON line a record, only appended to, also
by a resumed session). A message has an id, and a later line with that id takes its place. A hook's text is in
``<hook_context>`` of a ``user`` message or of a tool's result; that of a turn's end is a message itself. The model's
answers are of type ``gemini`` and name the model. The client's own stopgaps of that type name none. If a request fails
or Escape ends a turn, the client takes messages back: a ``$set`` of the messages that stay, or a ``$rewindTo``. Other
lists of messages come from a compaction, and begin with new ones. Examples, shortened:

    {"id":"b","type":"user","content":[{"text":"go on"},{"text":"<hook_context>Agent mail 1a2b3c\\n…</hook_context>"}]}
    {"id":"c","type":"gemini","content":"DONE","model":"gemini-2.5-pro","timestamp":"…"}
    {"$set":{"messages":[{"id":"a",…}]}}
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core import instant
from .. import budget
from ..transcript import ERASED, OPEN, PASSED, SEEN, SHOWN, event_of, fields_of, is_whole_check, parts_of, read_margin

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ...mailbox.delivery import Offer

_OPENS, _CLOSES = "<hook_context>", "</hook_context>"


def states(path: str, offers: Sequence[Offer], prompt: str | None = None) -> dict[str, str] | None:
    """Return the state of each offer, by nonce; None if there is no such file; raises as ``transcript.offer_states``.

    ``prompt``: the one that begins now. Then whatever is not in the file will not come into it, unless the prompt
    itself is our text of a turn's end."""
    found = read_margin(
        path, min((offer.length for offer in offers), default=0), lambda lines: _Chat(offers).fold(lines)
    )
    if found is None or prompt is None:
        return found
    begun = prompt.partition("\n")[0]
    return {
        nonce: ERASED if state in (OPEN, PASSED) and begun not in budget.possible_heads(nonce) else state
        for nonce, state in found.items()
    }


class _Chat:
    """The fold of a conversation's lines: the ids of its messages, in order, and what became of each offer."""

    def __init__(self, offers: Sequence[Offer]) -> None:
        self._offers = {offer.nonce: offer for offer in offers}
        self._found = dict.fromkeys(self._offers, OPEN)
        self._shown: dict[str, str] = {}
        """The message that shows an offer."""
        self._order: dict[str, None] = {}
        self._taken: set[str] = set()
        """The messages that the client took back."""

    def fold(self, lines: Iterator[bytes]) -> dict[str, str]:
        """Return the state of each offer after these lines."""
        for line in lines:
            if b'"id":' not in line and b'"$rewindTo"' not in line:
                continue
            record = event_of(line)
            if isinstance(name := record.get("id"), str):
                self._take(name, record, line)
            elif isinstance(name := record.get("$rewindTo"), str):
                self._keep([*self._order][: [*self._order].index(name)] if name in self._order else [])
            elif isinstance(update := record.get("$set"), dict) and isinstance(update.get("messages"), list):
                self._replace([name for one in parts_of(update["messages"]) if isinstance(name := one.get("id"), str)])
        return {
            nonce: ERASED if self._shown.get(nonce) in self._taken else state for nonce, state in self._found.items()
        }

    def _take(self, name: str, message: Mapping[str, Any], line: bytes) -> None:
        self._order[name] = None
        if message.get("type") == "gemini" and isinstance(message.get("model"), str):
            spoken = instant.told(message.get("timestamp"))
            for nonce, state in self._found.items():
                if state == SHOWN and name != self._shown[nonce]:
                    self._found[nonce] = SEEN
                elif state == OPEN and spoken >= self._offers[nonce].time:
                    self._found[nonce] = PASSED
        for nonce, state in self._found.items():
            is_missing = state in (OPEN, PASSED) or self._shown[nonce] in self._taken
            if is_missing and f" mail {nonce}".encode() in line and _tells(message, nonce):
                self._found[nonce], self._shown[nonce] = SHOWN, name

    def _replace(self, names: list[str]) -> None:
        """Take a new list of messages: the first ones that there were, or what a compaction made of them."""
        before, known = [*self._order], [*dict.fromkeys(name for name in names if name in self._order)]
        if known == before[: len(known)]:
            self._keep(known)
        self._order = dict.fromkeys(names)
        self._taken.difference_update(names)

    def _keep(self, names: list[str]) -> None:
        """Take back all other messages, and what they showed."""
        self._taken.update(name for name in self._order if name not in names)
        self._order = dict.fromkeys(names)


def _tells(message: Mapping[str, Any], nonce: str) -> bool:
    """Return whether the message gives the model a hook's text with that delivery, or the whole output of a check."""
    heads = budget.possible_heads(nonce)
    parts = parts_of(message.get("content") if message.get("type") == "user" else None)
    for call in parts_of(message.get("toolCalls")):
        parts += parts_of(call.get("result"))
    for part in parts:
        if isinstance(text := part.get("text"), str):
            said = _hook_text(text) if text.startswith(_OPENS) else text.partition("\n")[0]
            if any(line in heads for line in said.split("\n")):
                return True
        output = fields_of(fields_of(part.get("functionResponse")).get("response")).get("output")
        if isinstance(output, str) and (
            any(line in heads for line in _hook_text(output).split("\n")) or is_whole_check(output, nonce)
        ):
            return True
    return False


def _hook_text(text: str) -> str:
    """Return what a hook said in a text: behind the last mark, for a tool's own output comes before it."""
    return text.rpartition(_OPENS)[2].partition(_CLOSES)[0] if _OPENS in text else ""
