"""The commands that a shell's text may run, each as its words.

Belongs here: those commands, as many as may run, for rules that deny and ask (``rules``). Pure.

An example: ``sudo sh -c 'rm x'`` gives the words of ``sudo sh -c rm x``, ``sh -c rm x``, ``rm x``.
"""

from __future__ import annotations

import re
from itertools import dropwhile
from typing import TYPE_CHECKING

from ..core.records import Record
from . import runners, shell
from .denied_words import plain_program
from .quoting import MANY, ONE, form_of, make_word

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

WRAPPERS = (
    *("timeout", "time", "nice", "nohup", "stdbuf", "command", "builtin", "noglob"),  # so does the client in each rule
    *("env", "sudo", "doas", "exec", "xargs", "setsid", "ionice", "chrt", "flock", "watch", "unshare", "chroot"),
    *("busybox", "strace", "unbuffer", "eval", "find", "parallel", "taskset", "script", "nsenter", "setarch"),
    *("pkexec", "gosu", "su-exec", "runuser", "setpriv", "prlimit", "numactl", "ltrace", "valgrind", "perf"),
    *("hyperfine", "concurrently", "caffeinate", "arch", "xvfb-run", "watchexec", "nodemon", "entr", "tmux", "screen"),
    *("systemd-run", "systemd-inhibit", "firejail", "bwrap", "proot", "fakeroot", "torsocks", "proxychains", "rlwrap"),
    *("nocorrect", "cross-env", "env-cmd", "winpty", "wsl", "sshpass", "dumb-init", "tini", "faketime", "cpulimit"),
    *("sem", "fd", "fdfind", "cmd", "coproc", "chronic", "retry", "ts", "tsocks", "proxychains4", "trickle", "ifne"),
    *("ssh-agent", "dbus-run-session", "dbus-launch", "gdb", "cgexec", "linux32", "linux64", "logsave", "daemonize"),
    *("xterm", "gnome-terminal", "konsole", "kitty", "alacritty", "zellij", "run0", "srun", "flatpak-spawn"),
    *("host-spawn", "lima", "colima", "mosh", "autossh", "rsh", "tsh", "bear", "ccache", "scan-build", "toybox"),
    *("envdir", "chpst", "setuidgid", "s6-setuidgid", "envchain", "saml2aws", "teller", "sops", "rvm", "nx"),
)
"""Programs that may run their arguments: rules that deny and ask look behind all of these."""
SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "rbash", "fish", "csh", "tcsh", "pwsh", "powershell")
TAKING_COMMANDS = (
    *("ssh", "su", "watch", "trap", "script", "tmux", "screen", "parallel", "entr", "mapfile", "readarray"),
)
"""Programs that hand a word to a shell."""
_SOURCING = ("source", ".")
_INTERPRETERS = (*SHELLS, *TAKING_COMMANDS, "eval")
"""Programs that take a command in one word."""
_READING = (*_INTERPRETERS, *_SOURCING, "sudo", "doas", "at", "batch", "wsl")
"""Programs that may run a here-document."""
_TEXT = frozenset(f"{shell.ENDS}'\"\\")
"""Characters by which a word may be a text of several words."""
_EXPORTING = ("export", "declare", "typeset", "readonly", "local", "setenv")
_RUNNING = re.compile("--.*(command|cmd|exec|run|pager|editor|shell|rsh|program|action|filter|hook)")
"""Options whose value may be a command."""
_FILLING = ("xargs", "parallel", "find", "fd", "fdfind", "sem")
"""Programs that put words into the command that they run."""
_CODE = ("python", "pypy", "perl", "ruby", "node", "deno", "bun", "php", "lua", "awk", "gawk", "mawk", "osascript")
_STARTING = ("subprocess", "system", "popen", "exec", "spawn", "qx", "run(", "shell", "`", "Command")
"""Interpreters, and what their code holds if it starts a program."""
_SED_RUNS, _SED_FLAGS = re.compile(r"(?:^|[\s;{}!,$/0-9])e\s+(.+)"), re.compile(r"([^\w\s])(\w*)\s*$")
"""The command that a line of ``sed`` runs (``1e x``), and the flags, of which ``e`` does that (``s/y/x/e``)."""
_CODE_BREAKS = str.maketrans(dict.fromkeys("'\"`,;()[]{}<>|&\\\n", " "))
MAX_DEPTH = 4
MAX_WRAPPED, MAX_CODE = 100, 1000
"""Limits: texts within each other, words behind a wrapper, words of code. Honest commands stay below."""
_UNKNOWN = frozenset((ONE, MANY, *"$`*?[{"))
_HANDED = make_word("…", MANY)
_HANDED.is_handed = True
"""The words that a program such as ``xargs`` adds at the end."""


def _is_computing(simple: shell.ShellCommand) -> bool:
    return simple.computes or simple.words[:1] in (["(("], ["[["], ["let"])


def _holds_commands(simple: shell.ShellCommand) -> bool:
    """Return whether a word holds a substitution as text, which runs only if something computes with it."""
    return any("$(" in form_of(word) or "`" in form_of(word) for word in simple.words)


def forms_of_commands(text: str, depth: int = 0) -> Iterator[Sequence[str]]:
    """Yield the words of every command the text may run. Raises ``Unreadable`` if that is uncertain."""
    if depth > MAX_DEPTH:
        raise shell.Unreadable("too deep")
    aliases: dict[str, str] = {}
    meant = 0
    found = shell.simple_commands(text)
    if any(map(_is_computing, found)) and any(map(_holds_commands, found)):
        raise shell.Unreadable("an expansion may run what a quoted text holds")
    for simple in found:
        words = without_assignments(simple.words)
        if not simple.inputs and is_piped(simple):
            raise shell.Unreadable("what runs is known only at run time")
        yield from _spellings_of(words, depth)
        for value in _kept_commands(simple.words, words):
            yield from _loose_commands(value, depth)
        if words[:1] == ["alias"]:
            aliases.update((word.partition("=")[0], word.partition("=")[2]) for word in words[1:])
        elif words and words[0] in aliases:
            commands = shell.simple_commands(aliases[words[0]])
            meant += len(aliases[words[0]]) + len(commands) * len(words)
            if meant > shell.MAX_TEXT:  # each call of a long alias is all of it again
                raise shell.Unreadable("too long")
            for one in commands:
                yield from _spellings_of([*without_assignments(one.words), *words[1:]], depth)
        if any(program_name(word) in _READING for word in simple.words):
            for body in simple.inputs:
                yield from forms_of_commands(body, depth + 1)
        elif any(_name_without_version(word) in _CODE or word == "uv" for word in words):
            for body in simple.inputs:
                yield from _in_code(body)


def _kept_commands(written: Sequence[str], words: Sequence[str]) -> Iterator[str]:
    """Yield the values that a program may run later: of a variable (``GIT_PAGER='x y'``), of ``--to-command='x y'``.

    ``words``: those of ``written`` without leading assignments."""
    for number, word in enumerate(written):
        option, _, value = word.partition("=")
        is_leading = number < len(written) - len(words) or (words and words[0] in _EXPORTING)
        if (is_leading and shell.is_setting(word)) or _RUNNING.match(option):
            yield value


def _spellings_of(words: Sequence[str], depth: int) -> Iterator[Sequence[str]]:
    """Yield the words, and those of every command that they may run."""
    filled, starts = _possible_starts(words)
    for place, sure in starts.items():
        yield from _spellings_of_command(filled[place:], depth, sure=sure)
        if place:
            yield from _loose_commands(filled[place], depth)
        name = _name_without_version(filled[place])
        if name in _CODE:
            for word in filled[place + 1 :]:
                yield from _in_code(word)
        elif name in ("sed", "gsed"):
            for line in "\n".join(filled[place + 1 :]).splitlines():
                yield from _run_by_sed(line, depth)
        elif name == "git":
            yield from _git_aliases(filled[place:], depth)


def _possible_starts(words: Sequence[str]) -> tuple[Sequence[str], dict[int, bool]]:
    """Return the words, filled, and where commands may begin in them; whether one surely does."""
    starts = dict.fromkeys(range(bool(words)), True)
    todo, wraps, end = [*starts], False, len(words)
    for place in todo:
        name = _name_without_version(words[place])
        found = dict.fromkeys((place + n for n in runners.command_places(name, words[place:])), False)
        if name in WRAPPERS and not wraps:  # where its own options end, only the wrapper knows
            wraps, found = True, _places_behind(words, place)
        if name in _FILLING and end == len(words):
            part = f"./{ONE}" if name == "find" and _is_below(words[place + 1 :]) else ONE
            words = [*words[: place + 1], *_fill_words(words[place + 1 :], part), _HANDED]
        new = [number for number in found if number < end and number not in starts]
        starts.update((number, found[number]) for number in new)
        todo += new
        if len(todo) > MAX_WRAPPED:
            raise shell.Unreadable("too long")
    return words, starts


def _places_behind(words: Sequence[str], place: int) -> dict[int, bool]:
    """Return each place behind a wrapper's; ``True`` for all up to the first that is neither option nor value."""
    found, sure = {}, True
    for number, word in enumerate(words[place + 1 :], place + 1):
        found[number] = sure
        sure = sure and (word[:1] in ("-", "") or word[:1].isdigit() or shell.is_setting(word))
    return found


def _spellings_of_command(words: Sequence[str], depth: int, *, sure: bool) -> Iterator[Sequence[str]]:
    """Yield the spellings of the command these words make. ``sure``: a command begins with the first word."""
    if sure and set(form_of(words[0])) & _UNKNOWN and words[0] not in ("[", "[[", "*"):
        raise shell.Unreadable("what runs is known only at run time")
    yield words
    if program_name(words[0]) in _INTERPRETERS:
        for word in (*words[1:], " ".join(words[1:])):
            if not word.startswith("-"):
                yield from forms_of_commands(word, depth + 1)


def _loose_commands(word: str, depth: int) -> Iterator[Sequence[str]]:
    """Yield the commands of a word that a program may hand to a shell (``-c 'x y'``, ``-S'x y'``, ``--run='x y'``)."""
    text = word.partition("=")[2] if word.startswith("--") else word.removeprefix("-S")
    if any(char.isspace() for char in text):
        try:
            yield from forms_of_commands(text, depth + 1)
        except shell.Unreadable:
            yield text.split()


class HandedText(Record):
    """A text that a shell may run. ``sure``: it is no data."""

    text: str
    sure: bool = False


def handed_texts(simple: shell.ShellCommand, *, piped: bool) -> Iterator[HandedText]:
    """Yield every text that a command may hand to a shell. ``piped``: a shell beside it reads what others write."""
    words = without_assignments(simple.words)
    name = _name_without_version(words[0]) if words else ""
    runs = name in WRAPPERS or any(True for _ in runners.command_places(name, words))
    names = [program_name(word) for word in (words if runs else words[:1])]
    place = next((at for at, one in enumerate(names) if one in _READING), len(names))
    takes, rest = names[place : place + 1], words[place + 1 :]
    if takes == ["eval"]:
        yield HandedText(" ".join(rest), sure=True)
    elif takes and takes[0] in SHELLS:
        behind = next((at for at, word in enumerate(rest, 1) if _takes_text(word)), len(rest))
        yield HandedText(next((word for word in rest[behind:] if word[:1] not in ("-", "+")), ""), sure=True)
    elif takes:
        yield HandedText(" ".join(rest))
    for word in simple.words:
        if not _TEXT.isdisjoint(word):
            yield HandedText(word)
            yield HandedText(_behind_option(word))
    for body in simple.inputs if takes or piped else ():
        yield HandedText(body, sure=is_piped(simple))


def _behind_option(word: str) -> str:
    """Return what is joined to an option or a variable: ``-Sx``, ``--run=x``, ``alias.y=!x``, ``PAGER=x``."""
    return word[2:] if word[:2] == "-S" else word.partition("=")[2].removeprefix("!")


def _takes_text(word: str) -> bool:
    """Return whether an option of a shell says that a text follows: ``-c``, ``-lc``, ``--command``."""
    return word == "--command" or (word[:1] == "-" and word[1:].isalpha() and "c" in word.lower())


def _in_code(code: str) -> Iterator[Sequence[str]]:
    """Yield the word sequences of a program's code that may be a command which it starts."""
    if any(start in code for start in _STARTING):
        tokens = code.translate(_CODE_BREAKS).split()
        if len(tokens) > MAX_CODE:
            raise shell.Unreadable("too long")
        yield from (tokens[number:] for number in range(len(tokens)))


def _run_by_sed(line: str, depth: int) -> Iterator[Sequence[str]]:
    if found := _SED_RUNS.search(line):
        yield from _loose_commands(found[1], depth)
    if (flags := _SED_FLAGS.search(line)) and "e" in flags[2] and line.count(flags[1]) > 2:
        yield from _loose_commands(line.rsplit(flags[1], 2)[1], depth)


def _git_aliases(words: Sequence[str], depth: int) -> Iterator[Sequence[str]]:
    """Yield what an alias of git that these words define means."""
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word.startswith("alias."):
            meant = word.partition("=")[2] or following
            if meant.startswith("!"):
                yield from forms_of_commands(meant[1:], depth + 1)
            elif meant:
                yield [words[0], *meant.split()]


def _is_below(words: Sequence[str]) -> bool:
    """Return whether all that ``find`` names lies in a directory: no name of a file is an option or a verb then."""
    return words[:1] != [] and words[0][:1] in (".", "/", "~") and not set(words[0]) & {ONE, MANY}


def _fill_words(words: Sequence[str], part: str) -> list[str]:
    """Return the words, with those that the program fills as unknown ones."""
    marks = {"{}"}
    for word, following in zip(words, [*words[1:], ""], strict=False):  # a program alone has no words
        if word in ("-I", "-J"):
            marks.add(following)
        elif word[:2] == "-I":
            marks.add(word[2:])
        elif word.startswith("--replace="):
            marks.add(word.partition("=")[2])
    if len(marks) > MAX_WRAPPED:
        raise shell.Unreadable("too long")
    end = next((number for number, word in enumerate(words) if word[:3] == ":::"), len(words))
    filled = [make_word(word, part) if any(mark in word for mark in marks) else word for word in words[:end]]
    return [*filled, *(make_word(word, MANY) for word in words[end:])]


def _name_without_version(word: str) -> str:
    """Return a program's name without its version."""
    name = plain_program(word)
    return name if name in WRAPPERS else name.rstrip("0123456789.") or name


def is_piped(simple: shell.ShellCommand) -> bool:
    """Return whether a shell in these words reads its commands from a pipe or a device."""
    words = without_assignments(simple.words)
    wraps = (
        bool(words) and program_name(words[0]) in WRAPPERS and program_name(words[0]) != "find" and words[1:2] != ["-v"]
    )
    for number, word in enumerate(words if wraps else words[:1]):
        if program_name(word) in SHELLS or (not number and word in _SOURCING):
            rest = words[number + 1 :]
            operands = [one for one in rest if one[:1] not in ("-", "+")]
            return operands[0].startswith("/dev/") if operands else not {"--version", "--help"} & {*rest}
    return False


def without_assignments(words: list[str]) -> list[str]:
    """Return the words without the leading assignments (``NAME=value``)."""
    return [*dropwhile(shell.is_setting, words)]


def program_name(word: str) -> str:
    """Return a program's name without its directory."""
    return word.rstrip("/").rpartition("/")[2]
