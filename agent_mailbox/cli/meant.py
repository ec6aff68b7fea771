"""Words that people type for a command or an option of another name, and what they meant.

Belongs here: that table, and the whole command where a text came without its option. Must not run anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from ..core.text import near, shell_quoted

MOST = 3
"""Commands that a hint names."""
COMMANDS = {
    "version": "--version",
    **dict.fromkeys(("inbox", "mail", "mails", "messages", "unread", "receive", "get"), "check"),
    **dict.fromkeys(("list", "ls", "agents", "sessions", "who", "people", "members"), "roster list"),
    **dict.fromkeys(("register", "retire", "freeze", "update"), "roster {}"),
    **dict.fromkeys(("whoami", "me", "info"), "status"),
    **dict.fromkeys(("message", "msg", "tell", "post", "write"), "send"),
    **dict.fromkeys(("answer", "respond"), "reply"),
    **dict.fromkeys(("log", "sent", "outbox"), "history"),
    **dict.fromkeys(("find", "grep"), "search"),
    **dict.fromkeys(("view", "cat", "open"), "show"),
    **dict.fromkeys(("fix", "repair"), "doctor --repair"),
    **dict.fromkeys(("remove", "delete", "rm"), "setup --remove"),
    **dict.fromkeys(("start", "run", "launch"), "up"),
    **dict.fromkeys(("stop", "end", "kill"), "down"),
    **dict.fromkeys(("requests", "approvals"), "pending"),
    **dict.fromkeys(("todo", "todos", "tasks"), "task list"),
    **dict.fromkeys(("config", "configure"), "setup"),
    **dict.fromkeys(("ui", "web", "dashboard"), "console"),
}
"""Words that are no command, and the command that each means."""
OPTIONS = {
    "--fix": "--repair",
    **dict.fromkeys(("--message", "--text", "--content", "--msg", "-m", "-b"), "--body"),
    **dict.fromkeys(("--recipient", "-t"), "--to"),
    **dict.fromkeys(("-V", "-v", "-version"), "--version"),
    **dict.fromkeys(("-n", "--max", "--count", "--number"), "--limit"),
    **dict.fromkeys(("--title", "-s"), "--subject"),
    **dict.fromkeys(("--id", "--agent", "--as"), "--session"),
}
"""Unknown options, and the option that each means where the command has it."""


def meant_command(word: str, ctx: click.Context, known: list[str]) -> str:
    """Return the hint for a word that is no command of a group."""
    is_root = ctx.parent is None
    if word == "help":
        return f"run `{ctx.command_path} --help`"
    if word == "version" or (is_root and word in COMMANDS):
        return f"run `{ctx.find_root().command_path} {COMMANDS[word].format(word)}`"
    if meant := near(word, known) or [one for one in known if near(word, [one.partition("-")[0]])]:
        return f"did you mean {' or '.join(meant)}?"
    if found := commands_named(word, ctx):
        return f"run `{found[0]}`" if len(found) == 1 else f"did you mean {' or '.join(found)}?"
    return f"`{ctx.command_path} {'help --all' if is_root else '--help'}` lists the commands"


def _every_command(ctx: click.Context) -> Iterator[tuple[str, click.Command]]:
    """Yield every command with the words that call it, those of groups too."""
    root = ctx.find_root()
    queue: list[tuple[str, click.Command]] = [(root.command_path, root.command)]
    for path, command in queue:
        yield path, command
        if isinstance(command, click.Group):
            found = ((name, command.get_command(ctx, name)) for name in command.list_commands(ctx))
            queue += [(f"{path} {name}", one) for name, one in found if one is not None]


def commands_named(word: str, ctx: click.Context) -> list[str]:
    """Return the commands of other groups that have this name, or nearly."""
    by_name: dict[str, list[str]] = {}
    for path, _ in _every_command(ctx):
        by_name.setdefault(path.rpartition(" ")[2], []).append(path)
    name = word if word in by_name else next(iter(near(word, [*by_name])), "")
    return sorted(by_name.get(name, []), key=len)[:MOST]


def commands_with(option: str, ctx: click.Context) -> list[str]:
    """Return the commands that have an option; none if they are many: then none of them is meant."""
    found = [path for path, command in _every_command(ctx) if any(option in param.opts for param in command.params)]
    return sorted(found, key=len) if len(found) <= MOST else []


def meant_option(error: click.NoSuchOption) -> str | None:
    """Return the option of the same command that an unknown one means; None if there is none."""
    wanted = OPTIONS.get(error.option_name)
    known = () if error.ctx is None else (name for param in error.ctx.command.params for name in param.opts)
    return wanted if wanted in known else None


def whole_command(error: click.UsageError, arguments: Sequence[str]) -> str | None:
    """Return the command that ``send Bob "hi"``, ``reply ID "hi"`` or ``search -x`` means; None for another error."""
    ctx = error.ctx
    if ctx is not None and ctx.command.name == "search" and isinstance(error, click.NoSuchOption):
        words = list(arguments)[list(arguments).index(str(ctx.info_name)) + 1 :]
        words.sort(key=lambda word: word != "--json")  # an option may come last
        at = next((number for number, word in enumerate(words) if word.startswith(error.option_name)), 0)
        return " ".join([ctx.command_path, *map(shell_quoted, [*words[:at], "--", *words[at:]])])
    if ctx is None or ctx.command.name not in ("send", "reply") or "unexpected extra argument" not in error.message:
        return None
    given = list(arguments)[list(arguments).index(str(ctx.info_name)) + 1 :]
    extras = ctx.command.make_parser(ctx).parse_args(list(given))[1]
    options = list(given)
    for word in reversed(extras):  # an option's value may be the same word, and comes before
        at = len(options) - 1 - options[::-1].index(word)
        del options[at]
    named = {word.partition("=")[0] for word in options}
    added = ["--to", extras.pop(0)] if ctx.command.name == "send" and "--to" not in named and extras else []
    if extras and "--body" not in named:
        added += ["--body", " ".join(extras)]
        extras = []
    if extras:
        return None
    return " ".join([ctx.command_path, *map(shell_quoted, [*options, *added])])
