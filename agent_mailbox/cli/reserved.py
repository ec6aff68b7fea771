"""The commands that only the person may run: their table, and the one check before each.

Belongs here: the list. Each could free a bound agent, so a session may run none, and a program none while any session
is bound. (``identity.hook_calls`` refuses ``hook``.)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..core import frame
from ..core.text import neutral
from ..errors import NoMailbox, Refused
from ..identity import callers
from ..mailbox.open_mailbox import locate_mailbox
from ..store.files import paths
from ..store.user_state import bindings
from . import new_place

if TYPE_CHECKING:
    from .context import Context

    Params = Mapping[str, Any]
    Condition = Callable[[Context, Params], bool]


def _always_reserved(_: Context, __: Params) -> bool:
    return True


def _given_condition(*names: str) -> Condition:
    return lambda _, params: any(params.get(name) for name in names)


def _starts_programs(_: Context, params: Params) -> bool:
    """Return whether ``up`` does more than show the team, which the roster shows anybody."""
    return not params.get("status")


def _leaves_the_project(app: Context, params: Params) -> bool:
    """Return whether a backup goes outside the mailbox's parent directory."""
    if params.get("verify"):
        return False
    try:
        mailbox = locate_mailbox(app.directory, app.environ)[0]
    except NoMailbox:
        return False
    project = os.path.dirname(os.path.realpath(mailbox))
    return os.path.commonpath([project, os.path.realpath(str(params.get("file")))]) != project


_ALWAYS = (
    *("setup", "down", "install", "uninstall", "restore", "console"),
    "init",  # hooks believe each mailbox that it recorded
    *("engine join", "engine leave", "engine forget", "engine purge", "engine config", "engine serve"),
    *("swarm init", "swarm serve", "swarm attach", "swarm detach", "swarm state", "swarm leave", "swarm kick"),
)
RESERVED: dict[tuple[str, ...], Condition] = {
    **{tuple(words.split()): _always_reserved for words in _ALWAYS},
    ("up",): _starts_programs,
    ("steward", "crontab"): _given_condition("install"),
    ("backup",): _leaves_the_project,
    ("doctor",): _given_condition("repair", "trust"),
    ("steward", "run"): _given_condition("trust_clock"),
    ("notify",): _given_condition("test"),
}
"""A command's first words, and the condition under which it is the person's."""
THEIR_WORD: dict[tuple[str, ...], Condition] = {
    ("engine", "join"): _given_condition("keys", "speaks"),
    ("console",): _always_reserved,
    ("init",): _given_condition("adopt"),
    ("uninstall",): _given_condition("state"),
    ("doctor",): _given_condition("trust"),
    ("steward", "run"): _given_condition("trust_clock"),
}
"""The person's even if no session is bound: these act as ``user``, or confirm logs or keys."""

_OPTIONS = ("adopt", "install", "repair", "trust", "trust_clock", "test", "state")
"""Options that make a command the person's: a refusal names them, as the command without them is anybody's."""


def check_reserved(app: Context, first: tuple[str, ...], words: Sequence[str], params: Params) -> None:
    """Raise ``Refused`` if the command is the person's and another calls. Its ``first`` words are in the table."""
    if not RESERVED[first](app, params):
        return
    hint = _hint_for(app, words, params)
    words = [*words, *(f"--{name.replace('_', '-')}" for name in _OPTIONS if params.get(name))]
    caller = app.caller
    if caller.kind == callers.SESSION:
        raise _refused_error(words, f"this is a process of session {caller.sessions[0]}", hint)
    if caller.kind != callers.PROGRAM:
        return
    if caller.client or (first in THEIR_WORD and THEIR_WORD[first](app, params)):
        raise _refused_error(words, caller.why if caller.client else f"this is a program: {caller.why}", hint)
    state = paths.state_directory(app.environ)
    if bound := paths.bound_sessions(state):
        who = frame.some([_told(one, state) for one in bound if one], 3) or "nobody can tell which"
        why = f"sessions are bound ({who}), wherever that is, and a program calls: {caller.why}"
        raise _refused_error(words, why, hint)


def _told(session_id: str, state: str) -> str:
    """Return a bound session with the mailboxes that bind it: they may be another project's."""
    places = bindings.named(state, session_id) or []
    return neutral(f"{session_id} by {', '.join(places)}" if places else session_id)


def _hint_for(app: Context, words: Sequence[str], params: Params) -> str:
    """Return what the person may do instead; ``init`` names the place, which another directory would change."""
    if words[0] != "init":
        return "ask the person to run it in their own terminal"
    place = new_place.meant_place(app, params.get("where"), bool(params.get("in_git")))
    return new_place.for_the_person(place, "--adopt " if params.get("adopt") else "")


def _refused_error(words: Sequence[str], why: str, hint: str) -> Refused:
    return Refused(
        f"only the person may run `agent-mailbox {' '.join(words)}`: {why}", hint, code=callers.NOT_THE_PERSON
    )
