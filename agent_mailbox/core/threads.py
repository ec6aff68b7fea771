"""Mail as history: correspondence, conversations.

Belongs here: questions that ignore whether mail was read.
"""

from __future__ import annotations

from .address import ALL, DIRECT, role_of, teammate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .records import Message
    from .roster import Roster


def exchanged(messages: Iterable[Message], word: str, roster: Roster) -> list[Message]:
    """Return the messages from or to a written address; raise ``NotFound`` or ``Ambiguous``."""
    word = teammate(word) or word
    if word == ALL or ":" in word or (f"role:{word}" in roster.roles_ever and roster.mode(word) != DIRECT):
        wanted = word if word == ALL or ":" in word else f"role:{word}"
        return [m for m in messages if m.sender == wanted or any(wanted in (a, role_of(a)) for a in m.recipients)]
    agent = roster.find(word)
    lineage = {*roster.lineage(agent.session_id)}
    names = {*lineage, agent.name}
    return [
        m
        for m in messages
        if m.sender in lineage or not lineage.isdisjoint(m.recipients) or not names.isdisjoint(m.bare)
    ]


def thread_of(message_id: str, messages: Mapping[str, Message]) -> list[Message]:
    """Return the whole conversation of a message, oldest first: up to its root, then everything below."""
    root, seen = message_id, {message_id}
    while root in messages:
        parent = messages[root].thread
        if parent is None or parent not in messages or parent in seen:
            break
        seen.add(parent)
        root = parent
    answers: dict[str, list[str]] = {}
    for message in messages.values():
        if message.thread is not None:
            answers.setdefault(message.thread, []).append(message.id)
    members, pending = {root}, [root]
    while pending:
        fresh = [i for i in answers.get(pending.pop(), ()) if i not in members]
        members.update(fresh)
        pending += fresh
    return [message for message in messages.values() if message.id in members]
