"""Claude Code's background service, by which ``up`` begins and brings back sessions (``claude --bg``).

Belongs here: what it says and writes (seen with 2.1.329). It chooses the id of a new session, tells its beginning, and
writes the rest into files of its own, by and by. The session's first hook comes a second later: that second is all
there is to register it before. It makes a copy of a session that it still holds.
"""

from __future__ import annotations

import contextlib
import os
from functools import partial
from typing import TYPE_CHECKING

from ...core.text import neutral
from ...errors import MailboxError, Refused
from ...identity import session_registry
from ...known_clients.claude_code import CLAUDE_CODE
from ...store.files import small_files
from ..foreign_fields import read_object
from .start import LAST, STOPS, Begun, run_client, wait_while

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from ...store.user_state.team_records import TeamRecord
    from .start import Start

_SAID = 8
"""Characters of an id that the client says; chance gives no other session the same."""
_SHORTLY = 3.0
"""Seconds in which the service lists a session that it was told to begin."""


def start_claude(start: Start, register: Callable[[str], None], environ: Mapping[str, str]) -> Begun:
    """Have the service begin or bring back a session."""
    if start.session_id:
        if session_registry.job_of(start.session_id, environ) is not None:  # as after a restart: it would make a copy
            run_client([*start.words, "stop", start.session_id[:8]], start.directory, environ, STOPS)
            wait_while(lambda: session_registry.job_of(start.session_id, environ) is not None, LAST)
        register(start.session_id)
    call = _Call(start, environ)
    with call.ended_if_lost():
        me = call.begin()
        if not start.session_id:
            register(me)
    return Begun(me)


def claude_words(start: Start, me: str) -> list[str]:
    """Return the words that say which session, where, and with which model."""
    which = ["--resume", me] if start.session_id else ["--session-id", me] if me else []
    tree = ["--worktree", start.name] if start.worktree and not start.session_id else []
    return [*which, *tree, *(["--model", start.model] if start.model else [])]


def has_talk(session_id: str, environ: Mapping[str, str]) -> bool:
    """Return whether Claude Code still has the session's talk, without which it can bring back nothing. It removes old
    ones, and a session that was killed in its first turn has none. True if it is unknown."""
    projects = os.path.join(CLAUDE_CODE.find_home(environ), "projects")
    names = small_files.list_names(projects)
    return not names or any(os.path.exists(os.path.join(projects, name, f"{session_id}.jsonl")) for name in names)


def begun_since(prompt: str, directory: str, before: Collection[str], environ: Mapping[str, str]) -> list[str]:
    """Return the sessions that the service has since, of that prompt and place: another team may start its own now."""
    place, jobs = os.path.realpath(directory), session_registry.list_jobs(environ)
    since = (one for one in jobs if one.session_id not in before and one.prompt == prompt)
    return [one.session_id for one in since if os.path.realpath(one.directory) == place]


def with_lost(record: TeamRecord, file: str, environ: Mapping[str, str], *, waits: bool) -> TeamRecord:
    """Return a team's record with each session that its client began, and whose `up` was killed before it knew that;
    without those that never began. ``waits``: one may only just begin."""
    members, directory = dict(record.members), os.path.dirname(file)
    for name in [name for name, one in members.items() if one.prompt and not one.session_id and not one.pid]:
        one = members.pop(name)
        look = partial(begun_since, one.prompt, directory, one.before, environ)
        for me in _look_shortly(look, waits=waits)[:1] if one.client == CLAUDE_CODE.word else ():
            members[name] = one.replace(session_id=me)
    return record.replace(members=members)


def _look_shortly(look: Callable[[], list[str]], *, waits: bool) -> list[str]:
    wait_while(lambda: not look(), _SHORTLY if waits else 0)
    return look()


class _Call:
    """A call of ``claude --bg``, and what came of it."""

    def __init__(self, start: Start, environ: Mapping[str, str]) -> None:
        self._start, self._environ = start, environ
        self._before = {job.session_id for job in session_registry.list_jobs(environ)}
        self._told = ""

    def begin(self) -> str:
        """Return the session that the service began or brought back."""
        start = self._start
        words = [*start.words, "--bg", *claude_words(start, start.session_id), "--", start.prompt]
        said = run_client(words, start.directory, self._environ)
        told = "".join(said.partition("backgrounded")[2].split()[1:2])
        self._told = told if told.isalnum() else ""
        if start.session_id:
            if self._strangers():
                raise Refused("Claude Code made a copy of its session", "run `up` again in a few seconds")
            return start.session_id
        wait_while(lambda: not self._find(), LAST)
        if me := self._find():
            return me
        raise Refused(f"Claude Code did not say which session it began: {neutral(said)[:200]}", "see `claude agents`")

    def _find(self) -> str:
        """Return the id of the new session, as its own file tells it, else the service's list. Any program may write
        these: only an id that begins as the client itself said gets the member's name."""
        if len(self._told) < _SAID:
            return ""
        state = os.path.join(CLAUDE_CODE.find_home(self._environ), "jobs", self._told, "state.json")
        told = read_object(state).get("sessionId")
        found = [told] if isinstance(told, str) else self._listed()
        return next((one for one in found if one.startswith(self._told)), "")

    def _listed(self) -> list[str]:
        """Return the sessions that the service has since, and that seem to come of this call, or are a copy."""
        start = self._start
        if not start.session_id:
            return begun_since(start.prompt, start.directory, self._before, self._environ)
        since = (one for one in session_registry.list_jobs(self._environ) if one.session_id not in self._before)
        return [one.session_id for one in since if one.before == start.session_id]

    def _strangers(self) -> set[str]:
        """Return by their short ids what came of the call, beside the session that is brought back."""
        found = {one[:_SAID] for one in self._listed()}
        found |= set() if any(one.startswith(self._told) for one in found) else {self._told}
        return {one for one in found if not self._start.session_id.startswith(one)}

    @contextlib.contextmanager
    def ended_if_lost(self) -> Iterator[None]:
        """End what came of the call if a ``with`` block fails: nothing else would know of it."""
        try:
            yield
        except BaseException as error:
            if not isinstance(error, MailboxError):  # interrupted: the service may only just have got it
                wait_while(lambda: not self._strangers(), _SHORTLY)
            for one in self._strangers():
                try:
                    run_client([*self._start.words, "stop", one], self._start.directory, self._environ, STOPS)
                    how = "was ended"
                except Refused as failed:
                    how = f"may run on, as {failed.what}: `claude stop {one}` ends it"
                if isinstance(error, MailboxError):
                    error.what += f"; session {one}, which it began, {how}"
            raise
