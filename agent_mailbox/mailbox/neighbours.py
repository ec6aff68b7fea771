"""The sessions that work in one work tree: who they are, and what each is told of the others.

Belongs here: finding them, the words, and the mark by which the shim asks before a command of git. A session works
where its client started it.
"""

from __future__ import annotations

from ..core import frame
from ..core.roster import ALIVE
from ..core.text import neutral, shell_quoted
from ..store.files import system
from ..store.files.board import TASKS, TREES, Board
from ..store.files.small_files import remove_if_possible, write_if_possible
from ..store.user_state import work_trees

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..core.roster import Agent
    from .open_mailbox import OpenMailbox

MOST = 3
"""Neighbours that are named."""


def _others(desk: OpenMailbox, me: str) -> Iterator[tuple[str, str]]:
    """Yield each other living session that works in a tree, with that tree; of other projects none is looked up."""
    roster, state = desk.logs.read_roster(), desk.logs.stamp_files.kept()
    line, mine = roster.lineage(me), roster.get(me)
    projects = _projects(mine) if mine is not None else frozenset()
    for agent in roster.agents.values():
        if agent.state == ALIVE and agent.session_id not in line:
            theirs = _projects(agent)
            if projects and theirs and projects.isdisjoint(theirs):
                continue
            tree = work_trees.tree_of(agent.session_id, state)
            if tree is not None:
                yield agent.session_id, tree


def _projects(agent: Agent) -> frozenset[str]:
    return frozenset(tag for tag in agent.tags if tag.startswith("project:"))


def find_in(desk: OpenMailbox, me: str, tree: str) -> list[str]:
    """Return the other living sessions in a tree. If there is no other session at all, the shim asks no more."""
    found = list(_others(desk, me))
    if not found:
        remove_if_possible(work_trees.mark_of(me, desk.logs.stamp_files.kept()))
    living = [one for one, where in found if where == tree]
    gone = desk.gone(living) if living else ()
    return [one for one in living if one not in gone]


def enter(desk: OpenMailbox, me: str, directory: str) -> list[str]:
    """Note that a session comes to a tree. Returns the line about its neighbours, who hear of it as they go on."""
    tree = work_trees.top(directory)
    if tree is None:
        return []
    others = [one for one, _ in _others(desk, me)]
    for one in (me, *others) if others else ():
        mark = work_trees.mark_of(one, desk.logs.stamp_files.kept())
        if not system.exists(mark):
            write_if_possible(mark, b"")
    here = find_in(desk, me, tree) if others else []
    for one in here:
        _note_news(desk, one, me)
    return [f"{said(desk, here, tree)}. {own_tree(desk, me, tree)}"] if here else []


def _note_news(desk: OpenMailbox, one: str, me: str) -> None:
    """Have a session told, as its next turn begins, that another came; of one that came back it heard before."""
    board, tasks = Board(desk.logs.stamp_files, TREES), Board(desk.logs.stamp_files, TASKS)
    told = board.read_told(one)
    if me not in (word.lstrip("+") for word in told):
        board.keep_told(one, [*told, f"+{me}"])
        tasks.keep_told(one, [])  # which keeps the hook awake
        desk.logs.stamp_files.try_to_disturb(one)


def news(desk: OpenMailbox, me: str) -> list[str]:
    """Return the line about sessions that came to this one's tree since it was last told. Only a session that was alone
    before is told how to make a tree of its own; others know."""
    board = Board(desk.logs.stamp_files, TREES)
    told = board.read_told(me)
    came = {word[1:] for word in told if word.startswith("+")}
    if not came:
        return []
    board.keep_told(me, [word.lstrip("+") for word in told])
    tree = work_trees.tree_of(me, desk.logs.stamp_files.kept())
    if tree is None:
        return []
    here = find_in(desk, me, tree)
    new = [one for one in here if one in came]
    if not new:
        return []
    return [said(desk, new, tree) + (f". {own_tree(desk, me, tree)}" if new == here else "")]


def said(desk: OpenMailbox, others: Sequence[str], tree: str) -> str:
    """Return who else works in a tree, and its branch."""
    roster, branch = desk.logs.read_roster(), work_trees.branch(tree)
    names = [frame.name_of(one, roster) for one in others[:MOST]]
    names += [f"{len(others) - MOST} more"] if len(others) > MOST else []
    verb = "also works" if len(others) == 1 else "also work"
    return f"{' and '.join(names)} {verb} in this tree" + (f", on branch {neutral(branch)}" if branch else "")


def own_tree(desk: OpenMailbox, me: str, tree: str) -> str:
    """Return the command that makes a tree of its own for a session."""
    name = frame.name_of(me, desk.logs.read_roster())[:20]
    plain = "".join(char if char.isalnum() else "-" for char in name if char.isascii()).strip("-").lower() or "mine"
    place = beside = f"{tree.rstrip('/')}-{plain}"
    number = 2
    while system.exists(place):
        place, number = f"{beside}-{number}", number + 1
    return f"A tree of your own: `git -C {shell_quoted(tree)} worktree add {shell_quoted(place)}`"
