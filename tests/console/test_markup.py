"""Other people's text as HTML: what it may be, and that nothing else comes out whatever goes in."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_mailbox.console import markup


class Sieve(HTMLParser):
    """Notes every tag and attribute."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def check(text: str) -> str:
    """The HTML of a text, which holds to the rules, as that of its parts does."""
    html = str(markup.html_of(text))
    hold(html)
    with pytest.MonkeyPatch.context() as narrow:
        for name in ("SHOWN", "LONGEST"):
            narrow.setattr(markup, name, 1)
        folded = markup.fold_long.__wrapped__(text)
    parts = [str(folded.first), str(folded.rest)]
    for part in parts:
        hold(part)
    if "|" not in text:  # a table has its head in both parts
        assert words("".join(parts)) == words(html)
    return html


def words(html: str) -> str:
    """The text of HTML, without spaces."""
    return "".join(re.sub(r"<[^>]*>", "", html).split())


def hold(html: str) -> None:
    for tag, attributes in Sieve(html).found:
        assert tag in markup.TAGS, html
        allowed = {
            "a": {"href", "rel", "target"},
            "ol": {"start"},
            "div": {"class"},
            "pre": {"tabindex"},
            "table": {"tabindex"},
        }.get(tag, set())
        assert attributes.keys() <= allowed, html
        if tag == "a" and "href" in attributes:
            assert (attributes["href"] or "").lower().startswith(("http://", "https://")), html
            assert attributes["rel"] == "noopener noreferrer"
    assert all(char.isprintable() or char in "\n\u200c\u200d" for char in html), ascii(html)


PIECES = (
    *("<", ">", "<script>", "</", "![", "](", "javascript:", "http://x", "\n", "\n\n", "```", "`", "|", "|--|", "# "),
    *("- ", "<img onerror=", "&lt;", "&#106;", "[a]: ", "\u202e", "\x00", "\x1b[0m", "\u2028", "**", "~~", '"', "'"),
    *("<svg/onload=", "<!--", "<![CDATA[", "<math>", "<style>", "data:text/html,", "> ", "1. ", "\\", "a"),
)


@given(st.lists(st.sampled_from(PIECES), max_size=24).map("".join) | st.text(max_size=80))
def test_whatever_goes_in_only_plain_markup_comes_out(text: str) -> None:
    """Tags and attributes of the list, links to the web alone, every character printable."""
    check(text)


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("**b** *i* `c` ~~s~~", "<p><strong>b</strong> <em>i</em> <code>c</code> <s>s</s></p>"),
        ("# H", '<div class="heading">H</div>'),
        ("a\nb", "<p>a<br>\nb</p>"),
        ("<b>x</b>", "<p>&lt;b&gt;x&lt;/b&gt;</p>"),
        ("a\u2028b\x85c", "<p>a<br>\nb<br>\nc</p>"),
        ("\u202etxt.exe", "<p>\\u202etxt.exe</p>"),
        ("[x](/leave)", "<p>[x](/leave)</p>"),
    ],
)
def test_markdown_is_shown_as_it_is_meant(text: str, html: str) -> None:
    """Headings are none of the page's; lines end where their writer ended them."""
    assert check(text).strip() == html


LINES = {
    "a list keeps its numbers": ("\n".join(f"{n}. item {n}" for n in range(5, 45)), '<ol start="17">', "item 16"),
    "code stays code": ("```\n" + "\n".join(f"line {n}" for n in range(40)) + "\n```", "<pre", "line 11\n"),
    "a table keeps its head": ("|a|\n|-|\n" + "\n".join(f"|{n}|" for n in range(40)), "<th>a</th>", "<td>10</td>"),
    "lines part where one ends": ("\n".join(f"word {n} *x*" for n in range(40)), "<p>word 12 ", "word 11 "),
    "one long line parts at a word": ("word " * 600, "<p>word", "word"),
}


@pytest.mark.parametrize("name", LINES)
def test_a_long_text_parts_where_it_stays_whole(name: str) -> None:
    """The first lines and the rest are each what they were."""
    text, begins, ends = LINES[name]
    folded = markup.fold_long(text)
    assert begins in str(folded.rest)[:80]
    assert ends in str(folded.first)[-60:]
    assert 15 < folded.lines < 40
    assert words(str(folded.first)) != ""


def test_a_short_text_is_not_folded() -> None:
    """Behind a fold there is more than a line or two."""
    assert not markup.fold_long("\n".join(["line"] * markup.LONGEST)).rest
    assert markup.fold_long("\n".join(["line"] * (markup.LONGEST + 1))).lines > markup.LONGEST - markup.SHOWN
