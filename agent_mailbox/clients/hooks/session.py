"""A client's session as an agent: who it is, what it registers with, how its later commands know it.

Belongs here: the environment variables, the client's environment file. The rules of the roster are
``core.roster_changes``.
"""

from __future__ import annotations

from ...core.address import check_id, check_name, check_role, check_tag
from ...core.records import USER
from ...core.roster import DEAD, FROZEN, Agent, Roster
from ...core.roster_changes import Registration
from ...errors import MailboxError, Malformed, Refused
from ...identity import client_variables
from ...mailbox import absence
from ...mailbox.registry import Registry
from ...store import creation, paths, system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...mailbox.opened import OpenMailbox

CLEARED = "clear"
"""The client's word for a session that goes on under a new id with an empty context."""


def enter(desk: OpenMailbox, session_id: str, source: str, directory: str, environ: Mapping[str, str]) -> list[str]:
    """Register the session, or its return; returns the lines to tell it.

    A new session gets role, name, tags and lead from ``AGENT_MAILBOX_ROLE``, ``_NAME``, ``_TAGS``, ``_LEAD`` and the
    configuration, and ``project:`` by itself. After a ``clear`` it continues the old one. A resumed or compacted
    session stays who it was. A wish that fails (a taken name, a malformed tag) is left out and told; the session
    registers all the same. A lead is never left out: the person replaces an unusable one.
    """
    desk.logs.trail.disturb([session_id])  # a crash may have restored a stamp (``store.stamps``)
    roster = desk.logs.read_roster()
    told: list[str] = []
    client = environ.get("CLAUDE_PID") or None
    known = roster.get(session_id)
    old = _cleared(roster, client) if source == CLEARED and known is None else None
    if known is not None and known.state != DEAD and (known.proven or known.client):
        request = Registration(session_id=session_id, client=client)
    elif old is not None:
        request = Registration(
            session_id=session_id,
            name=old.name,
            tags=old.tags,
            lead=old.lead,
            continues=old.session_id,
            client=client,
        )
    else:
        request = _wishes(desk, session_id, directory, environ, told).replace(client=client)
    _register(desk, request, told)
    if "AGENT_MAILBOX_DIR" not in environ:
        creation.point(session_id, desk.directory, environ)
    return told


def _register(desk: OpenMailbox, request: Registration, told: list[str]) -> None:
    """Register with all wishes, else without the name, else without roles and tags."""
    absence.note_bearer(desk, request.name, request.session_id)
    bare = Registration(session_id=request.session_id, client=request.client, lead=request.lead and USER)
    for attempt in (request, request.replace(name=None), bare):
        try:
            _, decision = Registry.sharing(desk).register(attempt, request.session_id)
        except (Refused, Malformed) as error:
            if attempt is bare:
                raise
            told.append(f"{error.what}; left out")
        else:
            told += decision.warnings if decision.events else ()
            told[:] = dict.fromkeys(told)
            return


def _wishes(
    desk: OpenMailbox, session_id: str, directory: str, environ: Mapping[str, str], told: list[str]
) -> Registration:
    """Return the well-formed wishes of environment and configuration."""
    config = desk.config

    def good(words: list[str], check: Callable[[str], str]) -> tuple[str, ...]:
        found = []
        for word in words:
            try:
                found.append(check(word))
            except MailboxError as error:
                told.append(f"{error.what}; left out")
        return tuple(found)

    names = [name] if (name := environ.get("AGENT_MAILBOX_NAME", "").strip()) else []
    leads = [lead] if (lead := environ.get("AGENT_MAILBOX_LEAD", "").strip()) else []
    roles = _listed(environ.get("AGENT_MAILBOX_ROLE") or config.session_role)
    tags = [*_listed(environ.get("AGENT_MAILBOX_TAGS")), *config.session_tags]
    return Registration(
        session_id=session_id,
        name=next(iter(good(names, check_name)), None),
        lead=next(iter(good(leads, check_id)), USER) if leads else None,
        roles=good(roles, check_role) or None,
        add_tags=(*good(tags, lambda tag: check_tag(tag, config.namespaces)), *_project(directory)),
    )


def _listed(words: str | None) -> list[str]:
    return [word.strip() for word in (words or "").split(",") if word.strip()]


def _project(directory: str) -> tuple[str, ...]:
    """Return ``project:NAME`` of the repository (the same in all its worktrees), else of the directory."""
    name = creation.repository(directory) or system.basename(system.real_path(directory))
    name = "".join(c if c.isalnum() or c in "._@+-" else "-" for c in name).strip("-._@+")[:64]
    return (f"project:{name}",) if name else ()


def _cleared(roster: Roster, client: str | None) -> Agent | None:
    """Return the session that this client process just cleared."""
    gone = [a for a in roster.agents.values() if a.state == FROZEN and a.reason == CLEARED and a.client == client]
    return max(gone, key=lambda a: a.changed) if gone and client else None


def tell_commands(session_id: str, environ: Mapping[str, str]) -> None:
    """Make sure the session's later commands know who they are: by the client's own variable if it sets that. Else
    export it in ``CLAUDE_ENV_FILE``, which the client's shell reads; only a checked id goes there. Raises ``Refused``
    if both are impossible: the agent must then pass its id each time."""
    path = environ.get("CLAUDE_ENV_FILE")
    if not path and not client_variables.are_told(session_id, environ):
        what = f"your commands cannot know that this session is {check_id(session_id)}: {client_variables.ELSE}"
        raise Refused(what, client_variables.ELSE)
    if not path or environ.get(client_variables.CLAUDE) == session_id:
        return
    line = f"export AGENT_MAILBOX_SESSION='{check_id(session_id)}'\n"
    try:
        with system.stream(path, "a+", encoding="utf-8", errors="surrogateescape") as file:
            file.seek(0)
            present = file.read()
            if line not in present:
                file.write(line if not present or present.endswith("\n") else "\n" + line)
    except OSError as error:
        raise paths.storage_failed("write", path, error) from None
