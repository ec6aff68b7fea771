"""``help``: the commands of a first week, all commands by subject, a topic, or one command.

Belongs here: which of them the words mean. ``topics/`` holds the pages, one a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ..cli import meant
from ..cli.group import CommandGroup, cli
from ..cli.options import App, pass_app
from ..core.misspelt import nearly
from ..errors import Malformed

PAGES = Path(__file__).parent / "topics"


def topics() -> list[str]:
    """Return the names of the topics."""
    return sorted(page.stem for page in PAGES.glob("*.txt"))


@cli.command("help", prints_json=False)
@click.argument("words", metavar="[TOPIC|COMMAND…]", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="List all commands, by subject.")
@pass_app
def help_command(app: App, /, words: Sequence[str], everything: bool) -> None:
    """Explain a topic or a command, or list the commands.

    Topics: addresses, approvals, machines, teams.

    \b
    Example: agent-mailbox help approvals
    """
    root = click.get_current_context().find_root()
    if everything and words:
        raise Malformed("--all goes without TOPIC and COMMAND", "leave one of them out")
    if everything:
        formatter = root.make_formatter()
        CommandGroup.format_commands(cli, root, formatter)
        app.write_answer(formatter.getvalue().lstrip("\n"))
    elif len(words) == 1 and words[0] in topics():
        app.write_answer((PAGES / f"{words[0]}.txt").read_text(encoding="utf-8"))
    else:
        app.write_answer(_of_command(root, words) + "\n")


def _of_command(root: click.Context, words: Sequence[str]) -> str:
    """Return the help of a command; raise ``Malformed`` if the words name none."""
    ctx, command = root, root.command
    for word in words:
        found = command.get_command(ctx, word) if isinstance(command, click.Group) else None
        if found is None:
            hint = f"name a topic ({', '.join(topics())}) or a command; `agent-mailbox help --all` lists them"
            here = command.list_commands(ctx) if isinstance(command, click.Group) else []
            others = meant.commands_named(word, root)
            if close := nearly(word, [*topics(), *here, *(one.rpartition(" ")[2] for one in others)]):
                hint = f"did you mean {' or '.join(dict.fromkeys(close))}?"
            if others and others[0].endswith(f" {word}"):
                hint = f"run `{others[0]} --help`"
            raise Malformed(f"no help on {' '.join(words)!r}", hint)
        ctx, command = click.Context(found, info_name=word, parent=ctx), found
    return ctx.get_help()
