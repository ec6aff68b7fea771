"""Sessions that have ended and are started again for mail, by the program that the person's own configuration names.

Belongs here: the order of the steps. ``core.waking`` decides. The console looks at each change, and the steward with
each run; no sender's process comes here, and no hook. The program gets a session's id, its client and its directory as
its own start told them, no word of any mail, and no shell. The starts so far are among the user's own records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import codec, instant, text, waking
from ..core.line_forms import may_be_message
from ..core.records import USER, BadLine, Message
from ..core.waking import Woken
from ..errors import Busy
from ..store.files import programs, system
from ..store.files.small_files import read_file, replace_file
from ..store.locks.lock import FileLock
from ..store.log import events
from ..store.log.proof_view import add_proof
from ..store.user_state import processes
from ..store.user_state.processes import ProcessRecords, Whereabouts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..core.roster import Agent
    from ..mailbox.mailbox import Mailbox

_STATE, _LOCK = "wake.json", "wake.lock"


def start_waited_for(mailbox: Mailbox) -> dict[str, str]:
    """Start whom mail waits for, if the person wants it; return an error for each, empty where it was started.

    Raises ``BadData`` for a wrong configuration, and ``Busy``.
    """
    words = mailbox.own.wake.get("command")
    if not words or mailbox.logs.custody is None:
        return {}
    path = mailbox.logs.custody.path
    try:
        with FileLock(path(_LOCK), 0):
            before, now = _parse_state(read_file(path(_STATE))), mailbox.now()
            per_hour = mailbox.own.wake.get("per_hour", waking.PER_HOUR)
            started, woken = waking.due(_wanted_agents(mailbox), before, now, per_hour)
            if woken.ids != before.ids:  # before: whoever dies in between starts too few
                replace_file(path(_STATE), codec.dumps(woken.__dict__).encode("utf-8", "surrogatepass"))
    except Busy as error:
        if error.code != "busy":
            raise
        return {}  # another process looks now
    return {agent.session_id: _start_program(mailbox, agent, words) for agent in started}


def _wanted_agents(mailbox: Mailbox) -> Iterator[tuple[Agent, Message]]:
    """Yield the frozen agents with the mail that may start each."""
    roster, hosts = mailbox.logs.read_roster(), ProcessRecords(mailbox.logs.stamp_files.kept())
    for agent in waking.sleepers(roster):
        where = processes.find_whereabouts(agent.session_id, mailbox.logs.stamp_files.kept()) or Whereabouts()
        if where.mailbox != system.real_directory(mailbox.directory) or agent.session_id.startswith("-"):
            continue  # not started here, or by no hook
        if any(map(hosts.is_living, hosts.hosting(agent.session_id))):
            continue
        found = {i.message.id: i.message for i in mailbox.peek(agent.session_id) if waking.calls(i, roster)}
        for message_id in _proven_among(mailbox, found) if found else ():
            yield agent, found[message_id]


def _proven_among(mailbox: Mailbox, wanted: Mapping[str, Message]) -> list[str]:
    """Return those of the messages whose writer is proven: any program may append a line."""
    view, ids = mailbox.logs.messages.view(), {one.encode("utf-8", "surrogatepass") for one in wanted}
    found: dict[str, None] = {}
    for position, line in mailbox.logs.messages.lines():
        message = codec.message(line) if may_be_message(line, ids) else None
        if not isinstance(message, Message) or message.id not in wanted:
            continue
        if add_proof(message, view, line, position).proof is not None:
            found[message.id] = None
    return list(found)


def _start_program(mailbox: Mailbox, agent: Agent, words: tuple[str, ...]) -> str:
    """Start the person's program for an agent, and leave it; return why it could not, or nothing."""
    where = processes.find_whereabouts(agent.session_id, mailbox.logs.stamp_files.kept()) or Whereabouts()
    values = {"session": agent.session_id, "client": where.client, "cwd": where.directory}
    error = ""
    try:
        programs.leave(text.filled(words, values), directory=where.directory)
    except (OSError, ValueError) as why:
        error = f"{type(why).__name__}: {why}"[:200]
    step = {"who": USER, "what": "wake", "about": agent.session_id, "outcome": "failed" if error else "started"}
    events.note(mailbox.logs, {"timestamp": instant.text(mailbox.now()), **step, "cause": error})
    return error


def _parse_state(content: bytes | None) -> Woken:
    obj = codec.parse(content or b"")
    if isinstance(obj, BadLine):
        return Woken()
    at, ids = obj.get("at"), obj.get("ids")
    if not isinstance(at, list) or not isinstance(ids, list):
        return Woken()
    return Woken(tuple(i for i in at if isinstance(i, int)), tuple(i for i in ids if isinstance(i, str)))
