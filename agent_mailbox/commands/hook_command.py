"""``hook EVENT``: the clients' command. Reads its JSON, answers in its format, never fails it. Without click."""

from __future__ import annotations

import sys

from ..cli.output import PATIENCE, write_out, write_taken
from ..clients import client_input
from ..clients.client_input import mailbox_of, make_prover, print_error, read_input
from ..clients.hooks import hook_events as hooks
from ..core.address import check_id
from ..core.text import clipped, neutral, shell_quoted
from ..errors import NOT_YOU, BadData, MailboxError, NoMailbox, Refused
from ..identity.client_variables import HOOKS
from ..known_clients.every_client import USUAL
from ..known_clients.known_client import BEFORE_TOOL, FILES
from ..mailbox.delivery import Delivery
from ..mailbox.open_mailbox import OpenMailbox
from ..store.files import paths, system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ..core.records import BadLine


def answer_hook(event: str, directory: str | None) -> int:
    """Answer a client's hook, its JSON on standard input; returns the exit code (never 2: that would mean "block")."""
    if event.lower() == "doorbell":
        from .doorbell_command import keep_doorbell  # once in many turns, and not waited for

        return keep_doorbell(directory)
    name = hooks.SPELLINGS.get(event.replace("-", "").replace("_", "").lower())
    if name is None and event == "StatusLine":
        from . import status_line  # a client's, and no hook

        write_out(status_line.answer_client(directory), PATIENCE)
        return 0
    if name is None:
        hint = f"if another version installed it, run `agent-mailbox setup`; this one has {', '.join(hooks.HOOKS)}"
        print_error(f"error: no hook for {neutral(event)!r}\nhint: {hint}")
        return 1
    answers: list[str] = []

    def write_answer(text: str) -> None:
        answers.append(text)
        write_taken(text, client_input.READER_WAIT)

    try:
        _answer_event(name, directory, system.environment(), write_answer)
    except (NoMailbox, Refused) as error:
        print_error(_trouble_line(error))
        return int(error.code == NOT_YOU)
    except Exception as error:  # a hook never breaks a session, whatever happens to it
        if isinstance(error, ImportError) and not answers:
            raise  # a part of the program is missing: the shim knows what holds then
        from ..cli.boundary import describe_error  # seldom

        # The client takes one document: a second would void the first answer.
        _report_trouble(describe_error(error), aloud=name != "SessionEnd" and not answers)
    return 0


def _report_trouble(error: MailboxError, aloud: bool) -> None:
    """Write one line on stderr and, unless stdout failed, one for the person."""
    line = _trouble_line(error)
    print_error(line)
    try:
        if error.code.startswith("output"):
            sys.stdout = None
        elif aloud:
            write_out(hooks.json_line({"systemMessage": clipped(line, 500)}), PATIENCE)
    except (OSError, MailboxError):
        sys.stdout = None


def _trouble_line(error: MailboxError) -> str:
    """Return what happened and what to do next, in one line: clients show no second one."""
    return f"agent-mailbox: {neutral('; '.join(filter(None, (error.what, error.hint))))}"


def _answer_event(name: str, directory: str | None, environ: Mapping[str, str], write: Callable[[str], None]) -> None:
    said = read_input(environ)
    if name in (BEFORE_TOOL, FILES, *hooks.PERMITS) and any(map(environ.get, HOOKS)):
        from ..clients.permission import gemini_tools  # perhaps another client below it

        said, write = gemini_tools.translated(said, environ, write)
    if name == FILES:
        from ..clients.permission import file_guard  # where the shim cannot tell

        if text := file_guard.answer_call(said, _working_directory(), environ):
            write(text)
        else:
            _answer_lease(said, directory, environ, write)
        return
    try:
        call = client_input.parse_call(name, said, environ, _working_directory())
    except Exception as error:
        if name in hooks.PERMITS:  # a model's unreadable input must not lift a restriction
            asked = client_input.parse_call(name, {}, environ, _working_directory())
            _close_bound(asked, error, environ, write)
        raise
    if name == BEFORE_TOOL:
        if text := _refuse_command(call, lambda: mailbox_of(call, directory, environ)):
            write(text)
        else:
            try:
                _answer_lease(said, directory, environ, write)
            except MailboxError:
                pass  # without a mailbox there is no lease
        return
    if name in hooks.PERMITS:
        _answer_permit(call, directory, environ, write)
        return
    place = mailbox_of(call, directory, environ)
    if place is None:
        return
    desk = OpenMailbox(place, wait=client_input.LOCK_WAIT, prove=make_prover(call, environ), environ=environ)
    start = program_call(environ.get("PATH", ""))
    if directory:
        start += f" --dir {shell_quoted(desk.directory)}"
    hooks.answer_event(hooks.Hook(call=call, delivery=Delivery(desk), environ=environ, program=start, write=write))
    if name == "SessionStart" and call.agent_id is None and environ.get(USUAL.teams_variable) and desk.own.bridge:
        _start_bridge(desk.directory, call.session_id, environ)


def _start_bridge(directory: str, session_id: str, environ: Mapping[str, str]) -> None:
    """Start a bridge for the session's team, a process that ends with the team. Beside another bridge, or if no team
    comes, it ends by itself. An unattended client (``-p``) gets none."""
    from ..clients import client  # where the mailbox is configured so, once in a session
    from ..store.files import programs

    if client.client_number(environ) is None:
        return
    words = [sys.executable, _package_directory(), "--dir", directory, "teams", "bridge", session_id, "--wait", "60"]
    programs.leave(words, environ=environ)


def _refuse_command(call: client_input.ClientInput, mailbox: Callable[[], str | None]) -> str:
    """Return the answer to a teammate's command that speaks for its lead, or to one that the client must ask about;
    empty to any other. It must not depend on a mailbox."""
    from ..clients.permission import own_commands_hook  # where a command names us

    member = own_commands_hook.calling_member(call.transcript, call.agent_id or "")
    place = own_commands_hook.CommandPlace(call.here, mailbox)
    denial = own_commands_hook.denial_of(call.command, member, place, may_ask=not call.only_denies)
    return "" if denial is None else hooks.json_line(denial)


def _answer_permit(
    call: client_input.ClientInput, directory: str | None, environ: Mapping[str, str], write: Callable[[str], None]
) -> None:
    """Answer whether the session may use the tool. If that is unknown, a session that was last seen bound may not."""
    told: list[str] = []

    def write_once(text: str) -> None:  # once: the client takes two documents for none, and goes on
        if not told:
            told.append(text)
            _keep_input(call, text, environ)
            write(text)

    try:
        from ..clients.permission import judging_mailboxes  # where a lead or a policy may be, by the guard

        place = mailbox_of(call, directory, environ)
        judging_mailboxes.answer_call(
            call,
            place,
            environ,
            program=program_call(environ.get("PATH", "")),
            prove=lambda: make_prover(call, environ),
            write=write_once,
        )
        if not told:
            _keep_input(call, "", environ)
    except Exception as error:
        _close_bound(call, error, environ, write_once)
        raise


def _keep_input(call: client_input.ClientInput, answer: str, environ: Mapping[str, str]) -> None:
    """Keep what a client may run by our answer, if it shows a hook behind the tool what ran."""
    if call.only_denies:
        from ..clients.checks import changed_calls

        changed_calls.keep_input(call, answer, environ)


def _answer_lease(
    said: dict[str, Any] | BadLine, directory: str | None, environ: Mapping[str, str], write: Callable[[str], None]
) -> None:
    """Warn a session of another that leases a file it is about to write, or wrote it a moment ago.

    The shell guard read the client's JSON, so the input proves nothing of the caller. The process it runs below does:
    whoever calls this says no more than the session itself may say."""
    try:
        call = client_input.parse_call(FILES, said, environ, _working_directory())
    except BadData:
        return  # no session
    place = None if call.tool.startswith("mcp__") else mailbox_of(call, directory, environ)
    if place is None:
        return
    from ..clients.permission.lease_guard import LeaseGuard  # where the shim cannot tell
    from ..control.leasing import Leasing
    from ..identity import callers

    caller = callers.caller_of(environ)
    if check_id(call.session_id) not in caller.sessions:
        return
    desk = Leasing(OpenMailbox(place, wait=client_input.LOCK_WAIT, prove=caller.proof_for))
    program = program_call(environ.get("PATH", ""))
    guard = LeaseGuard(call=call, desk=desk, program=program, home=environ.get("HOME") or "/")
    if text := guard.answer_call():
        write(text)


def _close_bound(
    call: client_input.ClientInput, error: Exception, environ: Mapping[str, str], write: Callable[[str], None]
) -> None:
    """Answer "no" for a session that was last seen bound, wherever its mailbox is."""
    from ..clients.permission import permit

    if paths.is_bound(paths.state_directory(environ), check_id(call.session_id)):
        write(permit.closed_answer(call.event, getattr(error, "what", "") or type(error).__name__))


def _working_directory() -> str:
    try:
        return system.getcwd()
    except OSError:  # the directory is gone
        return "/"


def program_call(path: str) -> str:
    """Return how an agent starts this program: its name if that is on the ``PATH``, else the way this process was
    started."""
    if any(d.startswith("/") and system.exists(f"{d}/agent-mailbox") for d in path.split(":")):
        return "agent-mailbox"
    beside = system.join(system.dirname(sys.executable), "agent-mailbox")
    if system.exists(beside):
        return shell_quoted(beside)
    return f"{shell_quoted(sys.executable)} {shell_quoted(_package_directory())}"


def _package_directory() -> str:
    """Return the package's directory, which Python starts as a program."""
    return system.dirname(system.dirname(system.join(system.getcwd(), __file__)))
