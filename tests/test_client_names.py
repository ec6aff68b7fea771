"""A client is known by name in its own module alone, and in the few rooms that are one client's."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from agent_mailbox.known_clients.every_client import CLIENTS

from .test_layers import SOURCES, module_of, parsed

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES = re.compile("claude|codex|opencode|gemini|copilot|cursor[-_ ](?:cli|agent)|^[.]cursor", re.IGNORECASE)
ANYWHERE = re.compile("claude|codex|opencode|gemini|copilot|cursor", re.IGNORECASE)
ROOMS = {
    "clients.checks.codex_checks": "which hooks of Codex the person trusted, and what wakes its sessions",
    "clients.checks.runnable": "what Claude Code fills in for a hook's command",
    "clients.checks.settings": "Claude Code's settings, and the commands that mend them",
    "clients.codex_server": "Codex's background server",
    "clients.hooks.chat_file": "the words by which Gemini CLI's chats name their writer",
    "clients.install.opencode_plugin": "OpenCode's plugin",
    "clients.install.shared_section": "Copilot CLI reads a file of Codex, too",
    "clients.permission.gemini_tools": "Gemini CLI's tools, and answers as it takes them",
    "clients.starting": "each client's command has words of its own, its server a protocol",
    "commands.install_command": "one client's installation has options of its own",
    "start.bundle": "the list of modules, which scripts/hot writes",
    "teams.transcripts": "the words by which Claude Code brings a teammate's message",
}
"""The modules outside ``known_clients`` that may name a client, each with its reason. This table only gets shorter."""
MOST = 12
"""The most rows that it may have: this number only goes down."""
_ROOM_NAMES = {name.rpartition(".")[2] for name in ROOMS}


def _row_of(module: str) -> str:
    """Return the row of a module: its own, or that of its package."""
    package = module.rpartition(".")[0]
    return package if package in ROOMS else module


def _names_in(tree: ast.Module) -> Iterator[str]:
    """Yield each identifier and literal of the code with a client's name, but the name of such a room. Docstrings and
    comments may explain by names."""
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        words: list[str | None] = []
        match node:
            case ast.Constant(value=str(text)) if id(node) not in told:
                words = [text]
            case ast.Constant(value=bytes(data)):
                words = [data.decode("latin-1")]
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.arg(arg=word) | ast.keyword(arg=word):
                words = [word]
            case ast.FunctionDef(name=word) | ast.ClassDef(name=word) | ast.AsyncFunctionDef(name=word):
                words = [word]
            case ast.ImportFrom(module=module):
                words = [(module or "").rpartition(".")[2]]
            case ast.alias(name=word, asname=other):
                words = [word, other]
        yield from (word for word in words if word and word not in _ROOM_NAMES and NAMES.search(word))


def test_the_names_of_every_client_are_looked_for() -> None:
    """Without its name above, a client could be named anywhere."""
    unknown = [client.title for client in CLIENTS if not NAMES.search(client.title)]
    assert not unknown, "add it to NAMES"


def test_a_client_is_named_in_its_own_module_alone() -> None:
    """Every other module asks the client's fields. Each exception has its reason, and none is left over."""
    named = (path for path in SOURCES if ANYWHERE.search(path.read_text(encoding="utf-8")))  # few need to be parsed
    outside = [path for path in named if not module_of(path).startswith("known_clients")]
    found = {_row_of(module_of(path)): words for path in outside if (words := sorted({*_names_in(parsed(path))}))}
    assert {name: words for name, words in found.items() if name not in ROOMS} == {}
    assert ROOMS.keys() - found.keys() == set()
    assert len(ROOMS) <= MOST
