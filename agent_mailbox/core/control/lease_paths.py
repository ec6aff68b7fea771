"""The paths of a lease: literal names and patterns, relative to their project.

Belongs here: which patterns a lease may have, whether one covers a file, whether two overlap. Anybody who can write a
line writes such patterns, so each answer takes a time that grows with their length alone. ``**`` matches any
directories, ``*`` and ``?`` match within a name; all else is literal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..text import fold_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MOST_PATHS = 20
LONGEST = 1000
"""Characters of one path; a deep one has 200."""
OUTSIDE = "/"
"""The project of files that are in no repository. Their paths begin at the root."""
_DEPTH_OUTSIDE = 3
"""Literal names before a wildcard outside any repository: a whole home directory is nobody's to lease."""
_ANY = "**"


def check(pattern: str, project: str) -> str:
    """Return a pattern that a lease may have; raise ``ValueError`` for one that is malformed or covers everything."""
    names = pattern.split("/")
    if not pattern or len(pattern) > LONGEST or not pattern.isprintable():
        raise ValueError("a path is empty, too long, or has a control character")
    if any(name in ("", ".", "..") for name in names):
        raise ValueError("a path is not plain: it has an empty name, . or ..")
    wild = next((at for at, name in enumerate(names) if is_wild(name)), None)
    if wild is None:
        return pattern
    if project == OUTSIDE and wild < _DEPTH_OUTSIDE:
        raise ValueError("it covers too much: outside a repository, a directory or pattern has three names first")
    if wild == 0 and (_ANY in names or not names[0].strip("*?")):
        raise ValueError("a pattern covers the whole project: begin it with a name")
    return pattern


def shown(project: str, paths: Sequence[str]) -> str:
    """Return the paths for people: those outside any repository are whole."""
    root = OUTSIDE if project == OUTSIDE else ""
    return ", ".join(f"{root}{path}" for path in paths)


def is_wild(name: str) -> bool:
    """Return whether a name of a path is a pattern."""
    return "*" in name or "?" in name


def covers(pattern: str, path: str, *, blind: bool = False) -> bool:
    """Return whether the pattern covers the file; ``blind``: its file system takes names that differ by case as one."""
    if blind:
        pattern, path = fold_name(pattern), fold_name(path)
    return pattern == path or (is_wild(pattern) and _meet(pattern.split("/"), path.split("/"), _matches))


def overlap(one: str, other: str) -> bool:
    """Return whether a file may be covered by both; two patterns for one name count as if they met."""
    return one == other or _meet(one.split("/"), other.split("/"), _may_meet)


def _meet(one: Sequence[str], other: Sequence[str], same: Callable[[str, str], bool]) -> bool:
    """Return whether two lists of names, each perhaps with ``**``, have a path in common."""
    reached = {0}
    for name in one:
        _close(reached, other, anything=name == _ANY)
        if name != _ANY:
            reached = {
                place if other[place] == _ANY else place + 1
                for place in reached
                if place < len(other) and (other[place] == _ANY or same(name, other[place]))
            }
    _close(reached, other, anything=False)
    return len(other) in reached


def _close(reached: set[int], names: Sequence[str], *, anything: bool) -> None:
    """Add the places that are reached without another name: past each ``**``, and with ``anything`` all that follow."""
    for place in range(min(reached, default=len(names)), len(names)):
        if place in reached and (anything or names[place] == _ANY):
            reached.add(place + 1)


def _matches(pattern: str, name: str) -> bool:
    """Return whether the name matches, in a time that grows with both lengths alone."""
    at = mark = 0
    star = -1
    while at < len(name):
        wanted = pattern[mark] if mark < len(pattern) else ""
        if wanted == "*":
            star, mark, back = mark, mark + 1, at
        elif wanted and wanted in ("?", name[at]):
            at, mark = at + 1, mark + 1
        elif star >= 0:
            back += 1
            at, mark = back, star + 1
        else:
            return False
    return not pattern[mark:].strip("*")


def _may_meet(one: str, other: str) -> bool:
    if is_wild(one):
        return is_wild(other) or _matches(one, other)
    return _matches(other, one)
