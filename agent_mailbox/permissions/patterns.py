"""Patterns of the client's permission rules: of commands, of paths, of hosts, of tools.

Belongs here: whether a text matches, by the client's documentation ("Configure permissions", 2.1). Pure: the caller
says where files are. ``rules`` says what a rule means for a call.
"""

from __future__ import annotations

import re
from ipaddress import IPv6Address
from typing import TYPE_CHECKING

from ..core.records import Record
from ..core.text import fold_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


_HOST = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_.*")
"""Characters of a host's name, and the star of its patterns."""
ANY = "\1"
"""In a name: a part that only the running shell knows, and that may be several segments."""
_EXPANDED = frozenset(f"*?[]{{}}$`{ANY}")
"""Characters by which a shell makes other words of a word."""
_TOKEN = re.compile(r"\\.|\[[!^]?\]?(?:\[[:.=].*?[:.=]\]|\\.|[^]\\])*\]|.", re.DOTALL)
_RANGE = re.compile(r"(\\.|.)(?:-(\\.|.))?", re.DOTALL)
"""A piece of a pattern of names, and a range in a class."""
_UNREAD = ("[:", "[.", "[=")
"""Signs in a class that depend on its reader's language. A denial takes it as any character, a rule to allow as
none."""
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_MOST_SPELLINGS = 1000
"""Spellings of a rule with braces that are read one by one; where there may be more, braces mean any name."""


class Where(Record):
    """The place of a call, for patterns of paths: its working directory, the one the client started in, the home.
    ``resolve`` follows symbolic links."""

    cwd: str = "/"
    root: str = "/"
    home: str = "/"
    resolve: Callable[[str], str] = str


def is_like(pattern: str, text: str) -> bool:
    """Return whether the text matches: ``*`` matches any characters, none and spaces included; others match
    themselves."""
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


def is_command_like(pattern: str, text: str) -> bool:
    """Return whether a command matches: ``:*`` or `` *`` at the end also match the end of a word. Runs of spaces count
    as one."""
    pattern = pattern[:-2] + " *" if pattern.endswith(":*") else pattern
    pattern, text = " ".join(pattern.split()), " ".join(text.split())
    return is_like(pattern, text) or (pattern.endswith(" *") and is_like(pattern[:-2], text))


def is_host_like(pattern: str, name: str) -> bool:
    """Return whether a host matches. A leading ``*.`` matches subdomains at any depth, ``*`` alone every host, any
    other star within one label."""
    pattern, name = _plain_host(pattern) or pattern, _plain_host(name) or name
    if pattern == "*":
        return True
    if pattern.startswith("*."):
        rest = pattern[2:].count(".") + 1
        labels = name.split(".")
        return len(labels) > rest and is_host_like(pattern[2:], ".".join(labels[-rest:]))
    wanted, labels = pattern.split("."), name.split(".")
    return len(wanted) == len(labels) and all(map(is_like, wanted, labels))


def host_of(url: str) -> str | None:
    """Return the host that a URL names, in its plain form; None if that is uncertain."""
    if any(c.isspace() or c == "\\" or not c.isprintable() for c in url):
        return None  # programs read these differently
    scheme, separator, rest = url.partition("://")
    authority = rest if separator else scheme
    for end in "/?#":
        authority = authority.partition(end)[0]
    name = authority.rpartition("@")[2]
    at = name.find(":", name.find("]") + 1)
    name, port = (name[:at], name[at:]) if at >= 0 else (name, "")
    if "*" in name or (port and not port[1:].isdecimal() and not (port == ":" and separator)):
        return None  # some programs also read a host from ``https:/example.com``
    return _plain_host(name)


def _plain_host(name: str) -> str | None:
    """Return a host as a browser's address line shows it (URL standard, "host parsing"); None if it is malformed, or
    programs read it differently."""
    if name.startswith("["):
        return _parse_ipv6(name[1:-1]) if name.endswith("]") else None
    if not name.isascii():
        try:
            if set(name) & set("ßςẞ\u200c\u200d"):
                return None  # two versions of the IDNA rules differ in these
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


def _parse_ipv6(name: str) -> str | None:
    try:
        return str(IPv6Address(name))
    except ValueError:
        return None


# -- paths ------------------------------------------------------------------------------------------------------------


def absolute_path(path: str, where: Where) -> str:
    """Return the path without ``.``, ``..`` and ``~``; what lies above an unknown part is unknown, too."""
    if path == "~" or path.startswith("~/"):
        path = where.home + path[1:]
    parts: list[str] = []
    for part in (path if path.startswith("/") else f"{where.cwd}/{path}").split("/"):
        if part == "..":
            parts[-1:] = [ANY] if parts and ANY in parts[-1] else []
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


def is_path_like(pattern: str, name: str, where: Where, *, loose: bool, expands: bool = False) -> bool:
    """Return whether a path matches, as with gitignore.

    A pattern begins at the root (``//``), the home (``~/``), where the client started (``/``), else in the working
    directory. Without a slash it matches at any depth; a directory's matches all within. A relative pattern may mean
    where the client started, too. So a rule that allows must match from both, and one that denies from one of them.

    ``loose``, for rules that deny and ask: ``src/**`` matches at any depth. Case and composed letters do not count, as
    on some file systems, and braces and ``..`` mean what they do to a shell. ``expands``: a shell may turn the name
    into others.
    """
    if loose and (found := _BRACES.search(pattern)):
        braces, commas = pattern.count("{"), pattern.count(",")
        patterns: Iterable[str] = [_BRACES.sub("*", pattern)]
        if (commas / braces + 1) ** braces <= _MOST_SPELLINGS:
            patterns = (pattern[: found.start()] + one + pattern[found.end() :] for one in found[1].split(","))
        return any(is_path_like(one, name, where, loose=True, expands=expands) for one in patterns)
    target = absolute_path(name, where)
    if pattern.startswith("//"):
        bases, pattern = ["/"], pattern[2:]
    elif pattern == "~" or pattern.startswith("~/"):
        bases, pattern = [where.home], pattern[2:]
    elif pattern.startswith("/"):
        bases, pattern = [where.root], pattern[1:]
    else:
        bases, pattern = [where.cwd, where.root], pattern.removeprefix("./")
        segments = pattern.rstrip("/").split("/")
        if (len(segments) == 1 and segments != [".."]) or (loose and len(segments) == 2 and segments[1] == "**"):
            pattern = f"**/{pattern}"
    begins = dict.fromkeys(absolute_path(base, where) for base in bases)
    fold, decides = (fold_name, any) if loose else (str, all)
    return decides(_is_below(fold(base), fold(pattern), fold(target), loose=loose, expands=expands) for base in begins)


def _is_below(base: str, pattern: str, target: str, *, loose: bool, expands: bool) -> bool:
    """Return whether a path matches a pattern that begins in a directory."""
    wanted: list[str] = []
    for part in pattern.split("/"):
        if loose and part == "..":
            base = base if wanted else base.rpartition("/")[0]
            wanted = wanted if wanted[-1:] == ["**"] else wanted[:-1]
        elif part not in ("", "."):
            wanted.append(part)
    base = base.rstrip("/") + "/"
    if expands and set(target) & _EXPANDED:
        base, wanted = "/", [*filter(None, base.split("/")), *wanted]
    if not target.startswith(base):
        return target + "/" == base and not "".join(wanted).strip("*")
    fits = _may_be if expands else _is_loosely_like if loose else _match_segment
    spellings = _spellings_of(target[len(base) :], len(wanted)) if expands else [target[len(base) :]]
    return any(_match_segments(wanted, there.split("/"), fits) for there in spellings)


def _spellings_of(name: str, most: int) -> Sequence[str]:
    """Return the forms of a name with none, one, and more unknown segments, for a pattern of so many segments.

    The known end must meet the pattern's end, unless one unknown segment suffices. A rule for a file is most likely no
    rule for a directory.
    """
    begins, unknown, rest = name.partition(ANY)
    if not unknown:
        return [name]
    ends = rest.rpartition(ANY)[2]
    most -= begins.count("/") + bool(ends)
    if not ends.strip("*/") and not begins:
        most = 1
    spellings = [f"{begins}{'/'.join(['*'] * number)}{ends}" for number in range(1, max(most, 1) + 1)]
    return [*spellings, begins + ends.removeprefix("/")] if begins[-1:] in ("", "/") else spellings


def _match_segments(wanted: Sequence[str], there: Sequence[str], fits: Callable[[str, str], bool]) -> bool:
    """Return whether the path, or a directory it lies in, matches; ``**`` takes any number of segments."""
    reached = {0}
    for number in range(len(wanted)):
        if wanted[number] == "**":
            reached = set(range(min(reached), len(there) + 1)) if reached else reached
        else:
            reached = {at + 1 for at in reached if at < len(there) and fits(wanted[number], there[at])}
    return bool(reached - {0} if wanted and wanted[-1] == "**" else reached)


def _match_segment(pattern: str, name: str, *, loose: bool = False) -> bool:
    """Return whether a name matches, with gitignore's classes (``[a-z]``, ``[!.]``, ``[^.]``) and escapes (``\\[``)."""
    if not set(pattern) & set("?[\\"):
        return is_like(pattern, name)
    reached = {0}
    for token in _TOKEN.findall(pattern):
        if token == "*":
            reached = set(range(min(reached), len(name) + 1)) if reached else reached
        else:
            reached = {at + 1 for at in reached if at < len(name) and _means(token, name[at], loose=loose)}
    return len(name) in reached


def _means(token: str, char: str, *, loose: bool) -> bool:
    """Return whether a piece of a pattern matches a character."""
    if token[0] != "[" or len(token) == 1:
        return token == "?" or token[-1] == char
    body = token[1:-1]
    if any(sign in body for sign in _UNREAD):
        return loose
    is_negated = body[:1] in ("!", "^")
    ranges = _RANGE.findall(body[is_negated:])
    return is_negated != any(first[-1] <= char <= (last or first)[-1] for first, last in ranges)


def _is_loosely_like(pattern: str, name: str) -> bool:
    """Return whether a name matches, or may for somebody who wrote brackets that mean themselves (``app/[id]``)."""
    return is_like(pattern, name) or _match_segment(pattern, name, loose=True)


def _may_be(pattern: str, name: str) -> bool:
    """Return whether the segment matches, or a shell's expansion of it may."""
    if not set(name) & _EXPANDED:
        return _is_loosely_like(pattern, name)
    begins, ends = _fixed_ends(name)
    wanted = _fixed_ends(pattern) if set(pattern) & {*_EXPANDED, "\\"} else (pattern, pattern)
    return (begins.startswith(wanted[0]) or wanted[0].startswith(begins)) and (
        ends.endswith(wanted[1]) or wanted[1].endswith(ends)
    )


def _fixed_ends(text: str) -> tuple[str, str]:
    """Return how all matches of a pattern begin and end."""
    at = [number for number, char in enumerate(text) if char in _EXPANDED or char == "\\"]
    ends = "" if set(text) & set("$`") else text[at[-1] + 1 :]
    return text[: at[0]], ends
