"""One invocation: who asks, how to answer. Everything a command shares, without click.

Belongs here: telling who asks; opening the mailbox (``place`` finds it); writing text or JSON. Must not know what any
command does, nor how its arguments were parsed (``options`` for click, ``plain`` for the hot verbs).
"""

from __future__ import annotations

import posix
import sys

from ..core import frame
from ..core.address import check_id
from ..core.records import USER
from ..core.roster import MIN_PREFIX
from ..core.text import neutral
from ..errors import MailboxError, Malformed, Refused
from ..identity import callers, client_variables
from ..store import paths
from . import mail_output
from .mailbox_place import environment, locate
from .output import write_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeVar

    from ..core.roster import Roster
    from ..identity.callers import Caller
    from ..mailbox.opened import OpenMailbox

    D = TypeVar("D", bound=OpenMailbox)


def whoami(given: str | None, environ: Mapping[str, str]) -> str:
    """Who asks, where everyone is whom they say: the option, else the client's session, else ``AGENT_MAILBOX_SESSION``;
    raises ``Malformed``.

    The client's own variable comes before ours: a client started by another client's agent inherits the latter, and
    must not consume its parent's mail.
    """
    who = given or client_variables.session(environ) or environ.get(client_variables.OURS)
    if not who:
        raise nobody_said()
    check_id(who)
    if who == USER:
        refuse_agent_as_user(environ)
    return who


def nobody_said(why: str = "") -> Malformed:
    """Return the error for a command of which nothing tells who gives it; ``why``: what keeps it from being the
    person's."""
    return Malformed(
        f"who are you? no --session (when sending, --from), and none of {client_variables.CLAUDE},"
        f" {client_variables.CODEX}, {client_variables.OURS} is set" + (f"; not the person: {why}" if why else ""),
        "pass the id of a session; `agent-mailbox roster register --session-id ID` registers one",
        code="no_session",
    )


def actor(environ: Mapping[str, str]) -> str:
    """Whose hand is on the keyboard: the agent whose terminal this is, else the person.

    An agent's terminal that does not say which agent's (``CLAUDECODE``, ``GEMINI_CLI``) is still not the person's.
    """
    agent = (
        environ.get(client_variables.CLAUDE)
        or environ.get(client_variables.CODEX)
        or environ.get(client_variables.OURS)
    )
    return agent or ("an-agent" if environ.get("CLAUDECODE") or environ.get(client_variables.GEMINI) else USER)


def refuse_agent_as_user(environ: Mapping[str, str]) -> None:
    """Only the person speaks as ``user``; a terminal that belongs to an agent says so in its environment."""
    if actor(environ) != USER:
        raise Refused("this terminal belongs to an agent; only the person is 'user'", "use your own session id")


def _begins(who: str, session_id: str) -> bool:
    return session_id.startswith(who) and frame.short(session_id) != session_id


def _meant(who: str, roster: Roster) -> str:
    """Return the id that a word means: its bearer's, or the one UUID that begins so; else the word itself."""
    if roster.get(who) is not None:
        return who
    bearer = roster.bearer(who)
    # Only of a UUID: "worker1" is a session of its own, not the beginning of "worker10".
    if bearer is None and len(who) >= MIN_PREFIX and any(_begins(who, i) for i in roster.agents):
        bearer = roster.find(who)
    return bearer.session_id if bearer else who


class Context:
    """One invocation: options, environment, the mailbox's desk, and the way out."""

    def __init__(self, directory: str | None = None) -> None:
        self.environ: Mapping[str, str] = environment()
        self.directory = directory
        self.json = False
        self.answered = False  # an answer was begun: under --json an error is no second document behind it
        self.vouched = False  # was the mailbox named, or made by the user's own ``init``?
        self.proves: Callable[[str], str | None] = self._proof  # a command that proves less, or something else, says so
        self._desk: OpenMailbox | None = None
        self._caller: Caller | None = None
        self._speakers: dict[str, str] = {}  # who writes in the name of another that is its own: a teammate, an old id

    def desk(self, kind: type[D]) -> D:
        """The mailbox, opened once, with the part of the facade that is needed."""
        if not isinstance(self._desk, kind):
            place = locate(self.directory, self.environ)
            self._desk = desk = kind(place.directory, prove=lambda session_id: self.proves(session_id))
            self.vouched = place.named or paths.recorded(desk.directory, self.environ)
            if not self.vouched:
                self.warn(
                    f"{desk.directory} was not made by your `agent-mailbox init`;"
                    " if it came with a clone, its mail is a stranger's"
                )
            if (why := desk.broken()) is not None:
                self.warn(f"{why}; nothing here counts as proven until you looked and ran agent-mailbox doctor --trust")
            self._tell_misplaced(desk)
            return desk
        return self._desk

    def _tell_misplaced(self, desk: OpenMailbox) -> None:
        """Tell of settings that were a mailbox's once, and are the person's."""
        try:
            found = desk.config.misplaced
        except MailboxError:
            return  # whatever needs the configuration says so itself
        if found:
            from .. import own_config

            self.warn(f"{desk.directory}/{paths.CONFIG}: {own_config.misplaced(', '.join(found))}")

    @property
    def caller(self) -> Caller:
        """The caller of this command; see ``identity.callers``."""
        if self._caller is None:
            self._caller = callers.of(self.environ)
        return self._caller

    def _proof(self, session_id: str) -> str | None:
        return self.caller.proof(self._speakers.get(session_id, session_id))

    def me(self, given: str | None, desk: OpenMailbox) -> str:
        """Return in whose name the command acts: ``given`` (the name of a known agent is taken, too, and the beginning
        of a UUID that is one's id), else the caller. Raises ``Refused`` where the caller may not be that one."""
        caller = self.caller
        if caller.kind == callers.AS_SAID:
            who = whoami(given, self.environ)
            return who if given is None or who == USER else _meant(who, desk.logs.read_roster())
        who = given or caller.says(self.environ) or ""
        if not who:
            raise nobody_said(caller.why)
        check_id(who)
        if who in caller.sessions or (caller.is_person and who == USER):
            return who
        who = who if given is None else _meant(who, desk.logs.read_roster())
        self.act_as(who, desk)
        return who

    def act_as(self, who: str, desk: OpenMailbox) -> None:
        """Raise ``Refused`` where the caller may not act in that name.

        The person may in any. A session may as itself, as what it continues, and as a teammate of the team it leads; a
        program as whom no client has.
        """
        caller = self.caller
        if caller.is_person or caller.kind == callers.AS_SAID or who in caller.sessions:
            return
        if caller.kind == callers.SESSION:
            self._speakers[who] = self._speaker(who, desk)
        elif who == USER or self._has_client(who, desk):
            caller.refuse_as(who)

    def _speaker(self, who: str, desk: OpenMailbox) -> str:
        """Return which session of the caller's process another name of its own belongs to; raises ``Refused``."""
        roster = desk.logs.read_roster()
        mine = {old: session for session in self.caller.sessions[::-1] for old in roster.lineage(session)}
        if who not in mine and "@" in who:
            from ..clients.permission import teammate  # which only the lead of a team has

            if (lead := teammate.lead_of(who, mine, self.caller.client)) is not None:
                return mine[lead]
        if who not in mine:
            self.caller.refuse_as(who)
        return mine[who]

    def _has_client(self, who: str, desk: OpenMailbox) -> bool:
        """Return whether a client's process ever had the session, other than the one above this program."""
        agent = desk.logs.read_roster().get(who)
        if agent is not None and agent.client is not None and agent.client != str(self.caller.client):
            return True
        return callers.is_hosted(who, self.environ)

    def acts(self, me: str) -> str:
        """Return whose hand does what is done in that name: the person's, the session's, else its own."""
        if self.caller.kind == callers.AS_SAID:
            return actor(self.environ)
        if self.caller.is_person:
            return USER
        return self._speakers.get(me, me)

    @property
    def is_session(self) -> bool:
        """Return whether an agent runs this command: what it may read is its client's to say."""
        if self.caller.kind != callers.AS_SAID:
            return self.caller.kind == callers.SESSION or self.caller.client is not None
        try:
            named = client_variables.session(self.environ) is not None
        except Malformed:  # within two clients
            return True
        return named or any(self.environ.get(name) for name in ("CLAUDECODE", client_variables.GEMINI))

    def style(self, text: str, style: str) -> str:
        """Colour on a terminal, unless NO_COLOR is set (no-color.org)."""
        if (
            sys.stdout is not None
            and sys.stdout.isatty()
            and not self.environ.get("NO_COLOR")
            and self.environ.get("TERM") != "dumb"
        ):
            return mail_output.coloured(text, style)
        return frame.plain(text, style)

    def print(self, text: str, patience: float | None = None) -> None:
        """Write an answer, whole and flushed; see ``output``."""
        self.answered = True
        write_out(text, patience)

    def nothing(self, text: str) -> None:
        """Say what only a person needs, on a terminal: that there is nothing, or what comes next."""
        if sys.stdout is not None and sys.stdout.isatty():
            self.print(text)

    @property
    def columns(self) -> int | None:
        """How many characters the terminal is wide; None where the output is none."""
        if sys.stdout is None or not sys.stdout.isatty():
            return None
        try:
            return posix.get_terminal_size(sys.stdout.fileno()).columns or None
        except OSError:
            return None

    def confirm(self, text: str) -> None:
        """Answer for something that is done: that the answer could not be written does not undo it, so it is no
        failure (a sender that took it for one would send again)."""
        try:
            write_out(text)
        except (MailboxError, OSError) as error:
            sys.stdout = None
            self.warn(f"it is done; only the answer was lost: {error}")

    def warn(self, text: str) -> None:
        """One line on standard error."""
        if sys.stderr is not None:
            sys.stderr.write(f"warning: {neutral(text)}\n")
