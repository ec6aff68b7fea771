"""Before a command of git that changes a whole work tree: another living session works there.

Belongs here: what the session is told of that. The command runs all the same, unless ``[leases] enforce`` of the
person's own configuration refuses it (``lease_guard``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core import frame
from ...core.records import Record
from ...core.text import shell_quoted
from ...mailbox import neighbours
from ...permissions import tree_commands
from ...store.files import system
from ...store.user_state import work_trees

if TYPE_CHECKING:
    from ...mailbox.open_mailbox import OpenMailbox
    from ..client_input import ClientInput


class Disturbance(Record):
    """The words that the session is told, and a key for them: each is told once."""

    key: str
    said: str


def _is_file(path: str) -> bool:
    return system.exists(path) and not system.is_directory(path)


def find_disturbances(call: ClientInput, desk: OpenMailbox, home: str, program: str) -> list[Disturbance]:
    """Return whom the command of a call disturbs, a line for each tree."""
    found = {}
    for command in tree_commands.find_tree_commands(call.command, call.here, home, _is_file):
        tree = work_trees.top(command.directory)
        others = neighbours.find_in(desk, call.session_id, tree) if tree is not None and tree not in found else []
        if tree is None or not others:
            continue
        roster = desk.logs.read_roster()
        to = shell_quoted(frame.name_of(others[0], roster))
        said = neighbours.said(desk, others, tree)
        if tree != work_trees.top(call.here):
            said = said.replace("also works in this tree", f"works in {shell_quoted(tree)}")
        found[tree] = Disturbance(
            f"tree {command.words} {tree} {' '.join(sorted(others))}",
            f"{said}: `{command.words}` changes files under them. Write to them first: {program} send --to {to} "
            f'--body "…". {neighbours.own_tree(desk, call.session_id, tree)}.',
        )
    return list(found.values())
