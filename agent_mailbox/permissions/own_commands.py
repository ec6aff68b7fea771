"""Our commands within a shell's text, and the guard against a teammate's that would speak for its lead.

Belongs here: finding our calls, and the rule from there to why a teammate may not run them. Pure. A command tells by
the processes above it which session calls, and refuses every other name by itself. But a teammate runs in the process
of its lead, so only its text can tell the two apart. That stops mistakes, not attacks: one that hides a command passes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.text import clipped, neutral
from . import directory_changes, shell
from .command_forms import MAX_WRAPPED, SHELLS, TAKING_COMMANDS, program_name, without_assignments

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM, PACKAGE, ROSTER = "agent-mailbox", "agent_mailbox", "agent_roster.py"
NAMES = (PROGRAM, PACKAGE, "agent_roster")
"""A text that calls us holds one of these; the shell guard looks for the same before Python starts."""
IDENTITY = ("--from", "--session", "--session-id")
LOOKS, CHANGES = ("list", "show"), ("register", "update", "heartbeat", "freeze", "retire")
"""Verbs of ``roster``: those that only look, and those that change an entry."""
SPEAKING = (
    *("send", "reply", "check", "read", "status", "ack", "release", "dead-letters", "wait", "mute", "unmute"),
    *("task", "handover", "note", "control", "approve", "deny", "pending", "lease", "watch", "statusline", "tail"),
)
"""Verbs that act in somebody's name, beside changes of the roster."""
VERBS = (
    *SPEAKING,
    *("init", "show", "thread", "history", "search", "roster", "steward", "doctor", "backup", "restore", "hook"),
    *("install", "uninstall", "setup", "help", "export", "notify", "teams", "console", "swarm", "engine", "mcp"),
    *("up", "down", "top"),
)
VALUED = (
    *("--to", "--subject", "--body", "--thread", "--ttl-hours", "--priority", "--type", "--id", "--jsonl", "--dir"),
    *("--limit", "--with", "--since", "--timeout", "--name", "--role", "--tags", "--add-tags", "--remove-tags"),
    *("--lead", "--state", "--format", "--max-live", "--project", "--tool", "--input", "--reason", "--host", "--scope"),
    *("--mode", "--allow", "--deny", "--title", "--phase", "--file", "--request", "--request-id"),
    *("--goal", "--step", "--risk", "--tooling", "--context", "--artifact", "--error", "--capability"),
    *("--interval", "--wait", "--port", "--at", "--expires-at", "--when"),
    *("--home", "--agent", "--endpoint", "--bind", "--cert", "--key", "--quic-bind", "--api", "--max-uses", "--hours"),
    *("--log-level", "--ref", "--remove", "--attach", "--task", "--lines", "-n"),
    *("--as", "--status", "--swarm", "--mark", "--also", "--for", "--note", "--origin"),
    *("--space", "--machine", "--credential", "--authority", "--nodes", "--into", "--system", "--url", "--speaks"),
    *("--postgresql", "--after", "--ack-by", "--task-id", "--message", "--summary", "--on", "--replaces"),
)
"""Options that take the next word, whatever it looks like."""

_INTERPRETERS = ("python", "pypy", "perl", "ruby", "node", "deno", "bun", "php")
_STARTING = (
    *("subprocess", "system", "popen", "exec", "spawn", "qx", "runpy"),
    *("import agent_mailbox", "from agent_mailbox"),
)
"""Code that starts a program holds one of these; other code that names us only edits or prints texts."""
_BACKTICKING = ("perl", "ruby", "php")
"""Interpreters to which backticks start a program."""
_QUOTING = (*TAKING_COMMANDS, "env", "alias")
"""Programs that take a whole command in one word."""
_DATA = (
    *("echo", "printf", "cat", "grep", "egrep", "fgrep", "rg", "git", "ls", "sed", "head", "tail", "man", "which"),
    *("type", "test", "[", "[[", "for", "case", "true", ":"),
)
"""Programs to which words are just words."""
_TOKEN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._@+-=/$")


def refusal_for_teammate(text: str, member: str) -> str | None:
    """Return why a teammate may not run this, with what to do instead; None if it may. ``member``: its id."""
    if not any(name in text for name in NAMES):
        return None
    found = find_calls(text)
    judged = [_judge_call(call, member) for call in found.calls]
    judged += [_judge_loosely(part, member) for part in found.opaque]
    return next((why for why in judged if why), None)


def find_calls(text: str) -> OwnCommands:
    """Read a command line; one that cannot be read is opaque as a whole."""
    found = OwnCommands(text)
    try:
        found.read_text(text, 0)
    except (shell.Unreadable, RecursionError):
        found.opaque.append(text)
    return found


# -- finding our calls ------------------------------------------------------------------------------------------------


class OwnCommands:
    """The findings in a text: the arguments of our calls, files on standard input, and opaque parts to judge loosely.
    ``places``: the directories to which each call changes before, in turn. ``named``:
    words about a variable that names a mailbox."""

    def __init__(self, text: str) -> None:
        self.calls: list[list[str]] = []
        self.places: list[list[str]] = []
        self.named: list[str] = []
        self.opaque: list[str] = []
        self.sources: list[str] = []
        self._text = text
        self._moves: list[str] = []
        self._scripts: list[str] = []
        self._runs_scripts = False

    def read_text(self, text: str, depth: int) -> None:
        """Read a shell's text and those within it. Raises ``Unreadable``."""
        for simple in shell.simple_commands(text, depth):
            words = simple.words
            if not words or program_name(words[0]) not in _DATA:
                self.named += filter(directory_changes.names_mailbox, words)
            words = without_assignments(words)
            known, moved = len(self.calls), len(self._moves)
            if words:
                self._moves += directory_changes.directories_for(words)
                self._read_command(words, simple.inputs, depth)
                if program_name(words[0]) != "eval":
                    del self._moves[moved:]
                self._moves += directory_changes.directory_after(words)
            if len(self.calls) > known:
                self.sources += [source for source in simple.sources if source != "/dev/null"]
        if self._runs_scripts and not depth:  # the text may run a script that it writes
            for script in self._scripts:
                self.read_text(script, depth + 1)

    def _read_command(self, words: Sequence[str], inputs: Sequence[str], depth: int) -> None:
        if program_name(words[0]) in _DATA:
            self._scripts += inputs
            return None
        looked = 0
        for number, word in enumerate(words):
            name = program_name(word)
            if name in SHELLS:
                return self._read_shell(words[number + 1 :], inputs, depth)
            if name.rstrip("0123456789.") in _INTERPRETERS:
                return self._read_interpreter(name, words[number + 1 :], inputs)
            if name == "eval":
                return self.read_text(" ".join(words[number + 1 :]), depth + 1)
            named = word == PACKAGE if words[number - 1] == "-m" and number else is_ours(word)
            if not named and name not in _QUOTING:
                continue
            looked, rest = looked + 1, words[number + 1 :]
            if looked > MAX_WRAPPED:
                raise shell.Unreadable("too long")
            for quoted in rest if name in _QUOTING else ():
                if any(character.isspace() for character in quoted):
                    self.read_text(quoted.partition("=")[2] if name == "alias" else quoted, depth + 1)
            if named and (not number or _verb_of(rest) in VERBS or _is_hidden(rest)):
                return self._note_call(word, [*rest, "…"] if program_name(words[0]) == "xargs" else rest)
        if words[0][:1] in ("$", "`") and _verb_of(words[1:]) in VERBS:
            return self._note_call("", words[1:])  # the program's name is in a variable
        self._scripts += inputs
        self._runs_scripts |= words[0].startswith("./") or words[0].endswith(".sh")
        return None

    def _note_call(self, word: str, arguments: Sequence[str]) -> None:
        call = ["roster", *arguments] if program_name(word) == ROSTER else [*arguments]
        self.calls.append(call)
        self.places.append([*self._moves])
        if _is_hidden(call):
            self.opaque.append(self._text)

    def _read_shell(self, words: Sequence[str], inputs: Sequence[str], depth: int) -> None:
        for number, word in enumerate(words):
            if word.startswith("-") and not word.startswith("--") and "c" in word:
                text = next((w for w in words[number + 1 :] if not w.startswith(("-", "+"))), "")
                return self.read_text(text, depth + 1)
            if not word.startswith(("-", "+")) and not (number and words[number - 1] in ("-o", "+o")):
                self._runs_scripts = True
                return self._note_call(word, words[number + 1 :]) if is_ours(word) else None
        for text in inputs:
            self.read_text(text, depth + 1)
        if not inputs:
            self.opaque.append(self._text)  # the commands come from a pipe
        return None

    def _read_interpreter(self, name: str, words: Sequence[str], inputs: Sequence[str]) -> None:
        before, operands = "", 0
        for number, word in enumerate(words):
            rest = words[number + 1 :]
            if word in ("-c", "-e", "-E", "-r", "--eval"):
                inputs, operands = ["\n".join([*rest, *inputs])], 0
                break
            module = word.removeprefix("-m").partition(".")[0] if before == "-m" or word.startswith("-m") else None
            if (module == PACKAGE or (module is None and is_ours(word))) and (not operands or _verb_of(rest) in VERBS):
                return self._note_call(word, rest)
            operands += not word.startswith("-") and before not in ("-X", "-W")
            before = word
        if not operands:
            starting = (*_STARTING, "`") if name.startswith(_BACKTICKING) else _STARTING
            codes = inputs or [self._text]
            self.opaque += (code for code in codes if any(start in code.lower() for start in starting))
        return None


def is_ours(word: str) -> bool:
    """Return whether the word is our program, one of its scripts, or its package."""
    name = program_name(word.removesuffix("/__main__.py"))
    return name in (PROGRAM, f"{PROGRAM}-python", f"{PACKAGE}.py", ROSTER) or (name == PACKAGE and word != PACKAGE)


def _is_hidden(arguments: Sequence[str]) -> bool:
    """Return whether a variable holds the verb or the options."""
    given = _parse_arguments(arguments)[1]
    return any(word.startswith("$") and not word.startswith("$(") for word in given)


def _verb_of(arguments: Sequence[str]) -> str:
    return next(iter(_parse_arguments(arguments)[1]), "")


# -- judging them -----------------------------------------------------------------------------------------------------


def _parse_arguments(arguments: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the options that say who acts, each with its value, and the words that belong to no option."""
    named: list[tuple[str, str]] = []
    words: list[str] = []
    left = iter(arguments)
    for word in left:
        option, equals, value = word.partition("=")
        if option in IDENTITY:
            named.append((option, value if equals else next(left, "")))
        elif word in VALUED:
            next(left, None)
        elif word == "--":
            return named, [*words, *left]
        elif not word.startswith("-"):
            words.append(word)
    return named, words


def _judge_call(arguments: Sequence[str], member: str) -> str | None:
    named, words = _parse_arguments(arguments)
    verb, what, *more = [*words, "", ""]
    changes = verb == "roster" and what in CHANGES
    if (verb in SPEAKING or changes) and member not in [*(value for _, value in named), *more]:
        option = "--session-id" if changes else "--from" if verb in ("send", "reply") else "--session"
        return (
            f"here you are {member}, a teammate. Without that name the command would speak for the session "
            f"that leads you. Add `{option} {member}`."
        )
    if verb == "roster" and what in LOOKS:
        return None
    if changes and any(word.partition("=")[0] == "--lead" for word in arguments):
        return (
            "You cannot set `--lead`: an agent keeps the lead it started with, until that lead or the person changes "
            "it. Ask the person or your lead."
        )
    if changes:
        other = next((word for word in [*(value for _, value in named), *more] if word not in ("", member)), None)
        return None if other is None else _of_another(what, other)
    wrong = next(((option, value) for option, value in named if value != member), None)
    return None if wrong is None else _as_another(*wrong)


def _as_another(option: str, value: str) -> str:
    return (
        f"`{option} {show_word(value)}` would make the command act as somebody else than you. "
        f"Name yourself there, or leave {option} out."
    )


def _of_another(what: str, other: str) -> str:
    return (
        f"`roster {what}` of {show_word(other)} would change another session's entry in the roster. Only that session "
        "may, or the person in a terminal of their own."
    )


def show_word(word: str) -> str:
    return clipped(neutral(word), 80)


def tokens_of(text: str) -> tuple[list[str], list[int]]:
    """Return the words of a text that is not shell, or unreadable, and the places of those that may call us."""
    tokens = "".join(char if char in _TOKEN else " " for char in text).split()
    return tokens, [n for n, token in enumerate(tokens) if is_ours(token) or token == PACKAGE]


def _judge_loosely(text: str, member: str) -> str | None:
    """Judge a text that is not shell, or unreadable: a word of ours beside a word that is refused."""
    tokens, places = tokens_of(text)
    if not places:
        return None
    judged = [_as_another(*named) for named in _parse_arguments(tokens)[0] if named[1] != member]
    for place, following in zip(places, [*places[1:], len(tokens)], strict=True):
        arguments = tokens[place + 1 : following]
        judged.append(
            _judge_call(["roster", *arguments] if program_name(tokens[place]) == ROSTER else arguments, member) or ""
        )
    why = next(filter(None, judged), None)
    return why and f"{why} (This command cannot be read with certainty; write it plainly, one call by itself.)"
