"""What a piece of code mentions: the words by which an operator finds its place.

A word is a name or the end of one (``fsync``, ``system.fsync``), a call (``fsync()``), a named argument (``quiet=``), a
symbol or keyword (``<``, ``or``, ``return``), a number, ``'part'`` of a string, or a whole ``"string"``. Belongs here:
words, and which node has them.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

NODES = (
    "Eq ==,NotEq !=,Lt <,LtE <=,Gt >,GtE >=,Is is,IsNot is not,In in,NotIn not in,And and,Or or,Not not,Add +,Sub -,"
    "USub -,Mult *,Starred *,BitOr |,BitAnd &,Assign =,AugAssign +=,IfExp else,Subscript [],JoinedStr f'',If if,"
    "While while,With with,Try try,ExceptHandler except,Return return,Raise raise,Continue continue,Break break,"
    "Pass pass"
)
SYMBOLS = {getattr(ast, node): symbol for node, _, symbol in (pair.partition(" ") for pair in NODES.split(","))}
"""The kinds of nodes that are a symbol or a keyword."""
WORD = re.compile(r"""'[^']*'|"[^"]*"|not in\b|is not\b|\S+""")


def split_words(text: str) -> list[str]:
    """Return the words of an address."""
    return WORD.findall(text)


def has_word(node: ast.AST, word: str) -> bool:
    """Return whether a node has a word itself, its parts left aside."""
    if word[0] in "'\"":
        value = node.value if isinstance(node, ast.Constant) else None
        text = repr(value)[2:-1] if isinstance(value, bytes) else value
        return isinstance(text, str) and (word[1:-1] in text if word[0] == "'" else word[1:-1] == text)
    return any(f".{own}".endswith(f".{word}") for own in own_words(node))


def own_words(node: ast.AST) -> Iterator[str]:
    """Yield the words of a node itself; each end of a dotted name counts, too."""
    if type(node) in SYMBOLS:
        yield SYMBOLS[type(node)]
    elif isinstance(node, ast.Name | ast.Attribute):
        yield _dotted(node)
    elif isinstance(node, ast.Call):
        yield f"{_dotted(node.func)}()"
    elif isinstance(node, ast.keyword):
        yield f"{node.arg or '**'}="
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Constant) and not isinstance(node.value, str | bytes):
        yield repr(node.value)


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""
