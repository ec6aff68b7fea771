"""Turn untrusted text into inert HTML: Markdown, then a sanitizer.

Belongs here: the two stages, each sufficient alone, and how much of a text a list has. First, markdown-it escapes HTML,
ignores images and allows only web links. Then nh3 (ammonia) passes a few tags and harmless attributes. Unprintable
characters are escaped before, so that no bidirectional override reverses a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

import nh3
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markupsafe import Markup

from ..core import words
from ..core.records import Message, Record
from ..core.text import clipped, visible, visible_text
from . import text_splitting

TAGS = {
    *("p", "br", "hr", "em", "strong", "s", "code", "pre", "blockquote", "ul", "ol", "li", "a", "div"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}
_HEADING = "heading"
_ADDRESS = re.compile(r"(https?://[^\s<>\"'`|\\^{}\[\]()]*[^\s<>\"'`|\\^{}\[\]().,;:!?])", re.IGNORECASE)
"""A bare web address, without the punctuation that ends a sentence."""
LONG = 4000
"""Characters of a body in a list, folded; the opened message shows all."""
MOST_AROUND = 2
"""Lines before and behind what a search found in the part of a text that a list leaves out."""


class Folded(Record):
    """A text as HTML: what is shown at once, the ``rest`` (empty if it is short), its lines, and its words as text."""

    first: Markup
    rest: Markup
    lines: int
    words: str


def _as_divisions(state: StateCore) -> None:
    """Make a message's headings divisions: screen readers read out the page's outline."""
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = "div"
            if token.nesting == 1:
                token.attrSet("class", _HEADING)


def _link_addresses(state: StateCore) -> None:
    """Make links of bare web addresses, as people paste them."""
    for token in state.tokens:
        if token.type == "inline" and token.children and "://" in token.content:
            token.children = [*_with_links(token.children, state.md)]


def _with_links(tokens: list[Token], md: MarkdownIt) -> Iterator[Token]:
    depth = 0
    for token in tokens:
        depth += {"link_open": 1, "link_close": -1}.get(token.type, 0)
        if token.type != "text" or depth:
            yield token
            continue
        for part in _ADDRESS.split(token.content):
            url = md.normalizeLink(part) if _ADDRESS.fullmatch(part) else ""
            inner = Token("text", "", 0, content=part)
            if url and md.validateLink(url):
                yield Token("link_open", "a", 1, attrs={"href": url})
                yield inner
                yield Token("link_close", "a", -1)
            elif part:
                yield inner


class _Markdown(MarkdownIt):
    def validateLink(self, url: str) -> bool:
        """Return whether the link is absolute and on the web; a relative one would lead into the console."""
        return url.lower().startswith(("http://", "https://"))


_markdown = _Markdown("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
_markdown.disable(["image", "html_block", "html_inline"])
_markdown.core.ruler.push("divisions", _as_divisions)
_markdown.core.ruler.push("addresses", _link_addresses)
_sieve = nh3.Cleaner(
    tags=TAGS,
    attributes={"a": {"href"}, "ol": {"start"}},
    allowed_classes={"div": {_HEADING}},
    set_tag_attribute_values={"a": {"target": "_blank"}},
    url_schemes={"http", "https"},
    link_rel="noopener noreferrer",
)


@lru_cache(maxsize=512)
def html_of(text: str) -> Markup:
    """Return a message's text as inert HTML."""
    return _clean_tokens(_markdown.parse(visible_text(text)))


@lru_cache(maxsize=512)
def fold_long(text: str) -> Folded:
    """Return a message's text as inert HTML in two parts: where it has too many lines, the second one is folded."""
    tokens = _markdown.parse(visible_text(text))
    first, rest = text_splitting.split_tokens(tokens)
    lines, words = text_splitting.count_lines(rest), text_splitting.text_of(rest)
    return Folded(_clean_tokens(first), _clean_tokens(rest), lines, words)


class Fold(Record):
    """The folded rest of a long text: its HTML, its lines, and what is said of a text that shows nothing yet.

    ``cut``: the opened message alone has all of it. ``is_open``: a search found something here; ``excerpt``: the lines
    around that, in what is cut."""

    rest: Markup
    lines: int
    begins: str
    cut: bool
    is_open: bool = False
    excerpt: str = ""


def fold_body(message: Message, whole: bool, sought: Sequence[str]) -> tuple[Markup | str, Fold | None]:
    """Return a body's first lines, and the folded rest."""
    text = message.content
    if whole:
        return html_of(text), None
    shown = text if len(text) <= LONG else text[:LONG].rpartition("\n")[0] or text[:LONG]
    left, folded = text[len(shown) :].lstrip("\n"), fold_long(shown)
    if not left and not folded.rest:
        return folded.first, None
    excerpt = "" if _holds(shown, sought) else _excerpt_of(left, sought)
    begins = "" if folded.first else clipped(visible(" ".join(text[:400].split())), 80)
    lines = folded.lines + text_splitting.count_text_lines(left)
    is_open = bool(excerpt) or _holds(folded.words, sought)
    return folded.first, Fold(folded.rest, lines, begins, bool(left), is_open, excerpt)


def _holds(text: str, sought: Sequence[str]) -> bool:
    """Return whether a phrase that was searched for is in a text."""
    return bool(text) and any(words.is_in(text, phrase) for phrase in sought)


def _excerpt_of(text: str, sought: Sequence[str]) -> str:
    """Return the first line in which a phrase is, and some around it; empty if there is none."""
    lines = text.splitlines() if _holds(text, sought) else []
    for at, line in enumerate(lines):
        if _holds(line, sought):
            return "\n".join(visible(one[:300]) for one in lines[max(at - MOST_AROUND, 0) : at + MOST_AROUND + 1])
    return ""


def _clean_tokens(tokens: list[Token]) -> Markup:
    return Markup(_let_scroll(_sieve.clean(_markdown.renderer.render(tokens, _markdown.options, {}))))


def _let_scroll(clean: str) -> str:
    """Return sanitized HTML whose wide parts scroll in themselves, by keyboard, too. Text has no such tags: they are
    escaped there."""
    return clean.replace("<pre>", '<pre tabindex="0">').replace("<table>", '<table tabindex="0">')
