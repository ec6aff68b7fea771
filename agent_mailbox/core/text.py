"""Making other people's text safe to show: no field may end its line, move a cursor, or pose as the frame around it.

Belongs here: neutralising, written once for every place that shows mail (Promise 4). Control and format characters
become visible escapes. Every line break of Unicode counts as one. The tags by which clients mark text that is *not*
mail lose their bracket.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_JOINERS = "\u200c\u200d"  # scripts and emoji need these; alone they do nothing
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
    """Return ``text`` on one line: breaks and tabs become spaces, unprintable characters escapes."""
    return _plain(" ".join(text.split()) if not text.isprintable() else text)


def neutral_lines(text: str) -> list[str]:
    """Return the lines of ``text``, each neutral on its own; trailing empty ones dropped."""
    lines = [_plain(line.expandtabs(4)) for line in text.splitlines()]
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def visible(line: str) -> str:
    """Return one line with its unprintable characters (controls, bidirectional overrides) as escapes.

    For a page, which has no markers to forge.
    """
    if line.isprintable():
        return line
    return "".join([c if c.isprintable() or c in _JOINERS else _escape(c) for c in line])


def visible_text(text: str) -> str:
    """Return the same for many lines; every line break of Unicode ends one."""
    return "\n".join(visible(line.expandtabs(4)) for line in text.splitlines())


def _plain(text: str) -> str:
    text = visible(text)
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
    """Return how many words a message has, as the seed's "under 500 words" counts them."""
    return len(text.split())


def clipped(text: str, width: int) -> str:
    """Return at most ``width`` characters, the last an ellipsis if something was cut."""
    return text if len(text) <= width else text[: max(width - 1, 0)].rstrip() + "…"


def ascii_json(document: str) -> str:
    r"""Return a JSON document with unprintable characters spelt ``\uXXXX``: same value, harmless to a terminal."""
    if document.isprintable():
        return document
    return "".join([c if c.isprintable() or c == "\n" else _json_escape(ord(c)) for c in document])


def is_utf8(text: str) -> bool:
    """Return whether the text can be written as UTF-8. Half a surrogate pair cannot."""
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
    """Return the word as a POSIX shell reads it back."""
    safe = word and all(c.isalnum() or c in "/._-+=:@," for c in word)
    return word if safe else "'" + word.replace("'", "'\\''") + "'"


def near(word: str, known: list[str]) -> list[str]:
    """Return the known words that a misspelt one may have meant, likeliest first; at most three."""
    from difflib import get_close_matches  # costs as much as a poll, and serves only mistakes

    return get_close_matches(word, known, n=3, cutoff=0.6)


def filled(words: Iterable[str], values: Mapping[str, str]) -> list[str]:
    """Return words with each ``{name}`` of the values filled in; what is filled in is not looked at again."""
    found = []
    for word in words:
        first, *parts = word.split("{")
        made = [first]
        for part in parts:
            name, brace, rest = part.partition("}")
            made.append(values[name] + rest if brace and name in values else "{" + part)
        found.append("".join(made))
    return found
