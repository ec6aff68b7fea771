"""Permission rules in the client's own syntax: which calls of tools does one match?

Belongs here: ``Tool``, ``Tool(specifier)``, and what the client's documentation says they match. Pure. A rule that
allows (``allowing_rule``) must match for certain: every command of a compound, both a link and its target. A rule that
denies or asks (``may_catch``) matches wherever it may: in a compound, behind wrappers, within ``bash -c``, in
unreadable text. So both fail closed; the client itself matches a little more narrowly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.records import Record
from . import command_forms, denied_words, patterns, shell
from .named_files import NamedFiles

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .patterns import Where

ALIASES = {"Task": "Agent", "MultiEdit": "Edit"}
"""Earlier names of tools."""
READING = {"Read": "file_path", "Grep": "path", "Glob": "path", "LS": "path", "NotebookRead": "notebook_path"}
WRITING = {"Edit": "file_path", "Write": "file_path", "NotebookEdit": "notebook_path"}
"""Tools by the key of the path they read or write: rules for paths are written for ``Read`` and ``Edit``."""
SHELLS = ("Bash", "PowerShell", "Monitor")
"""Tools that run a command; ``Monitor`` does it beside the conversation, under the rules for ``Bash``."""
_UNLIKE = ("<#", "@'", '@"', "--%", "`")
"""Comments, texts and escapes of PowerShell that no other shell reads as it does."""
_AS_BASH = str.maketrans("{}\\\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u2013\u2014\u2015", ";;/''''\"\"\"---")
"""Its blocks, separators, quotes and dashes, as other shells spell them."""
_UNREADABLE = "'"
_PRIMARY = ("command", "file_path", "path", "notebook_path", "url")
"""Keys that ``Tool(key:value)`` does not match: they have rules of their own."""


class Rule(Record):
    """A rule: its text, the tool (a pattern), the specifier (None: every call). One without an end or a tool is not
    ``sound``."""

    text: str
    tool: str
    spec: str | None = None
    sound: bool = True


def parse_rule(text: str) -> Rule:
    """Parse a rule's text."""
    text = text.strip()
    tool, opening, rest = text.partition("(")
    if not opening:
        return Rule(text, ALIASES.get(tool, tool), None, bool(tool) and ")" not in tool and " " not in tool)
    spec = rest[:-1]
    sound = rest.endswith(")") and bool(tool) and " " not in tool
    if sound and spec.strip() in ("", "*"):
        return Rule(text, ALIASES.get(tool, tool))
    spec = spec.translate(_AS_BASH) if tool == "PowerShell" else spec
    return Rule(text, ALIASES.get(tool, tool), spec if sound else None, sound)


def _as_bash(tool: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the input with a command of PowerShell as other shells spell it; an unreadable one if they cannot."""
    text = given.get("command")
    if tool != "PowerShell" or not isinstance(text, str):
        return given
    return {**given, "command": _UNREADABLE if any(sign in text for sign in _UNLIKE) else text.translate(_AS_BASH)}


# -- what denies and asks ---------------------------------------------------------------------------------------------


def may_catch(rule: Rule, tool: str, given: Mapping[str, Any], where: Where) -> bool:
    """Return whether a rule that denies or asks may mean this call. One that is not sound means every call of its
    tool."""
    tool, given = ALIASES.get(tool, tool), _as_bash(tool, given)
    files = _files_of(tool, given)
    if tool == "Monitor" and rule.tool == "Bash":
        rule = rule.replace(tool=tool)
    if rule.spec is None:
        return _names_tool(rule.tool, tool)
    if rule.tool in ("Read", "Edit", "Write"):
        if tool in SHELLS:
            return _may_touch(rule, given, where)
        # a file that must not be read must not be overwritten
        meant = tool in WRITING or (rule.tool == "Read" and tool in READING)
        return meant and (not files or any(_matches_path(rule.spec, name, where) for name in files))
    if not _names_tool(rule.tool, tool):
        return False
    if _matches_input(rule.spec, given):
        return True
    if tool in SHELLS:
        return doubt_about(rule.spec, given) is not None
    if tool == "WebFetch" and rule.spec.startswith("domain:"):
        name = _host_of(given)
        return name is None or patterns.is_host_like(rule.spec[len("domain:") :].strip(), name)
    if tool == "Agent" and ":" not in rule.spec:
        kind = given.get("subagent_type")
        return not isinstance(kind, str) or patterns.is_like(rule.spec, kind)
    if tool == "Skill":
        return any(patterns.is_command_like(rule.spec, value) for value in given.values() if isinstance(value, str))
    return ":" not in rule.spec  # an unknown specifier; ``key:value`` was checked above


def _names_tool(pattern: str, tool: str) -> bool:
    if "*" in pattern:
        return patterns.is_like(pattern, tool)
    return pattern == tool or (pattern.startswith("mcp__") and tool.startswith(f"{pattern}__"))


def _matches_input(spec: str, given: Mapping[str, Any]) -> bool:
    """Return whether ``key:value`` matches; any key of a tool's input but the primary ones."""
    key, colon, value = (part.strip() for part in spec.partition(":"))
    there = given.get(key)
    if not colon or key in _PRIMARY or isinstance(there, dict | list | None):
        return False
    return patterns.is_like(value, {True: "true", False: "false"}.get(there, str(there)))


def doubt_about(spec: str, given: Mapping[str, Any]) -> str | None:
    """Return None if a command is none that the rule denies, nothing if it is, and why it may be one."""
    text = given.get("command")
    if not isinstance(text, str) or patterns.is_command_like(spec, text):
        return ""
    said = None
    try:
        for words in command_forms.forms_of_commands(text):
            based = [command_forms.program_name(words[0]), *words[1:]]
            if any(patterns.is_command_like(spec, " ".join(spelled)) for spelled in (words, based)):
                return ""
            unknown = denied_words.match_denied(spec, words)
            if unknown == "":
                return ""
            said = said or (unknown and f"{unknown} is known only when it runs: write it out")
    except (shell.Unreadable, RecursionError) as error:
        return f"{error or 'too deep'}: write it plainly"
    return said


def _may_touch(rule: Rule, given: Mapping[str, Any], where: Where) -> bool:
    """Return whether a shell command may name a file the rule is about, also for ``Edit``."""
    text = given.get("command")
    if not isinstance(text, str):
        return False
    try:
        found = NamedFiles(text, where)
    except (shell.Unreadable, RecursionError):
        return True
    spec, places = rule.spec or "**", found.places.values()
    return any(_matches_path(spec, name, place, where, expands=True) for name in found.names for place in places)


def _matches_path(spec: str, name: str, place: Where, call: Where | None = None, *, expands: bool = False) -> bool:
    """Return whether a name means a file of a rule. ``place``: where it is named; the rule's own path begins there, or
    where the ``call`` is."""
    full = patterns.absolute_path(name, place)
    spelled = {full, place.resolve(full)}
    begins = (place, call or place) if patterns.ANY not in place.cwd else (call or place,)
    return any(patterns.is_path_like(spec, o, w, loose=True, expands=expands) for o in spelled for w in begins)


def may_stray(tool: str, given: Mapping[str, Any]) -> bool:
    """Return whether a search for names may leave its directory."""
    pattern = given.get("pattern") if tool == "Glob" else None
    return isinstance(pattern, str) and (pattern.startswith(("/", "~")) or ".." in pattern)


def _files_of(tool: str, given: Mapping[str, Any]) -> list[str]:
    key = READING.get(tool) or WRITING.get(tool)
    value = given.get(key) if key else None
    return [value] if isinstance(value, str) and value else []


def _host_of(given: Mapping[str, Any]) -> str | None:
    url = given.get("url")
    return patterns.host_of(url) if isinstance(url, str) else None


# -- what allows ------------------------------------------------------------------------------------------------------


def allowing_rule(rules: Sequence[Rule], tool: str, given: Mapping[str, Any], where: Where) -> Rule | None:
    """Return a rule that allows the call for certain; for a compound, the one of its first command."""
    tool, given = ALIASES.get(tool, tool), _as_bash(tool, given)
    mine = [rule for rule in rules if rule.sound and _may_allow(rule)]
    whole = next((rule for rule in mine if rule.spec is None and _names_tool(rule.tool, tool)), None)
    if whole is not None:
        return whole
    if tool in SHELLS:
        return _all_allowed([rule for rule in mine if rule.tool == tool and rule.spec], given)
    return next((rule for rule in mine if rule.spec is not None and _is_allowing(rule, tool, given, where)), None)


def _may_allow(rule: Rule) -> bool:
    """Return whether the rule may allow: a star must come behind a server's whole name."""
    before, star, _ = rule.tool.partition("*")
    return not star or (before.startswith("mcp__") and before[len("mcp__") :].find("__") > 0)


def _is_allowing(rule: Rule, tool: str, given: Mapping[str, Any], where: Where) -> bool:
    spec = rule.spec or ""
    if (rule.tool == "Read" and tool in READING) or (rule.tool == "Edit" and tool in WRITING):
        if may_stray(tool, given):
            return False
        names = [patterns.absolute_path(name, where) for name in _files_of(tool, given)]
        spelled = [*names, *map(where.resolve, names)]
        return bool(spelled) and all(patterns.is_path_like(spec, name, where, loose=False) for name in spelled)
    if rule.tool != tool:
        return False
    if tool == "WebFetch" and spec.startswith("domain:"):
        name = _host_of(given)
        return name is not None and patterns.is_host_like(spec[len("domain:") :].strip(), name)
    if tool == "Agent":
        return given.get("subagent_type") == spec
    return False


def _all_allowed(rules: Sequence[Rule], given: Mapping[str, Any]) -> Rule | None:
    text = given.get("command")
    if not isinstance(text, str) or given.get("dangerouslyDisableSandbox"):
        return None
    exact = next((rule for rule in rules if rule.spec == text.strip() and "*" not in text), None)
    if exact is not None:
        return exact
    try:
        found = shell.simple_commands(text)
    except (shell.Unreadable, RecursionError):
        return None
    by = [_allowed_by(rules, simple) for simple in found]
    return by[0] if by and all(by) else None


def _allowed_by(rules: Sequence[Rule], simple: shell.ShellCommand) -> Rule | None:
    """Return the rule for a command that hides nothing: no file written, no variable set or computed with, no input
    text."""
    if any(target != "/dev/null" for target in simple.targets) or simple.inputs or not simple.words:
        return None
    if simple.computes:
        return None
    words = simple.words
    if words[0].split() != words[:1]:
        return None  # the name itself holds a space
    while len(words) > 1 and words[0] in ("time", "nohup", "command", "builtin", "noglob") and words[1][0:1] != "-":
        words = words[1:]
    text = " ".join(words)
    return next((rule for rule in rules if rule.spec and patterns.is_command_like(rule.spec, text)), None)
