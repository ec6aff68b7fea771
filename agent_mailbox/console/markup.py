"""Turn untrusted text into inert HTML: Markdown, then a sanitizer.

Belongs here: the two stages, each sufficient alone. First, markdown-it escapes HTML, ignores images and allows only
web links. Then nh3 (ammonia) passes a few tags and harmless attributes. Unprintable characters are escaped before, so
that no bidirectional override reverses a line.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import nh3
from markdown_it import MarkdownIt
from markupsafe import Markup

from ..core.text import visible_text

if TYPE_CHECKING:
    from markdown_it.rules_core import StateCore

TAGS = {
    *("p", "br", "hr", "em", "strong", "s", "code", "pre", "blockquote", "ul", "ol", "li", "a", "div"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}
_HEADING = "heading"


def _as_divisions(state: StateCore) -> None:
    """Make a message's headings divisions: screen readers read out the page's outline."""
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = "div"
            if token.nesting == 1:
                token.attrSet("class", _HEADING)


class _Markdown(MarkdownIt):
    def validateLink(self, url: str) -> bool:
        """Return whether the link is absolute and on the web; a relative one would lead into the console."""
        return url.lower().startswith(("http://", "https://"))


_markdown = _Markdown("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
_markdown.disable(["image", "html_block", "html_inline"])
_markdown.core.ruler.push("divisions", _as_divisions)
_sieve = nh3.Cleaner(
    tags=TAGS,
    attributes={"a": {"href"}, "ol": {"start"}},
    allowed_classes={"div": {_HEADING}},
    set_tag_attribute_values={"a": {"target": "_blank"}},
    url_schemes={"http", "https"},
    link_rel="noopener noreferrer",
)


@lru_cache(maxsize=512)
def html(text: str) -> Markup:
    """Return a message's text as inert HTML."""
    return Markup(_sieve.clean(_markdown.render(visible_text(text))))
