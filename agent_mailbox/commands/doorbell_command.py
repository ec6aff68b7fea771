"""``hook Doorbell``: started by a client in the background, to wake it. See ``clients.doorbell``."""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING

from ..clients import client, client_input, codex_server, doorbell
from ..clients.client_input import mailbox_of, make_prover, print_error, read_input
from ..core.address import check_id
from ..errors import MailboxError
from ..known_clients.every_client import USUAL
from ..mailbox import absence
from ..mailbox.open_mailbox import OpenMailbox
from ..store.files import paths, system
from ..store.locks.doorbell_lock import DoorbellLock
from ..store.log import events

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..core.records import Proof


def keep_doorbell(directory: str | None) -> int:
    """Wait for mail beside the calling client. Returns ``doorbell.WAKE`` to wake it, with a line on standard error;
    else 0. Codex is woken by its own command. It says nothing else: the session's own hooks report errors."""
    environ = system.environment()
    try:
        call = client_input.parse_call("Doorbell", read_input(environ), environ, os.getcwd())
        found = _client_beside(call, environ)
        place = None if found is None or call.agent_id is not None else mailbox_of(call, directory, environ)
        if place is None or found is None:
            return 0
        prove = make_prover(call, environ)
        with found as beside:
            mailbox = paths.check(place)
            os.chdir("/")  # it may wait for days, and must not keep a directory busy
            gc.enable()
            code = ring_for_mail(mailbox, check_id(call.session_id), beside, prove)
            if not beside.is_alive() and not isinstance(beside, codex_server.ServerSession):
                absence.note(OpenMailbox(mailbox, prove=prove), [call.session_id], call.session_id)
    except (OSError, MailboxError):
        return 0
    if code == doorbell.WAKE and sys.stderr is not None:
        sys.stderr.write(f"{doorbell.LINE}\n")
    return code


def _client_beside(call: client_input.ClientInput, environ: Mapping[str, str]) -> client.Client | None:
    """Return the client to wait beside; None if it cannot be woken, or no person sits at it."""
    if call.client is not None and call.client.server:
        server = codex_server.server_above() if call.conversation else 0
        return codex_server.ServerSession(server, environ, call.session_id, call.conversation) if server else None
    pid = client.client_number(environ, call.client)
    idle = call.session_id if call.client and not call.client.stop else None
    project = call.cwd if call.client in (None, USUAL) else ""
    return None if pid is None else client.Client(pid, environ, idle, project)


def ring_for_mail(mailbox: str, session_id: str, beside: client.Client, prove: Callable[[str], Proof | None]) -> int:
    """Wait; return ``doorbell.WAKE`` to wake the client by this exit code, else 0. Codex takes a line into its queue,
    and may begin no turn with it. So whoever rang there waits on, and rings again."""
    while (code := _wait_in_mailbox(mailbox, session_id, beside, prove)) == doorbell.WAKE:
        if not isinstance(beside, codex_server.ServerSession):
            break
        _wake_session(beside, mailbox, session_id)
    return code


def _wake_session(session: codex_server.ServerSession, mailbox: str, session_id: str) -> None:
    """Wake a session of Codex; a failure is said on standard error and in the telemetry."""
    why = session.wake_with(doorbell.LINE)
    if why:
        desk = OpenMailbox(mailbox)
        events.note_unwoken(desk.logs, session_id, desk.now(), why)
        print_error(f"agent-mailbox: mail waits, and this session cannot be woken: {why}")


def _wait_in_mailbox(mailbox: str, session_id: str, beside: client.Client, prove: Callable[[str], Proof | None]) -> int:
    lock = DoorbellLock(system.join(mailbox, paths.CACHE), session_id, beside.pid)
    with lock:
        return doorbell.Doorbell(mailbox, session_id, beside, lock, prove).wait_for_mail() if lock.take() else 0
