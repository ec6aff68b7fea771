"""Writing the bundles that ``launch`` starts the hot verbs from.

Belongs here: which modules each hot verb needs, and how a bundle holds their code.
"""

from __future__ import annotations
import __future__

import ast
import marshal
import os
from importlib.util import find_spec, resolve_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from importlib.machinery import ModuleSpec
    from types import CodeType
    from typing import Any

    Source = tuple[str, int, int]
    """A source file as it was: path, size, modification time in nanoseconds."""
    Module = tuple[str, str, bool, CodeType]
    """A module: name, path, whether it is a package, code."""
    LaterModule = tuple[str, Source, bytes]
    """A module that is decoded when it is imported: name, source, code as ``marshal`` writes it."""
    Contents = tuple[tuple[Source, ...], tuple[tuple[str, str], ...], str, tuple[Module, ...], tuple[LaterModule, ...]]
    """A bundle: sources, compiled modules with their paths, the name that links the modules, the modules, the later
    ones."""

HOT_MODULES = {
    "ack check dead-letters hook release reply roster search send show start status": (
        "cli core core.records errors core.address core.instant core.codec core.proofs core.text store store.files "
        "store.files.system cli.output core.roster core.frame identity known_clients known_clients.known_client "
        "known_clients.claude_code known_clients.codex known_clients.copilot_cli known_clients.cursor_cli "
        "known_clients.gemini_cli known_clients.opencode known_clients.every_client identity.client_variables "
        "store.user_state store.files.small_files store.user_state.processes identity.client_processes "
        "store.files.paths config config.config mailbox store.locks store.locks.lock store.log core.line_forms "
        "core.roster_cache store.files.lines store.log.custody store.log.proof_view store.log.stamps store.log.log "
        "store.log.logs mailbox.open_mailbox start start.plain"
    ),
    "ack check dead-letters hook release reply roster search show start status": (
        "core.message_reads core.inbox store.files.board"
    ),
    "ack check dead-letters release reply roster search send show status": (
        "cli.mail_output identity.callers cli.context"
    ),
    "ack check dead-letters hook release reply search show start status": (
        "store.polling store.polling.poll mailbox.delivery"
    ),
    "ack dead-letters release reply roster search send show status": ("core.reach mailbox.arrivals"),
    "ack dead-letters release reply roster search show start status": (
        "core.obligations core.roster_changes mailbox.registry"
    ),
    "ack dead-letters release reply search show start status": ("store.projection store.projection.index_keys"),
    "ack dead-letters release reply search send show status": ("core.compose mailbox.sending"),
    "ack dead-letters release reply search show status": ("mailbox.mailbox"),
    "check dead-letters hook roster start status": ("commands"),
    "ack dead-letters release reply search show": ("store.archive store.archive.archive"),
    "ack release reply roster send start": ("store.log.keys"),
    "dead-letters roster search show status": ("cli.render"),
    "ack release reply send": ("cli.verbs"),
    "dead-letters search show status": (
        "core.awaited core.conversations core.dead_letters core.words mailbox.selection mailbox.queries"
    ),
    "check hook show start": ("core.showing core.showing.message_frame"),
    "dead-letters start status": ("store.projection.open_ends"),
    "search show": (
        "cli.show_verbs store.projection.line_facts store.projection.intake store.projection.projection_file "
        "store.projection.projection store.projection.lookup"
    ),
    "hook start": (
        "clients clients.budget identity.hook_calls store.files.standard_input clients.client_input clients.hooks "
        "clients.hooks.hook_events commands.hook_command"
    ),
    "roster start": ("mailbox.absence"),
    "dead-letters status": ("commands.standing_verbs store.projection.untaken_mail"),
    "start": (
        "clients.transcript mailbox.receipts clients.hooks.receipt_rules clients.hooks.reminder "
        "store.user_state.work_trees mailbox.neighbours clients.hooks.session"
    ),
    "check": ("commands.check_verb"),
    "roster": ("mailbox.agents commands.roster_verbs"),
}
"""The modules that hot verbs load, by the verbs, each behind those it imports. A test traces the verbs and compares."""

LATER_MODULES = {
    "ack check dead-letters release reply roster search send show status": "identity.outsiders",
    "check dead-letters hook start status": (
        "store.projection.line_facts store.projection.intake "
        "store.projection.projection_file store.projection.projection"
    ),
    "dead-letters search start status": "core.exact_lines",
    "check hook start": "store.polling.foreign_lines",
    "check show": "cli.client_output",
    "check status": "cli.suggested",
    "hook start": (
        "core.compose core.brake core.conversations core.words store.projection.lookup mailbox.session_brake"
    ),
    "check hook": "store.projection store.projection.index_keys store.log.keys store.projection.open_ends",
    "hook": (
        "clients.transcript mailbox.receipts clients.hooks.receipt_rules core.reach mailbox.arrivals "
        "mailbox.sending clients.hooks.ends core.attention config.config_file config.own_config "
        "store.projection.control_table store.user_state.bindings"
    ),
}
"""Modules that hot verbs load in rarer branches, or that load what takes long, by the verbs. A test runs such branches,
and finds what is missing."""

_PACKAGE = __name__.partition(".")[0]
_COMPILED = {"_json": "core.codec", "fcntl": "store.files.system", "_blake2": "store.log.keys"}
"""Compiled modules, each a file of its own in most builds, with the first of our modules that imports it."""
_LINK = "__modules__"
"""The name by which a bundled module knows the others."""


def save_bundle(verb: str, path: str) -> None:
    """Write a hot verb's bundle to a path; on failure, starting stays a little slower."""
    aside = f"{path}.{os.getpid()}"
    try:
        seal = int.from_bytes(os.urandom(4), "big") >> 1
        body = marshal.dumps(_bundle_contents(verb))
        with open(aside, "xb") as file:
            file.write(b"%010d\n" % seal + body)
        os.utime(aside, (seal, seal))
        os.rename(aside, path)
    except (OSError, SyntaxError):
        pass


def _bundle_contents(verb: str) -> Contents:
    """Return what a verb's bundle holds; raise ``OSError`` if a module has no source."""
    linked, later = (_of_verb(verb, modules) for modules in (HOT_MODULES, LATER_MODULES))
    compiled = [name for name, importer in _COMPILED.items() if f"{_PACKAGE}.{importer}" in linked]
    specs = [(name, find_spec(name)) for name in compiled]  # this run may not have needed each of them
    return (
        tuple(_source_of(name)[0] for name in (_PACKAGE, f"{_PACKAGE}.launch", *linked)),
        tuple((name, spec.origin) for name, spec in specs if spec is not None and spec.has_location and spec.origin),
        _LINK,
        tuple(_module_entry(name, linked) for name in linked),
        tuple((name, _source_of(name)[0], marshal.dumps(_module_entry(name, linked)[3])) for name in later),
    )


def _of_verb(verb: str, modules: Mapping[str, str]) -> list[str]:
    return [f"{_PACKAGE}.{name}" for verbs, names in modules.items() if verb in verbs.split() for name in names.split()]


def _source_of(name: str) -> tuple[Source, ModuleSpec]:
    """Return a module's source file as it is now, and the module's spec."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise OSError(f"no source of {name}")
    at = os.stat(spec.origin)
    return (spec.origin, at.st_size, at.st_mtime_ns), spec


def _module_entry(name: str, linked: Collection[str]) -> Module:
    (path, _, _), spec = _source_of(name)
    with open(path, "rb") as file:
        tree = _Lean(spec.parent or "", linked).visit(ast.parse(file.read(), path))
    flags = __future__.annotations.compiler_flag
    code: CodeType = compile(tree, path, "exec", flags=flags, dont_inherit=True, optimize=2)
    return name, path, spec.submodule_search_locations is not None, code


class _Lean(ast.NodeTransformer):
    """Removes what only type checkers and readers use, and links the modules: each takes names straight from another of
    its bundle. That costs a tenth of an import statement: ``from ..store import paths`` becomes ``paths =
    __modules__['agent_mailbox.store.files.paths']``."""

    def __init__(self, package: str, linked: Collection[str]) -> None:
        self._package = package
        self._linked = linked

    def visit(self, node: ast.AST) -> Any:
        """Look into statements alone: an expression has nothing to remove, and is most of a tree."""
        return node if isinstance(node, ast.expr) else super().visit(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | list[ast.stmt] | None:
        source = resolve_name("." * node.level + (node.module or ""), self._package)
        links = [(alias.asname or alias.name, self._link_name(source, alias.name)) for alias in node.names]
        if not all(link for _, link in links):
            return None if source == "__future__" else node
        return ast.parse("\n".join(f"{name} = {link}" for name, link in links)).body

    def _link_name(self, source: str, name: str) -> str | None:
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
