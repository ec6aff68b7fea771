"""A client's session as an agent: who it is, what it registers with, how its later commands know it.

Belongs here: the environment variables, the client's environment file. The rules of the roster are
``core.roster_changes``.
"""

from __future__ import annotations

from ...core.address import check_id, check_name, check_role, check_tag
from ...core.records import USER
from ...core.roster import DEAD, FROZEN, Agent, Roster
from ...core.roster_changes import Registration
from ...core.text import neutral
from ...errors import MailboxError, Malformed, Refused
from ...identity import client_variables, hook_calls
from ...known_clients.every_client import USUAL, find_client
from ...mailbox import absence, neighbours
from ...mailbox.registry import Registry
from ...store.files import paths, system
from ...store.files.small_files import Storing
from ...store.user_state import processes, work_trees
from ...store.user_state.processes import Whereabouts
from .. import budget

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ...known_clients.known_client import KnownClient
    from ...mailbox.open_mailbox import OpenMailbox
    from ..client_input import ClientInput

CLEARED = "clear"
"""The client's word for a session that goes on under a new id with an empty context."""
FORKED = "fork"
"""The client's word for a session that goes on with another one's talk under an id of its own."""
BEGINNINGS = ("startup", "resume", FORKED)
"""Beginnings of a client's process, or of another session in it."""
_INHERITED = "has it from the terminal that started it; `agent-mailbox roster update` changes an entry"
GOES_ON = (CLEARED, "resume")
"""Ends after which the client's process has another session."""
SAME_PROCESS = (CLEARED, "compact")
"""Beginnings within a client's process, whose environment was applied as it began."""
ROLE, LEAD = "AGENT_MAILBOX_ROLE", "AGENT_MAILBOX_LEAD"
NAME, TAGS = "AGENT_MAILBOX_NAME", "AGENT_MAILBOX_TAGS"


def begin_session(
    desk: OpenMailbox, call: ClientInput, source: str, environ: Mapping[str, str], program: str
) -> list[str]:
    """Enter the session of a hook's call, and make its later commands know who they are. Returns the lines to tell
    it."""
    me, known = call.session_id, desk.logs.read_roster().get(call.session_id)
    is_new = known is None or known.state == DEAD or known.client is None or call.was_elsewhere(environ)
    where = Whereabouts(directory=call.cwd, client=call.word, conversation=call.conversation)
    told = enter_session(desk, me, source, environ, where)
    if is_new:
        told.insert(0, budget.introduction(me, desk.logs.read_roster(), program))
    try:
        tell_commands(me, environ, is_proven=desk.prove(me) is not None)
    except MailboxError as error:
        told.append(error.what)
    if desk.logs.is_shared:
        from ...space import space as spaces  # a mailbox of one machine is spared it

        told += filter(None, [spaces.why_late(desk.logs)])
    if (why := desk.logs.broken()) is not None:
        told.insert(is_new, budget.alarm(why))
    return [*told, *(f"{desk.logs.path(paths.CONFIG)}: {one.text}" for one in desk.config.faults if not one.note)]


def enter_session(
    desk: OpenMailbox, session_id: str, source: str, environ: Mapping[str, str], where: Whereabouts
) -> list[str]:
    """Register the session, or its return; returns the lines to tell it. ``where`` it works, as its client told it.

    A new session gets role, name, tags and lead from ``AGENT_MAILBOX_ROLE``, ``_NAME``, ``_TAGS``, ``_LEAD`` and the
    configuration, and ``project:`` by itself. Without a name it gets one of the list (``core.given_names``). After a
    ``clear``, and moved into the background, it continues the old one. A fork is told whose copy it is. A known session
    stays who it was, and gets what the variables add. A wish that fails (a taken name, a malformed tag) is left out and
    told; the session registers all the same. A new session's lead is never left out: the person replaces an unusable
    one.
    """
    desk.logs.stamp_files.try_to_disturb(session_id)  # a crash may have restored a stamp (``store.log.stamps``)
    roster = desk.logs.read_roster()
    told: list[str] = []
    kind = find_client(where.client)
    if kind is not None and kind.server:
        environ = _own_environment(kind, environ, told)
    elif others := client_variables.left_out(environ):
        environ = {name: value for name, value in environ.items() if name not in others}
        if source in BEGINNINGS:
            told.append(f"{', '.join(others)} left out: the client's background service {_INHERITED}")
    client = environ.get(USUAL.process_variable) or None
    known = roster.get(session_id)
    old = _cleared_session(roster, client) if source == CLEARED and known is None else None
    if source == FORKED and known is None:
        from . import forks  # a few times in a person's day

        old = forks.moved(desk, session_id, environ)
        if old is None:
            told.append(forks.told(desk, session_id, environ))
    if known is not None and known.state != DEAD and (known.proven or known.client):
        request = Registration(session_id=session_id)
        if source not in SAME_PROCESS:
            request = _added_wishes(desk, known, where.directory, environ, told)
    elif old is not None:
        request = Registration(
            session_id=session_id, name=old.name, tags=old.tags, lead=old.lead, continues=old.session_id
        )
    else:
        request = _wishes_of(desk, session_id, where.directory, environ, told)
    if known is not None and request.lead is not None:
        request = _with_lead(desk, request, known, environ, told)
    _register_wishes(desk, request.replace(client=client), told)
    if old is not None:
        from ...mailbox.session_brake import SessionBrake  # a few times in a person's day

        SessionBrake(desk, session_id).take_over(old.session_id)
    mailbox, state = "" if "AGENT_MAILBOX_DIR" in environ else desk.directory, paths.state_directory(environ)
    before = processes.find_whereabouts(session_id, state)
    if before is not None and before.mailbox not in ("", desk.directory):
        _take_along(session_id, before.mailbox, desk.logs.wait)
    processes.note_whereabouts(session_id, where.replace(mailbox=mailbox), state)
    if told:
        from ...core import shown_ids  # a session that is told so is rare

        told = [shown_ids.shorten_ids(line, desk.logs.read_roster().agents) for line in told]
    return [*told, *neighbours.enter(desk, session_id, where.directory)]


def _take_along(session_id: str, mailbox: str, wait: float) -> None:
    """Mark a session that starts elsewhere as bound, if the mailbox where it was binds it.

    Its mark may be lost, and the note of that mailbox is about to be."""
    from ...control_plane import standing  # a session seldom changes its mailbox
    from ...mailbox.open_mailbox import OpenMailbox
    from ...store.user_state import bindings

    try:
        before = OpenMailbox(mailbox, wait=wait)
        if standing.binds(standing.find_standing(before, session_id), before.logs.read_roster().get(session_id)):
            bindings.bind(before.logs.stamp_files, session_id)
    except MailboxError:
        pass  # it is gone: only a mark closes what cannot be asked


def _own_environment(client: KnownClient, environ: Mapping[str, str], told: list[str]) -> Mapping[str, str]:
    """Return the environment without another's wishes. A hook of a client's server has the environment of the terminal
    that started the server, whichever terminal's session this is."""
    from .. import codex_server  # where such a client calls

    others = [name for name in (ROLE, NAME, TAGS, LEAD) if environ.get(name)]
    if not others or not codex_server.server_above():
        return environ
    told.append(
        f"{', '.join(others)} left out: {client.title}'s background server {_INHERITED};"
        f" `{client.program} --no-daemon` takes a terminal's own"
    )
    return {name: value for name, value in environ.items() if name not in others}


def _register_wishes(desk: OpenMailbox, request: Registration, told: list[str]) -> None:
    """Register with all wishes, else without the name, else without roles and tags, else with the person as lead."""
    absence.note_bearer(desk, request.name, request.session_id)
    bare = request.replace(name=None, roles=None, tags=None, add_tags=(), continues=None)
    led = bare.replace(lead=request.lead and USER)
    for attempt in (request, request.replace(name=None), bare, led):
        try:
            _, decision = Registry(desk).register(attempt, request.session_id, even_away=True)
        except (Refused, Malformed) as error:
            if attempt is led:
                raise
            told.append(f"{error.what}; left out")
        else:
            told += decision.warnings if decision.events else ()
            told[:] = dict.fromkeys(told)
            return


def _wishes_of(
    desk: OpenMailbox, session_id: str, directory: str, environ: Mapping[str, str], told: list[str]
) -> Registration:
    """Return the well-formed wishes of environment and configuration."""
    config = desk.config
    wished = _wishes_of_variables(desk, session_id, environ, told)
    usual = "" if environ.get(ROLE) else config.session_role
    roles = wished.roles or _good_words(_split_words(usual), check_role, told)
    tags = _good_words(config.session_tags, lambda tag: check_tag(tag, config.namespaces), told)
    return wished.replace(
        roles=roles or None,
        add_tags=(*wished.add_tags, *tags, *_project_tag(directory)),
        is_unused=Registry(desk).is_unused,
    )


def _wishes_of_variables(
    desk: OpenMailbox, session_id: str, environ: Mapping[str, str], told: list[str]
) -> Registration:
    """Return the well-formed wishes of the environment."""
    names = [name] if (name := environ.get(NAME, "").strip()) else []
    leads = [lead] if (lead := environ.get(LEAD, "").strip()) else []
    tags = _split_words(environ.get(TAGS))
    return Registration(
        session_id=session_id,
        name=next(iter(_good_words(names, check_name, told)), None),
        lead=next(iter(_good_words(leads, check_id, told)), USER) if leads else None,
        roles=_good_words(_split_words(environ.get(ROLE)), check_role, told) or None,
        add_tags=_good_words(tags, lambda tag: check_tag(tag, desk.config.namespaces), told),
    )


def _good_words(words: Iterable[str], check: Callable[[str], str], told: list[str]) -> tuple[str, ...]:
    found = []
    for word in words:
        try:
            found.append(check(word))
        except MailboxError as error:
            told.append(f"{error.what}; left out")
    return tuple(found)


def _added_wishes(
    desk: OpenMailbox, known: Agent, directory: str, environ: Mapping[str, str], told: list[str]
) -> Registration:
    """Return the wishes of a client's process for a session that was known before: they add to its tags.

    The first client of a session brings the project and the configuration too. The session takes nobody's place: it may
    be resumed within a client that another session named.
    """
    if known.client is None:
        wished = _wishes_of(desk, known.session_id, directory, environ, told)
        roles = wished.roles if environ.get(ROLE) or not known.roles else None
    else:
        wished = _wishes_of_variables(desk, known.session_id, environ, told)
        roles = wished.roles
    name = wished.name if wished.name != known.name else None
    bearer = desk.logs.read_roster().bearer(name) if name is not None else None
    if bearer is not None and bearer.state != DEAD:
        told.append(f"name {name!r} is taken by {bearer.session_id} ({bearer.state}); left out")
        name = None
    return wished.replace(name=name, roles=None, add_tags=(*(roles or ()), *wished.add_tags), is_unused=None)


def _with_lead(
    desk: OpenMailbox, request: Registration, known: Agent, environ: Mapping[str, str], told: list[str]
) -> Registration:
    """Return the request of a known session with the lead that it may have, told if that is not the one it names.

    A session chooses no lead for itself: one of its own making would approve its requests. The person chooses, by the
    environment of the client's process, and only as long as no lead is proven: a command changes that.
    """
    if not (known.proven or known.client or known.lead):
        return request  # only a foreign line registered it so far: see ``core.roster_changes``
    me, wanted = known.session_id, request.lead or USER
    meant = desk.logs.read_roster().meant(wanted)
    wanted = meant.session_id if meant is not None else wanted
    is_kept = desk.logs.custody is not None
    is_settled = not is_kept or (bool(known.proven_leads) and known.proven_leads[-1][1] == known.lead)
    if known.lead == wanted and is_settled:
        return request.replace(lead=None)
    is_free = known.lead is None or not is_settled
    if is_free and (desk.prove(me) is not None or not is_kept) and hook_calls.is_started_with(LEAD, environ):
        return request.replace(lead_by_person=True)
    if wanted != USER or environ.get(LEAD, "").strip() == USER:  # else it is no id, which was told
        why = "only your person names one" if is_free else f"the lead is {known.lead}"
        command = f"agent-mailbox roster update --session-id {me} --lead {wanted}"
        told.append(f"lead {wanted!r} left out: {why}; at a terminal your person may run `{command}`")
    return request.replace(lead=None)


def _split_words(words: str | None) -> list[str]:
    return [word.strip() for word in (words or "").split(",") if word.strip()]


def _project_tag(directory: str) -> tuple[str, ...]:
    """Return ``project:NAME`` of the repository (the same in all its worktrees), else of the directory."""
    name = work_trees.repository(directory) or system.basename(system.real_directory(directory))
    name = "".join(c if c.isalnum() or c in "._@+-" else "-" for c in name).strip("-._@+")[:64]
    return (f"project:{name}",) if name else ()


def _cleared_session(roster: Roster, client: str | None) -> Agent | None:
    """Return the session that this client process just cleared."""
    gone = [a for a in roster.agents.values() if a.state == FROZEN and a.reason == CLEARED and a.client == client]
    return max(gone, key=lambda a: a.changed) if gone and client else None


def end_session(desk: OpenMailbox, call: ClientInput, environ: Mapping[str, str]) -> None:
    """Freeze the session of a hook's call, and note if its client ends with it."""
    me = call.session_id
    Registry(desk).end(me, "freeze", me, neutral(call.reason) or "session ended")
    if call.reason not in GOES_ON:
        hook_calls.note_end(environ)


def tell_commands(session_id: str, environ: Mapping[str, str], *, is_proven: bool) -> None:
    """Make sure the session's later commands know who they are: by the client's own variable if it sets that. Else
    export it in ``CLAUDE_ENV_FILE``, which the client's shell reads; only a checked id goes there. Else by the process
    above them, if this hook proved (``is_proven``) that it is the session's. Raises ``Refused`` if all are impossible:
    the agent must then pass its id each time."""
    path = environ.get(USUAL.export_variable)
    is_known = client_variables.are_told(session_id, environ) or (is_proven and processes.are_shown())
    if not path and not is_known:
        what = f"your commands cannot know that this session is {check_id(session_id)}: {client_variables.ELSE}"
        raise Refused(what, client_variables.ELSE)
    if not path or environ.get(USUAL.session_variable) == session_id:
        return
    line = f"export AGENT_MAILBOX_SESSION='{check_id(session_id)}'\n"
    with Storing("write", path), system.stream(path, "a+", encoding="utf-8", errors="surrogateescape") as file:
        file.seek(0)
        present = file.read()
        if line not in present:
            file.write(line if not present or present.endswith("\n") else "\n" + line)
