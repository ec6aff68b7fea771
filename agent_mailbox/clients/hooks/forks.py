"""A session that begins with another one's talk: the same agent moved into the background, or a copy of it.

Belongs here: which of the two it is, and what a copy is told. Claude Code begins both with the source ``fork`` (2.1.329
and 2.1.332). ``/bg`` ends the session at the terminal, and a background service goes on with a copy.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from ...core import frame
from ...core.roster import ALIVE, FROZEN
from ...identity import session_registry
from ...known_clients.every_client import USUAL
from ...store.files import paths, system
from ...store.user_state import processes
from ...store.user_state.processes import SERVED, ProcessRecords

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...core.roster import Agent
    from ...mailbox.open_mailbox import OpenMailbox

_LEFT = "prompt_input_exit"
"""The client's reason for the end of a session that its person leaves: any agent can end it otherwise."""
_MINUTE = 60_000
"""Milliseconds within which a session that moved ended at the terminal."""
_LOOKS, _PAUSE = 50, 0.1
"""Looks for that end, which another hook of the client's records at the same time; seconds between two of them."""


def moved(desk: OpenMailbox, session_id: str, environ: Mapping[str, str]) -> Agent | None:
    """Return the session that goes on as this one, because its person moved it into the background; None if none does.

    The service's note alone moves nobody, for any program can write it. The service must run this session, and the
    other one's client have told its end just now.
    """
    job = session_registry.job_of(session_id, environ)
    if job is None or job.source != session_registry.MOVED or not job.before or job.askers:
        return None
    if all(host.how != SERVED for host in ProcessRecords(paths.state_directory(environ)).hosting(session_id)):
        return None
    for _ in range(_LOOKS):
        old = desk.logs.read_roster().get(job.before)
        if old is None or old.state != ALIVE:
            break
        system.sleep(_PAUSE)
    has_left = old is not None and old.state == FROZEN and old.reason == _LEFT
    return old if old is not None and has_left and 0 <= desk.now() - old.changed <= _MINUTE else None


def told(desk: OpenMailbox, session_id: str, environ: Mapping[str, str]) -> str:
    """Return the line that tells a copy who it is, and whose copy."""
    roster = desk.logs.read_roster()
    old = roster.get(_before(session_id, environ))
    line = () if old is None else (old.session_id, *roster.heirs(old.session_id))
    other = frame.name_of(line[-1], roster) if line else "the agent in it"
    is_not = f"{other} is not you and keeps its name and mail"
    return f"this session is {session_id}, a fork with another one's talk: {is_not}"


def _before(session_id: str, environ: Mapping[str, str]) -> str:
    """Return the session whose talk it has, as far as the service or the client's own words tell; else empty."""
    job = session_registry.job_of(session_id, environ)
    if job is not None:
        return job.before
    pid = environ.get(USUAL.process_variable, "")
    words = processes.words(int(pid)) if pid.isascii() and pid.isdigit() else []
    for word, following in pairwise([*words, ""]):
        option, _, value = word.partition("=")
        if option in ("--resume", "-r"):
            return (value or following).rpartition("/")[2].removesuffix(".jsonl")
    return ""
