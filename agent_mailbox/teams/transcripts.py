"""The client's transcripts of a team: what a member was told, and what it sent.

Belongs here: their format (observed with 2.1.329): a JSON line an event, append-only. The lead's is
``projects/*/SESSION.jsonl``, a teammate's ``projects/*/SESSION/subagents/agent-*.jsonl`` with a ``.meta.json`` that
names it. They outlive the inboxes' entries, and the team.
"""

from __future__ import annotations

import json
import os
from itertools import product
from typing import TYPE_CHECKING, Any

from ..clients.foreign_fields import read_content
from ..clients.transcript import blocks_of, parts_of
from ..core.control.messages import ShutdownRequest, Unknown
from ..store.files import system
from ..store.files.small_files import list_names
from . import format as form
from .format import InboxEntry
from .team_files import TeamConfiguration

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MARK = "teammate-message"
"""The client's tag around a message to a teammate."""


def find_transcripts(
    client: str, team: TeamConfiguration, sessions: Iterable[str], known: dict[str, str | None]
) -> Iterator[tuple[str, str]]:
    """Yield (transcript, its member) of all members.

    ``sessions`` are the lead's: after ``/clear`` it has another, while its team keeps the first. ``known`` remembers
    each transcript's member.
    """
    projects = os.path.join(client, "projects")
    wanted = [session for session in sessions if "/" not in session and not session.startswith(".")]
    for project, session in product(list_names(projects) if wanted else (), wanted):
        lead = os.path.join(projects, project, f"{session}.jsonl")
        if os.path.exists(lead):
            yield lead, team.lead_name
        beside = os.path.join(projects, project, session, "subagents")
        for name in list_names(beside):
            if not name.endswith(".meta.json"):
                continue
            path = os.path.join(beside, name)
            if known.get(path) is None:
                known[path] = _member_of(path, team.name)
            whose = known[path]
            if whose:
                yield path.removesuffix(".meta.json") + ".jsonl", whose


def _member_of(path: str, team: str) -> str | None:
    """Return the member of a transcript: empty if of another team, None if that is yet to be written."""
    content = read_content(path)
    about = _parse_object(content.data) if content else None
    if about is None:
        return None
    name = about.get("name")
    return name if isinstance(name, str) and about.get("teamName") == team else ""


def _parse_object(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def marks_passed_on(path: str, marks: Mapping[str, str], start: int) -> tuple[set[str], int]:
    """Return (which marks the client passed on to the model, how far the transcript was read).

    ``marks`` maps keys to texts. A mark counts in a teammate's message after ``start``, not in a model's words or a
    tool's output.
    """
    found: set[str] = set()
    for line, end in _lines_behind(path, start):
        start = end
        if MARK.encode() in line:
            hits = {key for key, mark in marks.items() if mark.encode() in line} - found
            if hits and _is_message(line):
                found |= hits
    return found, start


def _lines_behind(path: str, start: int) -> Iterator[tuple[bytes, int]]:
    """Yield each whole line behind a place in a transcript, and where it ends."""
    try:
        with open(path, "rb") as file:
            file.seek(start)
            for line in file:
                if not line.endswith(b"\n"):
                    break  # still being written
                start += len(line)
                yield line, start
    except OSError:
        pass


def _is_message(line: bytes) -> bool:
    event = _parse_object(line)
    if event is None or event.get("type") not in ("user", "attachment"):
        return False
    return not any(block.get("type") == "tool_result" for block in blocks_of(event))


_BEFORE = "Another Claude session sent a message:\n"
_BEGINS = f'<{MARK} teammate_id="'
_ENDS = f"\n</{MARK}>"


class Transcript:
    """Messages that passed through a member, by its own transcript.

    It is complete where an inbox is not: entries fetched at once were never there for long. Plain messages are as their
    sender's client recorded them, with ``msg_id``. Protocol messages are as their reader's did: the sender's lacks
    them.
    """

    def __init__(self, path: str, member: str) -> None:
        self._path = path
        self._member = member
        self._at = 0
        self._calls: dict[str, None] = {}

    def new_messages(self) -> list[tuple[str, InboxEntry]]:
        """Return (owner of the inbox, entry) of each message since the last time."""
        found: list[tuple[str, InboxEntry]] = []
        if system.size(self._path) == self._at:
            return found
        for line, end in _lines_behind(self._path, self._at):
            self._at = end
            if b'"SendMessage"' in line or b"msg_id" in line:
                found += self._sent_messages(_parse_object(line) or {})
            elif MARK.encode() in line and b"{" in line:
                found += ((self._member, entry) for entry in _heard_messages(_parse_object(line) or {}))
        return found

    def _sent_messages(self, event: dict[str, Any]) -> Iterator[tuple[str, InboxEntry]]:
        for block in blocks_of(event):
            if event.get("type") == "assistant" and block.get("name") == "SendMessage":
                self._calls[str(block.get("id"))] = None
            elif block.get("type") == "tool_result" and str(block.get("tool_use_id")) in self._calls:
                sent = _tool_result(block.get("content"))
                target = str(sent.get("target", "")).removeprefix("@")
                made = {"from": self._member, "text": sent.get("content"), "timestamp": event.get("timestamp")}
                found = form.parse_inbox(json.dumps([made | {k: sent.get(k) for k in ("msg_id", "summary")}]).encode())
                yield from ((target, entry) for entry in found.entries if target and entry.msg_id)


def _heard_messages(event: dict[str, Any]) -> Iterator[InboxEntry]:
    """Yield the protocol messages that an event passed on to the member's model, as entries."""
    message = event.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if event.get("type") != "user" or not isinstance(content, str):
        return
    at = content.find(_BEGINS)
    if content[:at] not in ("", _BEFORE):
        return
    while content.startswith(_BEGINS, at):
        # no text can end a block: the client sees to it
        block, end, left = content[at + len(_BEGINS) :].partition(_ENDS)
        at = len(content) - len(left.lstrip("\n")) if end else len(content)
        sender, _, rest = block.partition('"')
        attributes, _, told = rest.partition(">\n")
        text, more, prose = told.partition("\n")
        said = form.parse_protocol(text)
        if said is None or (isinstance(said, Unknown) and ' summary="' in attributes):
            continue  # a model's own words: its sender's transcript has them
        if more and not (prose.startswith("\n") and isinstance(said, ShutdownRequest)):
            continue  # to a shutdown request the client adds how to answer it
        made = [{"from": sender, "text": text, "timestamp": event.get("timestamp")}]
        yield from form.parse_inbox(json.dumps(made).encode()).entries


def _tool_result(content: Any) -> dict[str, Any]:
    """Return the client's answer to the tool call, with its routing; empty for a failure."""
    texts = [block.get("text") for block in parts_of(content)] if isinstance(content, list) else [content]
    for text in texts:
        answer = _parse_object(text.encode("utf-8", "replace")) if isinstance(text, str) else None
        routing = answer.get("routing") if answer and answer.get("success") is True else None
        if answer and isinstance(routing, dict):
            return {**routing, "msg_id": answer.get("msg_id")}
    return {}
