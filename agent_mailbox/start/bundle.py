"""Writing the bundles that ``launch`` starts the hot verbs from.

Belongs here: which modules each hot verb needs, and how a bundle holds their code.
"""

from __future__ import annotations
import __future__

import ast
import marshal
import os
import sys
from importlib.util import find_spec, resolve_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from types import CodeType

    Source = tuple[str, int, int]
    """A source file as it was: path, size, modification time in nanoseconds."""
    Module = tuple[str, str, bool, CodeType]
    """A module: name, path, whether it is a package, code."""
    Contents = tuple[tuple[Source, ...], tuple[tuple[str, str], ...], str, tuple[Module, ...]]
    """A bundle: sources, compiled modules with their paths, the name that links the modules, the modules."""

HOT_MODULES = {
    "cli": "ack check hook release reply roster search send show",
    "core": "ack check hook release reply roster search send show",
    "core.records": "ack check hook release reply roster search send show",
    "errors": "ack check hook release reply roster search send show",
    "core.address": "ack check hook release reply roster search send show",
    "core.proofs": "ack check hook release reply roster search send show",
    "core.ids": "ack check hook release reply roster search send show",
    "core.text": "ack check hook release reply roster search send show",
    "core.roster": "ack check hook release reply roster search send show",
    "core.claims": "ack check hook release reply roster search send show",
    "core.instant": "ack check hook release reply roster search send show",
    "core.codec": "ack check hook release reply roster search send show",
    "core.frame": "ack check hook release reply roster search send show",
    "cli.mail_output": "ack check release reply roster search send show",
    "store": "ack check hook release reply roster search send show",
    "store.system": "ack check hook release reply roster search send show",
    "cli.output": "ack check hook release reply roster search send show",
    "cli.boundary": "ack check release reply roster search send show",
    "store.user_state": "ack check hook release reply roster search send show",
    "store.paths": "ack check hook release reply roster search send show",
    "cli.mailbox_place": "ack check hook release reply roster search send show",
    "identity": "ack check hook release reply roster search send show",
    "identity.client_variables": "ack check hook release reply roster search send show",
    "store.processes": "ack check hook release reply roster search send show",
    "identity.client_processes": "ack check hook release reply roster search send show",
    "store.hosts": "ack check hook release reply roster search send show",
    "identity.callers": "ack check release reply roster search send show",
    "cli.context": "ack check release reply roster search send show",
    "clients": "hook",
    "clients.hooks": "hook",
    "clients.hooks.budget": "hook",
    "mailbox": "ack check hook release reply roster search send show",
    "core.expiry": "ack check hook release reply roster search send show",
    "config": "ack check hook release reply roster search send show",
    "store.lock": "ack check hook release reply roster search send show",
    "core.inbox": "ack check hook release reply roster search send show",
    "core.roster_cache": "ack check hook release reply roster search send show",
    "store.tails": "ack check hook release reply roster search send show",
    "store.cache": "ack check hook release reply roster search send show",
    "core.seals": "ack check hook release reply roster search send show",
    "store.lines": "ack check hook release reply roster search send show",
    "store.log_ends": "ack check hook release reply roster search send show",
    "store.custody": "ack check hook release reply roster search send show",
    "store.proof_view": "ack check hook release reply roster search send show",
    "store.stamps": "ack check hook release reply roster search send show",
    "store.log": "ack check hook release reply roster search send show",
    "store.prefilter": "ack check hook release reply roster search send show",
    "store.logs": "ack check hook release reply roster search send show",
    "mailbox.opened": "ack check hook release reply roster search send show",
    "store.offers": "ack check hook release reply search show",
    "store.poll": "ack check hook release reply search show",
    "mailbox.delivery": "ack check hook release reply search show",
    "clients.hooks.hook_events": "hook",
    "identity.hook_calls": "hook",
    "cli.hook_input": "hook",
    "cli.hook_command": "hook",
    "cli.render": "roster search show",
    "core.roster_changes": "ack release reply roster search show",
    "core.obligations": "ack release reply roster search show",
    "mailbox.registry": "ack release reply roster search show",
    "mailbox.absence": "roster",
    "mailbox.agents": "roster search",
    "cli.roster_verbs": "roster",
    "cli.verbs": "ack check release reply search send show",
    "core.compose": "ack release reply search send show",
    "core.dead_letters": "search",
    "core.recipients": "ack release reply search send show",
    "core.threads": "search",
    "core.words": "search",
    "mailbox.sending": "ack release reply search send show",
    "store.index_keys": "ack release reply search show",
    "mailbox.facade": "ack release reply search show",
    "mailbox.selection": "search",
    "mailbox.queries": "search",
    "start": "ack check hook release reply roster search send show",
    "start.plain": "ack check hook release reply roster search send show",
    "store.archive": "ack release reply search show",
    "store.indexing": "search",
    "store.lookup": "search",
    "store.index": "search",
    "store.keys": "ack release reply roster send",
}
"""Each module that hot verbs load, with the verbs, behind those it imports. A test traces the verbs and compares."""

_PACKAGE = __name__.partition(".")[0]
_COMPILED = {"_json": "core.codec", "fcntl": "store.system", "_blake2": "store.keys"}
"""Compiled modules, each a file of its own in most builds, with the first of our modules that imports it."""
_LINK = "__modules__"
"""The name by which a bundled module knows the others."""


def save(verb: str, path: str) -> None:
    """Write a hot verb's bundle to a path; on failure, starting stays a little slower."""
    aside = f"{path}.{os.getpid()}"
    try:
        seal = int.from_bytes(os.urandom(4), "big") >> 1
        body = marshal.dumps(_contents(verb))
        with open(aside, "xb") as file:
            file.write(b"%010d\n" % seal + body)
        os.utime(aside, (seal, seal))
        os.rename(aside, path)
    except (OSError, SyntaxError):
        pass


def _contents(verb: str) -> Contents:
    """Return what a verb's bundle holds; raise ``OSError`` if a module has no source."""
    sources, modules = [], []
    linked = [f"{_PACKAGE}.{module}" for module, verbs in HOT_MODULES.items() if verb in verbs.split()]
    for name in (_PACKAGE, f"{_PACKAGE}.launch", *linked):
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            raise OSError(f"no source of {name}")
        at = os.stat(spec.origin)
        sources.append((spec.origin, at.st_size, at.st_mtime_ns))
        if name in linked:
            with open(spec.origin, "rb") as file:
                code = _code(file.read(), spec.origin, _Lean(spec.parent or "", linked))
            modules.append((name, spec.origin, spec.submodule_search_locations is not None, code))
    compiled = [name for name, importer in _COMPILED.items() if f"{_PACKAGE}.{importer}" in linked]
    places = [(name, getattr(sys.modules.get(name), "__file__", None)) for name in compiled]
    return tuple(sources), tuple((name, place) for name, place in places if place), _LINK, tuple(modules)


def _code(source: bytes, path: str, lean: _Lean) -> CodeType:
    """Return a module's lean code."""
    tree = lean.visit(ast.parse(source, path))
    flags = __future__.annotations.compiler_flag
    code: CodeType = compile(tree, path, "exec", flags=flags, dont_inherit=True, optimize=2)
    return code


class _Lean(ast.NodeTransformer):
    """Removes what only type checkers and readers use, and links the modules: each takes names straight from another of
    its bundle. That costs a tenth of an import statement: ``from ..store import paths`` becomes ``paths =
    __modules__['agent_mailbox.store.paths']``."""

    def __init__(self, package: str, linked: Collection[str]) -> None:
        self._package = package
        self._linked = linked

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | list[ast.stmt] | None:
        source = resolve_name("." * node.level + (node.module or ""), self._package)
        links = [(alias.asname or alias.name, self._link(source, alias.name)) for alias in node.names]
        if not all(link for _, link in links):
            return None if source == "__future__" else node
        return ast.parse("\n".join(f"{name} = {link}" for name, link in links)).body

    def _link(self, source: str, name: str) -> str | None:
        if f"{source}.{name}" in self._linked:
            return f"{_LINK}[{source + '.' + name!r}]"
        is_package = any(other.startswith(f"{source}.") for other in self._linked)
        return f"{_LINK}[{source!r}].{name}" if source in self._linked and not is_package else None

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        return node.orelse if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING" else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.copy_location(ast.Constant(None), node)  # records need only the names of their fields
        return self.generic_visit(node)
