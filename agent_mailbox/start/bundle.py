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
    "cli": "ack check dead-letters hook release reply roster search send show start status",
    "core": "ack check dead-letters hook release reply roster search send show start status",
    "core.records": "ack check dead-letters hook release reply roster search send show start status",
    "errors": "ack check dead-letters hook release reply roster search send show start status",
    "core.address": "ack check dead-letters hook release reply roster search send show start status",
    "core.instant": "ack check dead-letters hook release reply roster search send show start status",
    "core.codec": "ack check dead-letters hook release reply roster search send show start status",
    "core.proofs": "ack check dead-letters hook release reply roster search send show start status",
    "core.text": "ack check dead-letters hook release reply roster search send show start status",
    "cli.mail_output": "ack check dead-letters release reply roster search send show status",
    "store": "ack check dead-letters hook release reply roster search send show start status",
    "store.files": "ack check dead-letters hook release reply roster search send show start status",
    "store.files.system": "ack check dead-letters hook release reply roster search send show start status",
    "cli.output": "ack check dead-letters hook release reply roster search send show start status",
    "core.roster": "ack check dead-letters hook release reply roster search send show start status",
    "core.frame": "ack check dead-letters hook release reply roster search send show start status",
    "identity": "ack check dead-letters hook release reply roster search send show start status",
    "known_clients": "ack check dead-letters hook release reply roster search send show start status",
    "known_clients.known_client": "ack check dead-letters hook release reply roster search send show start status",
    "known_clients.claude_code": "ack check dead-letters hook release reply roster search send show start status",
    "known_clients.codex": "ack check dead-letters hook release reply roster search send show start status",
    "known_clients.copilot_cli": "ack check dead-letters hook release reply roster search send show start status",
    "known_clients.cursor_cli": "ack check dead-letters hook release reply roster search send show start status",
    "known_clients.gemini_cli": "ack check dead-letters hook release reply roster search send show start status",
    "known_clients.mcp_client": "ack check dead-letters hook release reply roster search send show start status",
    "known_clients.opencode": "ack check dead-letters hook release reply roster search send show start status",
    "known_clients.every_client": "ack check dead-letters hook release reply roster search send show start status",
    "identity.client_variables": "ack check dead-letters hook release reply roster search send show start status",
    "store.user_state": "ack check dead-letters hook release reply roster search send show start status",
    "store.files.small_files": "ack check dead-letters hook release reply roster search send show start status",
    "store.user_state.processes": "ack check dead-letters hook release reply roster search send show start status",
    "identity.client_processes": "ack check dead-letters hook release reply roster search send show start status",
    "store.files.paths": "ack check dead-letters hook release reply roster search send show start status",
    "identity.callers": "ack check dead-letters release reply roster search send show status",
    "config": "ack check dead-letters hook release reply roster search send show start status",
    "config.config": "ack check dead-letters hook release reply roster search send show start status",
    "mailbox": "ack check dead-letters hook release reply roster search send show start status",
    "store.locks": "ack check dead-letters hook release reply roster search send show start status",
    "store.locks.lock": "ack check dead-letters hook release reply roster search send show start status",
    "store.log": "ack check dead-letters hook release reply roster search send show start status",
    "core.line_forms": "ack check dead-letters hook release reply roster search send show start status",
    "core.roster_cache": "ack check dead-letters hook release reply roster search send show start status",
    "store.files.lines": "ack check dead-letters hook release reply roster search send show start status",
    "store.log.custody": "ack check dead-letters hook release reply roster search send show start status",
    "store.log.proof_view": "ack check dead-letters hook release reply roster search send show start status",
    "store.log.stamps": "ack check dead-letters hook release reply roster search send show start status",
    "store.log.log": "ack check dead-letters hook release reply roster search send show start status",
    "store.log.logs": "ack check dead-letters hook release reply roster search send show start status",
    "mailbox.open_mailbox": "ack check dead-letters hook release reply roster search send show start status",
    "cli.context": "ack check dead-letters release reply roster search send show status",
    "core.message_reads": "ack check dead-letters hook release reply roster search show start status",
    "core.reach": "ack dead-letters release reply roster search send show status",
    "cli.render": "dead-letters roster search show status",
    "cli.show_verbs": "search show",
    "cli.verbs": "ack release reply send",
    "clients": "hook start",
    "clients.budget": "hook start",
    "identity.hook_calls": "hook start",
    "store.files.standard_input": "hook start",
    "clients.client_input": "hook start",
    "clients.hooks": "hook start",
    "core.inbox": "ack check dead-letters hook release reply roster search show start status",
    "store.files.watched": "ack check dead-letters hook release reply roster search show start status",
    "store.polling": "ack check dead-letters hook release reply search show start status",
    "store.polling.poll": "ack check dead-letters hook release reply search show start status",
    "mailbox.delivery": "ack check dead-letters hook release reply search show start status",
    "clients.hooks.hook_events": "hook start",
    "clients.transcript": "start",
    "mailbox.receipts": "start",
    "clients.hooks.receipt_rules": "start",
    "core.obligations": "ack dead-letters release reply roster search show start status",
    "store.projection": "ack dead-letters release reply search show start status",
    "store.projection.index_keys": "ack dead-letters release reply search show start status",
    "store.projection.open_ends": "dead-letters start status",
    "clients.hooks.reminder": "start",
    "core.roster_changes": "ack dead-letters release reply roster search show start status",
    "mailbox.registry": "ack dead-letters release reply roster search show start status",
    "mailbox.absence": "roster start",
    "store.files.board": "roster start",
    "store.log.keys": "ack release reply roster send start",
    "store.log.custody_setup": "start",
    "store.user_state.bindings": "start",
    "store.user_state.creation": "start",
    "store.user_state.work_trees": "start",
    "mailbox.neighbours": "start",
    "mailbox.unused_names": "start",
    "clients.hooks.session": "start",
    "commands": "check dead-letters hook roster start status",
    "commands.check_verb": "check",
    "commands.hook_command": "hook start",
    "mailbox.agents": "dead-letters roster search show status",
    "mailbox.arrivals": "ack dead-letters release reply roster search send show status",
    "commands.roster_verbs": "roster",
    "core.awaited": "dead-letters search show status",
    "core.dead_letters": "dead-letters search show status",
    "core.threads": "dead-letters search show status",
    "core.words": "dead-letters search show status",
    "core.compose": "ack dead-letters release reply search send show status",
    "mailbox.sending": "ack dead-letters release reply search send show status",
    "mailbox.mailbox": "ack dead-letters release reply search show status",
    "mailbox.selection": "dead-letters search show status",
    "mailbox.queries": "dead-letters search show status",
    "commands.standing_verbs": "dead-letters status",
    "core.showing": "check hook show start",
    "core.showing.message_frame": "check hook show start",
    "start": "ack check dead-letters hook release reply roster search send show start status",
    "start.plain": "ack check dead-letters hook release reply roster search send show start status",
    "store.archive": "ack dead-letters release reply search show",
    "store.archive.archive": "ack dead-letters release reply search show",
    "store.projection.line_facts": "search show",
    "store.projection.intake": "search show",
    "store.projection.sqlite": "search show",
    "store.projection.projection_file": "search show",
    "store.projection.projection": "search show",
    "store.projection.lookup": "search show",
    "store.projection.untaken_mail": "dead-letters status",
}
"""Each module that hot verbs load, with the verbs, behind those it imports. A test traces the verbs and compares."""

LATER_MODULES = {
    "cli.client_output": "check show",
    "cli.suggested": "check status",
    "clients.transcript": "hook",
    "mailbox.receipts": "hook",
    "clients.hooks.receipt_rules": "hook",
    "core.reach": "hook",
    "mailbox.arrivals": "hook",
    "core.compose": "hook start",
    "mailbox.sending": "hook",
    "core.brake": "hook start",
    "core.threads": "hook start",
    "core.conversations": "hook start",
    "store.projection": "check hook",
    "store.projection.index_keys": "check hook",
    "core.words": "hook start",
    "store.projection.line_facts": "check dead-letters hook start status",
    "store.projection.intake": "check dead-letters hook start status",
    "store.projection.sqlite": "check dead-letters hook start status",
    "store.projection.projection_file": "check dead-letters hook start status",
    "store.projection.projection": "check dead-letters hook start status",
    "store.projection.lookup": "hook start",
    "mailbox.parents": "hook start",
    "mailbox.session_brake": "hook start",
    "clients.hooks.turn_end": "hook",
    "core.attention": "hook",
    "config.config_file": "hook",
    "config.own_config": "hook",
    "core.exact_lines": "dead-letters search start status",
    "identity.outsiders": "ack check dead-letters release reply roster search send show status",
    "store.log.keys": "check hook",
    "store.polling.foreign_lines": "check hook start",
    "store.projection.control_table": "hook",
    "store.projection.open_ends": "check hook",
    "store.user_state.bindings": "hook",
}
"""Modules that hot verbs load in rarer branches, or that load what takes long, with the verbs. A test runs such
branches, and finds what is missing."""

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
    return [f"{_PACKAGE}.{module}" for module, verbs in modules.items() if verb in verbs.split()]


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
        code = _lean_code(file.read(), path, _Lean(spec.parent or "", linked))
    return name, path, spec.submodule_search_locations is not None, code


def _lean_code(source: bytes, path: str, lean: _Lean) -> CodeType:
    """Return a module's lean code."""
    tree = lean.visit(ast.parse(source, path))
    flags = __future__.annotations.compiler_flag
    code: CodeType = compile(tree, path, "exec", flags=flags, dont_inherit=True, optimize=2)
    return code


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
