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
from ..store.files import paths
from . import new_place
from .mailbox_place import locate

if TYPE_CHECKING:
    from .context import Context

    Params = Mapping[str, Any]
    Condition = Callable[[Context, Params], bool]


def _always(_: Context, __: Params) -> bool:
    return True


def _given(*names: str) -> Condition:
    return lambda _, params: any(params.get(name) for name in names)


def _leaves_the_project(app: Context, params: Params) -> bool:
    """Return whether a backup goes outside the mailbox's parent directory."""
    if params.get("verify"):
        return False
    try:
        mailbox = locate(app.directory, app.environ).directory
    except NoMailbox:
        return False
    project = os.path.dirname(os.path.realpath(mailbox))
    return os.path.commonpath([project, os.path.realpath(str(params.get("file")))]) != project


RESERVED: dict[tuple[str, ...], Condition] = {
    ("setup",): _always,
    ("install",): _always,
    ("uninstall",): _always,
    ("init",): _always,  # hooks believe each mailbox that it recorded
    ("restore",): _always,
    ("backup",): _leaves_the_project,
    ("doctor",): _given("repair", "trust"),
    ("steward", "crontab"): _always,
    ("steward", "run"): _given("trust_clock"),
    ("console",): _always,
    ("engine", "join"): _always,
    ("engine", "leave"): _always,
    ("engine", "forget"): _always,
    ("engine", "purge"): _always,
    ("engine", "config"): _always,
    ("engine", "serve"): _always,
    ("notify",): _given("test"),
    ("swarm", "init"): _always,
    ("swarm", "serve"): _always,
    ("swarm", "attach"): _always,
    ("swarm", "detach"): _always,
    ("swarm", "state"): _always,
    ("swarm", "leave"): _always,
    ("swarm", "kick"): _always,
}
"""A command's first words, and the condition under which it is the person's."""
THEIR_WORD: dict[tuple[str, ...], Condition] = {
    ("engine", "join"): _given("keys", "speaks"),
    ("console",): _always,
    ("init",): _given("adopt"),
    ("uninstall",): _given("state"),
    ("doctor",): _given("trust"),
    ("steward", "run"): _given("trust_clock"),
}
"""The person's even if no session is bound: these act as ``user``, or confirm logs or keys."""

_OPTIONS = ("adopt", "repair", "trust", "trust_clock", "test", "state")
"""Options that make a command the person's: a refusal names them, as the command without them is anybody's."""


def check(app: Context, words: Sequence[str], params: Params) -> None:
    """Raise ``Refused`` if the command is the person's and another calls."""
    if not _holds(RESERVED, words, app, params):
        return
    hint = _hint(app, words, params)
    words = [*words, *(f"--{name.replace('_', '-')}" for name in _OPTIONS if params.get(name))]
    caller = app.caller
    if caller.kind == callers.SESSION:
        raise _refused(words, f"this is a process of session {caller.sessions[0]}", hint)
    if caller.kind != callers.PROGRAM:
        return
    if caller.client or _holds(THEIR_WORD, words, app, params):
        raise _refused(words, caller.why if caller.client else f"this is a program: {caller.why}", hint)
    if bound := paths.bound_sessions(paths.state_directory(app.environ)):
        who = frame.some([neutral(one) for one in bound if one], 3) or "nobody can tell which"
        raise _refused(words, f"sessions are bound ({who}), and a program calls: {caller.why}", hint)


def _holds(table: Mapping[tuple[str, ...], Condition], words: Sequence[str], app: Context, params: Params) -> bool:
    condition = next((table[key] for n in (1, 2) if (key := tuple(words[:n])) in table), None)
    return condition is not None and condition(app, params)


def _hint(app: Context, words: Sequence[str], params: Params) -> str:
    """Return what the person may do instead; ``init`` names the place, which another directory would change."""
    if words[0] != "init":
        return "ask the person to run it in their own terminal"
    place = new_place.meant(app, params.get("where"), bool(params.get("in_git")))
    return new_place.for_the_person(place, "--adopt " if params.get("adopt") else "")


def _refused(words: Sequence[str], why: str, hint: str) -> Refused:
    return Refused(
        f"only the person may run `agent-mailbox {' '.join(words)}`: {why}", hint, code=callers.NOT_THE_PERSON
    )
