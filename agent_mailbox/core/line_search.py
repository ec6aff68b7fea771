"""A search of a log's bytes for the lines that can matter to one reader: for a cursor that begins in large logs.

Belongs here: a filter that may let too much through but must never hold back. It knows how our writers spell a line;
any other spelling is decoded. One thing it does not look for: an id that a foreign program wrote twice. It may miss
the first line if that is for another reader, or has expired by its mode. It leaves out most of any history: mail for
others, expired mail, and role mail that is claimed.

**By example**: the reader is ``bob`` with ``role:coder``; a chunk is split at ``"recipient":``, and these begin pieces:

    "bob","timestamp":"2026-01-05T…        kept, unless the timestamp is before bob's cutoff for direct mail
    "role:coder","timestamp":"2026-01-02…  kept with its role: a claim by anyone drops it
    ["amy","bob"],"timestamp":"2026…       kept: an array may hold any address
    "cat","timestamp":"2026-01-05T…        left out

The piece before each hit ends with ``{"id":"…","sender":"amy",``: there the line begins, and there is its id. The reads
log is searched for these ids. A line such as ``{"message_id":ID,…,"event":"read","as":"role:coder"}`` drops ID, unless
a release of it is there too.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from . import codec, instant
from .address import ALL, BROADCAST, DIRECT, TAG, route
from .codec import dumps
from .exact_lines import CLAIM, LASTING
from .instant import HOUR
from .records import BadLine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .address import Reader
    from .roster import Roster

    Places = tuple[list[int], bytes | None]

_MARKER = b'"recipient":'
_STAMP = b'"timestamp":"'
_CONTENT, _USUAL_END = b',"content":"', b'","thread":null,"ttl_hours":null,"read_by":[]}\n{"id":"'
_QUOTES = 24
_BEGIN = b'\n{"id":"'
_ID = b'"id"'
_SENDER = b'","sender":"'
_NEXT = 36 + len(_SENDER) + 36 + len('",')
"""Bytes of a next line from its id up to its marker, if id and sender are UUIDs."""
_END = len(_USUAL_END) + _NEXT
_ABOUT = b'{"message_id":"'

Lines = tuple[list[int], list[int]]
"""The positions of the lines that may matter: messages, and reads of them."""


class WantedMail:
    """The spellings of recipients whose messages may matter, and what follows from each.

    ``cutoffs`` gives the timestamp up to which mail to it alone has expired; ``roles`` the role that mail to it alone
    is claimed as.
    """

    def __init__(self, reader: Reader, roster: Roster, now: int, ttls: Mapping[str, float | None]) -> None:
        self.reader = reader
        self.cutoffs: dict[bytes, bytes] = {}
        self.roles: dict[bytes, bytes] = {}
        names = [word for word in (*reader.lineage, reader.name) if word]
        roles = [*(tag for tag in reader.tags if tag.startswith("role:")), *(f"role:{name}" for name in names)]
        modes = {word: _direct(word, roster) for word in names}
        modes.update(dict.fromkeys((*roles, *(role[5:] for role in roles if role in reader.tags))))
        modes.update({tag: TAG for tag in reader.tags if tag not in roles})
        modes[ALL] = BROADCAST
        keys = []
        for word, mode in modes.items():
            hours = ttls[mode] if mode else None
            for key in (spelt + b"," for spelt in _spellings(word)):
                keys.append(key)
                if hours is not None:
                    self.cutoffs[key] = instant.text(max(now - int(hours * HOUR), 0)).encode()
                if word in roles:
                    self.roles[key] = dumps(word).encode()
        self.starts = (*keys, b"[")


def _direct(word: str, roster: Roster) -> str | None:
    """Return a word's mode for the reader itself; None if a stopped clock makes its expiry a longer story."""
    agent = roster.meant(word)
    return DIRECT if agent is not None and not agent.frozen else None


def _spellings(word: str) -> set[bytes]:
    """Return an address as JSON writers may spell it: as it is, in ASCII, with slashes escaped."""
    plain = dumps(word)
    ascii_only = "".join(c if c < "\x80" else "".join(f"\\u{u:04x}" for u in _utf16(c)) for c in plain)
    upper = "".join(c if c < "\x80" else "".join(f"\\u{u:04X}" for u in _utf16(c)) for c in plain)
    spelt = {plain, ascii_only, upper}
    return {s.encode() for s in spelt | {s.replace("/", "\\/") for s in spelt}}


def _utf16(char: str) -> list[int]:
    data = char.encode("utf-16-be")
    return [data[i] << 8 | data[i + 1] for i in range(0, len(data), 2)]


def add_messages(start: int, chunk: bytes, wanted: WantedMail, found: dict[bytes, Places]) -> None:
    """Add by id where a message begins, and the role it is claimed as (None: perhaps several roles)."""
    pieces = chunk.split(_MARKER)
    if not _is_ours(pieces, chunk):
        _add_decoded(start, chunk, wanted, found)
        return
    hits = []
    for k in [k for k, piece in enumerate(pieces) if piece.startswith(wanted.starts)]:
        piece = pieces[k]
        key = piece[: piece.find(b",") + 1]
        cutoff = wanted.cutoffs.get(key)
        if cutoff is None or not _expired(piece, len(key), cutoff) or not _begins_line(pieces[k - 1]):
            hits.append((k, wanted.roles.get(key)))
    if not hits:
        return
    ends = list(accumulate(map(len, pieces)))
    for k, role in hits:
        before = pieces[k - 1]
        line = before.rfind(b"\n") + 1
        place = ends[k - 1] + (k - 1) * len(_MARKER) - len(before) + line
        message_id = before[line + len(_BEGIN) - 1 :].partition(b'"')[0]
        text = chunk[place : chunk.find(b"\n", place)]
        if b"\\" in message_id or text.count(_ID) > 1:  # its reads may spell it in another way, or it has two
            _add_decoded(start + place, text, wanted, found)
        else:
            _add(found, message_id, start + place, role)


def _add(found: dict[bytes, Places], message_id: bytes, place: int, role: bytes | None) -> None:
    """Add a line under its id. An earlier one with that id may be torn, so both are decoded."""
    before = found.get(message_id)
    if before is not None:
        before[0].append(place)
    found[message_id] = ([place], role) if before is None else (before[0], None)


def _is_ours(pieces: list[bytes], chunk: bytes) -> bool:
    """Return whether every line begins as our writers spell it up to its recipient, the only one in it."""
    if len(pieces) - 1 != chunk.count(b"\n") or not chunk.endswith(b"\n"):
        return False
    begin = slice(-len(_BEGIN) - _NEXT, -_NEXT)
    others = [piece for piece in pieces[:-1] if piece[begin] != _BEGIN]  # their id or sender is not a UUID
    return all(_begins_line(piece) for piece in others)


def _begins_line(piece: bytes) -> bool:
    """Return whether the text after the last newline is an id, a sender and nothing else."""
    line = b"\n" + piece[piece.rfind(b"\n") + 1 :]
    return line.startswith(_BEGIN) and _SENDER in line and line.endswith(b'",') and line.count(b'"') == 8


def _expired(piece: bytes, at: int, cutoff: bytes) -> bool:
    """Return whether this, from its recipient on, is a message in our spelling that expired by its mode's TTL."""
    stamp = at + len(_STAMP)
    if piece[stamp : stamp + 24] > cutoff or piece[at:stamp] != _STAMP or piece[stamp + 23 : stamp + 25] != b'Z"':
        return False
    if piece[-_END:-_NEXT] == _USUAL_END and piece[stamp + 25 : stamp + 37] == _CONTENT:
        escaped = piece.count(b'\\"') if b"\\" in piece else 0
        if piece.count(b'"') == _QUOTES + escaped and not (escaped and b"\\\\" in piece):
            return True  # the quotes are of these keys and of the next line's
    return LASTING.match(piece, stamp + 25) is not None


def _add_decoded(start: int, lines: bytes, wanted: WantedMail, found: dict[bytes, Places]) -> None:
    place = start
    for line in lines.split(b"\n"):
        message = codec.message(line)
        if not isinstance(message, BadLine) and route(message.recipients, wanted.reader, message.bare) is not None:
            _add(found, message.id.encode(), place, None)
        place += len(line) + 1


class ReadSearch:
    """The reads of some messages: by id, where they begin; which messages are claimed, and which may be released."""

    def __init__(self, messages: Mapping[bytes, Places]) -> None:
        self._messages = messages
        self._uuids = all(len(message_id) == 36 for message_id in messages)
        self.places: dict[bytes, list[int]] = {}
        self.claimed: set[bytes] = set()
        self.released: set[bytes] = set()

    def add(self, start: int, chunk: bytes) -> None:
        """Take in a stretch of the log."""
        lines, about, known = chunk.split(b"\n"), len(_ABOUT), self._messages
        count = len(lines) - (not lines[-1])
        begin = chunk.count(b"\n" + _ABOUT) + chunk.startswith(_ABOUT)
        if self._uuids and begin == count == chunk.count(_ABOUT[1:]):
            hits = [k for k, line in enumerate(lines) if line[about : about + 36] in known]
        else:
            hits = [k for k, line in enumerate(lines) if line]
        ends = list(accumulate(map(len, lines))) if hits else []
        for k in hits:
            self._note(lines[k], start + ends[k] - len(lines[k]) + k)

    def _note(self, line: bytes, place: int) -> None:
        about = len(_ABOUT)
        message_id = line[about : line.find(b'"', about)]
        claim, event = CLAIM.fullmatch(line), ""
        if claim is None:
            record = codec.read(line)
            if isinstance(record, BadLine):
                return
            message_id, event = record.message_id.encode(), record.event
        if message_id not in self._messages:
            return
        self.places.setdefault(message_id, []).append(place)
        if claim is not None and claim[1] == b"read" and claim[2] == self._messages[message_id][1]:
            self.claimed.add(message_id)
        elif event == "release":
            self.released.add(message_id)
