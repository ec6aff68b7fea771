"""``hook Doorbell``: started by a client in the background, to wake it. See ``clients.doorbell``."""

from __future__ import annotations

import gc
import os
import sys

from ..clients import client, doorbell
from ..clients.hooks import hook_events
from ..core.address import check_id
from ..errors import MailboxError
from ..store import paths, system
from ..store.doorbell_lock import Vigil
from .hook_input import given, mailbox_of, proven
from .mailbox_place import environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def keep(directory: str | None) -> int:
    """Wait for mail beside the calling client. Returns ``doorbell.WAKE`` to wake it, with a line on standard error;
    else 0. It says nothing else: the session's own hooks report errors."""
    environ = environment()
    try:
        call = hook_events.parse("Doorbell", given(), environ, os.getcwd())
        pid = client.number(environ, call.client)
        place = None if pid is None or call.agent_id is not None else mailbox_of(call, directory, environ)
        if place is None or pid is None:
            return 0
        prove = proven(call, environ)
        idle = call.session_id if call.client and not call.client.stop else None
        with client.Client(pid, environ, idle) as beside:
            mailbox = paths.check(place.directory)
            os.chdir("/")  # it may wait for days, and must not keep a directory busy
            gc.enable()
            code = _keep(mailbox, check_id(call.session_id), pid, beside, prove)
            if not beside.lives():
                from ..mailbox import absence  # once, at the client's end
                from ..mailbox.opened import OpenMailbox

                absence.note(OpenMailbox(mailbox, prove=prove), [call.session_id], call.session_id)
    except (OSError, MailboxError):
        return 0
    if code == doorbell.WAKE and sys.stderr is not None:
        sys.stderr.write(f"{doorbell.LINE}\n")
    return code


def _keep(mailbox: str, session_id: str, pid: int, beside: client.Client, prove: Callable[[str], str | None]) -> int:
    vigil = Vigil(system.join(mailbox, paths.CACHE), session_id, pid)
    with vigil:
        return doorbell.Doorbell(mailbox, session_id, beside, vigil, prove).run() if vigil.take() else 0
