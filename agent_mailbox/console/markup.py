"""Turn untrusted text into inert HTML: Markdown, then a sanitizer.

Belongs here: the two stages, each sufficient alone. First, markdown-it escapes HTML, ignores images and allows only
web links. Then nh3 (ammonia) passes a few tags and harmless attributes. Unprintable characters are escaped before, so
that no bidirectional override reverses a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

import nh3
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markupsafe import Markup

from ..core.records import Record
from ..core.text import visible_text
from . import text_splitting

TAGS = {
    *("p", "br", "hr", "em", "strong", "s", "code", "pre", "blockquote", "ul", "ol", "li", "a", "div"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}
_HEADING = "heading"
_ADDRESS = re.compile(r"(https?://[^\s<>\"'`|\\^{}\[\]()]*[^\s<>\"'`|\\^{}\[\]().,;:!?])", re.IGNORECASE)
"""A bare web address, without the punctuation that ends a sentence."""


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


def _clean_tokens(tokens: list[Token]) -> Markup:
    return Markup(_let_scroll(_sieve.clean(_markdown.renderer.render(tokens, _markdown.options, {}))))


def _let_scroll(clean: str) -> str:
    """Return sanitized HTML whose wide parts scroll in themselves, by keyboard, too. Text has no such tags: they are
    escaped there."""
    return clean.replace("<pre>", '<pre tabindex="0">').replace("<table>", '<table tabindex="0">')
