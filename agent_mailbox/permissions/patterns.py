"""Patterns of the client's permission rules: of commands, of paths, of hosts, of tools.

Belongs here: does a text match, by the client's documentation ("Configure permissions", 2.1). Pure: where files are is
passed in. What a rule means for a call is ``rules``' business.
"""

from __future__ import annotations

from ..core.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_HOST = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_.*")
"""What a host's name is made of, and the star of its patterns."""
_EXPANDED = frozenset("*?[]{}$`")
"""Characters by which a shell makes other words of a word."""


def _itself(path: str) -> str:
    return path


class Where(Record):
    """Where a call happens, for patterns of paths: the directory it runs in, the one the client was started in, the
    home; ``resolve`` follows symbolic links."""

    cwd: str = "/"
    root: str = "/"
    home: str = "/"
    resolve: Callable[[str], str] = _itself


def like(pattern: str, text: str) -> bool:
    """``*`` stands for any characters, also none and spaces; everything else for itself."""
    parts = pattern.split("*")
    if len(parts) == 1:
        return pattern == text
    if not text.startswith(parts[0]) or len(text) < len(parts[0]) + len(parts[-1]) or not text.endswith(parts[-1]):
        return False
    at, end = len(parts[0]), len(text) - len(parts[-1])
    for part in parts[1:-1]:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def command(pattern: str, text: str) -> bool:
    """A command's pattern: ``:*`` or `` *`` at its end also stand for the end of a word, spaces are counted as one."""
    pattern = pattern[:-2] + " *" if pattern.endswith(":*") else pattern
    pattern, text = " ".join(pattern.split()), " ".join(text.split())
    return like(pattern, text) or (pattern.endswith(" *") and like(pattern[:-2], text))


def host(pattern: str, name: str) -> bool:
    """A host's pattern: ``*.`` in front stands for subdomains at any depth, ``*`` alone for every host, and elsewhere
    for what is between two dots."""
    pattern, name = _plain_host(pattern) or pattern, _plain_host(name) or name
    if pattern == "*":
        return True
    if pattern.startswith("*."):
        rest = pattern[2:].count(".") + 1
        labels = name.split(".")
        return len(labels) > rest and host(pattern[2:], ".".join(labels[-rest:]))
    wanted, labels = pattern.split("."), name.split(".")
    return len(wanted) == len(labels) and all(map(like, wanted, labels))


def host_of(url: str) -> str | None:
    """The host that a URL names, in its plain form; None where that cannot be told with certainty."""
    if any(c.isspace() or c == "\\" or not c.isprintable() for c in url):
        return None  # what programs make of these differs
    scheme, separator, rest = url.partition("://")
    authority = rest if separator else scheme
    for end in "/?#":
        authority = authority.partition(end)[0]
    name = authority.rpartition("@")[2]
    at = name.find(":", name.find("]") + 1)
    name, port = (name[:at], name[at:]) if at >= 0 else (name, "")
    if "*" in name or (port and not port[1:].isdecimal() and not (port == ":" and separator)):
        return None  # ``https:/example.com`` names one as well, to some
    return _plain_host(name)


def _plain_host(name: str) -> str | None:
    """A host as the address line of a browser would show it (URL standard, "host parsing"); None for what is none, or
    what programs read differently."""
    if name.startswith("["):
        return _six(name[1:-1]) if name.endswith("]") else None
    if not name.isascii():
        try:
            if set(name) & set("ßςẞ\u200c\u200d"):
                return None  # two versions of the rules for such names differ in these
            name = name.encode("idna").decode()
        except UnicodeError:
            return None
    name = name.lower().rstrip(".")
    if not name or not _HOST.issuperset(name):
        return None
    last = name.rpartition(".")[2]
    if last.isdigit() or last.startswith("0x"):  # else 2130706433 and 0x7f.1 were other names of 127.0.0.1
        parts = name.split(".")
        short = len(parts) == 4 and all(part.isdigit() and len(part) < 4 for part in parts)
        return name if short and all(part == str(int(part)) and int(part) < 256 for part in parts) else None
    return name


def _six(name: str) -> str | None:
    from ipaddress import IPv6Address  # rare

    try:
        return str(IPv6Address(name))
    except ValueError:
        return None


# -- paths ------------------------------------------------------------------------------------------------------------


def absolute(path: str, where: Where) -> str:
    """The path without ``.``, ``..`` and ``~``."""
    if path == "~" or path.startswith("~/"):
        path = where.home + path[1:]
    parts: list[str] = []
    for part in (path if path.startswith("/") else f"{where.cwd}/{path}").split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


def path(pattern: str, name: str, where: Where, *, loose: bool, expands: bool = False) -> bool:
    """A path's pattern as gitignore has them: ``//`` from the root, ``~/`` from home, ``/`` from where the client was
    started, else from the directory the call runs in; without a slash at any depth below. A pattern of a directory
    matches what is in it. ``loose`` (of what denies and asks): ``src/**`` matches at any depth, and case does not
    count, for some file systems do not know it either. ``expands``: a shell may make other names of this one."""
    if pattern.startswith("//"):
        base, pattern = "/", pattern[2:]
    elif pattern.startswith("~/"):
        base, pattern = where.home, pattern[2:]
    elif pattern.startswith("/"):
        base, pattern = where.root, pattern[1:]
    else:
        base, pattern = where.cwd, pattern.removeprefix("./")
        segments = pattern.rstrip("/").split("/")
        if len(segments) == 1 or (loose and len(segments) == 2 and segments[1] == "**"):
            pattern = f"**/{pattern}"
    target, base = absolute(name, where), absolute(base, where)
    if loose:
        pattern, target, base = pattern.lower(), target.lower(), base.lower()
    base = base.rstrip("/") + "/"
    if expands and set(target) & _EXPANDED:
        base, pattern = "/", base + pattern
    if not target.startswith(base):
        return target + "/" == base and not pattern.strip("*/")
    wanted = [part for part in pattern.split("/") if part not in ("", ".")]
    return _segments(wanted, target[len(base) :].split("/"), _may_be if expands else _segment)


def _segments(wanted: Sequence[str], there: Sequence[str], fits: Callable[[str, str], bool]) -> bool:
    """Does the path, or a directory it lies in, match? ``**`` takes any number of segments."""
    reached = {0}
    for number in range(len(wanted)):
        if wanted[number] == "**":
            reached = set(range(min(reached), len(there) + 1)) if reached else reached
        else:
            reached = {at + 1 for at in reached if at < len(there) and fits(wanted[number], there[at])}
    return bool(reached - {0} if wanted and wanted[-1] == "**" else reached)


def _segment(pattern: str, name: str) -> bool:
    if not set(pattern) & set("?[\\"):
        return like(pattern, name)
    from fnmatch import fnmatchcase  # rare, and it imports re

    return fnmatchcase(name, pattern)


def _may_be(pattern: str, name: str) -> bool:
    """Does the segment match, or may what a shell makes of it?"""
    if not set(name) & _EXPANDED:
        return _segment(pattern, name)
    begins, ends = _ends(name)
    wanted = _ends(pattern) if set(pattern) & _EXPANDED else (pattern, pattern)
    return (begins.startswith(wanted[0]) or wanted[0].startswith(begins)) and (
        ends.endswith(wanted[1]) or wanted[1].endswith(ends)
    )


def _ends(text: str) -> tuple[str, str]:
    """What is certain of a pattern: how its matches begin and end."""
    at = [number for number, char in enumerate(text) if char in _EXPANDED]
    ends = "" if set(text) & set("$`") else text[at[-1] + 1 :]
    return text[: at[0]], ends
