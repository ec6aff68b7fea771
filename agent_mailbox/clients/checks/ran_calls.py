"""Calls of a bound session that another tool's hook changed, in clients that show a hook behind a tool what ran.

Belongs here: the inputs that were let pass, until the client shows what ran, and the comparison. Codex (0.169.0) and
OpenCode (1.18.33) name the call by an id. Gemini CLI (0.61.0) and Copilot CLI (1.0.102) do not.
There an input that was not let pass took the place of the last one of its tool. All was seen live. Claude Code is
``changed_calls``' part.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

from ...core import codec
from ...core.text import ascii_json
from ...errors import MailboxError
from ...known_clients.known_client import PERMIT
from ...permissions.policy import DENY
from ...store.files import paths, system
from ...store.files.small_files import write_if_possible
from ...store.locks.lock import FileLock
from ..client_input import LOCK_WAIT
from ..transcript import event_of, fields_of
from . import hook_sources
from .changed_calls import MOST_TOLD, ChangedCall, listed, load_state, show_input, tell_once

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...mailbox.open_mailbox import OpenMailbox
    from ...permissions.policy import Judgement
    from ..client_input import ClientInput

_UNKNOWN = "of another tool, in no file that we know"
_MOST_NAMED = 3


def keep_input(call: ClientInput, answer: str, environ: Mapping[str, str]) -> None:
    """Keep the input with which the call may go on by our answer, if the session may be bound."""
    state = paths.state_directory(environ)
    if call.event != PERMIT or not call.only_denies or not paths.is_bound(state, call.session_id):
        return
    if (given := _let_pass(call, answer)) is None:
        return
    path = system.join(state, paths.CHANGED, call.session_id)
    try:
        system.make_directory(system.dirname(path))
        with FileLock(path, LOCK_WAIT):
            known = load_state(path)
            kept = [*listed(known.get("kept")), [call.use_id, call.tool, _digest(given), show_input(given)]]
            write_if_possible(path, codec.dumps({**known, "kept": kept[-MOST_TOLD:]}).encode())
    except (MailboxError, OSError):
        pass  # it changes no answer


def compare_input(
    call: ClientInput,
    box: OpenMailbox,
    judge: Callable[[str, Mapping[str, Any]], Judgement],
    environ: Mapping[str, str],
) -> None:
    """Tell the lead and the person if the call behind us ran with another input than was let pass. They hear of a hook
    once, and once more when it made a call that the rules deny. ``judge`` asks those."""
    path = box.logs.stamp_files.kept(paths.CHANGED, call.session_id)
    if call.given is None or not system.exists(path):
        return
    try:
        with FileLock(path, LOCK_WAIT):
            known = load_state(path)
            kept, said = listed(known.get("kept")), listed(known.get("told"))
            found = _find(kept, call)
            if found is None:
                return
            kept.remove(found)
            if found[2] != _digest(call.given):
                asked, hook = {"command": found[3]}, _name_hooks(call, environ)
                changed = ChangedCall(use_id=call.use_id, tool=call.tool, asked=asked, ran=call.given, hook=hook)
                tell_once(box, call.session_id, changed, judge(call.tool, call.given), said)
            write_if_possible(path, codec.dumps({**known, "kept": kept, "told": said[-MOST_TOLD:]}).encode())
    except (MailboxError, OSError):
        pass  # it changes no answer


def _find(kept: list[Any], call: ClientInput) -> Any:
    """Return what was let pass as this call, by its id. Without ids it is an equal one, or else the last of its
    tool."""
    whole = [one for one in kept if isinstance(one, list) and len(one) == 4 and one[1] == call.tool]
    if call.use_id:
        return next((one for one in whole if one[0] == call.use_id), None)
    wanted = _digest(call.given or {})
    return next((one for one in whole if one[2] == wanted), whole[-1] if whole else None)


def _let_pass(call: ClientInput, answer: str) -> Mapping[str, Any] | None:
    """Return the input that our answer lets pass; None if it denies the call."""
    said = fields_of(event_of(answer.encode("utf-8", "surrogatepass")).get("hookSpecificOutput"))
    given, changed = call.given or {}, said.get("updatedInput")
    if said.get("permissionDecision") == DENY:
        return None
    if not isinstance(changed, dict):
        return given
    return {**given, "command": changed["command"]} if "command" in changed else changed


def _digest(given: Mapping[str, Any]) -> str:
    """Return what tells an input from another one; its description runs nothing."""
    plain = {key: value for key, value in given.items() if key != "description"}
    return sha256(ascii_json(codec.dumps(plain, -codec.MAX_DEPTH)).encode()).hexdigest()


def _name_hooks(call: ClientInput, environ: Mapping[str, str]) -> str:
    """Return the hooks of other tools that may have changed it, as far as the client's files show them."""
    found = hook_sources.find_changing(call.client, call.cwd, environ) if call.client else ()
    names = dict.fromkeys(command for _, command in found)
    return " or ".join(list(names)[:_MOST_NAMED]) or _UNKNOWN
