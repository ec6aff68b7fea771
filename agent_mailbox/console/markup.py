"""Turn untrusted text into inert HTML: Markdown, then a sanitizer.

Belongs here: the two stages, each sufficient alone, and how much of a text a list has. First, markdown-it escapes HTML,
ignores images and allows only web links. Then nh3 (ammonia) passes a few tags and harmless attributes. Unprintable
characters are escaped before, so that no bidirectional override reverses a line. A list shows a text's first lines, and
the rest on demand. It is parted by the lines that Markdown's tokens take on a page.
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
SHOWN = 12
"""Lines of a long text that are shown."""
LONGEST = 16
"""Lines of a text that is not folded: behind a fold are at least some."""
WIDTH = 90
"""Characters of a line on a page; a longer one takes several."""
_BREAKS = ("softbreak", "hardbreak")


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
    first, rest = split_tokens(tokens)
    lines, words = count_lines(rest), text_of(rest)
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
    lines = folded.lines + count_text_lines(left)
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


def split_tokens(tokens: Sequence[Token]) -> tuple[list[Token], list[Token]]:
    """Return the tokens that are shown, and the rest; a text of few lines has no rest."""
    if count_lines(tokens) <= LONGEST:
        return [*tokens], []
    first: list[Token] = []
    room, blocks = SHOWN, [*_list_blocks(tokens)]
    for number, block in enumerate(blocks):
        lines = count_lines(block)
        if lines > room:
            shown, left = _split_block(block, room)
            return [*first, *shown], [*left, *(token for later in blocks[number + 1 :] for token in later)]
        first += block
        room -= lines
    return first, []


def count_lines(tokens: Sequence[Token]) -> int:
    """Return the lines that these tokens take on a page, about."""
    lines, in_table = 0, False
    for token in tokens:
        if token.type in ("table_open", "table_close"):
            in_table = token.nesting == 1
        elif token.type == "tr_open":
            lines += 1
        elif token.type in ("fence", "code_block"):
            lines += len(token.content.splitlines())
        elif token.type == "inline" and not in_table:
            lines += count_text_lines(token.content)
    return lines


def count_text_lines(text: str) -> int:
    """Return the lines that a text takes on a page, about."""
    return sum(-(-len(line) // WIDTH) or 1 for line in text.splitlines())


def text_of(tokens: Sequence[Token]) -> str:
    """Return the text of the tokens, for a search in it."""
    return "\n".join(token.content for token in tokens if token.type in ("inline", "fence", "code_block"))


def _list_blocks(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Yield the blocks in their sequence: each opens, and closes."""
    block, depth = list["Token"](), 0
    for token in tokens:
        block.append(token)
        depth += token.nesting
        if depth == 0:
            yield block
            block = []


def _split_block(block: list[Token], room: int) -> tuple[list[Token], list[Token]]:
    """Return a block's part that has room, and the rest of it."""
    kind = block[0].type
    if kind in ("fence", "code_block"):
        lines = block[0].content.splitlines(keepends=True)
        return [_with_content(block[0], lines[:room])] if room else [], [_with_content(block[0], lines[room:])]
    if kind in ("bullet_list_open", "ordered_list_open"):
        return _split_list(block, room)
    if kind == "table_open":
        return _split_table(block, room)
    if kind == "paragraph_open":
        return _split_paragraph(block, room)
    return [], block


def _with_content(token: Token, lines: Sequence[str]) -> Token:
    return token.copy(content="".join(lines))


def _split_list(block: list[Token], room: int) -> tuple[list[Token], list[Token]]:
    opens, *inner, closes = block
    shown: list[Token] = []
    items, count = [*_list_blocks(inner)], 0
    for item in items:
        room -= count_lines(item)
        if room < 0:
            break
        shown += item
        count += 1
    if not shown:
        return [], block
    begins = opens.copy(attrs={**opens.attrs, "start": int(opens.attrs.get("start", 1)) + count})
    left = [token for item in items[count:] for token in item]
    return [opens, *shown, closes], [begins if opens.type == "ordered_list_open" else opens, *left, closes]


def _split_table(block: list[Token], room: int) -> tuple[list[Token], list[Token]]:
    """Part a table between two rows; each part has its head."""
    places = [place for place, token in enumerate(block) if token.type == "tr_open"]
    if len(places) < 2 or room < 2:
        return [], block
    place = places[min(room, len(places) - 1)]
    begin = places[1]  # the first row below the head
    end = block[-2:]  # of the rows, of the table
    return [*block[:place], *end], [*block[:begin], *block[place:]]


def _split_paragraph(block: list[Token], room: int) -> tuple[list[Token], list[Token]]:
    """Part a paragraph where its writer ended a line outside of emphasis and links."""
    opens, inline, closes = block
    children, depth, place = inline.children or [], 0, 0
    length = 0
    for number, child in enumerate(children):
        depth += child.nesting
        if child.type in _BREAKS:
            length = -(-length // WIDTH) * WIDTH or WIDTH
            place = number + 1 if depth == 0 and length <= room * WIDTH else place
        elif length + len(child.content) > room * WIDTH:
            if place == 0 and depth == 0 and child.type == "text":
                return _split_line(block, number, room * WIDTH - length)
            break
        length += len(child.content)
    lines = inline.content.split("\n")
    breaks = sum(child.type in _BREAKS for child in children[:place])
    first = inline.copy(children=children[: place - 1], content="\n".join(lines[:breaks]))
    rest = inline.copy(children=children[place:], content="\n".join(lines[breaks:]))
    return ([opens, first, closes], [opens, rest, closes]) if place else ([], block)


def _split_line(block: list[Token], number: int, most: int) -> tuple[list[Token], list[Token]]:
    """Part a paragraph in one long line between two words of its text."""
    opens, inline, closes = block
    children = inline.children or []
    text = children[number].content
    place = text.rfind(" ", 0, most) + 1
    if not place:
        return [], block
    first = inline.copy(children=[*children[:number], children[number].copy(content=text[:place])])
    rest = inline.copy(children=[children[number].copy(content=text[place:]), *children[number + 1 :]])
    rest.content = "".join(child.content for child in rest.children or ())
    return [opens, first, closes], [opens, rest, closes]
