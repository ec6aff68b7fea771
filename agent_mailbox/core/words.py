"""Words: what a search compares, the same for the index and for a scan.

Belongs here: how a text falls into words and when one matches a query. Must not know where the text is kept.
"""

from __future__ import annotations

from ..errors import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .records import Message

_UNSPACED = (
    *((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x2E80, 0x2FDF), (0x3040, 0x30FF), (0x31F0, 0x31FF)),
    *((0x3400, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF)),
)
"""Scripts without spaces between words (Thai, Lao, Burmese, Khmer, Han, kana): each character is a word, and a run of
them a phrase.
"""


class _Folding(dict[int, str]):
    """The replacements for ``str.translate``, computed at a character's first use."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if 0x0300 <= code < 0x0370:
            found = ""  # an accent, split off by the normal form
        elif any(first <= code <= last for first, last in _UNSPACED):
            found = f" {char} "
        else:
            found = char if char.isalnum() or _is_mark(char) else " "
        self[code] = found
        return found


def _is_mark(char: str) -> bool:
    if char.isascii():
        return False
    from unicodedata import category  # only beyond ASCII

    return category(char)[0] == "M"


_FOLDING = _Folding()


def folded(text: str) -> str:
    """Return the text as FTS5's ``ascii`` tokenizer splits it into our words: letters and digits, case and accents
    gone."""
    if text.isascii():
        return text.lower()
    from unicodedata import normalize

    return normalize("NFKD", text).casefold().translate(_FOLDING)


def quick_folding() -> Callable[[str], str]:
    """Return a ``folded`` for very many texts, which the tokenizer splits into the same words.

    It translates only what is beyond ASCII: to find that takes a fraction of the time.
    """
    import re  # which a search among few texts does not need
    from unicodedata import normalize

    accented, beyond = re.compile("[\0-\x7f\u0300-\u036f]*"), re.compile("[^\0-\x7f]+")

    def fold(text: str) -> str:
        if text.isascii():
            return text.lower()
        apart = normalize("NFKD", text).casefold()
        if accented.fullmatch(apart):
            return apart.encode("ascii", "ignore").decode("ascii")
        return beyond.sub(lambda found: found[0].translate(_FOLDING), apart)

    return fold


def _words(text: str) -> str:
    return " ".join(folded(text).translate(_FOLDING).split())


def phrases(query: str) -> tuple[str, ...]:
    """Return the phrases of a query: for each of its words (separated by spaces) the letters and digits, in a row. A
    word that ends with ``*`` is a beginning, and its phrase ends so, too."""
    found = ((_words(word), "*" if word.endswith("*") else "") for word in query.split())
    return tuple(dict.fromkeys(phrase + more for phrase, more in found if phrase))


def check(query: str) -> None:
    """Raise ``Malformed`` for a query without a letter or a digit: it finds nothing, whatever there is."""
    if not phrases(query):
        raise Malformed(f"query has no word: {query!r}", "write letters or digits, such as deploy or terra*")


def matches(message: Message, wanted: Iterable[str]) -> bool:
    """Return whether each phrase occurs in the subject, the content or the sender, as whole words or beginnings."""
    fields = [f" {_words(field)} " for field in (message.subject or "", message.content, message.sender)]
    return all(any(_sought(phrase) in field for field in fields) for phrase in wanted)


def is_in(text: str, phrase: str) -> bool:
    """Return whether a phrase occurs in a text, as whole words or beginnings."""
    return _sought(phrase) in f" {_words(text)} "


def _sought(phrase: str) -> str:
    return f" {phrase[:-1]}" if phrase.endswith("*") else f" {phrase} "
