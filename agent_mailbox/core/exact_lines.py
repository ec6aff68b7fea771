"""Lines that are exactly as our writers spell them, told whole by their bytes, without a JSON scanner.

Belongs here: the whole spelling of a message and of a read, with every key that may stand in it. One rule holds: any
other line is decoded by ``codec``, which alone knows what it means. So is a line with a key that is unknown here: it
may change what the others mean. A key that ``codec`` learns needs nothing here; its lines are decoded. ``line_forms``
has what one key says, wherever it is.

    {"id":"…","sender":"…","recipient":"…","timestamp":"…","subject":"…","content":"…","thread":null,"ttl_hours":…
"""

from __future__ import annotations

import re

from . import instant
from .line_forms import reader_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    Fields = tuple[str, str, tuple[str, ...], int, str | None, str, str | None]
    """Id, sender, recipients, timestamp (ms), subject, content, thread."""

LONGEST = 1 << 17
"""Bytes of a line that is taken apart here; twice our longest content."""
_CONTROL = bytes(range(32))
_ESCAPES = (b"\\n", b'\\"', b"\\t")
_KEYS = [b"id", b"sender", b"recipient", b"timestamp"]
_BETWEEN = [b"{", *[b":", b","] * 4]
_PLAIN = [b"content", b":", b",", b"thread"]
_TITLED = [b"subject", b":", b",", b"content"]
_USUAL_END = b':null,"ttl_hours":null,"read_by":[]}'
_WORD = rb"[!#-\[\]-~]+"
_SEAL = rb'(?:,"seal":"[ !#-\[\]-~]+")?'
_REST = rb'"read_by":\[\](?:,"type":"(?!note")[a-z]+")?(?:,"ack":true)?(?:,"priority":"[a-z]+")?%b\}' % _SEAL
"""A message from behind its time to live. A note has none."""
_END = re.compile(rb':(?:null|"(%b)"),"ttl_hours":(?:null|[1-9][0-9]{0,3}),%b' % (_WORD, _REST))
_TEXT = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
LASTING = re.compile(
    rb',(?:"subject":%b,)?"content":%b,"thread":(?:null|"[^"\\]*"),"ttl_hours":null,%b\n' % (_TEXT, _TEXT, _REST)
)
"""A message without a time to live of its own, from behind its timestamp."""
_DATE = rb"(?:02-(?:0[1-9]|1\d|2[0-8])|(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30))"
_INSTANT = rb'"[1-9]\d{3}-%bT(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z"' % _DATE
_READER = rb'"reader_session_id":"%b","timestamp":%b' % (_WORD, _INSTANT)
_OFFER = rb'(?:,"nonce":"[0-9a-f]+")?(?:,"tokens":\d{1,9})?'
CLAIM = re.compile(
    rb'\{"message_id":"%b",%b,"event":"(read|claim)","as":("role:[^"\\]+")%b(?:,"title":true)?%b\}'
    % (_WORD, _READER, _OFFER, _SEAL)
)
"""A read or a claim of role mail, but for leap days, which are decoded: its event, its role."""
PLAIN_READ = re.compile(
    rb'\{"message_id":"(%b)",%b,"event":"(read|ack|seen)"(?:,"as":"%b")?%b%b\}' % (_WORD, _READER, _WORD, _OFFER, _SEAL)
)
"""A read, ack or receipt of a message's text, likewise: its message, its event."""
_MINUTES = {b"T%02d:%02d:" % divmod(minute, 60): minute * instant.MINUTE for minute in range(24 * 60)}
_SECONDS = {b"%02d." % second: second * 1000 for second in range(60)}
_MILLISECONDS = {b"%03dZ" % millisecond: millisecond for millisecond in range(1000)}
_MOST_DAYS = 4096
_TTL = b'"ttl_hours":'


class ExactLines:
    """A reader of many lines, which remembers the days that it met."""

    def __init__(self) -> None:
        self._days: dict[bytes, int] = {}

    def fields(self, line: bytes) -> Fields | None:
        """Return the fields of a message in our usual spelling; None for any other line."""
        escaped = b"\\" in line
        text = _without_escapes(line) if escaped else line
        parts = text.split(b'"', 22)
        if len(parts) < 23 or len(line) > LONGEST or parts[:17:2] != _BETWEEN or parts[1:14:4] != _KEYS:
            return None
        subject, content, end = b"", parts[19], parts[22]
        keys = [parts[17], parts[18], parts[20], parts[21]]
        if keys == _TITLED:
            more = end.split(b'"', 4)
            if len(more) < 5 or more[0] != b":" or [more[2], more[3]] != _PLAIN[2:]:
                return None
            subject, content, end = content, more[1], more[4]
        elif keys != _PLAIN:
            return None
        words = parts[3:12:4]
        if not (content and all(words)) or (escaped and any(b" " in word for word in words)):
            return None
        if len(line.translate(None, _CONTROL)) < len(line):
            return None
        return self._decoded(words, parts[15], subject, content, end)

    def _decoded(self, words: list[bytes], when: bytes, subject: bytes, content: bytes, end: bytes) -> Fields | None:
        thread: bytes | None = None
        if end != _USUAL_END:
            found = _END.fullmatch(end)
            if found is None:
                return None
            thread = found[1]
        try:
            at = self._day(when[:10]) + _MINUTES[when[10:17]] + _SECONDS[when[17:20]] + _MILLISECONDS[when[20:]]
            message_id, sender, recipient = [word.decode() for word in words]
            title, text = subject.decode(), content.decode()
        except (KeyError, ValueError):  # a leap second, half a character
            return None
        return message_id, sender, (recipient,), at, title, text, thread.decode() if thread else None

    def _day(self, day: bytes) -> int:
        found = self._days.get(day)
        if found is None:
            if len(self._days) >= _MOST_DAYS:
                self._days.clear()
            found = self._days[day] = instant.parse(day.decode())
        return found


def hours_of(line: bytes) -> int:
    """Return the hours to live in a line of our usual spelling; 0 for its mode's."""
    begin = line.rfind(_TTL) + len(_TTL)
    word = line[begin : line.find(b",", begin)]
    return 0 if word == b"null" else int(word)


def asks_for_ack(line: bytes) -> bool:
    """Return whether a message in our usual spelling asks for an ack."""
    return b'"ack":true' in line


def plain_record(line: bytes) -> tuple[bytes, bytes, bool, bool] | None:
    """Return what a plain read record says; None for any other line.

    That is its message, its session, whether it takes the mail, and whether it has a nonce."""
    plain, reader = PLAIN_READ.fullmatch(line), reader_of(line)
    if plain is None or reader is None:
        return None
    return plain[1], reader, plain[2] != b"seen", b'"nonce"' in line


def _without_escapes(line: bytes) -> bytes:
    """Return the line with spaces for its escapes; nothing if one is unusual."""
    for escape in _ESCAPES:
        line = line.replace(escape, b"  ")
    return b"" if b"\\" in line else line  # of two backslashes at least the first one is left
