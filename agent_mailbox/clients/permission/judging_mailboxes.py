"""The mailboxes that judge a tool call: the one where the session is now, and each that its mark names.

Belongs here: which these are, and the strictest of their answers. ``permit`` has one mailbox's judgement.

A session may be resumed from elsewhere, or a settings file may name another mailbox. Its bounds go along: all must
agree, and one that is missing closes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...control.requests import Requests
from ...core.address import check_id
from ...core.text import typed
from ...mailbox.open_mailbox import OpenMailbox
from ...permissions.policy import DENY
from ...store.files import paths, system
from ...store.user_state import bindings
from ..client_input import LOCK_WAIT
from ..transcript import event_of
from . import permit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...core.records import Proof
    from ..client_input import ClientInput

    Answer = tuple[str | None, str]
    """A mailbox's decision, and the words for the client."""


def answer_call(
    call: ClientInput,
    directory: str | None,
    environ: Mapping[str, str],
    *,
    program: str,
    prove: Callable[[], Callable[[str], Proof | None]],
    write: Callable[[str], None],
) -> None:
    """Answer the client; say nothing if no mailbox binds the session. ``directory``: the mailbox where it is now.

    Raises what a mailbox raises that cannot be asked: the session is closed then, if anything may bind it."""
    state, me = paths.state_directory(environ), check_id(call.session_id)
    named = bindings.named(state, me)
    here = system.identity(directory) if directory and named else None
    elsewhere = [name for name in named or () if here is None or system.identity(name) != here]
    places = [*elsewhere, *([directory] if directory else [])]  # its own last: the stamp that frees it names that
    if (why := next(filter(None, map(_why_moved, named or ())), "")) or not places:
        if named is not None:
            write(permit.closed_answer(call.event, why or _unknown_mailbox(state, me)))
        return
    found: list[Answer] = []
    is_bound = False
    for place in places:
        box = OpenMailbox(place, wait=LOCK_WAIT, prove=prove())
        if box.logs.custody is None and named is not None and (place in elsewhere or len(elsewhere) == len(named)):
            write(permit.closed_answer(call.event, "another mailbox replaced its own"))
            return
        told: list[str] = []
        several = len(places) > 1
        judge = permit.Permit(call, Requests(box), environ, program, told.append if several else write, several)
        try:
            binds = judge.answer_question()
        except Exception:  # whoever calls closes the session; what was said until then is said
            for text in told:
                write(text)
            raise
        is_bound = is_bound or binds
        if binds and several:
            found += [(_decision_of(text), text) for text in told or ("",)]
        if found and found[-1][0] == DENY:
            break
    if named == [] and not is_bound:
        write(permit.closed_answer(call.event, _unknown_mailbox(state, me)))
        return
    _, strictest = min(found, key=lambda one: permit.STRICTEST.index(one[0]), default=(None, ""))
    if strictest:
        write(strictest)


def _why_moved(name: str) -> str:
    """Return why a mailbox by its real path is not where it was: a link in its place may lead to any other."""
    return "" if system.real_directory(name) == name else f"a link is in the place of its mailbox {name}"


def _unknown_mailbox(state: str, session_id: str) -> str:
    mark = system.join(state, paths.BOUND, session_id)
    return f"{mark} names no mailbox; if nothing is to bind it, its person runs `rm -r {typed(mark)}`"


def _decision_of(text: str) -> str | None:
    """Return what an answer decides, of those that ``permit.decision_answer`` writes."""
    body = event_of(text.encode()).get("hookSpecificOutput", {})
    found: str | None = body.get("permissionDecision") or body.get("decision", {}).get("behavior")
    return found
