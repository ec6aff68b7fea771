"""The client's transcript: did a hook's text reach the model, and did the model go on after it? Did a call end?

Belongs here: how Claude Code writes a session down (observed with 2.1.329: a JSON line an event, only appended to). A
hook's text is in an ``attachment`` of type ``hook_additional_context``. The model's words are in lines of type
``assistant``, each with the id of its answer. Other quotes of us (a tool's output, a prompt, the model) count for
nothing. The client also writes its own errors as such lines. A prompt that is taken back (Escape before the answer
begins) leaves its lines, but is never sent again: the next prompt follows directly. After ``/rewind`` the next prompt
names an earlier line as the one before it: all between is left, and never sent again. A compaction writes a
``compact_boundary`` with the lines that it kept in the conversation.

An example, shortened: ``{"type":"attachment","sessionId":"…","attachment":{"type":"hook_additional_context",
"hookEvent":"Stop","content":["Agent mail 1a2b3c\\n…"]}}`` shows the delivery ``1a2b3c`` to that session.
"""

from __future__ import annotations

from ..core import codec, instant
from ..core.records import BadLine
from ..store.files import system
from ..store.files.lines import chunks
from . import budget

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any, TypeVar

    from ..mailbox.delivery import Offer

    Found = TypeVar("Found")

SEEN, SHOWN, PASSED, OPEN, ERASED = "seen", "shown", "passed", "open", "erased"
"""States of an offer. The model spoke after it. It is shown, and the model did not speak since. It is missing, though
the model spoke. Nothing happened. It was shown, and the client took the turn back."""

MARGIN = 1 << 18
"""Bytes to read before an offer: the answer during which it was made is there."""
_CLIENT = "<synthetic>"
"""The model name of the client's own lines, for errors of the API."""
_INTERRUPTED = b'"[Request interrupted by user'
"""The client's line for a prompt that stays in the conversation without an answer."""
_COMPACTS = b'"subtype":"compact_boundary"'
"""The client's line for a compaction."""
MAX_LINE = 64 << 20
_IN_LINE = ("SessionStart", "UserPromptSubmit", "Stop")
"""Hooks whose text the next line follows. Between tools that run at once, the client follows one of them alone."""
_PASSING = (5, 12, 23, 24)
"""Numbers of errors by which a file that is there cannot be read for the moment: EIO, ENOMEM, ENFILE, EMFILE."""


def offer_states(path: str, session_id: str, offers: Sequence[Offer]) -> dict[str, str] | None:
    """Return the state of each of the session's offers, by nonce; None if there is no transcript. Raises ``OSError`` if
    it is unreadable at this moment. Lines of another session, which a client may copy, tell nothing."""
    start = min(offer.length for offer in offers)
    return read_margin(path, start, lambda lines: _states_in(lines, session_id, offers), with_end=True)


def has_ended(path: str, length: int, since: int, tool: str, given: Mapping[str, Any]) -> bool:
    """Return whether every call of the tool with this input ended, one of them after ``since`` (ms). ``length``: the
    transcript's at that time.

    A call is in a line of type ``assistant``. Its result, even a person's "no", is in one of type ``user`` under the
    call's id. The client keeps its requests to the model there, too, with the same blocks and without a time: before
    these lines or behind them."""
    return bool(read_if_possible(path, length, lambda lines: _has_ended(lines, since, tool, given)))


def find_failure(path: str, session_id: str) -> tuple[str, str]:
    """Return the error with which the session's conversation ends, and the client's words for it. Both are empty if it
    ends otherwise, or cannot be read."""
    length = system.size(path)
    return read_if_possible(path, length, lambda lines: _last_failure(lines, session_id), with_end=True) or ("", "")


def read_margin(
    path: str, length: int, judge: Callable[[Iterator[bytes]], Found], *, with_end: bool = False
) -> Found | None:
    """Return what ``judge`` makes of the lines from a margin before ``length`` on; None if there is no transcript.

    ``with_end``: also of the last one, if its line break is missing. The client takes it for whole if it can read
    it."""
    try:
        fd = system.open(path, system.O_RDONLY | system.O_CLOEXEC | system.O_NONBLOCK)
    except ValueError:
        return None
    except OSError as error:
        if error.errno in _PASSING:
            raise
        return None
    try:
        there = system.fstat(fd)
        if there.st_mode & system.S_IFMT != system.S_IFREG:
            return None
        start = length if length <= there.st_size else 0  # the file was replaced
        return judge(_lines_between(fd, max(start - MARGIN, 0), there.st_size, with_end=with_end))
    finally:
        system.close(fd)


def read_if_possible(
    path: str, length: int, judge: Callable[[Iterator[bytes]], Found], *, with_end: bool = False
) -> Found | None:
    """Return the same as ``read_margin``; None also if the transcript is unreadable at this moment."""
    try:
        return read_margin(path, length, judge, with_end=with_end)
    except OSError:
        return None


def _last_failure(lines: Iterator[bytes], session_id: str) -> tuple[str, str]:
    for line in reversed([line for line in lines if b'"type":"assistant"' in line or b'"type":"user"' in line]):
        event = event_of(line)
        if event.get("isSidechain") is True or event.get("sessionId") != session_id:
            continue
        if event.get("isApiErrorMessage") is not True:
            break
        return str(event.get("error") or ""), " ".join(str(block.get("text", "")) for block in blocks_of(event))
    return "", ""


def _has_ended(lines: Iterator[bytes], since: int, tool: str, given: Mapping[str, Any]) -> bool:
    running: set[object] = set()
    ended = False
    for line in lines:
        if not (b'"tool_use"' in line or (running and b'"tool_result"' in line)):
            continue
        event = event_of(line)
        for block in blocks_of(event):
            kind = event.get("type"), block.get("type")
            if kind == ("assistant", "tool_use") and block.get("name") == tool and block.get("input") == given:
                running.add(block.get("id"))
            elif kind == ("user", "tool_result") and block.get("tool_use_id") in running:
                running.discard(block.get("tool_use_id"))
                ended = ended or instant.told(event.get("timestamp")) >= since
    return ended and not running


def event_of(line: bytes) -> dict[str, Any]:
    """Return the object of a line; empty if it has none."""
    event = codec.parse(line, MAX_LINE, ours=False)
    return {} if isinstance(event, BadLine) else event


def fields_of(value: object) -> dict[str, Any]:
    """Return an object within another one; empty if it is none."""
    return value if isinstance(value, dict) else {}


def parts_of(value: object) -> list[dict[str, Any]]:
    """Return the objects of a list; none if it is no list."""
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


def blocks_of(event: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the blocks of a line's message."""
    return parts_of(fields_of(event.get("message")).get("content"))


def _states_in(lines: Iterator[bytes], session_id: str, offers: Sequence[Offer]) -> dict[str, str]:
    found = dict.fromkeys((offer.nonce for offer in offers), OPEN)
    during: dict[str, object] = {}
    prompted: set[str] = set()  # shown with a prompt that may still be taken back
    behind: dict[str, _Behind] = {}
    answer: object = None
    marks = {f" mail {offer.nonce}".encode(): offer.nonce for offer in offers}
    for line in lines:
        shown = [nonce for mark, nonce in marks.items() if mark in line]
        for one in behind.values():
            one.add(line)
        if not (shown or b'"type":"assistant"' in line or (behind and (b'"type":"user"' in line or _COMPACTS in line))):
            continue
        event = event_of(line)
        if event.get("isSidechain") is True or event.get("sessionId") != session_id:
            continue
        kind = event.get("type")
        if _COMPACTS in line:
            prompted.clear()
        for nonce in [nonce for nonce, one in behind.items() if one.is_left_by(event, is_open=found[nonce] == SHOWN)]:
            found[nonce] = ERASED
            del behind[nonce]
            prompted.discard(nonce)
        if kind == "user" and prompted and event.get("isMeta") is not True:
            found.update(dict.fromkeys(() if _INTERRUPTED in line else prompted, PASSED))
            prompted.clear()
        elif kind == "assistant":
            prompted.clear()
            message = event.get("message")
            if not isinstance(message, dict) or message.get("model") == _CLIENT:
                continue
            answer, spoken = message.get("id"), instant.told(event.get("timestamp"))
            for offer in offers:
                state = found[offer.nonce]
                if state == SHOWN and answer != during[offer.nonce] and behind[offer.nonce].is_followed_by(line):
                    found[offer.nonce] = SEEN
                elif state == OPEN and spoken >= offer.time:
                    found[offer.nonce] = PASSED
        for nonce in shown:
            if found[nonce] in (OPEN, PASSED) and _has_delivery(event, nonce):
                hook = event["attachment"].get("hookEvent") if kind == "attachment" else None
                found[nonce], during[nonce], behind[nonce] = SHOWN, answer, _Behind(line, in_line=hook in _IN_LINE)
                if hook == "UserPromptSubmit":
                    prompted.add(nonce)
    return found


class _Behind:
    """The lines of a conversation from one of them on, by their ids."""

    def __init__(self, line: bytes, *, in_line: bool) -> None:
        self._first = frozenset(_ids_of(line))
        self._ids, self._beside, self._in_line = {*self._first}, set[bytes](), in_line

    def add(self, line: bytes) -> None:
        """Add a line, by every id that it has."""
        ids = _ids_of(line)
        if not self.is_followed_by(line):
            self._beside.update(ids)
        self._ids.update(ids)

    def is_followed_by(self, line: bytes) -> bool:
        """Return whether a line goes on with these. Another process of the session may write its own turn beside."""
        if not self._in_line:
            return True
        before = line.partition(b'"parentUuid":"')[2].partition(b'"')[0]
        return not before or (before in self._ids and before not in self._beside)

    def is_left_by(self, event: Mapping[str, Any], *, is_open: bool) -> bool:
        """Return whether the conversation goes on without these lines at this one: a prompt follows an earlier line, or
        a compaction kept others. ``is_open``: the model has yet to answer; what it answered, the compaction sums up."""
        if event.get("subtype") == "compact_boundary":
            return is_open and self._first.isdisjoint(_kept_by(event))
        if event.get("type") != "user" or event.get("isMeta") is True or "parentUuid" not in event:
            return False
        is_result = any(block.get("type") == "tool_result" for block in blocks_of(event))
        return not is_result and str(event["parentUuid"]).encode() not in self._ids


def _ids_of(line: bytes) -> list[bytes]:
    return [part.partition(b'"')[0] for part in line.split(b'"uuid":"')[1:]]


def _kept_by(event: Mapping[str, Any]) -> set[bytes]:
    """Return the ids of the lines that a compaction left in the conversation as they were."""
    kept = fields_of(fields_of(event.get("compactMetadata")).get("preservedMessages"))
    lists = [kept.get(key) for key in ("uuids", "allUuids")]
    return {str(one).encode() for found in lists if isinstance(found, list) for one in found}


def _has_delivery(event: dict[str, Any], nonce: str) -> bool:
    """Return whether the event is a hook's text for the model, with our delivery in it. A check's whole output counts,
    too."""
    if event.get("type") == "user":
        return any(is_whole_check(text, nonce) for text in _texts_given(event))
    attachment = fields_of(event.get("attachment"))
    if attachment.get("type") != "hook_additional_context":
        return False
    said = attachment.get("content")
    texts = said if isinstance(said, list) else [said]
    heads = budget.possible_heads(nonce)
    return any(line in heads for text in texts if isinstance(text, str) for line in text.split("\n"))


def _texts_given(event: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts that a line of type ``user`` gave the model: a prompt's, and the results of tools."""
    if isinstance(content := fields_of(event.get("message")).get("content"), str):
        yield content
    for block in blocks_of(event):
        content = block.get("content") if block.get("type") == "tool_result" else block.get("text")
        parts = parts_of(content if isinstance(content, list) else [{"text": content}])
        yield from (text for part in parts if isinstance(text := part.get("text"), str))


def is_whole_check(text: str, nonce: str) -> bool:
    """Return whether a text holds all that a check showed with that nonce (``cli.client_output.marked``)."""
    _, head, rest = text.replace("\r\n", "\n").partition(f", mail {nonce}\n")
    shown, end, count = rest.partition(f"\nend of mail {nonce}: ")
    return bool(head and end) and count.startswith(f"{len(shown) + 1} characters")


def _lines_between(fd: int, start: int, end: int, *, with_end: bool) -> Iterator[bytes]:
    """Yield the lines between two positions; the first may lack its beginning, the last its end."""
    carry = [b""]
    for data in chunks(fd, start, end):
        first, *more = data.split(b"\n")
        carry.append(first)
        if more:
            yield b"".join(carry)
            yield from more[:-1]
            carry = more[-1:]
    if with_end:
        yield b"".join(carry)
