"""How a protection is taken out of a function: operators.

An operator names its place by words (``tests.faults.mentions``): the smallest such place that has all of them.

- ``never WORDS``: the condition is false: of an ``if``, a ``while``, a choice, a filter, an operand, an answer
- ``always WORDS``: the condition is true
- ``drop WORDS``: the statement does nothing
- ``less WORDS``: a part is left out: an argument, an element, an entry, an operand, a handler
- ``bare WORDS``: the call is its first argument; one without arguments is the value whose method it is
- ``late WORDS past WORDS``: the first statement happens behind the second
- ``VALUE for WORDS``: the expression is replaced by another one
- ``STATEMENT at WORDS``: the statement is replaced by another one
- ``first STATEMENT``: the function does that first
- ``return VALUE``: the function answers so, and does nothing
- ``spell TEXT as TEXT``: a piece of a string is another one

Prefer the upper ones, and words that a refactoring keeps. Where several places are as small, ``#2`` behind the words
takes the second; ``then`` joins operators. Belongs here: finding a place, and the text of its file without it.
"""

from __future__ import annotations

import ast
import copy
import re
from typing import TYPE_CHECKING

from tests.faults.mentions import has_word, split_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Edit = tuple[int, int, str]
    """A piece of a source's text, and the text that takes its place."""

FORM = re.compile(r"(never|always|drop|less|bare|late|first|spell) (.+)|(.+) (for|at) (.+?)|return (.+)")
LISTS = {
    ast.Call: ("args", "keywords"),
    ast.Tuple: ("elts",),
    ast.List: ("elts",),
    ast.Set: ("elts",),
    ast.BoolOp: ("values",),
    ast.comprehension: ("ifs",),
    ast.JoinedStr: ("values",),
    ast.Try: ("handlers",),
    ast.With: ("items",),
}
"""Where a part may be left out."""


class Source:
    """A file as its text, its tree, and each node's parent."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = text.splitlines(keepends=True)
        self.tree = ast.parse(text)
        self.parents: dict[ast.AST, ast.AST] = {}
        self.known: set[ast.AST] = set()

    def above(self, node: ast.AST) -> ast.AST:
        """Return a node's parent, of a node below a scope that was looked at."""
        return self.parents[node]

    def look_at(self, scope: ast.AST) -> None:
        """Learn the parents of all nodes below a scope."""
        if scope not in self.known:
            self.known.add(scope)
            self.parents |= {child: one for one in ast.walk(scope) for child in ast.iter_child_nodes(one)}

    def offset(self, line: int, column: int) -> int:
        """Return where in the text a byte of a line is."""
        return sum(map(len, self.lines[: line - 1])) + len(self.lines[line - 1].encode()[:column].decode())

    def edit(self, node: ast.AST, new: str) -> Edit:
        """Return the edit that puts a text, whose later lines it indents, in the place of a node."""
        there: ast.stmt = node  # type: ignore[assignment]
        start = self.offset(there.lineno, there.col_offset)
        end = self.offset(there.end_lineno or 0, there.end_col_offset or 0)
        return start, end, new.replace("\n", "\n" + " " * there.col_offset)


def text_without(source: Source, scope: ast.AST, operator: str) -> str:
    """Return a source's text without what an operator takes out of a scope. Raises ``LookupError`` if nothing fits."""
    source.look_at(scope)
    text = source.text
    for start, end, new in sorted(
        (edit for one in operator.split(" then ") for edit in _edits(source, scope, one)), reverse=True
    ):
        text = text[:start] + new + text[end:]
    return text


def _edits(source: Source, scope: ast.AST, operator: str) -> list[Edit]:
    form = FORM.fullmatch(operator)
    if form is None:
        raise LookupError(f"no operator: {operator}")
    name, rest, new, kind, address, value = form.groups()
    if name:
        return OPERATORS[name](source, scope, rest)
    if kind == "at":
        return [source.edit(find(source, scope, address, _is_statement), new.replace("\\n", "\n"))]
    if kind == "for":
        return [_replaced(source, find(source, scope, address, _is_expression), _expression(new))]
    return _first(source, scope, f"return {value}")


def find(source: Source, scope: ast.AST, address: str, kind: Callable[[Source, ast.AST], bool]) -> ast.AST:
    """Return the smallest node of a kind that mentions all words. Raises ``LookupError`` for none and for several."""
    said, _, number = address.partition(" #")
    words = split_words(said)

    def smallest(node: ast.AST) -> tuple[set[str], list[ast.AST]]:
        having, found = {word for word in words if has_word(node, word)}, list[ast.AST]()
        for child in _parts(node):
            below, places = smallest(child)
            having |= set() if isinstance(child, ast.stmt) else below  # a statement speaks for itself
            found += places
        if not found and len(having) == len({*words}) and kind(source, node):
            found = [node]
        return having, found

    found = smallest(scope)[1]
    if (len(found) != 1 and not number) or int(number or 1) > len(found):
        raise LookupError(f"{address!r} names {len(found)} places: {', '.join(map(_told, found))}")
    return found[int(number or 1) - 1]


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node's parts but annotations, which protect nothing."""
    for field, value in ast.iter_fields(node):
        if field not in ("annotation", "returns", "decorator_list"):
            yield from (one for one in (value if isinstance(value, list) else [value]) if isinstance(one, ast.AST))


def _told(node: ast.AST) -> str:
    return f"line {_position(node)[0]} `{ast.unparse(node)[:60]}`"


def _position(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _is_expression(_: Source, node: ast.AST) -> bool:
    return isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load)


def _is_statement(_: Source, node: ast.AST) -> bool:
    return isinstance(node, ast.stmt)


def _is_call(_: Source, node: ast.AST) -> bool:
    return isinstance(node, ast.Call)


def _is_condition(source: Source, node: ast.AST) -> bool:
    above = source.above(node)
    if isinstance(node, ast.Compare | ast.BoolOp) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
        return True
    if isinstance(above, ast.If | ast.While | ast.IfExp):
        return node is above.test
    if isinstance(above, ast.comprehension):
        return node in above.ifs
    is_denied = isinstance(above, ast.UnaryOp) and isinstance(above.op, ast.Not)
    return isinstance(node, ast.expr) and (is_denied or isinstance(above, ast.BoolOp | ast.Return))


def _is_part(source: Source, node: ast.AST) -> bool:
    above = source.above(node)
    if isinstance(above, ast.BinOp):
        return isinstance(node, ast.expr)
    if isinstance(above, ast.Dict):
        return node in above.keys or node in above.values
    return any(node in getattr(above, field) for field in LISTS.get(type(above), ()))


def _replaced(source: Source, node: ast.AST, new: ast.AST) -> Edit:
    """Return the edit that puts one node in another's place: of the smallest expression that may stand in brackets.

    The parts of an f-string have no places of their own.
    """
    way = [node]
    while not isinstance(way[-1], ast.stmt):
        way.append(source.above(way[-1]))
    fixed = [n for n, one in enumerate(way) if isinstance(one, ast.JoinedStr)][-1:] or [
        n
        for n, one in enumerate(way)
        if isinstance(one, ast.stmt | ast.expr) and not isinstance(one, ast.Starred | ast.Slice)
    ]
    whole = way[fixed[0]]
    text = ast.unparse(copy.deepcopy(whole, {id(node): new}))
    return source.edit(whole, text if isinstance(whole, ast.stmt) else f"({text})")


def _set(value: str) -> Callable[[Source, ast.AST, str], list[Edit]]:
    def edits(source: Source, scope: ast.AST, address: str) -> list[Edit]:
        return [_replaced(source, find(source, scope, address, _is_condition), _expression(value))]

    return edits


def _drop(source: Source, scope: ast.AST, address: str) -> list[Edit]:
    return [source.edit(find(source, scope, address, _is_statement), "pass")]


def _less(source: Source, scope: ast.AST, address: str) -> list[Edit]:
    part = find(source, scope, address, _is_part)
    above = source.above(part)
    if isinstance(above, ast.BinOp):
        return [_replaced(source, above, above.left if part is above.right else above.right)]
    left = copy.copy(above)
    if isinstance(left, ast.Dict):
        pairs = [pair for pair in zip(left.keys, left.values, strict=True) if part not in pair]
        left.keys, left.values = [key for key, _ in pairs], [value for _, value in pairs]
    for field in LISTS.get(type(left), ()):
        setattr(left, field, [one for one in getattr(left, field) if one is not part])
    return [_replaced(source, above, left)]


def _bare(source: Source, scope: ast.AST, address: str) -> list[Edit]:
    call: ast.Call = find(source, scope, address, _is_call)  # type: ignore[assignment]
    return [_replaced(source, call, call.args[0] if call.args else call.func.value)]  # type: ignore[attr-defined]


def _late(source: Source, scope: ast.AST, addresses: str) -> list[Edit]:
    first, then = (find(source, scope, one, _is_statement) for one in addresses.split(" past "))
    _, end, _ = source.edit(then, "")
    indent = "\n" + " " * then.col_offset  # type: ignore[attr-defined]
    return [source.edit(first, "pass"), (end, end, indent + ast.unparse(first).replace("\n", indent))]


def _first(source: Source, scope: ast.AST, statement: str) -> list[Edit]:
    body: list[ast.stmt] = scope.body  # type: ignore[attr-defined]
    at = body[1 if len(body) > 1 and ast.get_docstring(scope) else 0]  # type: ignore[arg-type]
    start, _, _ = source.edit(at, "")
    return [(start, start, statement + "\n" + " " * at.col_offset)]


def _spell(source: Source, scope: ast.AST, pieces: str) -> list[Edit]:
    old, new = pieces.split(" as ")

    def is_holding(_: Source, node: ast.AST) -> bool:
        return isinstance(node, ast.Constant) and isinstance(node.value, str) and old in node.value

    text: ast.Constant = find(source, scope, "", is_holding)  # type: ignore[assignment]
    return [_replaced(source, text, ast.Constant(str(text.value).replace(old, new)))]


OPERATORS = {
    "never": _set("False"),
    "always": _set("True"),
    "drop": _drop,
    "less": _less,
    "bare": _bare,
    "late": _late,
    "first": _first,
    "spell": _spell,
}
