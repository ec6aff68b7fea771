"""The options and arguments that click commands share.

Belongs here: ``--dir`` and ``--json`` on every command, shell completion of addresses.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from functools import reduce
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from ..core.records import USER
from ..errors import Malformed
from ..mailbox.mailbox import Mailbox
from ..mailbox.open_mailbox import locate_mailbox
from ..mailbox.queries import MailQueries
from ..store.files import system
from . import reserved
from .context import SESSION, Context


class App(Context):
    """The context of a click command, with the whole facade."""

    @property
    def mailbox(self) -> Mailbox:
        """Return the mailbox; open it once."""
        return self.open_desk(Mailbox)

    @property
    def queries(self) -> MailQueries:
        """Return the mailbox's queries."""
        return MailQueries(self.mailbox)

    def session_for(self, named: str | None, option: str = SESSION) -> str:
        """Return the session that the command acts as, of that name; see ``Context.acting_session``."""
        self.named = named
        return self.acting_session(self.mailbox, option)

    def looking_session(self) -> str:
        """Return the session of a look that needs none; it is empty for a program that has none."""
        try:
            return self.acting_session(self.mailbox)
        except Malformed as error:
            if error.code != "no_session":
                raise
            return ""


F = TypeVar("F", bound=Callable[..., Any])
Option = Callable[[Any], Any]
pass_app = click.make_pass_decorator(App)


KEPT = ("json", "directory", "named")
"""The options that are kept with the call, by the names that ``Context`` has for them: no command takes them."""
_MAY_BE_EMPTY = ("body", "subject", "tags")
"""Options whose value may be empty: a text of one's own is looked at as a whole, and no tag is a choice."""


IDLE_BESIDE: dict[str, dict[str, str]] = {
    "backup": {"--verify": "--force"},
    "console": {"--phone": "--open"},
    "control policy": {"--clear": "--allow --deny --host --add"},
    "doctor": {"--trust": "--repair"},
    "engine config": {"--postgresql": "--nodes --host --port"},
    "engine serve": {"--install": "--remove"},
    "init": {"--forget": "--adopt --here", "--adopt": "--here"},
    "setup": {"--remove": "--project --no-statusline"},
    "swarm inbox": {"--mark": "--status --swarm --limit"},
    "swarm invite": {"--revoke": "--max-uses --unlimited --hours", "--unlimited": "--max-uses"},
    "swarm leave": {"--session": "--dissolve"},
    "task list": {"--open": "--all"},
    "up": {"--example": "--status --tmux --wait", "--status": "--tmux --wait"},
}
"""The commands, each with an option and those that this one leaves without an effect."""
IDLE_WITHOUT: dict[str, dict[str, str]] = {
    "doctor": {"--trust": "--allows"},
    "engine config": {"--postgresql": "--credential --authority"},
    "init": {"--adopt": "--allows"},
}
"""The commands, each with an option and those that have no effect without this one."""


def check_pairs(words: str, given: Collection[str]) -> None:
    """Raise ``Malformed`` if one of the options given to a command has no effect."""
    for option, others in IDLE_BESIDE.get(words, {}).items():
        if option in given and (idle := next(filter(given.__contains__, others.split()), None)):
            raise Malformed(f"{idle} has no effect with {option}", "leave one of them out", code="usage")
    for option, others in IDLE_WITHOUT.get(words, {}).items():
        if option not in given and (idle := next(filter(given.__contains__, others.split()), None)):
            raise Malformed(
                f"{idle} has no effect without {option}", f"add {option}, or leave {idle} out", code="usage"
            )


class CommandWithOptions(click.Command):
    """A command with the options all commands share: ``--dir``, and ``--json`` unless it prints no data."""

    def __init__(self, *args: Any, prints_json: bool = True, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if prints_json:
            self.params.append(click.Option(["--json"], is_flag=True, help="Print the result as one JSON document."))
        about = "The mailbox directory (default: the nearest one)."
        self.params.append(click.Option(["--dir", "directory"], metavar="DIR", help=about))

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Raise ``Malformed`` for an option without an effect, and for an empty option or optional
        argument: a script's unset variable is none. Raise ``Refused`` if only the person may run it and another calls.
        """
        app, values = ctx.ensure_object(App), dict(ctx.params)
        from_line = {name for name in values if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE}
        kept = {name: ctx.params.pop(name, None) for name in KEPT}
        vars(app).update({name: value for name, value in kept.items() if value not in (None, False)})
        for param in self.params:
            name, given = param.name or "", values.get(param.name or "")
            is_option = isinstance(param, click.Option)
            may_be_empty = name in _MAY_BE_EMPTY if is_option else param.required or param.nargs != 1
            if may_be_empty or not isinstance(given, str | tuple):
                continue
            is_empty = not all(map(str.strip, given if isinstance(given, tuple) else [given]))
            if is_empty and name in from_line:
                called = param.opts[0] if is_option else param.human_readable_name.strip("[]")
                raise Malformed(f"{called} is empty", "give it a value, or leave it out")
        words = tuple(ctx.command_path.removeprefix(ctx.find_root().command_path).split())
        if (called := " ".join(words)) in IDLE_BESIDE or called in IDLE_WITHOUT:
            check_pairs(called, {param.opts[0] for param in self.params if param.name in from_line})
        for first in {words[:1], words[:2]} & reserved.RESERVED.keys():
            reserved.check_reserved(app, first, words, ctx.params)
        return super().invoke(ctx)


class Seconds(click.FloatRange):
    """A number of seconds that something can wait: not ``nan``, and no more than a lock takes."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number; fail for one that nothing can wait."""
        found = super().convert(value, param, ctx)
        if not found <= threading.TIMEOUT_MAX:  # nan is neither more nor less
            self.fail(f"{value} is not a usable number of seconds", param, ctx)
        return found


def seconds_option(name: str, usual: float, about: str, least: float = 0.0) -> Callable[[F], F]:
    """Return an option with a number of seconds, at ``least`` so many, and ``usual`` by default."""
    return click.option(name, type=Seconds(min=least), default=usual, show_default=True, metavar="S", help=about)


def _set_json(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.ensure_object(App).json = True


def complete_address(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Complete agents, roles, tags and ``all``; return nothing if there is no mailbox."""
    return [word for word in _words_to_complete(ctx, agents_only=False) if word.startswith(incomplete)]


def complete_session(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Complete session ids."""
    return [word for word in _words_to_complete(ctx, agents_only=True) if word.startswith(incomplete)]


def several_options(*options: Option) -> Option:
    """Return what adds these options to a command, in this order."""
    return lambda command: reduce(lambda made, option: option(made), reversed(options), command)


def json_option(about: str) -> Option:
    """Return the option that has a group print its result as JSON."""
    return click.option("--json", is_flag=True, is_eager=True, expose_value=False, callback=_set_json, help=about)


def option_of_session(about: str, *names: str) -> Option:
    """Return an option that names the session as which a command acts."""
    return click.option(*names, "named", metavar="ID", help=about, shell_complete=complete_session)


_ACTING = "The session to act as (default: the calling client's)."
session_option = option_of_session(_ACTING, "--session")
writer_option = option_of_session(_ACTING, "--session", "--from")
"""The same of commands that write something to others, as ``send`` does."""


with_option = click.option(
    "--with",
    "with_address",
    metavar="ADDR",
    help="Only mail from or to this agent, role or tag; 'all' means broadcasts.",
    shell_complete=complete_address,
)
everyones_option = click.option("--all", "everyones", is_flag=True, help="Show everyone's mail, not only yours.")


def complete_request(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Complete the ids of open requests."""
    try:
        from ..control_plane import control_log  # forty modules, for a completion alone

        found = [request.id for request in control_log.of(Mailbox(_directory_of(ctx))).open_requests()]
    except Exception:  # as below
        return []
    return [word for word in found if word.startswith(incomplete)]


def one_of(words: Sequence[str]) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Return a completer of the given words. It refuses no other word: the core does, with its own error."""
    return lambda _, __, incomplete: [word for word in words if word.startswith(incomplete)]


def _directory_of(ctx: click.Context) -> str:
    named = ctx.params.get("directory") or ctx.find_root().params.get("directory")
    return locate_mailbox(named, system.environment())[0]


def _words_to_complete(ctx: click.Context, *, agents_only: bool) -> list[str]:
    try:
        roster = Mailbox(_directory_of(ctx)).logs.read_roster()
    except Exception:  # a traceback would land in a half-typed line
        return []
    living = [a for a in roster.agents.values() if a.state != "dead"]
    ids = [a.session_id for a in living]
    if agents_only:
        return ids
    tags = {tag for a in living for tag in a.tags}
    return [*(a.name for a in living if a.name), *ids, *sorted(tags | roster.roles_ever), "all", USER]
