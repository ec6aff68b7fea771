"""Where a name of the package is: found by its dotted name, wherever its module stands.

A name is given by its end: ``HeldLog.append``, ``retention.plan``, ``writing.LEASE``. It must belong to one place only.
"""

from __future__ import annotations

import ast
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PACKAGE = "agent_mailbox"


class Scope:
    """Lines of a file: those of a module, a class, a function or an assignment, decorators included."""

    def __init__(self, path: Path, first: int, last: int) -> None:
        self.path = path
        self.first = first
        self.last = last

    def parts(self) -> tuple[str, str, str]:
        """The file's text before the scope, the scope's, and that behind it."""
        lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True)
        return "".join(lines[: self.first]), "".join(lines[self.first : self.last]), "".join(lines[self.last :])


def find(root: Path, name: str) -> Scope:
    """The one scope below ``root`` that a dotted name ends in. Raises ``LookupError`` for none and for several."""
    found = [scope for dotted, scope in _scopes(root) if f".{dotted}".endswith(f".{name}")]
    if len(found) != 1:
        places = ", ".join(f"{scope.path.relative_to(root)}:{scope.first + 1}" for scope in found)
        raise LookupError(f"{name!r} names {len(found)} places{': ' if places else ''}{places}")
    return found[0]


@cache
def _scopes(root: Path) -> tuple[tuple[str, Scope], ...]:
    return tuple(pair for path in sorted((root / PACKAGE).rglob("*.py")) for pair in _of_file(root, path))


def _of_file(root: Path, path: Path) -> Iterator[tuple[str, Scope]]:
    text = path.read_text(encoding="utf-8")
    module = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
    yield module, Scope(path, 0, len(text.splitlines()))
    yield from _within(path, module, ast.parse(text).body)


def _within(path: Path, outer: str, body: list[ast.stmt], *, local: bool = False) -> Iterator[tuple[str, Scope]]:
    for node in body:
        is_scope = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for name in _names(node) if is_scope or not local else ():
            decorators = [one.lineno for one in getattr(node, "decorator_list", ())]
            yield f"{outer}.{name}", Scope(path, min([node.lineno, *decorators]) - 1, node.end_lineno or node.lineno)
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            is_local = not isinstance(node, ast.ClassDef)
            yield from _within(path, f"{outer}.{node.name}", node.body, local=is_local)


def _names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]
