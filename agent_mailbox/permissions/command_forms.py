"""The commands that a shell's text may run, spelled as permission rules spell them.

Belongs here: those spellings, as many as may match, for rules that deny and ask (``rules``). Pure.

An example: ``sudo sh -c 'rm x'`` gives ``sudo sh -c rm x``, ``sh -c rm x``, ``rm x``.
"""

from __future__ import annotations

from . import shell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_STRIPPED = ("timeout", "time", "nice", "nohup", "stdbuf", "command", "builtin", "noglob")
"""Programs that run their arguments: the client looks behind these in every rule."""
WRAPPERS = (
    *_STRIPPED,
    *("env", "sudo", "doas", "exec", "xargs", "setsid", "ionice", "chrt", "flock", "watch", "unshare", "chroot"),
    *("busybox", "strace", "unbuffer", "eval", "find", "parallel", "npx", "taskset", "script"),
)
"""Programs that may run their arguments: rules that deny and ask look behind all of these."""
SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "ash")
TAKING_COMMANDS = ("ssh", "su", "watch", "trap", "script", "tmux", "screen", "parallel", "entr")
"""Programs that hand a word to a shell."""
_SOURCING = ("source", ".")
_INTERPRETERS = (*SHELLS, *TAKING_COMMANDS, "eval")
"""Programs that take a command in one word."""
MAX_DEPTH = 4
MAX_WRAPPED = 100
"""Limits: texts within each other, and words behind a wrapper. Honest commands stay below; looking costs time."""


def forms(text: str, depth: int = 0) -> Iterator[str]:
    """Yield every command the text may run, as a rule might spell it. Raises ``Unreadable`` if that is uncertain."""
    if depth > MAX_DEPTH:
        raise shell.Unreadable("too deep")
    for simple in shell.commands(text):
        if not simple.inputs and _is_handed(unset(simple.words)):
            raise shell.Unreadable("what runs is known only at run time")
        yield from _spellings(simple.words, depth)
        if any(base(word) in _INTERPRETERS or word in _SOURCING for word in simple.words):
            for body in simple.inputs:
                yield from forms(body, depth + 1)


def _spellings(words: list[str], depth: int) -> Iterator[str]:
    words = unset(words)
    if words:
        yield from _spelled(words, depth, sure=True)
    if not words or base(words[0]) not in WRAPPERS:
        return
    if len(words) > MAX_WRAPPED:
        raise shell.Unreadable("too long")
    first = True  # where its own options end, only the wrapper knows
    for number, word in enumerate(words[1:], 1):
        yield from _spelled(words[number:], depth, sure=first)
        first = first and (word[:1] in ("-", "") or word[:1].isdigit() or shell.is_setting(word))


def _spelled(words: Sequence[str], depth: int, *, sure: bool) -> Iterator[str]:
    """Yield the spellings of the command these words make. ``sure``: a command begins with the first word."""
    if set(words[0]) & set("$`*?[{") and words[0] not in ("[", "[[", "*"):
        if sure:
            raise shell.Unreadable("what runs is known only at run time")
        return
    name = base(words[0])
    yield " ".join(words)
    yield " ".join([name, *words[1:]])
    if name in _INTERPRETERS:
        for word in (*words[1:], " ".join(words[1:])):
            if not word.startswith("-"):
                yield from forms(word, depth + 1)


def _is_handed(words: Sequence[str]) -> bool:
    """Return whether a shell in these words reads its commands from a pipe or a device."""
    wraps = bool(words) and base(words[0]) in WRAPPERS and base(words[0]) != "find" and words[1:2] != ["-v"]
    for number, word in enumerate(words if wraps else words[:1]):
        if base(word) in SHELLS or (not number and word in _SOURCING):
            rest = words[number + 1 :]
            operands = [one for one in rest if one[:1] not in ("-", "+")]
            return operands[0].startswith("/dev/") if operands else not {"--version", "--help"} & {*rest}
    return False


def unset(words: list[str]) -> list[str]:
    """Return the words without the leading assignments (``NAME=value``)."""
    while words and shell.is_setting(words[0]):
        words = words[1:]
    return words


def base(word: str) -> str:
    """Return a program's name without its directory."""
    return word.rstrip("/").rpartition("/")[2]
