"""One invocation: the session it acts as, its mailbox, its output. Shared by all commands, without click.

Belongs here: identifying the caller, opening the mailbox, writing answers. Must not know
any command, nor how its arguments were parsed (``options`` for click, ``start.plain`` for the hot verbs).
"""

from __future__ import annotations

import posix
import sys

from ..core import frame
from ..core.address import UUID_SIZE, check_id
from ..core.records import USER
from ..core.roster import ALIVE, MIN_PREFIX
from ..core.text import neutral, typed
from ..errors import NOT_YOU, MailboxError, Malformed, NoMailbox, Refused, StorageFailed
from ..identity import callers, client_variables
from ..mailbox.open_mailbox import locate_mailbox
from ..store.files import paths, system
from ..store.user_state.processes import ProcessRecords
from . import mail_output
from .output import READER_LEFT, reader_left, write_in_full, write_out, write_pieces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeVar

    from ..core.records import Proof
    from ..core.roster import Roster
    from ..identity.callers import Caller
    from ..mailbox.open_mailbox import OpenMailbox

    D = TypeVar("D", bound=OpenMailbox)

SESSION, FROM = "--session", "--from"
"""The options by which a command is told its session, and by which one that sends is."""


def session_unknown(option: str, why: str = "", shells: Sequence[str] = ()) -> Malformed:
    """Return the error of a command without a session; ``why``: the reason why the caller is not the person.
    ``shells``: the agents that it may be."""
    or_else = (
        f"if you are {frame.some(shells, 3)}: `export {client_variables.OURS}={shells[0]}`; else " if shells else ""
    )
    return Malformed(
        f"cannot tell who is calling: no {option}, and neither a client nor {client_variables.OURS} names a session"
        + (f"; the command is not the person's: {why}" if why else ""),
        f"{or_else}register one with `agent-mailbox roster register --session-id ID`, then pass {option} ID",
        code="no_session",
    )


def meant_agent(who: str, roster: Roster, *, may_be_new: bool = True) -> str:
    """Return the id of the agent with that name, or with the one UUID that begins so; else the word itself.

    Raises ``NotFound`` for a word that nobody knows and that is nearly an agent's, unless it may be a new one."""
    if roster.get(who) is not None:
        return who
    if bearer := roster.bearer(who):
        return bearer.session_id
    who = complete_id(who, roster)
    if not may_be_new and roster.get(who) is None:
        from . import misspelt_session  # serves only mistakes

        misspelt_session.refuse_misspelt(who, roster)
    return who


def complete_id(who: str, roster: Roster) -> str:
    """Return the agent's id that is the one UUID which begins so; else the word itself."""
    # Only UUIDs: "worker1" is a session of its own, not a prefix of "worker10".
    if roster.get(who) is not None or not MIN_PREFIX <= len(who) < UUID_SIZE:
        return who
    known = any(one.startswith(who) and frame.short(one) != one for one in roster.agents)
    return roster.find(who).session_id if known else who


class Context:
    """One invocation: its options, environment, open mailbox and output."""

    def __init__(self, directory: str | None = None) -> None:
        self.environ: Mapping[str, str] = system.environment()
        self.hosts = ProcessRecords(paths.state_directory(self.environ))
        self.directory = directory
        self.named: str | None = None
        """The session that an option names; None: the caller's."""
        self.given: dict[str, str] = {}
        """The options that our hints repeat, beside ``--dir``: see ``suggested``."""
        self.json = False
        self.answered = False  # printing began: an error must not add a second JSON document
        self.vouched = False  # the user named the mailbox, or their ``init`` made it
        self.proves: Callable[[str], Proof | None] | None = None
        """The proof in the place of the caller's, for commands that have another."""
        self._desk: OpenMailbox | None = None
        self._caller: Caller | None = None
        self._speakers: dict[str, str] = {}  # teammate or old id -> the session that may use it

    def open_desk(self, kind: type[D]) -> D:
        """Return the mailbox, opened once: with all its parts, or without."""
        if not isinstance(self._desk, kind):
            try:
                directory, self.vouched = locate_mailbox(self.directory, self.environ)
                self._desk = desk = kind(directory, prove=self.proof_for, environ=self.environ, hosts=self.hosts)
            except (NoMailbox, Refused) as error:
                if self.is_session:  # an agent must not make a mailbox in a strange project
                    error.hint = (
                        f"tell the person: {error.hint}"
                        if error.code == paths.GONE
                        else "nothing to do: this project has no agent mail of yours, and only a person makes a mailbox"
                    )
                raise
            if not self.vouched:
                if (link := paths.inner_link(desk.directory)) is not None:
                    raise Refused(
                        f"your records name no init of {desk.directory}, and {link} is a link, which may lead anywhere",
                        f"remove the link, or name the mailbox: --dir {typed(desk.directory)}",
                    )
                self.give_warning(
                    f"your records name no init of {desk.directory}; if it came with a clone, its mail is a stranger's"
                )
            if (why := desk.logs.broken()) is not None:
                self.give_warning(
                    f"{why}; nothing here is proven until you check the logs and run `agent-mailbox doctor --trust`"
                )
            desk.complain = self.give_warning
            if self.json:
                desk.weigh_mail()
            if desk.config.faults or desk.config.misplaced:
                self._warn_of_config(desk)
            return desk
        return self._desk

    def _warn_of_config(self, desk: OpenMailbox) -> None:
        """Warn of what is wrong in the mailbox's configuration, and of what belongs in the person's own."""
        from ..config import own_config

        said = [fault.text for fault in desk.config.faults]
        said += [own_config.misplaced_warning(", ".join(desk.config.misplaced))] if desk.config.misplaced else []
        for text in said:
            self.give_warning(f"{desk.directory}/{paths.CONFIG}: {text}")

    @property
    def caller(self) -> Caller:
        """Return the caller of this command; see ``identity.callers``."""
        if self._caller is None:
            self._caller = callers.caller_of(self.environ, self.hosts)
        return self._caller

    def proof_for(self, session_id: str) -> Proof | None:
        """Return what is proven of the caller, for a record in the session's name."""
        if self.proves is not None:
            return self.proves(session_id)
        return self.caller.proof_for(self._speakers.get(session_id, session_id))

    def acting_session(self, desk: OpenMailbox, option: str = SESSION) -> str:
        """Return the session that the command acts as: the one ``named`` by ``option``, else the caller.

        It is named by its id, the agent's name or a UUID's prefix. Raises ``Refused`` if the caller may not act as
        it, ``NotFound`` if nobody knows it and it is nearly an agent's. Only the sender of mail may be such a one."""
        caller = self.caller
        who = self.named or caller.said_id(self.environ) or ""
        if not who:
            raise session_unknown(option, caller.why, self._shells(desk))
        if who not in caller.sessions and not (caller.is_person and who == USER):
            check_id(who)
            if self.named is not None:
                who = meant_agent(who, desk.logs.read_roster(), may_be_new=option == FROM)
            self.act_as(who, desk)
        if self.named is not None:
            self.given[SESSION] = who
        return who

    def reading_session(self, desk: OpenMailbox) -> str:
        """Return the session whose mail is looked at, as ``acting_session`` finds it. Warns if nobody brings the
        mail of other machines."""
        me = self.acting_session(desk)
        if desk.logs.is_shared:
            self.warn_of_machines(desk, reads=True)
        return me

    def warn_of_machines(self, desk: OpenMailbox, *, reads: bool = False) -> None:
        """Warn of what keeps mail of other machines from here (``reads``), or has mail of here expire on its way."""
        from ..space import space as spaces  # a mailbox of one machine is spared both
        from ..space.copy import space_troubles

        for why in [spaces.why_late(desk.logs)] if reads else space_troubles.slow_clock(desk.logs.messages):
            if why:
                self.give_warning(why)

    def deciding_session(self, desk: OpenMailbox, what: str) -> str:
        """Return the session that decides or asks for something; raises ``Refused`` at the person's terminal for
        another than the person, whose word it would be. ``what``: that deed."""
        who = self.acting_session(desk)
        if self.caller.is_person and who != USER:
            agent = desk.logs.read_roster().get(who)
            name = frame.name_of(who, desk.logs.read_roster())
            mine = "leave --session out" if self.named is not None else f"unset {client_variables.OURS}"
            where = f"run it in {name}'s own session, or {mine}" if agent is not None and agent.client else mine
            raise Refused(
                f"this is the person's terminal: nothing proves that {what} is {name}'s",
                f"{where} to act as yourself",
                code=NOT_YOU,
            )
        return who

    def act_as(self, who: str, desk: OpenMailbox) -> None:
        """Raise ``Refused`` if the caller may not act as ``who``.

        The person may act as anyone. A session may act as itself, a session it continues, or a teammate it leads. A
        program may act as any id without a client.
        """
        caller = self.caller
        if caller.is_person or who in caller.sessions:
            return
        if caller.kind == callers.SESSION:
            self._speakers[who] = self._speaking_session(who, desk)
        elif who == USER or self._has_client(who, desk):
            caller.refuse_as(who)

    def _speaking_session(self, who: str, desk: OpenMailbox) -> str:
        """Return the caller's session that may use another id; raises ``Refused`` if none may."""
        roster = desk.logs.read_roster()
        mine = {old: session for session in self.caller.sessions[::-1] for old in roster.lineage(session)}
        if who not in mine and "@" in who:
            from ..clients.permission import own_commands_hook  # only leads of a team need it

            if (lead := own_commands_hook.lead_of(who, mine, self.caller.client)) is not None:
                return mine[lead]
        if who not in mine:
            self.caller.refuse_as(who)
        return mine[who]

    def _has_client(self, who: str, desk: OpenMailbox) -> bool:
        """Return whether a client other than the one above this program ever had the session."""
        agent = desk.logs.read_roster().get(who)
        if agent is not None and agent.client is not None and agent.client != str(self.caller.client):
            return True
        return bool(self.hosts.hosting(who))

    def _shells(self, desk: OpenMailbox) -> list[str]:
        """Return the living agents without a client, as whom a program without a session may act; a client's none."""
        agents = () if self.is_session else desk.logs.read_roster().agents.values()
        return [one.session_id for one in agents if one.state == ALIVE and not self._has_client(one.session_id, desk)]

    def acting_party(self, me: str) -> str:
        """Return who acts in the name of ``me``: the person, a session, or ``me`` itself."""
        if self.caller.is_person:
            return USER
        return self._speakers.get(me, me)

    @property
    def own_session(self) -> str | None:
        """Return the calling session; None for the person and for a program."""
        return self.caller.sessions[0] if self.caller.kind == callers.SESSION else None

    @property
    def is_session(self) -> bool:
        """Return whether an agent runs this command, so that its client decides what it may read."""
        if self.caller.is_person:
            return False
        if self.caller.kind == callers.SESSION or self.caller.client:
            return True
        try:
            named = client_variables.session_of(self.environ) is not None
        except Malformed:  # two clients' variables are set
            return True
        return named or any(self.environ.get(name) for name in client_variables.MARKS)

    @property
    def painter(self) -> mail_output.Style:
        """Return what colours a text: only on a terminal, and not if NO_COLOR is set (no-color.org)."""
        on_terminal = sys.stdout is not None and sys.stdout.isatty()
        colours = on_terminal and not self.environ.get("NO_COLOR") and self.environ.get("TERM") != "dumb"
        return mail_output.color_text if colours else frame.plain

    def write_answer(self, text: str, patience: float | None = None) -> None:
        """Write an answer in full and flush it; see ``output``. It changes nothing, so a reader may leave it."""
        self.answered = True
        try:
            write_out(text, patience)
        except StorageFailed as error:
            raise reader_left() if error.code == READER_LEFT else error from None

    def hand_over(self, pieces: Sequence[str]) -> tuple[int, MailboxError | None]:
        """Write mail; return how many pieces its reader took, and why not all. See ``output.write_pieces``."""
        self.answered = True
        return write_pieces(pieces if self.columns is None else [*map(self.fold_framed, pieces)])

    def out_in_full(self, text: str, value: object) -> MailboxError | None:
        """Print as ``print_answer`` does; return why it is unknown that the reader took it. See
        ``output.write_in_full``."""
        self.answered = True
        return write_in_full(mail_output.json_document(value) if self.json else text)

    def place_line(self, directory: str) -> str:
        """Return the line that tells a person which mailbox answers; empty where the output is no terminal."""
        return f"mailbox {neutral(directory)}\n" if sys.stdout is not None and sys.stdout.isatty() else ""

    @property
    def columns(self) -> int | None:
        """Return the terminal's width in characters; None if the output is no terminal."""
        if sys.stdout is None or not sys.stdout.isatty():
            return None
        try:
            return posix.get_terminal_size(sys.stdout.fileno()).columns or None
        except OSError:
            return None

    def fold_framed(self, text: str) -> str:
        """Return mail's text as this terminal may show it: see ``folding``. Anywhere else it stays as it is."""
        if (columns := self.columns) is None:
            return text
        from .folding import fold_lines  # what agents and pipes are spared

        return fold_lines(text, columns)

    def confirm_change(self, text: str) -> bool:
        """Print the answer of a completed change; return whether that worked. A failed write only warns: an error would
        make a sender retry."""
        try:
            write_out(text)
            return True
        except (MailboxError, OSError) as error:
            sys.stdout = None
            self.give_warning(f"the command succeeded, but its output was lost: {error}")
            return False

    def print_answer(self, text: str, value: object) -> None:
        """Print the JSON document under ``--json``, else the text."""
        self.write_answer(mail_output.json_document(value) if self.json else text)

    def print_done(self, text: str, value: object) -> bool:
        """Print likewise the answer of a command that changed something; see ``confirm_change``."""
        return self.confirm_change(mail_output.json_document(value) if self.json else text)

    def give_warning(self, text: str) -> None:
        """Print one line on standard error."""
        if sys.stderr is not None:
            sys.stderr.write(self.shorten_ids(f"warning: {neutral(self.complete_hint(text))}\n"))

    def shorten_ids(self, text: str) -> str:
        """Return an error or a warning with the ids of the mailbox's agents as lists show them."""
        if self._desk is None or text.count("-") < 4:
            return text
        from ..core import shown_ids  # few commands fail or warn

        try:
            return shown_ids.shorten_ids(text, self._desk.logs.read_roster().agents)
        except (MailboxError, OSError):
            return text  # what is said matters more than how

    def complete_hint(self, text: str) -> str:
        """Return a text of ours, in which commands between backticks repeat the options of this one."""
        if not (self.given or self.directory) or "`" not in text:
            return text
        from . import suggested

        options = {"--dir": self.directory} if self.directory else {}
        return suggested.complete_commands(text, {**options, **self.given})

    def complete_command(self, words: str) -> str:
        """Return one of our commands for a text, with the options of this one that it needs."""
        return self.complete_hint(f"`agent-mailbox {words}`")[1:-1]

    def options_of(self, words: str) -> str:
        """Return the options alone that ``complete_command`` adds to those words."""
        return self.complete_command(words).removeprefix(f"agent-mailbox {words}")
