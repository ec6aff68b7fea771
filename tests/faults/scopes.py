"""Where a name of the package is: found by its dotted name, wherever its module is.

A name is given by its end: ``HeldLog.append``, ``retention.plan``, ``writing.LEASE``. It must belong to one place only.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from tests.faults.operators import Source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PACKAGE = "agent_mailbox"
_NAME = re.compile(r"^ *(?:async )?(?:def |class )?(\w+)", re.MULTILINE)
"""What a line may define."""


class Scope(NamedTuple):
    """A module, a class, a function or an assignment."""

    path: Path
    source: Source
    node: ast.AST


def find(root: Path, name: str) -> Scope:
    """The one scope below ``root`` that a dotted name ends in. Raises ``LookupError`` for none and for several."""
    paths = _places(root).get(name.rpartition(".")[2], ())
    scopes = (scope for path in sorted(paths) for scope in _scopes(root, path))
    found = [(dotted, scope) for dotted, scope in scopes if f".{dotted}".endswith(f".{name}")]
    if len(found) != 1:
        places = ", ".join(f"{scope.path.relative_to(root)} {dotted}" for dotted, scope in found)
        raise LookupError(f"{name!r} names {len(found)} places{': ' if places else ''}{places}")
    return found[0][1]


def forget() -> None:
    """Let the trees of the package go, which slow down whatever a process does later."""
    _scopes.cache_clear()


@cache
def _places(root: Path) -> dict[str, set[Path]]:
    """Return the modules that may have a name: to parse them all for one name would take seconds."""
    found: dict[str, set[Path]] = {}
    for path in (root / PACKAGE).rglob("*.py"):
        names = _NAME.findall(path.read_text(encoding="utf-8"))
        for name in (path.parent.name if path.stem == "__init__" else path.stem, *names):
            found.setdefault(name, set()).add(path)
    return found


@cache
def _scopes(root: Path, path: Path) -> list[tuple[str, Scope]]:
    source = Source(path.read_text(encoding="utf-8"))
    module = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
    within = _within(module, source.tree.body, is_local=False)
    return [(dotted, Scope(path, source, node)) for dotted, node in ((module, source.tree), *within)]


def _within(outer: str, body: list[ast.stmt], *, is_local: bool) -> Iterator[tuple[str, ast.stmt]]:
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{outer}.{node.name}", node
            yield from _within(f"{outer}.{node.name}", node.body, is_local=not isinstance(node, ast.ClassDef))
        elif not is_local and isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((f"{outer}.{one.id}", node) for one in targets if isinstance(one, ast.Name))
