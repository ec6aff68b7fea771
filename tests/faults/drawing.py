"""Mutants that nobody chose: one operator at one line, both drawn from a seed.

Belongs here: which changes there are of a source's text, and the drawing. ``drawn`` tries them out. The rows of
``tests/*/mutants.md`` were made beside the tests that notice them. These tell what is found that nobody thought of.
"""

from __future__ import annotations

import ast
import copy
import difflib
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from tests.faults.operators import Source, _replaced
from tests.helpers import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.faults.operators import Edit

ROOMS = ("core", "store", "mailbox", "control", "upkeep", "space")
BORDER = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
TURNED = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
SWAPPED = {"all": "any", "any": "all", "min": "max", "max": "min"}
PLAIN = (ast.Expr, ast.Assign, ast.AugAssign, ast.Raise)
"""Statements that are dropped, or change their places."""


class Drawn(NamedTuple):
    """One change of one file."""

    path: Path
    line: int
    what: str
    within: str
    """The function, with its class."""
    text: str

    @property
    def name(self) -> str:
        """Say where it is, and what it does."""
        return f"{self.path.relative_to(ROOT)}:{self.line} {self.what}"

    def diff(self) -> str:
        """Return it as a patch."""
        there = self.path.read_text(encoding="utf-8").splitlines(keepends=True)
        name = str(self.path.relative_to(ROOT))
        return "".join(difflib.unified_diff(there, self.text.splitlines(keepends=True), f"a/{name}", f"b/{name}"))


def draw(seed: int, count: int, rooms: tuple[str, ...] = ROOMS) -> list[Drawn]:
    """Return so many changes, each at a line of its own: a line first, then what is done there."""
    chance, found = Random(seed), list[Drawn]()
    files = [path for room in rooms for path in sorted((ROOT / "agent_mailbox" / room).rglob("*.py"))]
    sources = {path: Source(path.read_text(encoding="utf-8")) for path in files}
    nodes = {path: _by_line(source) for path, source in sources.items()}
    places = [(path, line) for path, lines in nodes.items() for line in lines]
    for path, line in chance.sample(places, len(places)):
        source = sources[path]
        changes = [*_changes(source, nodes[path][line])]
        for what, within, edits in chance.sample(changes, len(changes)):
            text = source.text
            for start, end, piece in sorted(edits, reverse=True):
                text = text[:start] + piece + text[end:]
            if _is_other(source.text, text):
                found.append(Drawn(path, line, what, within, text))
                break
        if len(found) == count:
            break
    return found


def _by_line(source: Source) -> dict[int, list[ast.AST]]:
    """Return the nodes within functions by their line, in the order of the lines."""
    source.look_at(source.tree)
    found: dict[int, list[ast.AST]] = {}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.stmt | ast.expr | ast.ExceptHandler):
            found.setdefault(node.lineno, []).append(node)
    return dict(sorted(found.items()))


def _changes(source: Source, nodes: list[ast.AST]) -> Iterator[tuple[str, str, list[Edit]]]:
    """Yield what can be done at a line: in words, where, and the edits."""
    for node in nodes:
        within = _function(source, node)
        if within and not _is_type(source, node):
            for what, old, new in _edits(source, node):
                yield what, within, [*_places(source, old, new)]


def _places(source: Source, old: list[ast.AST], new: list[ast.AST | str]) -> Iterator[Edit]:
    for node, piece in zip(old, new, strict=True):
        yield source.edit(node, piece) if isinstance(piece, str) else _replaced(source, node, piece)


def _is_other(old: str, new: str) -> bool:
    try:
        return ast.dump(ast.parse(old)) != ast.dump(ast.parse(new))
    except SyntaxError:
        return False


def _function(source: Source, node: ast.AST) -> str:
    """Return the dotted name of the function around a node; empty if none is: a forked process has only functions
    changed."""
    names, here, is_within = list[str](), source.parents.get(node), False
    while here is not None:
        if isinstance(here, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.append(here.name)
            is_within |= not isinstance(here, ast.ClassDef)
        here = source.parents.get(here)
    return ".".join(reversed(names)) if is_within else ""


def _is_type(source: Source, node: ast.AST) -> bool:
    here: ast.AST | None = node
    while here is not None and not isinstance(here, ast.stmt):
        above = source.parents.get(here)
        if here in (getattr(above, "annotation", None), getattr(above, "returns", None)):
            return True
        here = above
    return isinstance(here, ast.AnnAssign) and here.value is None


def _edits(source: Source, node: ast.AST) -> Iterator[tuple[str, list[ast.AST], list[ast.AST | str]]]:
    """Yield each change of one node: in words, what goes, and what comes."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield from ((word, [node], [new]) for word, new in _comparisons(node))
    elif isinstance(node, ast.BoolOp):
        other = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
        yield "and for or, or for and", [node], [_with(node, op=other)]
        for n in range(len(node.values)):
            left = [value for m, value in enumerate(node.values) if m != n]
            yield "an operand left out", [node], [_with(node, values=left) if len(left) > 1 else left[0]]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "not left out", [node], [node.operand]
    elif isinstance(node, ast.Name) and node.id in SWAPPED and isinstance(node.ctx, ast.Load):
        yield f"{SWAPPED[node.id]} for {node.id}", [node], [ast.Name(SWAPPED[node.id], ast.Load())]
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield "a number by one", [node], [ast.Constant(node.value + 1)]
    elif isinstance(node, ast.Call) and node.keywords and node.keywords[-1].arg:
        yield "an argument left out", [node], [_with(node, keywords=node.keywords[:-1])]
    elif isinstance(node, ast.Call) and len(node.args) > 1:
        yield "an argument left out", [node], [_with(node, args=node.args[:-1])]
    elif isinstance(node, ast.ExceptHandler) and not isinstance(node.body[0], ast.Pass):
        yield "an exception swallowed", [node.body[0]], ["pass"]
    elif isinstance(node, PLAIN) and not _is_said(node):
        yield "a statement dropped", [node], ["pass"]
        after = _next(source, node)
        if isinstance(after, PLAIN) and not _is_said(after):
            texts: list[ast.AST | str] = [ast.unparse(after), ast.unparse(node)]
            yield "two statements swapped", [node, after], texts


def _is_said(node: ast.stmt) -> bool:
    """Return whether a statement is a text alone: it says what is before it, and does nothing."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _comparisons(node: ast.Compare) -> Iterator[tuple[str, ast.expr]]:
    kind = type(node.ops[0])
    if kind in BORDER:
        yield "the border of a comparison", _with(node, ops=[BORDER[kind]()])
    if kind in TURNED:
        yield "a comparison turned", _with(node, ops=[TURNED[kind]()])
    if kind is ast.Eq:
        texts = [ast.Call(ast.Name("str", ast.Load()), [one], []) for one in (node.left, node.comparators[0])]
        call = ast.Call(ast.Attribute(texts[0], "startswith", ast.Load()), [texts[1]], [])
        yield "startswith for ==", call


def _with(node: ast.expr, **fields: object) -> ast.expr:
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


def _next(source: Source, node: ast.stmt) -> ast.stmt | None:
    above = source.parents[node]
    for field in ("body", "orelse", "finalbody"):
        body = getattr(above, field, None)
        if isinstance(body, list) and node in body[:-1]:
            after: ast.stmt = body[body.index(node) + 1]
            return after
    return None
