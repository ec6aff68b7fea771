"""Making other people's text safe to show: no field may end its line, move a cursor, or pose as the frame around it.

Belongs here: what is neutralised, once, for every place mail is shown (Promise 4). Control and format characters
become visible escapes, every line break Unicode knows counts as one line break, and the tags by which clients mark
what is *not* mail lose their bracket.
"""

from __future__ import annotations

_JOINERS = "\u200c\u200d"  # scripts and emoji are spelt with these; alone they do nothing
_MARKERS = (
    "agent-mailbox",
    "system-reminder",
    "system",
    "teammate-message",
    "channel",
    "command-",
    "local-command-",
    "bash-",
    "user-prompt-submit-hook",
    "session-start-hook",
    "task-notification",
    "user",
    "human",
    "assistant",
    "function_",
    "function-",
    "invoke",
    "tool_",
    "antml:",
)


def neutral(text: str) -> str:
    """``text`` on one line: breaks become spaces, tabs too, whatever does not print becomes an escape."""
    return _plain(" ".join(text.split()) if not text.isprintable() else text)


def neutral_lines(text: str) -> list[str]:
    """The lines of ``text``, each neutral on its own; trailing empty ones dropped."""
    lines = [_plain(line.expandtabs(4)) for line in text.splitlines()]
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def _plain(text: str) -> str:
    if not text.isprintable():
        text = "".join([c if c.isprintable() or c in _JOINERS else _escape(c) for c in text])
    return _without_markers(text) if "<" in text else text


def _escape(char: str) -> str:
    if char.isspace():
        return " "
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _without_markers(text: str) -> str:
    parts = text.split("<")
    out = [parts[0]]
    for part in parts[1:]:
        word = "".join(c for c in part[:60] if c.isalnum() or c in "-_:").casefold()
        is_marker = word.startswith(_MARKERS)
        out.append(("&lt;" if is_marker else "<") + part)
    return "".join(out)


def words(text: str) -> int:
    """How many words a message has, as the seed's "under 500 words" counts them."""
    return len(text.split())


def clipped(text: str, width: int) -> str:
    """At most ``width`` characters, an ellipsis where something was cut."""
    return text if len(text) <= width else text[: max(width - 1, 0)].rstrip() + "…"


def ascii_json(document: str) -> str:
    """A JSON document, what does not print in it spelt ``\\uXXXX``: same value, harmless to a terminal."""
    if document.isprintable():
        return document
    return "".join([c if c.isprintable() or c == "\n" else _json_escape(ord(c)) for c in document])


def is_utf8(text: str) -> bool:
    """Can the text be written as UTF-8? Half a surrogate pair cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _json_escape(code: int) -> str:
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def shell_quoted(word: str) -> str:
    """The word as a POSIX shell reads it back."""
    safe = word and all(c.isalnum() or c in "/._-+=:@," for c in word)
    return word if safe else "'" + word.replace("'", "'\\''") + "'"


def near(word: str, known: list[str]) -> list[str]:
    """The known words that a misspelt one may have meant, likeliest first; at most three."""
    from difflib import get_close_matches  # costs what a poll costs, and serves only mistakes

    return get_close_matches(word, known, n=3, cutoff=0.6)
