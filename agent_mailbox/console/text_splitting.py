"""Part a long text where a list folds it: its first lines are shown, and the rest on demand.

Belongs here: parting Markdown's tokens by the lines that they take on a page. ``markup`` makes HTML of each part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markdown_it.token import Token

SHOWN = 12
"""Lines of a long text that are shown."""
LONGEST = 16
"""Lines of a text that is not folded: behind a fold are at least some."""
WIDTH = 90
"""Characters of a line on a page; a longer one takes several."""
_BREAKS = ("softbreak", "hardbreak")


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
