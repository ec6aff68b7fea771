"""Messages as our writers usually spell them, taken apart without a JSON scanner: for the index, which reads them all.

Belongs here: that spelling. Any other line gives None, and ``core.codec`` decides what it is. Each line that is taken
here is the same message to the codec; in a text, an escape becomes a space.

    {"id":"…","sender":"…","recipient":"…","timestamp":"…","subject":"…","content":"…","thread":null,"ttl_hours":…
"""

from __future__ import annotations

import re

from ..core import instant

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
_END = re.compile(
    rb':(?:null|"([!#-\[\]-~]+)"),"ttl_hours":(?:null|[1-9][0-9]{0,3}),"read_by":\[\](?:,"type":"[a-z]+")?'
    rb'(?:,"ack":true)?(?:,"priority":"[a-z]+")?(?:,"seal":"[ !#-\[\]-~]+")?\}'
)
_MINUTES = {b"T%02d:%02d:" % divmod(minute, 60): minute * instant.MINUTE for minute in range(24 * 60)}
_SECONDS = {b"%02d." % second: second * 1000 for second in range(60)}
_MILLISECONDS = {b"%03dZ" % millisecond: millisecond for millisecond in range(1000)}
_MOST_DAYS = 4096


class UsualLines:
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


def _without_escapes(line: bytes) -> bytes:
    """Return the line with spaces for its escapes; nothing if one is unusual."""
    for escape in _ESCAPES:
        line = line.replace(escape, b"  ")
    return b"" if b"\\" in line else line  # of two backslashes at least the first one is left
