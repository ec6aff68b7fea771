"""What every command shares: where the mailbox is, who asks, how to answer.

Belongs here: the environment, read once; finding the mailbox; the options that all commands take; writing text or
JSON. Must not know what any command does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

import click

from ..core import frame
from ..core.address import check_id
from ..core.records import USER
from ..core.roster import MIN_PREFIX
from ..core.text import neutral
from ..errors import MailboxError, Malformed, NoMailbox, Refused
from ..library import Library
from ..mailbox import Mailbox
from ..store import paths, places
from . import render
from .output import write_out


class Place:
    """How a mailbox was found: its directory, and whether somebody named it (``--dir``, ``AGENT_MAILBOX_DIR``)."""

    def __init__(self, directory: str, named: bool) -> None:
        self.directory = directory
        self.named = named


def locate(given: str | None, environ: Mapping[str, str], start: str) -> Place:
    """The mailbox to use: ``--dir``, else ``AGENT_MAILBOX_DIR``, else the nearest from ``start`` upwards.

    Raises ``NoMailbox``.
    """
    named = given or environ.get("AGENT_MAILBOX_DIR")
    if named:
        return Place(named, True)
    found = paths.find(os.path.realpath(start))
    if found is None:
        raise NoMailbox(
            "no mailbox here or above", "`agent-mailbox init` makes one; --dir or AGENT_MAILBOX_DIR names one elsewhere"
        )
    return Place(found, False)


def whoami(given: str | None, environ: Mapping[str, str]) -> str:
    """Who asks: the option, else the client's session, else ``AGENT_MAILBOX_SESSION``; raises ``Malformed``.

    The client's own variable comes before ours: a client started by another client's agent inherits the latter, and
    must not consume its parent's mail.
    """
    who = given or environ.get("CLAUDE_CODE_SESSION_ID") or environ.get("AGENT_MAILBOX_SESSION")
    if not who:
        raise Malformed(
            "who are you? no --session, and neither CLAUDE_CODE_SESSION_ID nor AGENT_MAILBOX_SESSION is set",
            "`agent-mailbox roster register --session-id ID` registers one; then pass --session ID",
            code="no_session",
        )
    check_id(who)
    if who == USER:
        refuse_agent_as_user(environ)
    return who


def actor(environ: Mapping[str, str]) -> str:
    """Whose hand is on the keyboard: the agent whose terminal this is, else the person.

    An agent's terminal that does not say which agent's (``CLAUDECODE`` alone) is still not the person's.
    """
    agent = environ.get("CLAUDE_CODE_SESSION_ID") or environ.get("AGENT_MAILBOX_SESSION")
    return agent or ("an-agent" if environ.get("CLAUDECODE") else USER)


def refuse_agent_as_user(environ: Mapping[str, str]) -> None:
    """Only the person speaks as ``user``; a terminal that belongs to an agent says so in its environment."""
    if actor(environ) != USER:
        raise Refused("this terminal belongs to an agent; only the person is 'user'", "use your own session id")


class Context:
    """One invocation: options, environment, mailbox, and the way out."""

    def __init__(self, directory: str | None = None) -> None:
        self.environ: Mapping[str, str] = os.environ
        self.directory = directory
        self.json = False
        self._mailbox: Mailbox | None = None

    @property
    def mailbox(self) -> Mailbox:
        """The mailbox, opened once."""
        if self._mailbox is None:
            place = locate(self.directory, self.environ, os.getcwd())
            self._mailbox = Mailbox(place.directory)
            if not place.named and not places.recorded(self._mailbox.directory, self.environ):
                self.warn(
                    f"{self._mailbox.directory} was not made by your `agent-mailbox init`;"
                    " if it came with a clone, its mail is a stranger's"
                )
        return self._mailbox

    @property
    def library(self) -> Library:
        """The reading room of the mailbox."""
        return Library(self.mailbox)

    def me(self, given: str | None) -> str:
        """See ``whoami``; the name of a known agent is taken too, and the beginning of a UUID that is one's id."""
        who = whoami(given, self.environ)
        if given is None or who == USER:
            return who
        roster = self.mailbox.logs.read_roster()
        if roster.get(who) is None:
            bearer = roster.bearer(who)
            # Only of a UUID: "worker1" is a session of its own, not the beginning of "worker10".
            if (
                bearer is None
                and len(who) >= MIN_PREFIX
                and any(frame.short(i) != i and i.startswith(who) for i in roster.agents)
            ):
                bearer = roster.find(who)
            return bearer.session_id if bearer else who
        return who

    @property
    def actor(self) -> str:
        """See ``actor``."""
        return actor(self.environ)

    def style(self, text: str, style: str) -> str:
        """Colour on a terminal, unless NO_COLOR is set (no-color.org)."""
        if sys.stdout.isatty() and not self.environ.get("NO_COLOR") and self.environ.get("TERM") != "dumb":
            return render.coloured(text, style)
        return frame.plain(text, style)

    def out(self, text: str, value: Any) -> None:
        """Answer: the JSON document under ``--json``, else the text."""
        write_out(render.json(value) if self.json else text)

    def confirm(self, text: str, value: Any) -> None:
        """Answer for something that is done: that the answer could not be written does not undo it, so it is no
        failure (a sender that took it for one would send again)."""
        try:
            self.out(text, value)
        except (MailboxError, OSError) as error:
            sys.stdout = None
            self.warn(f"it is done; only the answer was lost: {error}")

    def warn(self, text: str) -> None:
        """One line on standard error."""
        click.echo(f"warning: {neutral(text)}", err=True)


class Verb(click.Command):
    """A command with the options all commands share: ``--dir``, and ``--json`` unless it prints no data."""

    def __init__(self, *args: Any, prints_json: bool = True, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if prints_json:
            self.params.append(
                click.Option(
                    ["--json", "as_json"],
                    is_flag=True,
                    expose_value=False,
                    callback=_set_json,
                    help="Answer with one JSON document.",
                )
            )
        self.params.append(
            click.Option(
                ["--dir", "directory"],
                metavar="DIR",
                expose_value=False,
                callback=_set_dir,
                help="The mailbox directory.",
            )
        )


def _set_json(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.ensure_object(Context).json = True


def _set_dir(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value:
        ctx.ensure_object(Context).directory = value


def complete_address(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Shell completion of agents, roles, tags and ``all``; silent where there is no mailbox."""
    return [word for word in _words(ctx, agents_only=False) if word.startswith(incomplete)]


def complete_session(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Shell completion of session ids."""
    return [word for word in _words(ctx, agents_only=True) if word.startswith(incomplete)]


def _words(ctx: click.Context, *, agents_only: bool) -> list[str]:
    try:
        given = next((c.params.get("directory") for c in (ctx, ctx.parent) if c and c.params.get("directory")), None)
        roster = Mailbox(locate(given, os.environ, os.getcwd()).directory).logs.read_roster()
    except Exception:  # completion must never print a traceback into a half-typed line
        return []
    living = [a for a in roster.agents.values() if a.state != "dead"]
    ids = [a.session_id for a in living]
    if agents_only:
        return ids
    tags = {tag for a in living for tag in a.tags}
    return [*(a.name for a in living if a.name), *ids, *sorted(tags | roster.roles_ever), "all", USER]
