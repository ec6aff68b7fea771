"""Figures of the package's structure and language, taken from its sources alone.

Belongs here: counting. Which figure is good is for ``tests/test_measures.py`` and for whoever reads them.
"""

from __future__ import annotations

import ast
import io
import itertools
import json
import re
import sys
import tokenize
from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from scripts.prose import (
    LONG,
    SHORT,
    UNSAID,
    begins_oddly,
    hard_page_sentences,
    is_fragment,
    is_long,
    page_sentences,
    unsaid_words,
    user_words,
    written_pages,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TypeGuard

PACKAGE = "agent_mailbox"
ROOT = Path(__file__).resolve().parents[1]
LONGEST = 400
"""Lines of a module that a reader can still take in as one."""
BANNED = {"os", "typing", "re", "json", "pathlib", "dataclasses", "click"}
_TEST = re.compile(
    r'^ *(?:async )?def (test_\w+)\((?:(?!^ *(?:async )?def ).)*?:(?: *#[^\n]*)?\n +r?"""(.*?)"""',
    re.DOTALL | re.MULTILINE,
)
"""A test and its docstring. To parse all tests would take three times as long as all else here."""
_COMMENT = re.compile(r"(?:^|\s)// (.*)")
Node = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
"""Nodes that may have a docstring."""


class Sources:
    """The modules of a package below ``root``, parsed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.trees: dict[str, ast.Module] = {}
        self.packages: set[str] = set()
        self.lengths: dict[str, int] = {}
        for path in sorted((root / PACKAGE).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            text = path.read_text(encoding="utf-8")
            self.trees[name] = ast.parse(text)
            self.lengths[name] = text.count("\n")
            if parts[-1] == "__init__":
                self.packages.add(name)
        self.statements = {name: [*_with_depth(tree)] for name, tree in self.trees.items()}
        """All statements of each module, and whether each is within a function."""

    @cached_property
    def docstrings(self) -> dict[str, str]:
        """The docstrings by dotted name."""
        found = {}
        for module, tree in self.trees.items():
            for name, node in _named(tree, module):
                if text := ast.get_docstring(node):
                    found[name] = text
        return found

    @cached_property
    def constants(self) -> dict[str, str]:
        """The texts below constants and fields, which say what these are, by module and line."""
        found = {}
        for module, tree in self.trees.items():
            for block in (tree, *(node for node, _ in self.statements[module])):
                for above, node in itertools.pairwise(getattr(block, "body", ())):
                    text = getattr(getattr(node, "value", None), "value", None)
                    is_below = isinstance(above, ast.Assign | ast.AnnAssign) and isinstance(node, ast.Expr)
                    if is_below and isinstance(text, str):
                        found[f"{module}:{node.lineno}"] = text
        return found

    def unsaid(self) -> Iterator[str]:
        """Yield each word that nobody says, with its place: in pages, in comments and strings of the package, which has
        its help and errors, and in the tests' docstrings."""
        for page in written_pages(self.root):
            yield from _unsaid(page.name, page.read_text(encoding="utf-8"))
        for path in sorted(path for path in (self.root / PACKAGE).rglob("*") if path.suffix in (".py", ".js", ".txt")):
            text = path.read_text(encoding="utf-8")
            if UNSAID.search(text):
                lines = _COMMENT.findall(text) if path.suffix == ".js" else [text]
                for said in _spoken(text) if path.suffix == ".py" else lines:
                    yield from _unsaid(str(path.relative_to(self.root)), said)
        for name, text in self.test_docstrings.items():
            yield from _unsaid(name, text)

    @cached_property
    def functions(self) -> list[str]:
        """The names of all functions and methods but the special ones."""
        nodes = (node for statements in self.statements.values() for node, _ in statements)
        names = (node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
        return [name for name in names if not name.startswith("__")]

    @cached_property
    def test_docstrings(self) -> dict[str, str]:
        """The docstrings of the tests by file and name."""
        files = ((path, path.read_text(encoding="utf-8")) for path in sorted((self.root / "tests").rglob("test_*.py")))
        return {
            f"{path.relative_to(self.root)}::{name}": text for path, code in files for name, text in _TEST.findall(code)
        }

    @cached_property
    def hot_modules(self) -> set[str]:
        """The modules that hot verbs load, as the bundle lists them; imports within their functions are for speed."""
        bundle = self.trees.get(f"{PACKAGE}.start.bundle", ast.Module([], []))
        dicts = [one.value for one in bundle.body if isinstance(one, ast.Assign) and isinstance(one.value, ast.Dict)]
        lists = (str(one.value) for found in dicts for one in found.values if isinstance(one, ast.Constant))
        return {f"{PACKAGE}.launch", PACKAGE, *(f"{PACKAGE}.{name}" for names in lists for name in names.split())}

    def strangers(self) -> list[str]:
        """Return the modules with classes of which none has a word of the module's name."""
        found = []
        for module, tree in self.trees.items():
            names = [node.name for node in tree.body if _has_methods(node) and not node.name.startswith("_")]
            if names and all(_words(name).isdisjoint(_words(module.rpartition(".")[2])) for name in names):
                found.append(f"{module.partition('.')[2]} ({', '.join(names)})")
        return found

    def room_cycles(self) -> list[str]:
        """Return the pairs of rooms that import each other, packages within packages too, types left out."""
        arrows = set[tuple[str, str]]()
        for module in self.trees:
            user = module if module in self.packages else module.rpartition(".")[0]
            for target, _ in self.imports(module, types=False):
                used = target if target in self.packages else target.rpartition(".")[0]
                for depth in (2, 3, 4):
                    one, other = (".".join(name.split(".")[:depth]) for name in (user, used))
                    if one != other and PACKAGE not in (one, other):
                        arrows.add((one, other))
        return sorted(f"{one} and {other}" for one, other in arrows if one < other and (other, one) in arrows)

    def imports(self, module: str, *, types: bool = True) -> Iterator[tuple[str, bool]]:
        """Yield each module of the package that this one imports, lazily or for types too, and whether lazily."""
        for node, is_lazy in self.statements[module] if types else _with_depth(self.trees[module], types=False):
            if isinstance(node, ast.ImportFrom) and (base := self._absolute(module, node)) is not None:
                for alias in node.names:
                    target = f"{base}.{alias.name}"
                    yield (target if target in self.trees else base), is_lazy

    def _absolute(self, module: str, node: ast.ImportFrom) -> str | None:
        if not node.level:
            return node.module if node.module and node.module.partition(".")[0] == PACKAGE else None
        package = module if module in self.packages else module.rpartition(".")[0]
        parts = package.split(".")
        return ".".join([*parts[: len(parts) - node.level + 1], *([node.module] if node.module else [])])

    def cycles(self) -> list[list[str]]:
        """Return the groups of modules that import each other, the largest first (Tarjan's components)."""
        graph = {module: {target for target, _ in self.imports(module) if target != module} for module in self.trees}
        return sorted((group for group in _components(graph) if len(group) > 1), key=len, reverse=True)


def _unsaid(place: str, text: str) -> Iterator[str]:
    return (f"{place}: {word}" for word in unsaid_words(text))


def _spoken(source: str) -> Iterator[str]:
    """Yield the comments of a source, and those strings that are more than a word."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        is_text = token.type == tokenize.STRING or tokenize.tok_name[token.type] == "FSTRING_MIDDLE"
        if token.type == tokenize.COMMENT or (is_text and " " in token.string):
            yield re.sub(r"\{[^{}]*\}", "", token.string).strip("rbfRBF").strip("\"'")


def _named(tree: ast.Module, module: str) -> Iterator[tuple[str, Node]]:
    yield module, tree
    todo: list[tuple[str, Node]] = [(module, tree)]
    while todo:
        outer, node = todo.pop()
        for child in node.body:
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                name = f"{outer}.{child.name}"
                yield name, child
                todo.append((name, child))


def _has_methods(node: ast.stmt) -> TypeGuard[ast.ClassDef]:
    return isinstance(node, ast.ClassDef) and any(isinstance(inner, ast.FunctionDef) for inner in node.body)


def _is_one_word(name: str) -> bool:
    return "_" not in name.strip("_")


def _words(name: str) -> set[str]:
    words = (word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name))
    return {re.sub("(?<=ss)es$", "", word).removesuffix("s") for word in words}


def _with_depth(tree: ast.Module, *, types: bool = True) -> Iterator[tuple[ast.AST, bool]]:
    """Yield the statements below a module, and whether each is within a function. No expression has an import."""
    todo: list[tuple[ast.AST, bool]] = [(node, False) for node in tree.body]
    while todo:
        node, is_lazy = todo.pop()
        yield node, is_lazy
        inside = is_lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        is_typing = not types and isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for block in ("orelse",) if is_typing else _BLOCKS:
            todo += [(child, inside) for child in getattr(node, block, ())]


_BLOCKS = "body", "orelse", "finalbody", "handlers", "cases"


def _components(graph: dict[str, set[str]]) -> list[list[str]]:
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in graph[node] & graph.keys():
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            place = stack.index(node)
            found.append(sorted(stack[place:]))
            del stack[place:]

    sys.setrecursionlimit(10_000)
    for node in graph:
        if node not in index:
            visit(node)
    return found


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a docstring's running text; tables, lists and examples are none."""
    for paragraph in re.split(r"\n\s*\n", text):
        if not re.match(r"\s{4}|[|*-] ", paragraph):
            yield from re.split(r"(?<=[.!?])\s+(?=[A-Z`])", " ".join(paragraph.split()))


def figures(sources: Sources) -> dict[str, Any]:
    """Return the figures by name; lists are shortened to what has to be looked at."""
    modules = {module: tree for module, tree in sources.trees.items() if module not in sources.packages}
    basenames = Counter(module.rpartition(".")[2] for module in modules)
    classes = Counter(
        node.name
        for tree in sources.trees.values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    lazy = [module for module in sources.trees for target, is_lazy in sources.imports(module) if is_lazy]
    names = sources.functions
    texts = (*sources.docstrings.values(), *sources.constants.values())
    said = [sentence for text in texts for sentence in sentences(text)]
    loose = [m for m in modules if m.count(".") == 1 and not m.endswith("__main__")]
    statements = sum(isinstance(node, ast.stmt) for found in sources.statements.values() for node, _ in found)
    paged = [one for page in written_pages(sources.root) for one in page_sentences(page.read_text(encoding="utf-8"))]
    return {
        "modules": len(modules),
        "lines": sum(sources.lengths.values()),
        f"modules over {LONGEST} lines": [f"{m} ({n})" for m, n in sources.lengths.items() if n > LONGEST],
        "statements": statements,
        "docstring words": sum(len(text.split()) for text in sources.docstrings.values()),
        "loose modules": sorted(m.partition(".")[2] for m in loose),
        "cycles": sources.cycles(),
        "module names that repeat": sorted(name for name, times in basenames.items() if times > 1),
        "class names that repeat": sorted(name for name, times in classes.items() if times > 1),
        "classes called unlike their module": sources.strangers(),
        "one-word function names, of 100": round(100 * sum(map(_is_one_word, names)) / len(names), 1),
        "fragments in tests' docstrings": sum(map(is_fragment, sources.test_docstrings.values())),
        "room cycles": sources.room_cycles(),
        "lazy imports": len(lazy),
        "lazy imports outside hot modules": sum(module not in sources.hot_modules for module in lazy),
        "modules without os, typing, re, json, pathlib": sum(not _loads_banned(tree) for tree in modules.values()),
        "sentences that begin oddly": sum(map(begins_oddly, said)),
        f"sentences of more than {LONG} words": sum(map(is_long, said)),
        f"sentences of pages of more than {SHORT} words": [one for one in paged if is_long(one, SHORT)],
        "words of the pages for users": user_words(sources.root),
        "words that nobody says": list(sources.unsaid()),
        "longest sentence, in words": max((len(sentence.split()) for sentence in said), default=0),
    }


def hard_sentences(sources: Sources, prefix: str) -> Iterator[str]:
    """Yield the sentences to rewrite in the modules whose name begins so, each behind the name it documents."""
    for name, text in (sources.docstrings | sources.constants).items():
        if name.startswith(f"{PACKAGE}.{prefix}"):
            for sentence in sentences(text):
                if begins_oddly(sentence) or is_long(sentence):
                    yield f"{name}: {sentence}"


def _loads_banned(tree: ast.Module) -> bool:
    for node in tree.body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
        if any(name.partition(".")[0] in BANNED for name in names):
            return True
    return False


def main(words: list[str]) -> int:
    """Print the figures of a checkout (default: this one), with ``--json`` whole. ``--hard ROOM`` prints the sentences
    of a room that want rewriting, ``--pages`` those of the Markdown pages, ``--fragments`` the tests whose docstring
    leans on their name."""
    if words == ["--pages"]:
        for page in written_pages(ROOT):
            for sentence in hard_page_sentences(page):
                print(f"{page.name}: {sentence}")
        return 0
    if words == ["--fragments"]:
        print("\n".join(name for name, text in Sources(ROOT).test_docstrings.items() if is_fragment(text)))
        return 0
    if words[:1] == ["--hard"]:
        print("\n".join(hard_sentences(Sources(ROOT), ".".join(words[1:]))))
        return 0
    places = [word for word in words if word != "--json"]
    found = figures(Sources(Path(places[0]) if places else ROOT))
    if "--json" in words:
        print(json.dumps(found, indent=1))
        return 0
    for name, value in found.items():
        shown: object = value
        if isinstance(value, list):
            items = [item if isinstance(item, str) else " ".join(item) for item in value]
            shown = f"{len(value)}" + (f": {', '.join(items)}" if items else "")
        print(f"{name:46} {str(shown)[:200]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
