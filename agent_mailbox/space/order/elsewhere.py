"""The words of other machines of a space: how far their copies are, and when their sessions last acted.

Belongs here: one machine's word, and the files with those of the others, and with which machines joined. They decide
nothing: a session is judged by its own machine. So they are shown, and are never synced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core import codec
from ...core.address import check_id
from ...core.records import Record
from ...core.text import term
from ...errors import MailboxError
from ...store.files import small_files, system

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...store.log.logs import Logs

FILE, JOINED = "elsewhere", "joined"
EVERY = 60.0
"""Seconds between two words of a machine."""
SESSIONS, MACHINES = 1000, 64
"""The most that are told of, and kept."""
PROCESS = system.urandom(8).hex()
"""Tells this process's words from those of a copy of this machine."""
SINCE = 86_400_000
"""Milliseconds for which a session's last act is told."""


class Elsewhere(Record):
    """A machine's word. ``heard``: when it came (ms, our clock); ``applied``: up to where its copy is; ``seen``: when
    its sessions last acted (ms). ``behind``: how many records it lacked then; None: it did not say."""

    machine: str
    heard: int
    applied: int
    seen: Mapping[str, int]
    behind: int | None = None


def own_word(logs: Logs, applied: int, end: int, now: int, host: str) -> bytes:
    """Return this machine's word for the others; ``end`` is the order's."""
    seen = sorted(((at, who) for who, at in logs.last_seen().items() if now - at < SINCE), reverse=True)
    word = {"applied": applied, "behind": max(end - applied, 0), "by": PROCESS, "host": host}
    return codec.dumps({**word, "seen": {who: at for at, who in seen[:SESSIONS]}}).encode()


def find_twin(word: bytes) -> str | None:
    """Return the host of another process that spoke in this machine's own name; None: nobody else did."""
    said = codec.parse(word) if word else None
    if not isinstance(said, dict) or said.get("by", PROCESS) == PROCESS:
        return None
    return term(str(said.get("host") or "unknown"), 64)


def load_peers(directory: str) -> list[Elsewhere]:
    """Return the last word of each other machine, as the replicator keeps it in its directory."""
    return [Elsewhere(machine, *word) for machine, word in load_object(system.join(directory, FILE)).items()]


def keep_words(directory: str, words: Mapping[str, bytes], now: int) -> None:
    """Keep the words that came, each in place of the machine's earlier one; one of another form counts for nothing."""
    known = {one.machine: (one.heard, one.applied, one.seen, one.behind) for one in load_peers(directory)}
    for machine, word in words.items():
        if (found := _parse_word(word, now)) is not None and (machine in known or len(known) < MACHINES):
            known[machine] = (now, *found)
    small_files.save_derived(system.join(directory, FILE), codec.dumps(known).encode())


def keep_joined(directory: str, machines: Sequence[str]) -> None:
    """Keep which machines joined, as the engine just said, for when it is away."""
    if (wanted := [*machines]) != load_joined(directory):
        small_files.save_derived(system.join(directory, JOINED), codec.dumps({"machines": wanted}).encode())


def load_joined(directory: str) -> list[str]:
    return [*map(str, load_object(system.join(directory, JOINED)).get("machines", ()))]


def load_object(path: str) -> dict[str, Any]:
    """Return what a derived file of this machine's record says; empty if it counts for nothing."""
    body = small_files.load_derived(path)
    found = codec.parse(body, len(body)) if body is not None else None
    return found if isinstance(found, dict) else {}


def _parse_word(word: bytes, now: int) -> tuple[int, dict[str, int], int | None] | None:
    said = codec.parse(word)
    if not isinstance(said, dict) or not isinstance(said.get("seen"), dict) or not isinstance(said.get("applied"), int):
        return None
    seen = {}
    for who, at in list(said["seen"].items())[:SESSIONS]:
        try:
            if isinstance(at, int):
                seen[check_id(who)] = min(max(at, 0), now)  # its clock may be ahead of ours
        except MailboxError:
            continue
    behind = said.get("behind")
    return said["applied"], seen, behind if type(behind) is int and behind >= 0 else None
