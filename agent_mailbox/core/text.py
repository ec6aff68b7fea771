"""Making other people's text safe to show: no field may end its line, move a cursor, or pose as the frame around it.

Belongs here: neutralising, written once for every place that shows mail (Promise 4). Control and format characters
become visible escapes. Every line break of Unicode counts as one. The tags by which clients mark text that is *not*
mail lose their bracket.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_JOINERS = frozenset("\u200c\u200d")
_SELECTORS = (range(0x180B, 0x180E), range(0x180F, 0x1810), range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))
"""Joiners and variation selectors: scripts and emoji need one behind a character that is drawn."""
_KEYS = "#*0123456789"
"""The ASCII characters that a selector makes keys of."""
_BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\U00013441\U00013442\U00016fe4\U0001d159")
_unseen: set[str] = set()
"""Characters that Python calls printable, or that text needs, and that draw nothing: a row of them can hide words. The
set is made for the first text that is not ASCII: most commands meet none."""
_BRACKETS = "<\uff1c\ufe64"
"""The bracket of a tag, in its narrow, wide and small form (Unicode's NFKC makes one of them)."""
_SPELT = f"'\\{_BRACKETS}"
"""Characters that a word in ``$'…'`` cannot hold as they are, or that could begin a tag."""
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
    "subagent_notification",
    "hook_",
    "hook-",
    "environment_context",
    "session_context",
    "permissions",
    "instructions",
    "turn_aborted",
    "developer",
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
    """Return one line with its unprintable and unseen characters (controls, bidirectional overrides) as escapes.

    For a page, which has no markers to forge.
    """
    if _is_seen(line):
        return line
    from itertools import pairwise  # most text is plain

    return "".join([c if _is_drawn(c) or _is_needed(c, before) else _escape(c) for before, c in pairwise(f" {line}")])


def _is_seen(text: str) -> bool:
    """Return whether each character prints, and draws something."""
    return text.isprintable() and (text.isascii() or _unseen_ones().isdisjoint(text))


def _unseen_ones() -> set[str]:
    if not _unseen:
        _unseen.update([*_JOINERS, *_BLANKS, *(chr(code) for some in _SELECTORS for code in some)])
    return _unseen


def _is_selector(char: str) -> bool:
    return any(ord(char) in some for some in _SELECTORS)


def _is_drawn(char: str) -> bool:
    return char.isprintable() and char not in _unseen_ones()


def _is_needed(char: str, before: str) -> bool:
    """Return whether a joiner or selector is behind a character that it may change: no Latin letter is one. A joiner
    may follow a selector, as in a family of emoji."""
    if _is_selector(char):
        return _is_drawn(before) and (not before.isascii() or before in _KEYS)
    return char in _JOINERS and not before.isascii() and (_is_drawn(before) or _is_selector(before))


def visible_text(text: str) -> str:
    """Return the same for many lines; every line break of Unicode ends one."""
    return "\n".join(visible(line.expandtabs(4)) for line in text.splitlines())


def _plain(text: str) -> str:
    text = visible(text)
    for bracket in _BRACKETS:
        text = _without_markers(text, bracket) if bracket in text else text
    return text


def _escape(char: str) -> str:
    if char.isspace():
        return " "
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _without_markers(text: str, bracket: str) -> str:
    parts = text.split(bracket)
    out = [parts[0]]
    for part in parts[1:]:
        name = part[:60]
        if not name.isascii():
            from unicodedata import normalize  # a letter may have a wide form, too

            name = normalize("NFKC", name)
        word = "".join(c for c in name if c.isalnum() or c in "-_:").casefold()
        # Models that are served with a template of chat begin its tokens with a bar: <|im_start|>.
        is_marker = word.startswith(_MARKERS) or (name[:1] == "|" and name[1:2].isalnum())
        out.append(("&lt;" if is_marker else bracket) + part)
    return "".join(out)


def words(text: str) -> int:
    """Return how many words a message has, as the seed's "under 500 words" counts them."""
    return len(text.split())


def clipped(text: str, width: int) -> str:
    """Return at most ``width`` characters, the last an ellipsis if something was cut."""
    return text if len(text) <= width else text[: max(width - 1, 0)].rstrip() + "…"


def within_quotes(text: str, width: int) -> str:
    """Return the beginning of a text in quotes that it cannot end, for a line of ours."""
    return '"' + clipped(neutral(text), width).replace('"', "'") + '"'


def term(text: str, width: int) -> str:
    """Return the same; one word of ASCII, which reads like no sentence of ours, has no quotes."""
    shown = clipped(neutral(text), width)
    is_word = all(c == "…" or (c.isascii() and c not in ' "`') for c in shown)
    return shown if is_word else within_quotes(text, width)


def ascii_json(document: str) -> str:
    r"""Return a JSON document with unprintable characters spelt ``\uXXXX``: same value, harmless to a terminal."""
    if _is_seen(document):
        return document
    return "".join([c if _is_drawn(c) or c == "\n" else _json_escape(ord(c)) for c in document])


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


def typed(word: str) -> str:
    """Return a word for a command that somebody will paste. Any program may write one that a shell would run, even
    within double quotes: ``$(…)``. One that is not shown as it is has its bytes spelt: ``$'caf\\351'``."""
    if neutral(word) == word:
        return shell_quoted(word)
    return "$'" + "".join([c if _is_drawn(c) and c not in _SPELT else _octal(c) for c in word]) + "'"


def _octal(char: str) -> str:
    byte = ord(char) - 0xDC00  # of a path that is not UTF-8 (PEP 383)
    given = bytes([byte]) if 0x80 <= byte < 0x100 else char.encode("utf-8", "surrogatepass")
    return "".join([f"\\{code:03o}" for code in given])


def fold_name(name: str) -> str:
    """Return a file's name as a system compares it that ignores case and how letters are composed."""
    if name.isascii():
        return name.lower()
    from unicodedata import normalize  # only beyond ASCII

    return normalize("NFC", name.casefold())


def near(word: str, known: list[str]) -> list[str]:
    """Return the known words that a misspelt one may have meant, likeliest first; at most three."""
    from difflib import get_close_matches  # costs as much as a poll, and serves only mistakes

    spelt: dict[str, str] = {}
    for one in known:
        spelt.setdefault(one.casefold(), one)
    return [spelt[one] for one in get_close_matches(word.casefold(), list(spelt), n=3, cutoff=0.6)]


def did_you_mean(words: list[str]) -> str:
    """Return the question whether one of the words was meant; empty without any."""
    return f"did you mean {' or '.join(words)}?" if words else ""


def filled(words: Iterable[str], values: Mapping[str, str]) -> list[str]:
    """Return words with each ``{name}`` of the values filled in; what is filled in is not looked at again."""
    import re  # few commands fill in anything

    return [re.sub(r"\{([^{}]*)\}", lambda found: values.get(found[1], found[0]), word) for word in words]


def count_noun(count: int, what: str) -> str:
    """Return a count with its noun: ``1 message``, ``2 messages``."""
    return f"{count} {what}" + ("" if count == 1 else "s")
