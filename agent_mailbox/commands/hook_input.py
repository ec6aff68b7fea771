"""The input of every hook command: the client's JSON, the mailbox of its session, the proof of who calls.

Belongs here: what ``hook_command`` and ``doorbell_command`` both need. Without click.
"""

from __future__ import annotations

import sys

from ..cli import standard_input
from ..cli.mailbox_place import MailboxPlace, locate_mailbox
from ..clients import client_input
from ..core import codec
from ..core.records import BadLine
from ..core.text import neutral, typed
from ..errors import NoMailbox, StorageFailed
from ..identity import hook_calls
from ..identity.client_variables import SERVICES
from ..store.files import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ..core.records import Proof

TELLING = ("SessionStart", "UserPromptSubmit", "Stop")
"""Events that tell the person of a mailbox whose log was removed; a tool's would repeat it each time."""
PATIENCE = 2.0
"""Seconds without a byte behind which the client's JSON counts as ended: some clients never close the pipe."""
REST = "AGENT_MAILBOX_HOOK_REST"
"""Names the seconds to wait for the rest of the client's JSON, which is at ``_REST``: the shim did not see its end."""
_REST = 3


def read_input(environ: Mapping[str, str]) -> dict[str, Any] | BadLine:
    """Return the client's JSON as soon as it is whole; why it is none if it ended, or nothing more came, before."""
    found: dict[str, Any] | BadLine = BadLine("empty")

    def take_bytes(data: bytes) -> bool:
        nonlocal found
        found = codec.parse(data, client_input.MAX_INPUT, ours=False) if data.strip() else BadLine("empty")
        return not isinstance(found, BadLine)

    if sys.stdin is not None:
        seconds = {"1": 1.0, "2": PATIENCE}.get(environ.get(REST, ""))
        then = None if seconds is None else _REST
        standard_input.read_object(take_bytes, client_input.MAX_INPUT, seconds or PATIENCE, then)
    return found


def mailbox_of(
    call: client_input.ClientInput, directory: str | None, environ: Mapping[str, str]
) -> MailboxPlace | None:
    """Return the mailbox of a client's session; None if there is none, or only one that the user's ``init`` did not
    make."""
    named = directory or (environ.get("AGENT_MAILBOX_DIR") if environ.keys().isdisjoint(SERVICES) else None)
    if not named and call.event != "SessionStart" and (known := paths.pointed(call.session_id, environ)):
        return MailboxPlace(known, False)  # a mailbox created later, nearer to it, changes nothing
    try:
        place = locate_mailbox(directory, environ, call.cwd)
    except NoMailbox:
        return None
    except StorageFailed as error:
        if error.code == "log_gone" and call.event not in TELLING:
            return None
        raise
    if not place.named and not paths.recorded(place.directory, environ):
        said = f"{neutral(place.directory)} is not one your `agent-mailbox init` made; ignored"
        if call.event == "SessionStart" and not paths.trusted(environ):  # lost, perhaps, with what binds the session
            raise StorageFailed(f"{said}. If it is yours: agent-mailbox init {typed(place.directory)}", code="unknown")
        print_error(f"agent-mailbox: {said}")
        return None
    return place


def make_prover(call: client_input.ClientInput, environ: Mapping[str, str]) -> Callable[[str], Proof | None]:
    """Return a function from a session's id to the proof for records in its name. It proves the session whose client
    called the hook, and that client's earlier ones. Raises ``Refused`` if a command called it."""
    me = call.session_id
    proof = hook_calls.prove_call(me, environ, begins=call.begins, told=call.told, is_fork=call.source == "fork")

    def prove_session(session_id: str) -> Proof | None:
        if proof is None or session_id == me:
            return proof if session_id == me else None
        return hook_calls.prove_shared(session_id, me, environ)

    return prove_session


def print_error(text: str) -> None:
    """Write a line to standard error, if anybody can read it."""
    try:
        if sys.stderr is not None:
            sys.stderr.write(text + "\n")
    except OSError:
        pass
